"""The attributes of a resource and their types: filters and selectors are checked against them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from kubevnfm_sol.base import SolType
from pydantic.fields import FieldInfo

Kind = Literal["string", "datetime", "number", "boolean", "object", "array", "map", "free"]
"""``map``: values of one shape by any key; ``free``: KeyValuePairs, any values by any key."""

_TIMES: Final = ("Time", "At", "timeStamp")


@dataclass(frozen=True)
class Attribute:
    """One attribute of a shape."""

    kind: Kind
    members: Mapping[str, Attribute] = field(default_factory=dict)
    """The members of an object, of the elements of an array, or of the values of a map."""
    element: Kind = "string"
    """The elements of an array; ``object`` if they have members."""
    is_required: bool = False
    is_secret: bool = False
    """Access data: neither shown nor usable in a filter."""
    no_filter: str = ""
    """Why a filter cannot use it; empty if it can."""


@dataclass(frozen=True)
class Shape:
    """The top-level attributes of a resource, and those that a list omits by default (SOL013 5.3)."""

    attributes: Mapping[str, Attribute]
    default_excluded: frozenset[str] = frozenset()


def attributes_of(model: type[SolType]) -> dict[str, Attribute]:
    """Return the attributes of a SOL type by name on the wire."""
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
