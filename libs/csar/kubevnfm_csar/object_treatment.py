"""How one object is applied: whether it is written at all, which of its fields, and when it is kept (multicloud.md MC-106a, c, d).

An order says it of artifacts and of single objects, annotations say it of the object that has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

APPLY_ANNOTATION: Final = "kubevnfm.io/apply"
IGNORE_ANNOTATION: Final = "kubevnfm.io/ignore-fields"
KEEP_ANNOTATION: Final = "kubevnfm.io/keep"
KEPT_FROM_ANNOTATION: Final = "kubevnfm.io/kept-from"
"""On an object that was kept: the VNF that has left it. On a manifest: the VNF whose object it adopts."""
REPLACE_ANNOTATION: Final = "kubevnfm.io/replace"
"""``"true"``: a change of package may delete the object and create it again, if a field of it cannot be changed."""
HELM_ANNOTATION: Final = "helm.sh/resource-policy"
MOST_FIELDS: Final = 50
_LONGEST_POINTER: Final = 512
OWN_KEYS: Final = (
    "kubevnfm.io/",
    "tacker_vnf_instance_id",
    "k8splugin.io/rb-instance-id",
    "app.kubernetes.io/managed-by",
)
"""Labels and annotations that kubevnfm needs to know its objects, or what they begin with."""
_LABELS: Final = frozenset({"labels", "annotations"})

T = TypeVar("T")
FieldPath = tuple[str, ...]
"""The tokens of a JSON Pointer. That of an element of a list names it by a member that identifies it: ``name=web``."""


class Applying(StrEnum):
    """The way in which an object is applied."""

    SERVER_SIDE = "server-side"
    CREATE_ONLY = "create-only"
    """It is made if it is absent, and never changed afterwards."""
    READ_ONLY = "read-only"
    """It has to exist, and is awaited; others may own it."""


class Keep(StrEnum):
    """The deletion that leaves an object."""

    ON_DELETE = "on-delete"
    """That of the instance."""
    ON_CHANGE = "on-change"
    """That of an object which a change no longer has."""


KEEPS_ALL: Final = frozenset(Keep)


@dataclass(frozen=True)
class Said:
    """The rules in the annotations of an object; None: none."""

    applying: Applying | None = None
    ignored: tuple[FieldPath, ...] | None = None
    """The fields that are left out of every apply after the object exists."""
    keeps: frozenset[Keep] | None = None


def read_applying(value: object) -> Applying:
    """Return how an object is applied. Raises ValueError."""
    if not isinstance(value, str) or value not in set(Applying):
        raise ValueError(f"one of {', '.join(Applying)} expected")
    return Applying(value)


def read_keeps(values: object) -> frozenset[Keep]:
    """Return when an object is kept. Raises ValueError."""
    if not isinstance(values, list) or not values or not all(isinstance(each, str) for each in values):
        raise ValueError(f"a list of {' and '.join(Keep)} expected")
    if not set(Keep).issuperset(values):
        raise ValueError(f"{' and '.join(Keep)} expected, and nothing else")
    return frozenset(map(Keep, values))


def read_ignored(values: object) -> tuple[FieldPath, ...]:
    """Return the fields that are left out. Raises ValueError."""
    if not isinstance(values, list) or not values or not all(isinstance(each, str) for each in values):
        raise ValueError("a list of JSON Pointers expected")
    if len(values) > MOST_FIELDS:
        raise ValueError(f"at most {MOST_FIELDS} JSON Pointers expected")
    return tuple(dict.fromkeys(map(_read_pointer, values)))


def _read_pointer(text: str) -> FieldPath:
    shown = text[:100]
    if len(text) > _LONGEST_POINTER or not text.startswith("/") or "//" in text or text.endswith("/"):
        raise ValueError(f"a JSON Pointer such as /spec/replicas expected, not {shown!r}")
    if text.replace("~0", "").replace("~1", "").find("~") >= 0:
        raise ValueError(f"~0 or ~1 expected after each ~ in {shown!r}")
    path = tuple(token.replace("~1", "/").replace("~0", "~") for token in text[1:].split("/"))
    if path[0] in ("apiVersion", "kind", "status") or (
        path[0] == "metadata" and (len(path) == 1 or path[1] not in _LABELS)
    ):
        raise ValueError(f"{shown}: not expected; of the metadata only labels and annotations may be ignored")
    if path[0] == "metadata" and len(path) > 2 and path[2].startswith(OWN_KEYS):
        raise ValueError(f"{shown}: not expected; kubevnfm knows its objects by it")
    return path


def said_by(annotations: Mapping[str, object], problems: list[str]) -> Said:
    """Return what annotations say of their object; what is wrong with them is added to ``problems``."""

    def read(name: str, reader: Callable[[object], T]) -> T | None:
        if name not in annotations:
            return None
        try:
            return reader(annotations[name])
        except ValueError as error:
            problems.append(f"{name}: {error}")
            return None

    keeps = read(KEEP_ANNOTATION, _kept)
    return Said(
        read(APPLY_ANNOTATION, read_applying),
        read(IGNORE_ANNOTATION, lambda text: read_ignored(_listed(text))),
        KEEPS_ALL if keeps is None and annotations.get(HELM_ANNOTATION) == "keep" else keeps,
    )


def keeps_of(annotations: Mapping[str, object]) -> frozenset[Keep]:
    """Return when an object is kept by its annotations, also those of an object in a cluster; a wrong one says nothing."""
    if KEEP_ANNOTATION in annotations:
        try:
            return _kept(annotations[KEEP_ANNOTATION])
        except ValueError:
            return frozenset()
    return KEEPS_ALL if annotations.get(HELM_ANNOTATION) == "keep" else frozenset()


def _kept(text: object) -> frozenset[Keep]:
    if text in ("true", "false"):
        return KEEPS_ALL if text == "true" else frozenset()
    return read_keeps(_listed(text))


def _listed(text: object) -> list[str]:
    return [each.strip() for each in str(text).split(",") if each.strip()]


def contradictions(members: Iterable[str], applying: Applying) -> list[str]:
    """Return the members that say nothing beside a way to apply; ``members``: by the names in an order."""
    without = {
        Applying.SERVER_SIDE: (),
        Applying.CREATE_ONLY: ("conflict", "ignore_fields"),
        Applying.READ_ONLY: ("conflict", "ignore_fields", "keep"),
    }[applying]
    return [f"{name}: not expected with apply: {applying}" for name in without if name in members]
