"""Namespaces: all objects are deleted before the namespace is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, itself
from kubevnfm_lab.kubernetes.errors import ApiError
from kubevnfm_lab.kubernetes.objects import Key, Obj, is_terminating, key_of, value_at, with_condition
from kubevnfm_lab.kubernetes.registry import Deletion
from kubevnfm_lab.kubernetes.store import Change


class Namespaces:
    """Empties and removes terminating namespaces."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        plane.store.subscribe(self._notice_end)

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {"namespaces": itself}

    def _notice_end(self, change: Change) -> None:
        """Reconcile a terminating namespace when one of its objects was deleted."""
        if change.kind != "DELETED" or not change.key.namespace:
            return
        namespace = self._plane.store.get("namespaces", Key("", change.key.namespace))
        if namespace is not None and is_terminating(namespace):
            self._plane.enqueue(self, key_of(namespace))

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        namespace = self._plane.store.get("namespaces", key)
        if namespace is None:
            return
        if not is_terminating(namespace):
            return
        for resource_name, obj in tuple(self._content(key.name)):
            resource = self._plane.registry.table.by_name(resource_name)
            if resource is None or is_terminating(obj):
                continue
            try:
                self._plane.registry.delete(resource, key_of(obj), Deletion(policy="Background"))
            except ApiError as error:
                if error.code != 404:
                    raise
        left = list(self._content(key.name))
        if left:
            self._report_remaining(key, left)
        else:
            self._plane.registry.change("namespaces", key, lambda obj: obj["spec"].update(finalizers=[]))

    def _content(self, namespace: str) -> Iterable[tuple[str, Obj]]:
        for resource in sorted(self._plane.store.resources_with_objects()):
            for obj in self._plane.store.list(resource, namespace):
                yield resource, obj

    def _report_remaining(self, key: Key, left: list[tuple[str, Obj]]) -> None:
        counts = {name: sum(other == name for other, _ in left) for name in dict.fromkeys(name for name, _ in left)}
        listed = ", ".join(f"{name}. has {count} resource instances" for name, count in counts.items())
        held = any(obj["metadata"].get("finalizers") for _, obj in left)

        def write(obj: Obj) -> None:
            conditions = value_at(obj, "status", "conditions") or []
            conditions = with_condition(
                conditions,
                "NamespaceContentRemaining",
                status=True,
                reason="SomeResourcesRemain",
                message=f"Some resources are remaining: {listed}",
            )
            if held:
                conditions = with_condition(
                    conditions,
                    "NamespaceFinalizersRemaining",
                    status=True,
                    reason="SomeFinalizersRemain",
                    message="Some content in the namespace has finalizers remaining",
                )
            obj["status"] = {**(obj.get("status") or {}), "conditions": conditions}

        self._plane.registry.change("namespaces", key, write)
