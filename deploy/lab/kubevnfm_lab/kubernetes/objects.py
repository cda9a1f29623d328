"""The parts that all Kubernetes objects share, as plain JSON: metadata, owners, conditions, time.

Objects in the store are never changed in place: a writer copies first (`copy_of`), so that readers and the watch
history can keep their references.
"""

from __future__ import annotations

import json
import marshal
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias, cast

Obj: TypeAlias = dict[str, Any]
"""One object, or a part of one, as JSON."""


class Key(NamedTuple):
    """The key of an object within its resource; the namespace is empty for cluster-scoped ones."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(obj: Obj) -> Key:
    """Return the object's key."""
    metadata = obj["metadata"]
    return Key(metadata.get("namespace", ""), metadata["name"])


def copy_of(value: Any) -> Any:
    """Return a deep copy of a JSON value; many times faster than `copy.deepcopy`."""
    return marshal.loads(marshal.dumps(value))


def without_nulls(value: Any) -> Any:
    """Return a copy of a JSON value without the map fields that are null."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def now() -> str:
    """Return the time as ``metav1.Time`` writes it: UTC, whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def now_micro() -> str:
    """Return the time as ``metav1.MicroTime`` writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def new_uid() -> str:
    """Return a fresh object uid."""
    return str(uuid.uuid4())


def compact_json(value: Any) -> str:
    """Return the value as JSON with sorted keys and no blanks, the same for equal values."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def value_at(obj: Any, *path: str) -> Any:
    """Return the value under ``path``, None where the path ends early."""
    for name in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(name)
    return obj


def labels_of(obj: Obj) -> Mapping[str, str]:
    """Return the labels; empty when there are none."""
    return cast("Mapping[str, str]", obj["metadata"].get("labels") or {})


def annotations_of(obj: Obj) -> Mapping[str, str]:
    """Return the annotations; empty when there are none."""
    return cast("Mapping[str, str]", obj["metadata"].get("annotations") or {})


def is_terminating(obj: Obj) -> bool:
    """Return whether deletion was requested."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def owner_references(obj: Obj) -> list[Obj]:
    """Return ``metadata.ownerReferences``."""
    return obj["metadata"].get("ownerReferences") or []


def controller_of(obj: Obj) -> Obj | None:
    """Return the owner reference that is the controller, None if there is none."""
    return next((owner for owner in owner_references(obj) if owner.get("controller")), None)


def controller_reference(owner: Obj) -> Obj:
    """Return the owner reference that a controller writes into the objects that it creates for ``owner``."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def condition(obj: Obj, kind: str) -> Obj | None:
    """Return the status condition of that type."""
    return next((c for c in value_at(obj, "status", "conditions") or [] if c.get("type") == kind), None)


def condition_is_true(obj: Obj, kind: str) -> bool:
    """Return whether the status condition of that type is True."""
    found = condition(obj, kind)
    return found is not None and found.get("status") == "True"


def with_condition(
    conditions: list[Obj], kind: str, *, status: bool, reason: str, message: str = "", times: tuple[str, ...] = ()
) -> list[Obj]:
    """Return the conditions with this one set; its transition time changes only with its status.

    ``times`` names further time fields that change whenever the condition does (``lastUpdateTime``).
    """
    fresh: Obj = {"type": kind, "status": "True" if status else "False", "reason": reason, "message": message}
    result = [c for c in conditions if c.get("type") != kind]
    old = next((c for c in conditions if c.get("type") == kind), None)
    # Equal conditions are returned unchanged, so that no write, and no event of a watch, follows.
    if old is not None and all(old.get(name, "") == value for name, value in fresh.items()):
        return conditions
    moment = now()
    moved = old is None or old.get("status") != fresh["status"]
    fresh["lastTransitionTime"] = moment if moved or old is None else old.get("lastTransitionTime", moment)
    fresh.update(dict.fromkeys(times, moment))
    return [*result, fresh]


def pod_containers(pod_spec: Obj) -> Iterator[Obj]:
    """Yield init containers, then containers."""
    yield from pod_spec.get("initContainers") or []
    yield from pod_spec.get("containers") or []
