"""The webhooks of Cluster API and its OpenStack provider: the conversion of versions, and the denials that matter.

The controllers are in `controllers.capi`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubevnfm_lab.kubernetes.errors import ApiError, FieldProblem, invalid, wrong
from kubevnfm_lab.kubernetes.objects import Obj, value_at
from kubevnfm_lab.kubernetes.resources import Resource

_RENAMED: Final = {"upToDateReplicas": "updatedReplicas"}
_ONLY_NEW: Final = frozenset({"initialization", "deprecated", "conditions"})
_ONLY_OLD: Final = (
    "conditions", "failureReason", "failureMessage", "infrastructureReady", "controlPlaneReady", "bootstrapReady",
    "initialized", "ready",
)  # fmt: skip
_INITIALIZATION: Final = {
    "Cluster": {"infrastructureReady": "infrastructureProvisioned"},
    "KubeadmControlPlane": {"initialized": "controlPlaneInitialized"},
    "Machine": {"infrastructureReady": "infrastructureProvisioned", "bootstrapReady": "bootstrapDataSecretCreated"},
    "OpenStackCluster": {"ready": "provisioned"},
}
"""Fields of ``status.initialization``, by the fields of v1beta1 that became them."""
_LONGEST_NAME: Final = 63
_IMMUTABLE: Final = frozenset({"OpenStackMachineTemplate", "OpenStackClusterTemplate", "KubeadmControlPlaneTemplate"})
_FIXED: Final = "certificatesDir"
"""A field of a KubeadmControlPlane that cannot change, for all of its kind."""


def is_of_cluster_api(group: str) -> bool:
    """Return whether the API group is one of Cluster API or of a provider."""
    return group == "cluster.x-k8s.io" or group.endswith(".cluster.x-k8s.io")


def status_in_v1beta1(status: Obj) -> Obj:
    """Return a stored status, which has the form of v1beta2, in the form of v1beta1.

    Specs are shown as they were written: the controllers read what both forms have in common.
    """
    old = value_at(status, "deprecated", "v1beta1") or {}
    shown = {_RENAMED.get(name, name): value for name, value in status.items() if name not in _ONLY_NEW}
    return {**shown, **old, "v1beta2": {"conditions": status.get("conditions") or []}}


def status_in_v1beta2(kind: str, status: Obj) -> Obj:
    """Return a status in the form of v1beta1 in the form in which it is stored."""
    old = {name: status[name] for name in _ONLY_OLD if name in status}
    back = {new: name for name, new in _RENAMED.items()}
    stored = {back.get(name, name): value for name, value in status.items() if name not in {*_ONLY_OLD, "v1beta2"}}
    conditions = value_at(status, "v1beta2", "conditions") or []
    initialization = {new: old[name] for name, new in _INITIALIZATION.get(kind, {}).items() if name in old}
    if kind == "Cluster":
        found = [each for each in conditions if each["type"] == "ControlPlaneInitialized"]
        initialization["controlPlaneInitialized"] = any(each["status"] == "True" for each in found)
    return {**stored, "conditions": conditions, "initialization": initialization, "deprecated": {"v1beta1": old}}


def check(resource: Resource, obj: Obj, old: Obj | None) -> None:
    """Raise the 422 with which the webhook of the kind denies the object; ``old``: the object before, None if it is new."""
    problems = list(_problems(resource.kind, obj, old))
    if not problems:
        return
    why = invalid(resource.group, resource.kind, str(obj["metadata"].get("name")), problems)
    hook = f"validation.{resource.kind.lower()}.{resource.group}"
    raise ApiError(422, f'admission webhook "{hook}" denied the request: {why.message}')


def _problems(kind: str, obj: Obj, old: Obj | None) -> Iterator[FieldProblem]:
    name = str(obj["metadata"].get("name"))
    if kind == "Cluster" and len(name) > _LONGEST_NAME:
        yield wrong("metadata.name", name, f"must be a valid label value must be no more than {_LONGEST_NAME} bytes")
    if kind in _IMMUTABLE and old is not None and old.get("spec") != obj.get("spec"):
        why = f"{kind} spec.template.spec field is immutable. Please create a new resource instead."
        yield wrong("spec.template.spec", "...", why)
    if kind == "KubeadmControlPlane":
        replicas = value_at(obj, "spec", "replicas")
        if replicas == 0:
            yield wrong("spec.replicas", replicas, "cannot be 0")
        paths = "spec", "kubeadmConfigSpec", "clusterConfiguration", _FIXED
        if old is not None and value_at(old, *paths) != value_at(obj, *paths):
            yield wrong(".".join(paths), value_at(obj, *paths), "Forbidden: cannot be modified")
        is_stacked = value_at(obj, "spec", "kubeadmConfigSpec", "clusterConfiguration", "etcd", "external") is None
        if isinstance(replicas, int) and replicas and replicas % 2 == 0 and is_stacked:
            yield wrong("spec.replicas", replicas, "cannot be an even number when etcd is stacked")
