"""Attribute selectors (SOL013 clause 5.3): which attributes a list shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonMapping, JsonObject

from kubevnfm_lcm_api.http.sol013.shapes import Attribute, Shape


@dataclass(frozen=True)
class Selectors:
    """The attributes of a list's entries."""

    left_out: frozenset[str] = frozenset()
    """Attributes at the top that are not shown."""
    only: Mapping[str, Sequence[tuple[str, ...]]] = field(default_factory=dict)
    """Attributes at the top that are shown in part: the paths below them."""


def read_selectors(given: Mapping[str, str], shape: Shape) -> Selectors:
    """Read ``all_fields``, ``fields``, ``exclude_fields``, ``exclude_default`` (api.md 5.2). Raises InvalidInput."""
    if "exclude-fields" in given:
        given = {**given, "exclude_fields": given["exclude-fields"]}
    has_all, has_default = "all_fields" in given, "exclude_default" in given
    fields, excluded = given.get("fields"), given.get("exclude_fields")
    if has_all and len(given) > 1:
        raise InvalidInput("all_fields", "cannot stand with another selector")
    if fields is not None and excluded is not None:
        raise InvalidInput("fields", "cannot stand with exclude_fields")
    if excluded is not None and has_default:
        raise InvalidInput("exclude_fields", "cannot stand with exclude_default")
    eligible = {
        name
        for name, attribute in shape.attributes.items()
        if attribute.kind in {"object", "array", "map", "free"} and not attribute.is_required
    }
    if has_all:
        return Selectors()
    if fields is not None:
        named = _paths("fields", fields, shape)
        shown = {path[0] for path in named}
        candidates = _of(shape.default_excluded, eligible) if has_default else eligible
        whole = {path[0] for path in named if len(path) == 1}
        only = {
            name: [path[1:] for path in named if path[0] == name]
            for name in shown - whole
            if shape.attributes[name].kind in {"object", "array"}
        }
        return Selectors(frozenset(one for one in candidates if not _is_named(one, named)), only)
    if excluded is not None:
        named = _paths("exclude_fields", excluded, shape)
        return Selectors(frozenset(path[0] for path in named if len(path) == 1) & frozenset(eligible))
    return Selectors(shape.default_excluded)


def _of(excluded: Iterable[str], eligible: Collection[str]) -> set[str]:
    """Return those of the attributes that can be left out: the eligible ones at the top, and those below the top."""
    return {one for one in excluded if "/" in one or one in eligible}


def _is_named(name: str, named: Iterable[tuple[str, ...]]) -> bool:
    """Return whether one of the paths leads to the attribute, into it, or to one above it."""
    own = tuple(name.split("/"))
    return any(all(a == b for a, b in zip(own, path, strict=False)) for path in named)


def _paths(parameter: str, text: str, shape: Shape) -> list[tuple[str, ...]]:
    paths = [tuple(path.split("/")) for path in text.split(",")]
    for path in paths:
        members: Mapping[str, Attribute] = shape.attributes
        for name in path:
            attribute = members.get(name)
            if attribute is None and name != "_links":
                raise InvalidInput(parameter, f"attribute {'/'.join(path)} is unknown")
            if attribute is None or attribute.kind in {"map", "free"}:
                break
            members = attribute.members
    return [path for path in paths if path[0] != "_links"]


def project(document: JsonMapping, shape: Shape, selectors: Selectors) -> JsonObject:
    """Return what of the answer is shown; ``_links`` always is."""
    shown = {name: value for name, value in document.items() if name not in selectors.left_out}
    for name, paths in selectors.only.items():
        if name in shown:
            shown[name] = _part(shown[name], shape.attributes[name], paths)
    return shown


def _part(value: Any, attribute: Attribute, paths: Sequence[tuple[str, ...]]) -> Any:
    """Return the members that the paths name, with the required ones on the way."""
    if isinstance(value, list):
        return [_part(element, attribute, paths) for element in value]
    if not isinstance(value, Mapping) or any(not path for path in paths):
        return value
    below: dict[str, list[tuple[str, ...]]] = {}
    for path in paths:
        below.setdefault(path[0], []).append(path[1:])
    part: JsonObject = {}
    for name, member in value.items():
        inner = attribute.members.get(name)
        if name in below and inner is not None:
            part[name] = _part(member, inner, below[name])
        elif inner is not None and inner.is_required:
            part[name] = member
    return part
