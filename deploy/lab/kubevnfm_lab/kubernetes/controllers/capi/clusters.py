"""Clusters: the conditions of everything that belongs to one, and its deletion in the right order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from kubevnfm_lab.kubernetes.controllers.capi.objects import (
    CLUSTERS,
    DEPLOYMENTS,
    INFRASTRUCTURES,
    MACHINES,
    PLANES,
    SETS,
    add_finalizer,
    cluster_name,
    endpoint_of,
    in_list,
    is_paused,
    is_true,
    of_cluster,
    own,
    referred,
    remove_finalizer,
    write_status,
)
from kubevnfm_lab.kubernetes.controllers.capi.workloads import Workloads
from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, itself
from kubevnfm_lab.kubernetes.objects import Key, Obj, condition, condition_is_true, is_terminating, value_at
from kubevnfm_lab.kubernetes.store import Change

_FINALIZER: Final = "cluster.cluster.x-k8s.io"


class CapiClusters:
    """Brings up every Cluster, and takes it down."""

    def __init__(self, plane: ControlPlane, workloads: Workloads) -> None:
        self._plane, self._workloads = plane, workloads

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {
            CLUSTERS: itself,
            **dict.fromkeys((INFRASTRUCTURES, PLANES, DEPLOYMENTS, SETS, MACHINES), self._its_clusters),
        }

    def _its_clusters(self, change: Change) -> Iterable[Key]:
        name, namespace = cluster_name(change.obj), change.key.namespace
        # An object that no Cluster owns yet may have come after the Cluster that refers to it.
        names = [name] if name else [each["metadata"]["name"] for each in self._plane.store.list(CLUSTERS, namespace)]
        return [Key(namespace, each) for each in names]

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        cluster = self._plane.store.get(CLUSTERS, key)
        if cluster is None:
            return
        if is_paused(cluster):
            self._write(key, paused=True)
            return
        if is_terminating(cluster):
            self._remove(key, cluster)
            return
        add_finalizer(self._plane, CLUSTERS, key, _FINALIZER)
        for field, resource in (("infrastructureRef", INFRASTRUCTURES), ("controlPlaneRef", PLANES)):
            reference = referred(cluster, field)
            if reference is not None:
                own(self._plane, resource, reference, cluster)
        infrastructure = self._referred(cluster, "infrastructureRef", INFRASTRUCTURES)
        endpoint = endpoint_of(infrastructure) if infrastructure is not None else None
        if endpoint is not None and is_true(infrastructure, "status", "initialization", "provisioned"):
            self._plane.registry.change(CLUSTERS, key, lambda obj: obj["spec"].update(controlPlaneEndpoint=endpoint))
        self._write(key, paused=False)

    def _referred(self, cluster: Obj, field: str, resource: str) -> Obj | None:
        reference = referred(cluster, field)
        return self._plane.store.get(resource, reference) if reference is not None else None

    def _write(self, key: Key, *, paused: bool) -> None:
        cluster = self._plane.store.get(CLUSTERS, key)
        if cluster is None:
            return
        infrastructure = self._referred(cluster, "infrastructureRef", INFRASTRUCTURES)
        control_plane = self._referred(cluster, "controlPlaneRef", PLANES)
        workers = of_cluster(self._plane, DEPLOYMENTS, cluster)
        has_infrastructure = is_true(infrastructure, "status", "initialization", "provisioned")
        is_initialized = is_true(control_plane, "status", "initialization", "controlPlaneInitialized")
        has_plane = control_plane is not None and condition_is_true(control_plane, "Available")
        has_workers = all(condition_is_true(each, "Available") for each in workers)
        owners = [each for each in (control_plane, *workers) if each is not None]
        changes = {
            name: (any(condition_is_true(each, name) for each in owners), "")
            for name in ("RollingOut", "ScalingUp", "ScalingDown")
        }
        available = has_infrastructure and has_plane and has_workers and is_initialized
        said = _message(infrastructure, "Ready") or _message(control_plane, "Available") or _messages(workers)
        topology = {"TopologyReconciled": (bool(owners), "")} if value_at(cluster, "spec", "topology") else {}
        new = {
            "Available": (available, said),
            "InfrastructureReady": (has_infrastructure, _message(infrastructure, "Ready")),
            "ControlPlaneInitialized": (is_initialized, "" if is_initialized else "Control plane not yet initialized"),
            "ControlPlaneAvailable": (has_plane, _message(control_plane, "Available")),
            "WorkersAvailable": (has_workers, _messages(workers)),
            "RemoteConnectionProbe": (
                is_initialized,
                "" if is_initialized else "Remote connection not established yet",
            ),
            **topology,
            **changes,
            "Remediating": (False, ""),
            "Deleting": (False, ""),
            "Paused": (paused, ""),
        }
        old = {
            "Ready": (available, said),
            "InfrastructureReady": (has_infrastructure, _message(infrastructure, "Ready")),
            "ControlPlaneInitialized": (is_initialized, ""),
            "ControlPlaneReady": (has_plane, _message(control_plane, "Available")),
            **topology,
        }
        write_status(
            self._plane, CLUSTERS, key, new=new, old=old,
            more={
                "phase": "Provisioned" if has_infrastructure and endpoint_of(cluster) else "Provisioning",
                "initialization": {
                    "infrastructureProvisioned": has_infrastructure, "controlPlaneInitialized": is_initialized
                },
            },
            for_v1beta1={"infrastructureReady": has_infrastructure, "controlPlaneReady": has_plane},
        )  # fmt: skip

    def _remove(self, key: Key, cluster: Obj) -> None:
        """Delete the workers, then the control plane, then the infrastructure, then let the Cluster go."""
        stages: Sequence[tuple[str, Sequence[str]]] = (
            ("WaitingForWorkersDeletion", (DEPLOYMENTS, SETS)),
            ("WaitingForControlPlaneDeletion", (PLANES, MACHINES)),
            ("WaitingForInfrastructureDeletion", (INFRASTRUCTURES,)),
        )
        for reason, resources in stages:
            left = [(name, each) for name in resources for each in of_cluster(self._plane, name, cluster)]
            if not left:
                continue
            for name, each in left:
                if name != MACHINES:
                    self._plane.delete(name, each)
            machines = len(of_cluster(self._plane, MACHINES, cluster))
            self._plane.registry.change(
                CLUSTERS, key, partial(_deleting, reason=reason, message=f"{machines} Machines left")
            )
            return
        self._plane.spawn(self._workloads.close(cluster["metadata"]["uid"]))
        remove_finalizer(self._plane, CLUSTERS, key, _FINALIZER)


def _message(obj: Obj | None, kind: str) -> str:
    """Return the message of a condition that is not True."""
    found = condition(obj, kind) if obj is not None else None
    return str(found.get("message") or "") if found is not None and found["status"] != "True" else ""


def _messages(objects: Sequence[Obj]) -> str:
    said = [(each, _message(each, "Available")) for each in objects]
    return in_list(*(f"{each['kind']} {each['metadata']['name']}: {text}" for each, text in said if text))


def _deleting(cluster: Obj, *, reason: str, message: str) -> None:
    status = cluster.setdefault("status", {})
    others = [each for each in status.get("conditions") or [] if each["type"] != "Deleting"]
    condition = {"type": "Deleting", "status": "True", "reason": reason, "message": message}
    status |= {"phase": "Deleting", "conditions": [*others, condition]}
