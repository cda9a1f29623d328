"""Changes of single attributes of a JSON document by path, the same for every adapter."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonMapping, JsonObject

from kubevnfm_store.query import names_of


def check_apart(paths: Sequence[str]) -> None:
    """Raise InvalidInput if one of the paths is inside another: the result would depend on their order."""
    ordered = sorted(path.split("/") for path in paths)
    for outer, inner in pairwise(ordered):
        if inner[: len(outer)] == outer:
            raise InvalidInput("/".join(inner), f"changed twice in one update, also by {'/'.join(outer)}")


def change(body: JsonObject, fields: JsonMapping, unset: Sequence[str]) -> None:
    """Set and remove attributes in place; missing objects on the path of a set attribute are created.

    Raises InvalidInput if the path leads through a value that is not an object.
    """
    for path, value in fields.items():
        *way, last = names_of(path)
        node = body
        for name in way:
            node = node.setdefault(name, {})
            if not isinstance(node, dict):
                raise InvalidInput(path, f"{name} is not an object in the stored document")
        node[last] = value
    for path in unset:
        *way, last = names_of(path)
        found: Any = body
        for name in way:
            found = found.get(name) if isinstance(found, dict) else None
        if isinstance(found, dict):
            found.pop(last, None)


def without(body: JsonObject, path: str) -> None:
    """Remove the attribute in place; if the path leads through arrays, from every element."""
    _without(body, names_of(path))


def _without(node: Any, names: Sequence[str]) -> None:
    if isinstance(node, list):
        for element in node:
            if isinstance(element, dict):
                _without(element, names)
    elif isinstance(node, dict):
        if len(names) == 1:
            node.pop(names[0], None)
        elif names[0] in node:
            _without(node[names[0]], names[1:])
