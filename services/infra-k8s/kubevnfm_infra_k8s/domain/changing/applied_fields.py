"""The part of an object that we have applied: server-side apply needs all of it again, also if only one field changes.

Source: KEP-555; the API server keeps the fields of each manager in ``metadata.managedFields``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubevnfm_kit.foreign_json import read_foreign

from kubevnfm_infra_k8s.domain.objects import FIELD_MANAGER, Body, ObjectKey, field_at
from kubevnfm_infra_k8s.domain.ownership import Path

_MEMBER: Final = "."
"""In a tree of fields: the node itself, beside its children."""


def applied_version(body: Body) -> str | None:
    """Return the API version in which we have applied the object last; None: its fields are not ours."""
    entry = _entry(body)
    return None if entry is None else str(entry.get("apiVersion"))


def applied_part(body: Body, key: ObjectKey) -> Body | None:
    """Return the object with the fields alone that we have applied, to be applied again with changes; None: no such fields.

    ``body``: the object in the version of `applied_version`. It names the uid, so that no other object of the name is changed.
    """
    entry = _entry(body)
    if entry is None:
        return None
    fields = entry.get("fieldsV1")
    part = _picked(body, fields if isinstance(fields, Mapping) else {})
    metadata = {"name": key.name, "uid": field_at(body, "metadata", "uid"), **(part.get("metadata") or {})}
    if key.namespace:
        metadata["namespace"] = key.namespace
    return {**part, "apiVersion": body["apiVersion"], "kind": key.kind, "metadata": metadata}


def part_with(body: Body, paths: Iterable[Path]) -> Body:
    """Return the part of an object with these fields alone, each a path as ``fieldsV1`` has it."""
    tree: dict[str, Any] = {}
    for path in paths:
        node = tree
        for element in path:
            node = node.setdefault(element, {})
    part: Body = _picked(body, tree) if tree else {}
    return part


def _entry(body: Body) -> Mapping[str, Any] | None:
    for each in field_at(body, "metadata", "managedFields") or ():
        if (each.get("manager"), each.get("operation")) == (FIELD_MANAGER, "Apply") and not each.get("subresource"):
            return dict(each)
    return None


def _picked(value: Any, fields: Mapping[str, Any]) -> Any:
    """Return the part of a value that a tree of fields names. A node without children names its value as a whole."""
    children = {name: child for name, child in fields.items() if name != _MEMBER}
    if isinstance(value, Mapping):
        if not fields:
            return value
        names = {name.partition(":")[2]: child for name, child in children.items() if name.startswith("f:")}
        return {name: _picked(value[name], child) for name, child in names.items() if name in value}
    if isinstance(value, list) and children:
        return [part for name, child in children.items() for part in _picked_items(value, name, child)]
    return value


def _picked_items(items: list[Any], element: str, child: Mapping[str, Any]) -> list[Any]:
    """Return the items of a list that one element of a tree names, by key or by value."""
    kind, _, text = element.partition(":")
    if kind in ("k", "v"):
        try:
            named = read_foreign(text)
        except ValueError:
            return []
        if kind == "v":
            return [each for each in items if each == named]
        keys = named if isinstance(named, Mapping) else {}
        found = [each for each in items if isinstance(each, Mapping) and keys.items() <= each.items()]
        # The keys identify the item, whether they are ours or not.
        return [{**keys, **_picked(each, {_MEMBER: {}, **child})} for each in found]
    return items[int(text) : int(text) + 1] if kind == "i" else []
