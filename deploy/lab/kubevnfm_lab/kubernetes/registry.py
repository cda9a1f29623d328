"""Create, update and delete, with the rules of every kind: names, namespaces, versions, generations, deletion.

Clients (through `verbs`) and controllers both write through here; there is no other writer to the store.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kubevnfm_lab.kubernetes import defaults, schemas, validation
from kubevnfm_lab.kubernetes.admission import Admission
from kubevnfm_lab.kubernetes.decoding import check_types
from kubevnfm_lab.kubernetes.errors import (
    STALE,
    ApiError,
    FieldProblem,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
    wrong,
)
from kubevnfm_lab.kubernetes.objects import Key, Obj, copy_of, is_terminating, key_of, new_uid, now, value_at
from kubevnfm_lab.kubernetes.ownership import record_update
from kubevnfm_lab.kubernetes.resources import Resource, ResourceTable
from kubevnfm_lab.kubernetes.store import Store
from kubevnfm_lab.kubernetes.versions import for_storage, in_version

# apimachinery's alphabet for generated names: no vowels and no 0, 1, 3, which could form words or be misread.
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
# Kinds whose strategy in Kubernetes sets no generation; controllers wait for observedGeneration on the others only.
_NO_GENERATION: Final = frozenset(
    {"configmaps", "secrets", "serviceaccounts", "endpoints", "events", "pods", "services", "nodes", "namespaces",
     "persistentvolumes", "persistentvolumeclaims", "horizontalpodautoscalers.autoscaling", "limitranges", "resourcequotas",
     "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io",
     "clusterrolebindings.rbac.authorization.k8s.io", "storageclasses.storage.k8s.io", "leases.coordination.k8s.io",
     "controllerrevisions.apps"}
)  # fmt: skip
_COUNTING_ANNOTATIONS: Final = "deployments.apps"
"""The kind whose strategy counts a change of annotations too."""
_SYSTEM_METADATA: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"


@dataclass(frozen=True)
class Deletion:
    """The options of a deletion; ``metav1.DeleteOptions``."""

    policy: str = ""
    """Foreground, Background, Orphan; empty means the kind's default."""
    grace_s: int | None = None
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False


class Registry:
    """All writes to the store, and their rules."""

    def __init__(self, store: Store, table: ResourceTable, admission: Admission) -> None:
        self.store, self.table, self._admission = store, table, admission
        self.made_by_users: set[str] = set()
        """Uids of objects that came in over the API, for the lab's inventory."""

    def get(self, resource: Resource, key: Key) -> Obj:
        """Return the object in the resource's version; raise ApiError 404."""
        found = self.store.get(resource.store_name, key)
        if found is None:
            raise not_found(resource.group, resource.plural, key.name)
        return in_version(found, resource)

    def create(
        self, resource: Resource, obj: Obj, *, manager: str = "", by_user: bool = False, dry_run: bool = False
    ) -> Obj:
        """Store a new object, which must not be used by the caller any more; return it as stored.

        ``manager`` becomes the owner of all fields, unless managedFields are there already (server-side apply).
        Raises: ApiError 403 (namespace ends, admission), 404 (no namespace), 409, 422.
        """
        metadata = obj["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + "".join(random.choices(_SUFFIX_LETTERS, k=5))
        self._check_namespace(resource, obj)
        # A manifest that was exported from another cluster carries these; Kubernetes ignores them on create.
        for name in (*_SYSTEM_METADATA, "resourceVersion", "selfLink"):
            metadata.pop(name, None)
        metadata |= {"uid": new_uid(), "creationTimestamp": now()}
        if resource.name not in _NO_GENERATION:
            metadata["generation"] = 1
        # Status belongs to the controllers; a create can bring it only for kinds without the subresource.
        if resource.has_status:
            obj.pop("status", None)
        obj = self._checked(resource, obj, None)
        obj |= defaults.first_status(resource.name, obj)
        # The usual order of keys, which people expect in YAML output.
        obj = {**{name: obj.pop(name) for name in ("apiVersion", "kind", "metadata")}, **obj}
        key = key_of(obj)
        if self.store.get(resource.store_name, key) is not None:
            raise already_exists(resource.group, resource.plural, key.name)
        self._admission.admit(resource, obj)
        if manager:
            record_update(None, obj, resource, manager=manager)
        if dry_run:
            return obj
        if by_user:
            self.made_by_users.add(metadata["uid"])
        # Stored only after admission: a refused object must not be visible for a moment.
        stored = self.store.put(resource.store_name, for_storage(obj, resource))
        self._after_create(resource, stored)
        return in_version(stored, resource)

    def replace(
        self, resource: Resource, new: Obj, *, subresource: str = "", manager: str = "", dry_run: bool = False
    ) -> Obj:
        """Store new content of an object, which must not be used by the caller any more; return it as stored.

        The status is left alone, or with ``subresource="status"`` everything else is. Nothing is written when nothing
        changes; the last finalizer of a terminating object ends it.
        Raises: ApiError 404, 409 (resourceVersion or uid is another one), 422.
        """
        key = key_of(new)
        old = self.get(resource, key)
        # A Scale stands for a field of the whole object, which is judged as after any other write.
        is_whole = subresource in {"", "scale"}
        self._check_identity(resource, old, new)
        if subresource in {"status", "finalize"}:
            part = "status" if subresource == "status" else "spec"
            # Server-side apply of a status changes the owners too, and only the request knows them.
            owners = new["metadata"].get("managedFields")
            new = {**{name: value for name, value in old.items() if name != part}, part: new.get(part) or {}}
            new["metadata"] = {**old["metadata"], **({"managedFields": owners} if owners else {})}
        elif resource.has_status:
            new = {name: value for name, value in new.items() if name != "status"}
            if "status" in old:
                new["status"] = old["status"]
        metadata = new["metadata"]
        # The version was checked above; from here on both contents must be comparable.
        metadata["resourceVersion"] = old["metadata"]["resourceVersion"]
        for name in _SYSTEM_METADATA:
            metadata.pop(name, None)
            if name in old["metadata"]:
                metadata[name] = old["metadata"][name]
        new = self._checked(resource, new, old, whole=is_whole)
        metadata = new["metadata"]
        if is_whole:
            self._admission.admit(resource, new)
        if manager:
            record_update(old, new, resource, manager=manager, subresource=subresource)
        # An update without managedFields must not erase what other managers own.
        elif not metadata.get("managedFields") and "managedFields" in old["metadata"]:
            metadata["managedFields"] = old["metadata"]["managedFields"]
        # Kubernetes answers such a write with the old version, so watchers do not see it.
        if new == old:
            return old
        is_counted = is_whole and resource.name == _COUNTING_ANNOTATIONS and _annotations(new) != _annotations(old)
        if (is_counted or _content(resource, new) != _content(resource, old)) and "generation" in metadata:
            metadata["generation"] += 1
        if dry_run:
            return new
        return in_version(self._settle(resource, for_storage(new, resource)), resource)

    def change(self, resource_name: str, key: Key, change: Callable[[Obj], None]) -> Obj | None:
        """Let a controller change a copy of a stored object, and store it if it differs; None if the object is gone.

        No validation, no managedFields; the generation increases if anything but metadata and status changes.
        """
        old, resource = self.store.get(resource_name, key), self.table.by_name(resource_name)
        if old is None or resource is None:
            return None
        new: Obj = copy_of(old)
        change(new)
        if new == old:
            return old
        if _content(resource, new) != _content(resource, old) and "generation" in new["metadata"]:
            new["metadata"]["generation"] += 1
        return self._settle(resource, new)

    def set_status(self, resource_name: str, key: Key, status: Obj) -> Obj | None:
        """Set the status of a stored object for a controller; None if the object is gone."""

        def write(obj: Obj) -> None:
            obj["status"] = status

        return self.change(resource_name, key, write)

    def delete(self, resource: Resource, key: Key, how: Deletion | None = None) -> tuple[Obj, bool]:
        """Delete an object, or start its deletion; return it as it is now and whether it is gone.

        Raises: ApiError 404, 409 when a precondition does not hold.
        """
        how = how or Deletion()
        obj = self.get(resource, key)
        self._check_preconditions(resource, obj, how)
        if is_terminating(obj):
            # A second delete of a terminating pod matters only as a force delete (grace 0).
            if resource.name != "pods" or how.grace_s != 0 or how.dry_run:
                return obj, False
            self.change(resource.name, key, lambda pod: pod["metadata"].update(deletionGracePeriodSeconds=0))
            return obj, self.store.get(resource.name, key) is None
        finalizers = self._finalizers_for(resource, obj, how)
        grace = self._grace_s(resource, obj, how)
        waits = (
            bool(finalizers)
            or grace > 0
            or (resource.name == "namespaces" and bool(value_at(obj, "spec", "finalizers")))
        )
        if not waits:
            return self._gone(resource, obj, dry_run=how.dry_run)
        marked: Obj = copy_of(obj)
        marked["metadata"] |= {"deletionTimestamp": now(), "deletionGracePeriodSeconds": grace}
        if finalizers:
            marked["metadata"]["finalizers"] = finalizers
        # Kubernetes counts the start of a deletion as a change of the spec.
        if "generation" in marked["metadata"]:
            marked["metadata"]["generation"] += 1
        if resource.name == "namespaces":
            marked["status"] = {**(marked.get("status") or {}), "phase": "Terminating"}
        if how.dry_run:
            return marked, False
        return in_version(self.store.put(resource.store_name, for_storage(marked, resource)), resource), False

    def _gone(self, resource: Resource, obj: Obj, *, dry_run: bool) -> tuple[Obj, bool]:
        if not dry_run:
            self.store.remove(resource.store_name, key_of(obj))
        return obj, True

    def _settle(self, resource: Resource, obj: Obj) -> Obj:
        """Store a changed object, or remove it if it is terminating and has no finalizer left."""
        metadata = obj["metadata"]
        held = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
        if resource.name == "namespaces":
            held = held or value_at(obj, "spec", "finalizers")
        if is_terminating(obj) and not held:
            self.store.remove(resource.store_name, key_of(obj))
            return obj
        return self.store.put(resource.store_name, obj)

    def _check_namespace(self, resource: Resource, obj: Obj) -> None:
        # Manifests often name a namespace for cluster-scoped kinds; the API server drops it.
        if not resource.namespaced:
            obj["metadata"].pop("namespace", None)
            return
        name = obj["metadata"]["namespace"]
        namespace = self.store.get("namespaces", Key("", name))
        if namespace is None:
            raise not_found("", "namespaces", name)
        if is_terminating(namespace):
            why = f"unable to create new content in namespace {name} because it is being terminated"
            cause = {"reason": "NamespaceTerminating", "message": f"namespace {name} is being terminated"}
            subject = obj["metadata"].get("name", "")
            raise forbidden(
                resource.group, resource.plural, subject, why, causes=[{**cause, "field": "metadata.namespace"}]
            )

    def _check_identity(self, resource: Resource, old: Obj, new: Obj) -> None:
        given, name = new["metadata"], old["metadata"]["name"]
        version = given.get("resourceVersion")
        if version and version != old["metadata"]["resourceVersion"]:
            raise conflict(resource.group, resource.plural, name, STALE)
        uid = given.get("uid")
        if uid and uid != old["metadata"]["uid"]:
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}"
            raise conflict(resource.group, resource.plural, name, why)

    def _check_preconditions(self, resource: Resource, obj: Obj, how: Deletion) -> None:
        metadata = obj["metadata"]
        for field, wanted, found in (
            ("UID", how.uid, metadata["uid"]),
            ("ResourceVersion", how.resource_version, metadata["resourceVersion"]),
        ):
            if wanted and wanted != found:
                why = (
                    f"the {field} in the precondition ({wanted}) does not match the {field} in record ({found}). "
                    "The object might have been deleted and then recreated"
                )
                raise conflict(resource.group, resource.plural, metadata["name"], why)

    def _checked(self, resource: Resource, obj: Obj, old: Obj | None, *, whole: bool = True) -> Obj:
        """Return the object pruned and with its defaults; raise 400 or 422."""
        try:
            check_types(resource, obj)
            defaults.fill_in(resource.name, obj)
            obj, problems = self._problems(resource, obj, old, whole=whole)
            for name in ("labels", "annotations"):
                # Kubernetes writes no empty map there.
                if name in obj["metadata"] and not obj["metadata"][name]:
                    del obj["metadata"][name]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # Kubernetes' typed decoder refuses a map in the place of a list and the like before validation.
            raise bad_request(
                f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {error}'
            ) from error
        if problems:
            raise invalid(resource.group, resource.kind, obj["metadata"].get("name", ""), problems)
        return obj

    def _problems(
        self, resource: Resource, obj: Obj, old: Obj | None, *, whole: bool
    ) -> tuple[Obj, list[FieldProblem]]:
        problems = list(validation.metadata_problems(resource, obj))
        if resource.custom is not None:
            schema = resource.custom.schema
            clean, _ = schemas.pruned(obj, schema)
            obj = schemas.with_defaults(clean, schema)
            problems += schemas.problems(obj, schema)
        elif whole:
            problems += validation.kind_problems(resource, obj)
            # Comparing with the old object makes sense only if the new one is well-formed.
            if old is not None and not problems:
                problems += validation.change_problems(resource, old, obj)
        else:
            problems += validation.status_problems(resource, obj)
        return obj, problems

    def _finalizers_for(self, resource: Resource, obj: Obj, how: Deletion) -> Sequence[str]:
        finalizers = [f for f in obj["metadata"].get("finalizers") or [] if f not in {FOREGROUND, ORPHAN}]
        # Jobs keep their pods by default; batch/v1 has always done so.
        policy = how.policy or ("Orphan" if resource.name == "jobs.batch" else "Background")
        if policy == "Foreground":
            return [*finalizers, FOREGROUND]
        if policy == "Orphan":
            return [*finalizers, ORPHAN]
        return finalizers

    def _grace_s(self, resource: Resource, obj: Obj, how: Deletion) -> int:
        # Only a pod on a node has a kubelet to wait for; any other pod is removed at once.
        if resource.name != "pods" or not value_at(obj, "spec", "nodeName"):
            return 0
        if value_at(obj, "status", "phase") in {"Succeeded", "Failed"}:
            return 0
        return int(
            how.grace_s if how.grace_s is not None else value_at(obj, "spec", "terminationGracePeriodSeconds") or 0
        )

    def _after_create(self, resource: Resource, obj: Obj) -> None:
        # A real cluster's controllers create these a moment later; the lab's clients need not wait for them.
        if resource.name == "namespaces":
            for resource_name, content in self._admission.namespace_contents():
                kind = self.table.by_name(resource_name)
                assert kind is not None
                metadata = {**content["metadata"], "namespace": obj["metadata"]["name"]}
                self.create(kind, {"apiVersion": "v1", **content, "metadata": metadata})


def _content(resource: Resource, obj: Obj) -> Obj:
    """Return the part of an object that its generation counts: all but metadata and a separately written status."""
    apart = {"metadata", "status"} if resource.has_status else {"metadata"}
    return {name: value for name, value in obj.items() if name not in apart}


def _annotations(obj: Obj) -> Obj:
    return obj["metadata"].get("annotations") or {}


def require_name(resource: Resource, obj: Obj, key: Key) -> None:
    """Raise 400 or 422 if the object in a request's body is not the one in its path."""
    metadata = obj["metadata"]
    if metadata.setdefault("name", key.name) != key.name:
        problem = wrong("metadata.name", metadata["name"], "field is immutable")
        raise invalid(resource.group, resource.kind, key.name, [problem])
    if resource.namespaced and metadata.setdefault("namespace", key.namespace) != key.namespace:
        raise ApiError(400, "the namespace of the provided object does not match the namespace sent on the request")
