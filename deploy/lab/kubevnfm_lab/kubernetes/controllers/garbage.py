"""Garbage collection: dependents are deleted after their owner, before it, or orphaned, as its deletion asked."""

from __future__ import annotations

from collections.abc import Iterable

from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane
from kubevnfm_lab.kubernetes.errors import ApiError
from kubevnfm_lab.kubernetes.objects import Key, Obj, is_terminating, key_of, owner_references
from kubevnfm_lab.kubernetes.registry import FOREGROUND, ORPHAN, Deletion
from kubevnfm_lab.kubernetes.store import Change


class GarbageCollector:
    """Watches every change of every object; unlike the controllers it is independent of kinds."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        plane.store.subscribe(self._take)

    def _take(self, change: Change) -> None:
        finalizers = change.obj["metadata"].get("finalizers") or ()
        waits = is_terminating(change.obj) and (FOREGROUND in finalizers or ORPHAN in finalizers)
        # Most changes concern neither owners nor dependents.
        if change.kind != "DELETED" and not waits and not owner_references(change.obj):
            return
        # Later, since a subscriber must not write while a change is being published.
        self._plane.later(0, lambda: self._look(change))

    def _look(self, change: Change) -> None:
        obj = change.obj
        if change.kind == "DELETED":
            self._owner_gone(obj["metadata"]["uid"])
            self._advance_owners(change)
            return
        current = self._plane.store.get(change.resource, change.key)
        if current is None or current["metadata"]["uid"] != obj["metadata"]["uid"]:
            return
        if is_terminating(current):
            self._advance(change.resource, current)
        else:
            self._collect_if_ownerless(change.resource, current)

    def _owner_gone(self, uid: str) -> None:
        for resource, dependent in self._plane.store.dependents(uid):
            self._collect_if_ownerless(resource, dependent)

    def _collect_if_ownerless(self, resource: str, obj: Obj) -> None:
        """Delete an object whose owners are all gone; otherwise drop the references to owners that are gone."""
        owners = owner_references(obj)
        there = [owner for owner in owners if self._find(owner, obj["metadata"].get("namespace", "")) is not None]
        if not owners or len(there) == len(owners):
            return
        if not there:
            self._delete(resource, obj, "Background")
            return
        self._plane.registry.change(resource, key_of(obj), lambda o: o["metadata"].update(ownerReferences=there))

    def _find(self, owner: Obj, namespace: str) -> Obj | None:
        resource = self._plane.registry.table.by_kind(owner["apiVersion"], owner["kind"])
        if resource is None:
            return None
        place = Key(namespace if resource.namespaced else "", owner["name"])
        found = self._plane.store.get(resource.store_name, place)
        return found if found is not None and found["metadata"]["uid"] == owner["uid"] else None

    def _advance_owners(self, change: Change) -> None:
        """Check the owners that wait for this dependent in a foreground deletion."""
        for owner in owner_references(change.obj):
            found = self._find(owner, change.key.namespace)
            resource = self._plane.registry.table.by_kind(owner["apiVersion"], owner["kind"])
            if found is not None and resource is not None and is_terminating(found):
                self._advance(resource.store_name, found)

    def _advance(self, resource: str, owner: Obj) -> None:
        """Advance an owner's deletion by one step."""
        uid, finalizers = owner["metadata"]["uid"], owner["metadata"].get("finalizers") or []
        if ORPHAN in finalizers:
            for name, dependent in self._plane.store.dependents(uid):
                others = [o for o in owner_references(dependent) if o["uid"] != uid]
                self._plane.registry.change(
                    name,
                    key_of(dependent),
                    lambda o, others=others: _set_owners(o, others),  # type: ignore[misc]  # mypy cannot infer a lambda with a default
                )
            self._drop(resource, owner, ORPHAN)
        elif FOREGROUND in finalizers:
            blocking = [
                (name, dependent)
                for name, dependent in self._plane.store.dependents(uid)
                if any(o["uid"] == uid and o.get("blockOwnerDeletion") for o in owner_references(dependent))
            ]
            for name, dependent in self._plane.store.dependents(uid):
                if not is_terminating(dependent):
                    self._delete(name, dependent, "Foreground" if self._has_dependents(dependent) else "Background")
            if not blocking:
                self._drop(resource, owner, FOREGROUND)

    def _has_dependents(self, obj: Obj) -> bool:
        return bool(self._plane.store.dependents(obj["metadata"]["uid"]))

    def _drop(self, resource: str, obj: Obj, finalizer: str) -> None:
        def drop(o: Obj) -> None:
            o["metadata"]["finalizers"] = [f for f in o["metadata"].get("finalizers") or [] if f != finalizer]

        self._plane.registry.change(resource, key_of(obj), drop)

    def _delete(self, name: str, obj: Obj, policy: str) -> None:
        resource = self._plane.registry.table.by_name(name)
        if resource is None or is_terminating(obj):
            return
        try:
            self._plane.registry.delete(resource, key_of(obj), Deletion(policy=policy, uid=obj["metadata"]["uid"]))
        except ApiError as error:
            # 404: deleted in the meantime. 409: another object has the name by now, which the uid protects.
            if error.code not in {404, 409}:
                raise


def _set_owners(obj: Obj, owners: Iterable[Obj]) -> None:
    obj["metadata"]["ownerReferences"] = list(owners)
