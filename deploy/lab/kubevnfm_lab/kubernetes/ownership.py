"""Ownership of fields: ``metadata.managedFields``, and server-side apply, which depends on them.

Source: Kubernetes documentation, "Server-Side Apply"; KEP-555. An applier owns what it sent last. A field that it no
longer sends is removed unless another manager owns it; changing another manager's value is a conflict, unless forced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kubevnfm_lab.kubernetes.errors import apply_conflict
from kubevnfm_lab.kubernetes.fieldsets import (
    FieldSet,
    Path,
    changed_paths,
    field_set,
    from_fields_v1,
    leaves,
    printed_path,
    to_fields_v1,
)
from kubevnfm_lab.kubernetes.objects import Obj, copy_of, now
from kubevnfm_lab.kubernetes.resources import Resource
from kubevnfm_lab.kubernetes.shapes import Shape, find_item, merged, shape_of

APPLY: Final = "Apply"
UPDATE: Final = "Update"
SCALE: Final = "scale"


@dataclass(frozen=True)
class Owner:
    """One entry of managedFields."""

    manager: str
    operation: str
    api_version: str
    fields: FieldSet
    time: str
    subresource: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        """The identity of an entry: manager, operation and subresource."""
        return (self.manager, self.operation, self.subresource)

    @property
    def printed(self) -> str:
        """The owner as conflict messages name it."""
        text = f'"{self.manager}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return text if self.operation == APPLY else f"{text} using {self.api_version} at {self.time}"

    def entry(self) -> Obj:
        """Return the ManagedFieldsEntry."""
        entry: Obj = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": to_fields_v1(self.fields),
        }
        return {**entry, "subresource": self.subresource} if self.subresource else entry


def owners_of(obj: Obj | None) -> Sequence[Owner]:
    """Return the entries of ``metadata.managedFields``."""
    entries = (obj or {}).get("metadata", {}).get("managedFields") or []
    return [
        Owner(
            manager=entry.get("manager", ""),
            operation=entry.get("operation", UPDATE),
            api_version=entry.get("apiVersion", ""),
            fields=from_fields_v1(entry.get("fieldsV1") or {}),
            time=entry.get("time", ""),
            subresource=entry.get("subresource", ""),
        )
        for entry in entries
    ]


def _write_owners(obj: Obj, owners: Sequence[Owner]) -> None:
    obj["metadata"]["managedFields"] = [owner.entry() for owner in owners if owner.fields]


def record_update(old: Obj | None, new: Obj, resource: Resource, *, manager: str, subresource: str = "") -> None:
    """Record in ``new`` that ``manager`` owns the fields that it changed by an update, patch or create."""
    shape = shape_of(resource)
    before, after = leaves(old, shape) if old is not None else {}, leaves(new, shape)
    changed, gone = changed_paths(before, after), frozenset(before.keys() - after.keys())
    owners = list(owners_of(old))
    if not changed and not gone:
        _write_owners(new, owners)
        return
    me = Owner(manager, UPDATE, resource.api_version, frozenset(), now(), subresource)
    mine = next((owner for owner in owners if owner.identity == me.identity), me)
    is_recorded = subresource != SCALE or _is_scale_recorded(after, owners, changed)
    recorded = changed if is_recorded else frozenset()
    # An update takes a changed field from every other manager.
    rest = [replace(owner, fields=owner.fields - changed - gone) for owner in owners if owner.identity != me.identity]
    mine = replace(mine, fields=((mine.fields - changed) | recorded) - gone, time=me.time, api_version=me.api_version)
    _write_owners(new, [*rest, mine])


def _is_scale_recorded(after: Mapping[Path, Any], owners: Sequence[Owner], changed: FieldSet) -> bool:
    """Return whether the one who sets a Scale gets the number of replicas.

    Kubernetes records an owner of a Scale only in place of another one; and 0 is left out of its JSON, so that the number has
    no owner afterwards.
    """
    return any(owner.fields & changed for owner in owners) and all(after.get(path) != 0 for path in changed)


def apply(
    live: Obj | None, config: Obj, resource: Resource, *, manager: str, force: bool, subresource: str = ""
) -> Obj:
    """Return ``live`` after a server-side apply of ``config``, with its managedFields.

    Raises: ApiError 409 naming every owner and field in conflict, unless ``force``.
    """
    shape = shape_of(resource)
    base: Obj = copy_of(live) if live is not None else {"metadata": {}}
    result: Obj = merged(base, copy_of(config), shape)
    wanted = field_set(config, shape)
    owners = list(owners_of(live))
    me = Owner(manager, APPLY, resource.api_version, wanted, now(), subresource)
    last = next((owner.fields for owner in owners if owner.identity == me.identity), frozenset())
    others = [owner for owner in owners if owner.identity != me.identity]

    owned_by_others = frozenset().union(*(owner.fields for owner in others))
    # Fields that this manager applied before and no longer wants, and that no other manager owns.
    abandoned = last - wanted - owned_by_others
    _remove_paths(result, shape, abandoned, protected=owned_by_others | wanted)

    before = leaves(live, shape) if live is not None else {}
    after = leaves(result, shape)
    changed, gone = changed_paths(before, after), frozenset(before.keys() - after.keys())
    # Only a changed value is a conflict; applying the same value makes the field shared.
    clashes = [(owner, path) for owner in others for path in sorted(owner.fields & changed & wanted)]
    if clashes and not force:
        raise apply_conflict([(owner.printed, printed_path(path)) for owner, path in clashes])
    mine = next((owner for owner in owners if owner.identity == me.identity), None)
    if mine is not None and last == wanted and not changed and not gone:
        # An apply without effect keeps even its time, so that nothing is written and no watcher is notified.
        me = mine
    # A forced apply takes the fields from their owners.
    lost = changed & wanted
    remaining = [me if owner is mine else replace(owner, fields=owner.fields - lost - gone) for owner in owners]
    _write_owners(result, remaining if mine is not None else [*remaining, me])
    return result


def _remove_paths(obj: Obj, shape: Shape, paths: FieldSet, *, protected: FieldSet) -> None:
    """Remove the paths from ``obj`` in place, and the maps and lists that become empty.

    A list item stays while any manager owns it or a part of it; the deepest paths are removed first.
    """
    prefixes = {path[:depth] for path in protected for depth in range(1, len(path) + 1)}
    for path in sorted(paths, key=len, reverse=True):
        if path not in prefixes:
            _remove_path(obj, shape, path, prefixes)


def _remove_path(node: Any, shape: Shape, path: Path, protected: set[Path], done: Path = ()) -> None:
    head, rest = path[0], path[1:]
    here = (*done, head)
    if head.startswith("f:"):
        name = head[2:]
        if not isinstance(node, dict) or name not in node:
            return
        if rest:
            _remove_path(node[name], shape.child(name), rest, protected, here)
        if (not rest or node[name] in ({}, [])) and here not in protected:
            del node[name]
        return
    if not isinstance(node, list):
        return
    item = find_item(node, head, shape.list_type)
    if item is None:
        return
    if rest:
        # The key fields identify an item: they are removed with it, never before.
        if rest[0] not in _key_fields(head):
            _remove_path(item, shape.item(), rest, protected, here)
    else:
        node.remove(item)


def _key_fields(element: str) -> Mapping[str, None]:
    if not element.startswith("k:"):
        return {}
    return {f"f:{name}": None for name in json.loads(element[2:])}
