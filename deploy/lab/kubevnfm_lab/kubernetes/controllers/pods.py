"""The workload controllers' common ground: the pods they own, made from a template, and the state of those."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane
from kubevnfm_lab.kubernetes.errors import ApiError
from kubevnfm_lab.kubernetes.objects import (
    Obj,
    compact_json,
    condition,
    condition_is_true,
    controller_of,
    controller_reference,
    copy_of,
    is_terminating,
    key_of,
    owner_references,
    value_at,
)

_HASH_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


def template_hash(template: Mapping[str, Any]) -> str:
    """Return a short name suffix that is the same for equal pod templates."""
    number = int.from_bytes(hashlib.sha256(compact_json(template).encode()).digest()[:8])
    letters = []
    for _ in range(10):
        number, index = divmod(number, len(_HASH_LETTERS))
        letters.append(_HASH_LETTERS[index])
    return "".join(letters)


def owned_pods(plane: ControlPlane, owner: Obj) -> Sequence[Obj]:
    """Return the pods that the owner controls, terminating and finished ones too."""
    uid = owner["metadata"]["uid"]
    return [
        pod
        for resource, pod in plane.store.dependents(uid)
        if resource == "pods" and (controller_of(pod) or {}).get("uid") == uid
    ]


def is_active(pod: Obj) -> bool:
    """Return whether the pod counts as a replica."""
    return not is_terminating(pod) and value_at(pod, "status", "phase") not in {"Succeeded", "Failed"}


def is_ready(pod: Obj) -> bool:
    """Return whether the pod's Ready condition is True."""
    return condition_is_true(pod, "Ready")


def ready_for_s(pod: Obj) -> float:
    """Return for how many seconds the pod has been ready; -1 if it is not."""
    ready = condition(pod, "Ready")
    if ready is None or ready["status"] != "True":
        return -1.0
    since = datetime.fromisoformat(ready["lastTransitionTime"].replace("Z", "+00:00"))
    return max(0.0, (datetime.now(UTC) - since).total_seconds())


def is_available(pod: Obj, min_ready_s: int) -> bool:
    """Return whether the pod has been ready for long enough."""
    return is_ready(pod) and ready_for_s(pod) >= min_ready_s


def new_pod(owner: Obj, *, labels: Mapping[str, str] | None = None, template: Obj | None = None) -> Obj:
    """Return a pod of the owner's template, without a name yet."""
    template = template if template is not None else owner["spec"]["template"]
    metadata = template.get("metadata") or {}
    made: Obj = {
        "namespace": owner["metadata"]["namespace"],
        "labels": {**(metadata.get("labels") or {}), **(labels or {})},
        "ownerReferences": [controller_reference(owner)],
    }
    if metadata.get("annotations"):
        made["annotations"] = dict(metadata["annotations"])
    return {"metadata": made, "spec": copy_of(template["spec"])}


def adopt(plane: ControlPlane, owner: Obj, resource: str, orphan: Obj) -> None:
    """Make the owner the controller of an object that has none."""

    def set_owner(obj: Obj) -> None:
        obj["metadata"]["ownerReferences"] = [*owner_references(obj), controller_reference(owner)]

    plane.registry.change(resource, key_of(orphan), set_owner)


def create_pod(plane: ControlPlane, owner: Obj, pod: Obj, *, component: str) -> ApiError | None:
    """Create the pod and record an Event; return the refusal, which is also recorded as a warning."""
    try:
        made = plane.create("pods", pod)
    except ApiError as error:
        # A name that is taken, by a pod that is still ending, is a normal step of a replacement.
        if error.code != 409:
            plane.record(owner, "Warning", "FailedCreate", f"Error creating: {error.message}", component=component)
        return error
    message = f"Created pod: {made['metadata']['name']}"
    plane.record(owner, "Normal", "SuccessfulCreate", message, component=component)
    return None


def delete_pod(plane: ControlPlane, owner: Obj, pod: Obj, *, component: str) -> None:
    """Delete the pod and record an Event."""
    plane.delete("pods", pod)
    message = f"Deleted pod: {pod['metadata']['name']}"
    plane.record(owner, "Normal", "SuccessfulDelete", message, component=component)
