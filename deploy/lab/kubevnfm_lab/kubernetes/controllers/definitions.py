"""Custom resource definitions: their kinds are served once established; their objects are deleted with them."""

from __future__ import annotations

from collections.abc import Mapping

from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, itself
from kubevnfm_lab.kubernetes.errors import ApiError
from kubevnfm_lab.kubernetes.objects import (
    Key,
    Obj,
    condition_is_true,
    is_terminating,
    key_of,
    value_at,
    with_condition,
)
from kubevnfm_lab.kubernetes.registry import Deletion
from kubevnfm_lab.kubernetes.resources import CustomKind, Resource
from kubevnfm_lab.kubernetes.store import Change

_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


class Definitions:
    """Serves the kinds that definitions define."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._waiting: set[str] = set()
        """Uids of the definitions that wait to be established."""
        plane.store.subscribe(self._notice_end)

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {_DEFINITIONS: itself}

    def _notice_end(self, change: Change) -> None:
        """Reconcile a terminating definition when one of its objects was deleted."""
        if change.kind != "DELETED":
            return
        definition = self._plane.store.get(_DEFINITIONS, Key("", change.resource))
        if definition is not None and is_terminating(definition):
            self._plane.enqueue(self, key_of(definition))

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        definition = self._plane.store.get(_DEFINITIONS, key)
        if definition is None:
            group, plural = key.name.partition(".")[2], key.name.partition(".")[0]
            self._plane.registry.table.remove(group, plural)
            return
        if is_terminating(definition):
            self._clear_up(definition)
            return
        clash = self._clash(definition)
        self._accept(key, clash)
        if clash:
            return
        uid = definition["metadata"]["uid"]
        if condition_is_true(definition, "Established"):
            self._serve(definition)
        elif uid not in self._waiting:
            self._waiting.add(uid)
            # A real API server needs a moment too: clients must wait for the condition before they create objects.
            self._plane.later(self._plane.delay_s, lambda: self._establish(key, uid))

    def _clash(self, definition: Obj) -> str:
        """Return why the names are refused; empty if they are accepted."""
        spec, names = definition["spec"], definition["spec"]["names"]
        for resource in self._plane.registry.table.all():
            if resource.group != spec["group"] or resource.plural == names["plural"]:
                continue
            if resource.kind == names["kind"]:
                return f'"{names["kind"]}" is already in use'
        return ""

    def _accept(self, key: Key, clash: str) -> None:
        def write(obj: Obj) -> None:
            status = {**(obj.get("status") or {})}
            conditions = with_condition(
                status.get("conditions") or [],
                "NamesAccepted",
                status=not clash,
                reason="KindConflict" if clash else "NoConflicts",
                message=clash or "no conflicts found",
            )
            if clash:
                conditions = with_condition(
                    conditions, "Established", status=False, reason="NotAccepted", message="not all names are accepted"
                )
            else:
                status["acceptedNames"] = obj["spec"]["names"]
                stored = [version["name"] for version in obj["spec"]["versions"] if version.get("storage")]
                # A version stays listed after another becomes the storage version, since objects may still be stored in
                # it.
                before = status.get("storedVersions") or []
                status["storedVersions"] = [*before, *(name for name in stored if name not in before)]
            status["conditions"] = conditions
            obj["status"] = status

        self._plane.registry.change(_DEFINITIONS, key, write)

    def _establish(self, key: Key, uid: str) -> None:
        self._waiting.discard(uid)
        definition = self._plane.store.get(_DEFINITIONS, key)
        # In the meantime another definition of the same name may have taken its place.
        if definition is None or definition["metadata"]["uid"] != uid or is_terminating(definition):
            return
        # The kind is served first, so that a client that sees the condition finds it.
        self._serve(definition)

        def write(obj: Obj) -> None:
            obj["status"]["conditions"] = with_condition(
                obj["status"]["conditions"],
                "Established",
                status=True,
                reason="InitialNamesAccepted",
                message="the initial names have been accepted",
            )

        self._plane.registry.change(_DEFINITIONS, key, write)

    def _serve(self, definition: Obj) -> None:
        table, spec = self._plane.registry.table, definition["spec"]
        wanted = resources_of(definition)
        served = {r.version: r for r in table.all() if r.group == spec["group"] and r.plural == spec["names"]["plural"]}
        if served == {resource.version: resource for resource in wanted}:
            return
        table.remove(spec["group"], spec["names"]["plural"])
        for resource in wanted:
            table.add(resource)

    def _clear_up(self, definition: Obj) -> None:
        """Delete all objects of the definition, then remove its finalizer."""
        name = definition["metadata"]["name"]
        resource = self._plane.registry.table.by_name(name)
        for obj in self._plane.store.list(name):
            if resource is None or is_terminating(obj):
                continue
            try:
                self._plane.registry.delete(resource, key_of(obj), Deletion(policy="Background"))
            except ApiError as error:
                if error.code != 404:
                    raise
        # An object with finalizers is still there; its deletion brings the definition back here.
        if self._plane.store.list(name):
            return

        def release(obj: Obj) -> None:
            finalizers = obj["metadata"].get("finalizers") or []
            obj["metadata"]["finalizers"] = [f for f in finalizers if f != _CLEANUP]

        self._plane.registry.change(_DEFINITIONS, key_of(definition), release)


def resources_of(definition: Obj) -> list[Resource]:
    """Return one resource per served version, and the storage version even if it is not served."""
    spec, names = definition["spec"], definition["spec"]["names"]
    storage = next(version["name"] for version in spec["versions"] if version.get("storage"))
    resources = []
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        subresources = version.get("subresources") or {}
        resources.append(
            Resource(
                group=spec["group"],
                version=version["name"],
                kind=names["kind"],
                plural=names["plural"],
                namespaced=spec["scope"] == "Namespaced",
                short_names=tuple(names.get("shortNames") or ()),
                subresources=tuple(name for name in ("status", "scale") if name in subresources),
                categories=tuple(names.get("categories") or ()),
                singular=names.get("singular") or names["kind"].lower(),
                list_kind=names.get("listKind") or f"{names['kind']}List",
                custom=CustomKind(
                    schema=value_at(version, "schema", "openAPIV3Schema") or {},
                    scale_paths=subresources.get("scale") or {},
                ),
                storage_version=storage,
            )
        )
    return resources
