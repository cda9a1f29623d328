"""Fields of an object that JSON Pointers name, elements of lists by a member that identifies them (multicloud.md MC-106c)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kubevnfm_csar.json_path import as_text
from kubevnfm_csar.object_treatment import FieldPath


def without_fields(body: Mapping[str, Any], paths: Iterable[FieldPath]) -> Mapping[str, Any]:
    """Return the object without these fields, nor the maps and lists that have nothing else."""
    for path in paths:
        left = _without(body, path)
        body = left if isinstance(left, Mapping) else {}
    return body


def has_field(body: object, path: Sequence[str]) -> bool:
    """Return whether the object has the field."""
    nodes: list[object] = [body]
    for token in path:
        nodes = [child for node in nodes for child in _children(node, token)]
    return bool(nodes)


def names_element(token: str, members: Mapping[str, Any]) -> bool:
    """Return whether a token of a path, such as ``name=web``, names the element of a list with these members."""
    name, separator, value = token.partition("=")
    return bool(separator) and name in members and as_text(members[name]) == value


def _children(node: object, token: str) -> Sequence[object]:
    if isinstance(node, Mapping):
        return [node[token]] if token in node else []
    elements = node if isinstance(node, list) else []
    return [each for each in elements if isinstance(each, Mapping) and names_element(token, each)]


def _without(node: Any, path: Sequence[str]) -> Any:
    token, *below = path
    if isinstance(node, list):
        left = [
            _without(each, below) if below and isinstance(each, Mapping) and names_element(token, each) else each
            for each in node
            if below or not (isinstance(each, Mapping) and names_element(token, each))
        ]
        return left if left or not node else None
    if not isinstance(node, Mapping) or token not in node:
        return node
    rest = {name: value for name, value in node.items() if name != token}
    inner = _without(node[token], below) if below else None
    if inner is not None:
        # In its place, so that the members stay in their order.
        return {name: inner if name == token else value for name, value in node.items()}
    return rest or None
