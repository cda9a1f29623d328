"""Which attributes a resource has, of which type: what filters and selectors are checked against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from kubevnfm_sol.base import SolType
from pydantic.fields import FieldInfo

Kind = Literal["string", "datetime", "number", "boolean", "object", "array", "map", "free"]
"""``map``: of one shape by any key; ``free``: KeyValuePairs, anything by any key."""

_TIMES: Final = ("Time", "At", "timeStamp")


@dataclass(frozen=True)
class Attribute:
    """One attribute of a shape."""

    kind: Kind
    members: Mapping[str, Attribute] = field(default_factory=dict)
    """Of objects, of the elements of arrays, and of the values of maps."""
    element: Kind = "string"
    """Arrays: what their elements are; ``object`` when they have members."""
    is_required: bool = False
    is_secret: bool = False
    """Access data: neither shown nor filterable."""
    no_filter: str = ""
    """Why nobody can filter by it, where that is so."""


@dataclass(frozen=True)
class Shape:
    """The attributes of a resource at the top, and which of them a list leaves out unless asked (SOL013 5.3)."""

    attributes: Mapping[str, Attribute]
    default_excluded: frozenset[str] = frozenset()


def attributes_of(model: type[SolType]) -> dict[str, Attribute]:
    """Return the attributes of a SOL type, by their names on the wire."""
    return {info.alias or name: _attribute(info.alias or name, info) for name, info in model.model_fields.items()}


def _attribute(name: str, info: FieldInfo) -> Attribute:
    kind, members, element = _kind(name, info.annotation)
    return Attribute(
        kind, members, element, is_required=info.is_required(), is_secret=name in {"accessInfo", "authentication"}
    )


def _kind(name: str, annotation: Any) -> tuple[Kind, Mapping[str, Attribute], Kind]:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _kind(name, get_args(annotation)[0])
    if origin in {Union, UnionType}:
        return _kind(name, next(part for part in get_args(annotation) if part is not NoneType))
    if origin is tuple:
        kind, members, _ = _kind(name, get_args(annotation)[0])
        return "array", members, kind
    if origin is dict:
        kind, members, _ = _kind(name, get_args(annotation)[1])
        return ("map", members, "object") if kind == "object" else ("free", {}, "string")
    if origin is Literal:
        return "string", {}, "string"
    if isinstance(annotation, type):
        if issubclass(annotation, SolType):
            return "object", attributes_of(annotation), "object"
        if issubclass(annotation, bool):
            return "boolean", {}, "string"
        if issubclass(annotation, str | Enum):
            return ("datetime" if name.endswith(_TIMES) else "string"), {}, "string"
        if issubclass(annotation, int | float):
            return "number", {}, "string"
    return "free", {}, "string"
