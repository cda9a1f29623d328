"""Hooks: objects that run at a point of an operation instead of being kept in the cluster (multicloud.md MC-141)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

HOOK_ANNOTATION: Final = "kubevnfm.io/hook"
MOST_HOOKS: Final = 1000
"""The most hooks of a VNF: their runs are stored with it, after each step of each."""
_HELM_HOOK: Final = "helm.sh/hook"
_HELM_WEIGHT: Final = "helm.sh/hook-weight"
_HELM_DELETE: Final = "helm.sh/hook-delete-policy"
_HEAVIEST: Final = 1_000_000
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,8}")


class Point(StrEnum):
    """When a hook runs."""

    PRE_APPLY = "pre-apply"
    POST_APPLY = "post-apply"
    PRE_DELETE = "pre-delete"
    POST_DELETE = "post-delete"
    ON_FAILURE = "on-failure"
    """Once when an apply has failed."""
    TEST = "test"
    """In a health check. Hooks of Helm alone have it."""


class Occasion(StrEnum):
    """The purpose of an apply."""

    CREATE = "create"
    UPDATE = "update"
    ROLLBACK = "rollback"


class HookDelete(StrEnum):
    """When the object of a hook is deleted."""

    BEFORE_CREATION = "before-creation"
    """An object of an earlier run, before the hook runs again."""
    ON_SUCCESS = "on-success"
    ON_FAILURE = "on-failure"


APPLIES: Final = frozenset({Point.PRE_APPLY, Point.POST_APPLY})
"""The points that an occasion limits."""
DELETIONS: Final = frozenset({Point.PRE_DELETE, Point.POST_DELETE})
OF_ORDERS: Final = tuple(each for each in Point if each is not Point.TEST)
"""The points that an order, or an annotation of ours, may name."""
USUAL_DELETE: Final = frozenset({HookDelete.BEFORE_CREATION})


@dataclass(frozen=True)
class Hook:
    """When the object of a hook is created, and when it is deleted."""

    at: frozenset[tuple[Point, Occasion]]
    """The points and occasions; a point that no occasion limits has all of them."""
    delete: frozenset[HookDelete] = USUAL_DELETE
    weight: int | None = None
    """Its place among the hooks of a point; None: the priority of its artifact."""

    @property
    def points(self) -> frozenset[Point]:
        """The points at which it runs."""
        return frozenset(point for point, _ in self.at)

    def runs_at(self, point: Point, occasion: Occasion) -> bool:
        """Return whether it runs at a point of an operation."""
        return (point, occasion) in self.at


def a_hook(
    point: Point,
    occasions: Iterable[Occasion] = tuple(Occasion),
    delete: Collection[HookDelete] = USUAL_DELETE,
) -> Hook:
    """Return the hook of a point."""
    return Hook(frozenset((point, each) for each in occasions), frozenset(delete))


_HELM: Final[Mapping[str, tuple[Point, Collection[Occasion]]]] = {
    "pre-install": (Point.PRE_APPLY, [Occasion.CREATE]),
    "pre-upgrade": (Point.PRE_APPLY, [Occasion.UPDATE]),
    "pre-rollback": (Point.PRE_APPLY, [Occasion.ROLLBACK]),
    "post-install": (Point.POST_APPLY, [Occasion.CREATE]),
    "post-upgrade": (Point.POST_APPLY, [Occasion.UPDATE]),
    "post-rollback": (Point.POST_APPLY, [Occasion.ROLLBACK]),
    "pre-delete": (Point.PRE_DELETE, tuple(Occasion)),
    "post-delete": (Point.POST_DELETE, tuple(Occasion)),
    "test": (Point.TEST, tuple(Occasion)),
    "test-success": (Point.TEST, tuple(Occasion)),
}
_HELM_POLICIES: Final = {
    "before-hook-creation": HookDelete.BEFORE_CREATION,
    "hook-succeeded": HookDelete.ON_SUCCESS,
    "hook-failed": HookDelete.ON_FAILURE,
}


def helm_hook(body: Mapping[str, Any]) -> Hook | None:
    """Return the hook that an object of a chart is; None if it is none.

    Raises ValueError for annotations that Helm does not know.
    """
    annotations = _annotations(body)
    given = annotations.get(_HELM_HOOK)
    if not isinstance(given, str):
        return None
    at: set[tuple[Point, Occasion]] = set()
    for name in _words(given):
        if name not in _HELM:
            raise ValueError(f"{_HELM_HOOK}: one of {', '.join(_HELM)} expected, not {name[:100]}")
        point, occasions = _HELM[name]
        at.update((point, occasion) for occasion in occasions)
    if not at:
        return None
    policies = _words(annotations.get(_HELM_DELETE))
    if wrong := [each for each in policies if each not in _HELM_POLICIES]:
        raise ValueError(f"{_HELM_DELETE}: one of {', '.join(_HELM_POLICIES)} expected, not {wrong[0][:100]}")
    delete = frozenset(_HELM_POLICIES[each] for each in policies) or USUAL_DELETE
    return Hook(frozenset(at), delete, _weight(annotations.get(_HELM_WEIGHT, "0")))


def _weight(given: object) -> int:
    text = str(given).strip()
    if _WHOLE.fullmatch(text) is None or abs(int(text)) > _HEAVIEST:
        raise ValueError(f"{_HELM_WEIGHT}: a whole number from -{_HEAVIEST} to {_HEAVIEST} expected")
    return int(text)


def _words(given: object) -> list[str]:
    return [each for word in given.split(",") if (each := word.strip().lower())] if isinstance(given, str) else []


def _annotations(body: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = body.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return annotations if isinstance(annotations, Mapping) else {}
