"""The kinds of Cluster API: their names in the store, their relations, and conditions in the forms of both contracts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys
from kubevnfm_lab.kubernetes.objects import (
    Key,
    Obj,
    annotations_of,
    labels_of,
    owner_references,
    value_at,
    with_condition,
)
from kubevnfm_lab.kubernetes.store import Change

CLUSTERS: Final = "clusters.cluster.x-k8s.io"
MACHINES: Final = "machines.cluster.x-k8s.io"
SETS: Final = "machinesets.cluster.x-k8s.io"
DEPLOYMENTS: Final = "machinedeployments.cluster.x-k8s.io"
CHECKS: Final = "machinehealthchecks.cluster.x-k8s.io"
CLASSES: Final = "clusterclasses.cluster.x-k8s.io"
PLANES: Final = "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io"
INFRASTRUCTURES: Final = "openstackclusters.infrastructure.cluster.x-k8s.io"

NAME_LABEL: Final = "cluster.x-k8s.io/cluster-name"
CONTROL_PLANE_LABEL: Final = "cluster.x-k8s.io/control-plane"
OWNED_LABEL: Final = "topology.cluster.x-k8s.io/owned"
DELETE_MACHINE: Final = "cluster.x-k8s.io/delete-machine"
REMEDIATE_MACHINE: Final = "cluster.x-k8s.io/remediate-machine"
_PAUSED: Final = "cluster.x-k8s.io/paused"


def owner_reference(owner: Obj) -> Obj:
    """Return the owner reference that the controllers of Cluster API write; a Cluster controls nothing, others do."""
    metadata = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    return reference if owner["kind"] == "Cluster" else {**reference, "blockOwnerDeletion": True, "controller": True}


def cluster_name(obj: Obj) -> str:
    """Return the name of the Cluster that an object belongs to; "" if it names none."""
    if obj["kind"] == "Cluster":
        return str(obj["metadata"]["name"])
    owner = next((each["name"] for each in owner_references(obj) if each["kind"] == "Cluster"), "")
    return str(value_at(obj, "spec", "clusterName") or owner or labels_of(obj).get(NAME_LABEL) or "")


def cluster_of(plane: ControlPlane, obj: Obj) -> Obj | None:
    """Return the Cluster of an object; None if there is none."""
    return plane.store.get(CLUSTERS, Key(obj["metadata"]["namespace"], cluster_name(obj)))


def of_cluster(plane: ControlPlane, resource: str, cluster: Obj) -> Sequence[Obj]:
    """Return the objects of a resource that belong to the Cluster."""
    metadata = cluster["metadata"]
    found = plane.store.list(resource, metadata["namespace"])
    return [each for each in found if cluster_name(each) == metadata["name"]]


def of_the_same_cluster(plane: ControlPlane, resource: str) -> Keys:
    """Return a function that gives the keys of the objects of ``resource`` in the Cluster of the changed object."""

    def keys(change: Change) -> Iterable[Key]:
        name, namespace = cluster_name(change.obj), change.key.namespace
        # The controllers of the owner are asked about a deleted object too, so the store may have no Cluster any more.
        return [
            Key(namespace, str(each["metadata"]["name"]))
            for each in plane.store.list(resource, namespace)
            if name and cluster_name(each) == name
        ]

    return keys


def is_paused(cluster: Obj | None) -> bool:
    """Return whether the controllers leave the Cluster alone."""
    return cluster is not None and (value_at(cluster, "spec", "paused") is True or _PAUSED in annotations_of(cluster))


def is_true(obj: Obj | None, *path: str) -> bool:
    """Return whether the value at the path is true."""
    return value_at(obj, *path) is True


def endpoint_of(obj: Obj) -> Obj | None:
    """Return ``spec.controlPlaneEndpoint`` once it is known."""
    endpoint: Obj | None = value_at(obj, "spec", "controlPlaneEndpoint")
    return endpoint if endpoint and endpoint.get("host") else None


def referred(cluster: Obj, field: str) -> Key | None:
    """Return the key of the object to which a Cluster refers; both contracts name it in the same way."""
    name = value_at(cluster, "spec", field, "name")
    return Key(cluster["metadata"]["namespace"], name) if name else None


def roll_out_after(owner: Obj) -> datetime | None:
    """Return the time before which Machines of the owner were made that are to be replaced; None without one."""
    given = value_at(owner, "spec", "rollout", "after") or value_at(owner, "spec", "rolloutAfter")
    return datetime.fromisoformat(given) if given else None


def is_due(after: datetime | None) -> bool:
    """Return whether the time of a roll-out has come."""
    return after is not None and after <= datetime.now(UTC)


def made_at(obj: Obj) -> datetime:
    """Return the time at which the object was created."""
    return datetime.fromisoformat(obj["metadata"]["creationTimestamp"])


def in_list(*lines: str) -> str:
    """Return a message of several lines, each an item, as Cluster API writes them; "" without lines."""
    return "\n".join(f"* {line}" for line in lines if line)


def add_finalizer(plane: ControlPlane, resource: str, key: Key, finalizer: str) -> None:
    """Add a finalizer, unless it is there."""

    def add(obj: Obj) -> None:
        present = obj["metadata"].get("finalizers") or []
        if finalizer not in present:
            obj["metadata"]["finalizers"] = [*present, finalizer]

    plane.registry.change(resource, key, add)


def remove_finalizer(plane: ControlPlane, resource: str, key: Key, finalizer: str) -> None:
    """Remove a finalizer; the last one ends a terminating object."""

    def remove(obj: Obj) -> None:
        present = obj["metadata"].get("finalizers") or []
        obj["metadata"]["finalizers"] = [each for each in present if each != finalizer]

    plane.registry.change(resource, key, remove)


def own(plane: ControlPlane, resource: str, key: Key, cluster: Obj) -> None:
    """Let the Cluster own an object of its own, which then carries its label."""

    def write(obj: Obj) -> None:
        metadata = obj["metadata"]
        metadata["labels"] = {**labels_of(obj), NAME_LABEL: cluster["metadata"]["name"]}
        if not any(each["uid"] == cluster["metadata"]["uid"] for each in owner_references(obj)):
            metadata["ownerReferences"] = [*owner_references(obj), owner_reference(cluster)]

    plane.registry.change(resource, key, write)


Facts = Mapping[str, tuple[bool, str]]
"""Conditions by type: whether it is True, and its message."""

_REASONS: Final = {
    "InfrastructureReady": ("Ready", "NotReady"),
    "BootstrapConfigReady": ("Ready", "NotReady"),
    "MachinesReady": ("Ready", "NotReady"),
    "Ready": ("Ready", "NotReady"),
    "ControlPlaneInitialized": ("Initialized", "NotInitialized"),
    "ControlPlaneAvailable": ("Available", "NotAvailable"),
    "WorkersAvailable": ("Available", "NotAvailable"),
    "CertificatesAvailable": ("Available", "NotAvailable"),
    "RemoteConnectionProbe": ("ProbeSucceeded", "ProbeFailed"),
    "TopologyReconciled": ("ReconcileSucceeded", "ReconcileFailed"),
    "EtcdClusterHealthy": ("Healthy", "NotHealthy"),
    "ControlPlaneComponentsHealthy": ("Healthy", "NotHealthy"),
    "MachinesUpToDate": ("UpToDate", "NotUpToDate"),
}
"""The reasons of conditions that are True and False, where they are not the type itself and ``Not<type>``."""


def write_status(
    plane: ControlPlane, resource: str, key: Key, *, new: Facts, old: Facts, more: Obj, for_v1beta1: Obj | None = None
) -> None:
    """Write the status of an object in the form of v1beta2, with what v1beta1 shows under ``deprecated``.

    ``for_v1beta1``: further fields of the older form, which `conversion` moves to their place.
    """

    def write(obj: Obj) -> None:
        status = obj.get("status") or {}
        before = value_at(status, "deprecated", "v1beta1", "conditions") or []
        obj["status"] = {
            "observedGeneration": obj["metadata"]["generation"],
            **more,
            "conditions": _conditions(status.get("conditions") or [], new),
            "deprecated": {"v1beta1": {**(for_v1beta1 or {}), "conditions": _conditions(before, old, severity=True)}},
        }

    plane.registry.change(resource, key, write)


def _conditions(before: list[Obj], facts: Facts, *, severity: bool = False) -> list[Obj]:
    conditions = [each for each in before if each.get("type") in facts]
    for kind, (status, message) in facts.items():
        reason = _REASONS.get(kind, (kind, f"Not{kind}"))[0 if status else 1]
        conditions = with_condition(conditions, kind, status=status, reason=reason, message=message)
    # Only conditions that are not True have a severity, and only in the older form.
    return [{**each, "severity": "Info"} if severity and each["status"] != "True" else each for each in conditions]
