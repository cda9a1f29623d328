"""Sets of field paths: the fields that a manager owns or a write changed, and their ``fieldsV1`` form.

A path is a tuple of elements as ``fieldsV1`` writes them: ``f:spec``, ``k:{"name":"web"}``, ``v:"x"``. Members are leaves
(scalars, atomic lists and maps, empty maps) and the items of associative lists.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from kubevnfm_lab.kubernetes.objects import Obj
from kubevnfm_lab.kubernetes.shapes import Shape

Path: TypeAlias = tuple[str, ...]
FieldSet: TypeAlias = frozenset[Path]

_ITEM: Final = object()
_UNOWNED: Final = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",)}
    | {
        ("f:metadata", f"f:{name}")
        for name in (
            "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
            "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds",
        )
    }
)  # fmt: skip


def leaves(obj: Any, shape: Shape) -> dict[Path, Any]:
    """Return the value of every member path; an item of an associative list has a marker for its value.

    Identity and fields that only the server writes (name, uid, resourceVersion and others) have no owner and are left out.
    """
    found: dict[Path, Any] = {}
    _walk(obj, shape, (), found)
    return {path: value for path, value in found.items() if path[:2] not in _UNOWNED and path not in _UNOWNED}


def field_set(obj: Any, shape: Shape) -> FieldSet:
    """Return the member paths of an object."""
    return frozenset(leaves(obj, shape))


def _walk(value: Any, shape: Shape, path: Path, found: dict[Path, Any]) -> None:
    if isinstance(value, dict) and value and not shape.is_atomic_map:
        for name, item in value.items():
            _walk(item, shape.child(name), (*path, f"f:{name}"), found)
        return
    if isinstance(value, list) and value and not shape.list_type.is_atomic:
        kind, item_shape = shape.list_type, shape.item()
        elements = [kind.element(item) for item in value]
        # A list with an item without its keys is owned as a whole.
        if all(element is not None for element in elements):
            for element, item in zip(elements, value, strict=True):
                inner = (*path, str(element))
                found[inner] = _ITEM
                if isinstance(item, dict):
                    _walk(item, item_shape, inner, found)
            return
    found[path] = value


def changed_paths(old: Mapping[Path, Any], new: Mapping[Path, Any]) -> FieldSet:
    """Return the paths that are new or have another value."""
    # A field that was null differs from one that was absent.
    missing = object()
    return frozenset(path for path, value in new.items() if old.get(path, missing) != value)


def to_fields_v1(paths: Iterable[Path]) -> Obj:
    """Return the ``fieldsV1`` tree."""
    tree: Obj = {}
    members = set(paths)
    for path in sorted(members):
        node = tree
        for depth, element in enumerate(path, start=1):
            child = node.setdefault(element, {})
            # "." marks a node that is itself a member, not only the parent of one.
            if depth < len(path) and path[:depth] in members:
                child.setdefault(".", {})
            node = child
    return tree


def from_fields_v1(tree: Mapping[str, Any]) -> FieldSet:
    """Return the paths of a ``fieldsV1`` tree."""
    found: set[Path] = set()

    def descend(node: Mapping[str, Any], path: Path) -> None:
        if not node and path:
            found.add(path)
        for element, child in node.items():
            if element == ".":
                found.add(path)
            else:
                descend(child, (*path, element))

    descend(tree, ())
    return frozenset(found)


def printed_path(path: Path) -> str:
    """Return the path in readable form: ``.spec.containers[name="web"].image``."""
    parts = []
    for element in path:
        kind, _, text = element.partition(":")
        if kind == "f":
            parts.append(f".{text}")
        elif kind == "k":
            keys = ",".join(f"{key}={json.dumps(value)}" for key, value in json.loads(text).items())
            parts.append(f"[{keys}]")
        else:
            parts.append(f"[={text}]")
    return "".join(parts)
