"""The priorities of an order artifact: which objects are applied together, and in which stages they are deleted (MC-013, MC-014)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from kubevnfm_csar.artifact_order import limit_s
from kubevnfm_csar.waits import Wait

from kubevnfm_infra_k8s.domain.objects import CLAIMS, ObjectKey, Wanted
from kubevnfm_infra_k8s.domain.planning.order import deletion_stages

_LAST: Final = frozenset({"Namespace", "PersistentVolume", CLAIMS.kind})
"""Deleted after the objects of all priorities: a pod holds its claim, a claim its volume, and a namespace takes all it has with it."""


@dataclass(frozen=True)
class Stage:
    """Objects of one priority; the next stage begins when each wait of this one holds."""

    number: int
    """From 1."""
    count: int
    """The number of stages."""
    objects: Sequence[Wanted]
    is_ordered: bool = True
    """Whether an order artifact makes the stages; if not, there is one, and nothing waits for it."""

    def __str__(self) -> str:
        return f"priority {self.number} of {self.count}"

    def awaited(self, only: Collection[ObjectKey], default_s: float) -> Mapping[float, Sequence[Wanted]]:
        """Return those of the objects for which the stage waits, by the limit of the wait in seconds, the shortest first."""
        limits: dict[float, list[Wanted]] = {}
        for each in self.objects:
            artifact = each.artifact
            if artifact is not None and artifact.wait is not Wait.NONE and each.key in only:
                own_s = default_s if artifact.timeout_s is None else float(artifact.timeout_s)
                limits.setdefault(own_s, []).append(each)
        return dict(sorted(limits.items()))


def stages(objects: Sequence[Wanted]) -> Sequence[Stage]:
    """Return the stages in which to apply; objects without a place in the order are among the first ones."""
    if not any(each.artifact is not None for each in objects):
        return [Stage(1, 1, objects, is_ordered=False)]
    lowest = min(each.artifact.priority for each in objects if each.artifact is not None)

    def priority(each: Wanted) -> int:
        return lowest if each.artifact is None else each.artifact.priority

    groups = [list(group) for _, group in groupby(sorted(objects, key=priority), key=priority)]
    return [Stage(number, len(groups), group) for number, group in enumerate(groups, start=1)]


def longest_wait_s(objects: Sequence[Wanted], default_s: float) -> float:
    """Return the time in which all objects are ready or have failed; ``default_s``: of a wait without a limit of its own."""
    artifacts = [each.artifact for each in objects if each.artifact is not None]
    return max(default_s, limit_s(artifacts, default_s))


def is_ready_awaited(wanted: Wanted) -> bool:
    """Return whether an operation ends only when the object is ready (MC-013)."""
    return wanted.artifact is None or wanted.artifact.wait not in (Wait.NONE, Wait.EXISTS)


def bring_down_stages(
    priorities: Mapping[ObjectKey, int | None], *, webhooks_first: bool = False
) -> Sequence[Sequence[ObjectKey]]:
    """Return the stages of a deletion; each must be complete before the next begins.

    ``priorities``: of the objects in the order in which they were applied; None for an object without a place in an order.
    Such objects are deleted last. ``webhooks_first``: see `deletion_stages`.
    """
    if all(priority is None for priority in priorities.values()):
        return deletion_stages(list(priorities), webhooks_first=webhooks_first)
    last = [key for key in priorities if key.kind in _LAST and not key.is_custom]
    found: list[Sequence[ObjectKey]] = []
    for priority in sorted({-1 if each is None else each for each in priorities.values()}, reverse=True):
        keys = [key for key, own in priorities.items() if (-1 if own is None else own) == priority and key not in last]
        found += deletion_stages(keys, webhooks_first=webhooks_first)
    return [*found, *deletion_stages(last)]
