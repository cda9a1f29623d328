"""Filters as one small syntax tree; adapters turn it into their database's query.

Paths are attribute names separated by ``/`` (``instantiatedVnfInfo/vnfState``); within a name ``/`` is written ``~1`` and
``~`` is written ``~0`` (as in RFC 6901): `path_of` and `names_of`.
A path through an array matches if any element does; a missing attribute matches nothing, ``NEQ`` and ``NIN`` included
(SOL013 5.2.2). Strings compare by code point, numbers by value, booleans by identity; a value of another type than
the stored one does not match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kubevnfm_kit.json_pointer import escaped, unescaped
from kubevnfm_kit.json_types import JsonMapping

Json = str | int | float | bool | None


class Op(StrEnum):
    """The comparisons of SOL013 5.2.2."""

    EQ = "eq"
    NEQ = "neq"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    IN = "in"
    NIN = "nin"
    CONT = "cont"
    """The stored text contains any of the values."""
    NCONT = "ncont"


def names_of(path: str) -> list[str]:
    """Return the attribute names of a path."""
    names = path.split("/")
    return names if "~" not in path else [unescaped(name) for name in names]


def path_of(*names: str) -> str:
    """Return the path of attribute names."""
    return "/".join(map(escaped, names))


@dataclass(frozen=True)
class Compare:
    """``path`` compared with the values (one; several for IN, NIN, CONT, NCONT)."""

    path: str
    op: Op
    values: Sequence[Json]


@dataclass(frozen=True)
class Exists:
    """The attribute exists and is not null; with ``exists`` False: it is missing or null."""

    path: str
    exists: bool = True


@dataclass(frozen=True)
class HasKey:
    """The map at ``path`` has one of (``present``), or none of, the keys (SOL013 ``@key``)."""

    path: str
    keys: Sequence[str]
    present: bool = True


@dataclass(frozen=True)
class Element:
    """One element of the array at ``path`` matches the whole filter, whose paths start inside the element."""

    path: str
    filter: Filter


@dataclass(frozen=True)
class AllOf:
    """Every filter matches; without filters every document does."""

    filters: Sequence[Filter] = ()


@dataclass(frozen=True)
class AnyOf:
    """At least one filter matches."""

    filters: Sequence[Filter]


Filter = Compare | Exists | HasKey | Element | AllOf | AnyOf


@dataclass(frozen=True)
class Sort:
    """Order by the attribute at ``path``; ties by document id, in the same direction."""

    path: str
    descending: bool = False


@dataclass(frozen=True)
class Query:
    """A search: the documents, their order, the part of the bodies, the number."""

    filter: Filter = AllOf()
    sort: Sort | None = None
    """None: by document id."""
    after: tuple[Json, str] | None = None
    """Key-set paging: (value at the sort path, document id) of the previous page's last document."""
    limit: int | None = None
    exclude: Sequence[str] = ()
    """Paths to leave out of the bodies (projection in the database)."""


def by(**equal: Json) -> AllOf:
    """Return the filter for top-level attributes equal to the values: ``by(vnfdId="x", deleted=False)``."""
    return AllOf([Compare(path, Op.EQ, [value]) for path, value in equal.items()])


@dataclass(frozen=True)
class Index:
    """An index that a collection needs; ``fields`` are paths, in order."""

    fields: Sequence[str]
    unique: bool = False
    """Unique among documents that have all the fields."""
    sparse: bool = False
    """Holds the documents only that have all the fields: `Exists` of them, for paths without arrays, costs what it finds."""


@dataclass(frozen=True)
class Stored:
    """A stored document."""

    id: str
    revision: int
    """The number of writes, from 1; a write names the revision that it expects."""
    body: JsonMapping = field(default_factory=dict)
    """JSON with any keys; adapters escape the keys that their database cannot hold."""
