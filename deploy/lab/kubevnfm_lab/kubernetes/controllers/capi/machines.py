"""Machines: a node of the workload cluster each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from kubevnfm_lab.kubernetes.controllers.capi.infrastructure import has_identity
from kubevnfm_lab.kubernetes.controllers.capi.objects import (
    CLUSTERS,
    CONTROL_PLANE_LABEL,
    INFRASTRUCTURES,
    MACHINES,
    add_finalizer,
    cluster_name,
    cluster_of,
    in_list,
    is_paused,
    is_true,
    of_the_same_cluster,
    referred,
    remove_finalizer,
    write_status,
)
from kubevnfm_lab.kubernetes.controllers.capi.workloads import Workloads
from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, itself
from kubevnfm_lab.kubernetes.objects import Key, Obj, is_terminating, labels_of, value_at
from kubevnfm_lab.kubernetes.store import Change
from kubevnfm_lab.ports import ConnectionDropped, FaultInjected, Faults

_FINALIZER: Final = "machine.cluster.x-k8s.io"
_AGAIN_S: Final = 0.1
_PERMANENT: Final = 422


class Machines:
    """Boots every Machine, lets it join its cluster, and removes it."""

    def __init__(self, plane: ControlPlane, workloads: Workloads, faults: Faults) -> None:
        self._plane, self._workloads, self._faults = plane, workloads, faults
        self._busy: set[str] = set()
        """Uids of those whose task runs."""
        workloads.on_node_change(lambda key: plane.enqueue(self, key))

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        in_cluster = of_the_same_cluster(self._plane, MACHINES)
        return {MACHINES: itself, CLUSTERS: in_cluster, INFRASTRUCTURES: in_cluster, "secrets": self._terminating}

    def _terminating(self, change: Change) -> Iterable[Key]:
        """A Secret may be the one with the credentials for which deletions wait."""
        found = self._plane.store.list(MACHINES, change.key.namespace)
        return [Key(change.key.namespace, each["metadata"]["name"]) for each in found if is_terminating(each)]

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        machine = self._plane.store.get(MACHINES, key)
        if machine is None:
            return
        uid, cluster = machine["metadata"]["uid"], cluster_of(self._plane, machine)
        if cluster is None or is_paused(cluster):
            return
        if is_terminating(machine):
            self._remove(key, cluster)
            return
        add_finalizer(self._plane, MACHINES, key, _FINALIZER)
        if is_true(machine, "status", "initialization", "infrastructureProvisioned"):
            self._write(key, cluster, None)
            return
        is_first = CONTROL_PLANE_LABEL in labels_of(machine)
        may_boot = is_true(cluster, "status", "initialization", "infrastructureProvisioned") and (
            is_first or is_true(cluster, "status", "initialization", "controlPlaneInitialized")
        )
        if may_boot and uid not in self._busy:
            self._busy.add(uid)
            self._plane.spawn(self._boot(key, uid))

    async def _boot(self, key: Key, uid: str) -> None:
        try:
            while (machine := self._plane.store.get(MACHINES, key)) is not None and not is_terminating(machine):
                cluster = cluster_of(self._plane, machine)
                if cluster is None or is_paused(cluster) or self._workloads.find(cluster) is None:
                    return
                refusal = await self._refusal(key.name)
                self._write(key, cluster, refusal)
                if refusal is None:
                    await self._workloads.join(
                        cluster, key.name, control_plane=CONTROL_PLANE_LABEL in labels_of(machine)
                    )
                    self._write(key, cluster, None)
                    return
                if refusal.status == _PERMANENT:
                    return
                await asyncio.sleep(_AGAIN_S)
        finally:
            self._busy.discard(uid)

    async def _refusal(self, name: str) -> FaultInjected | None:
        await asyncio.sleep(self._plane.delay_s)
        try:
            await self._faults.check("capi", f"boot {name}")
        except FaultInjected as fault:
            return fault
        except ConnectionDropped:
            return FaultInjected(status=503, message="connection to the cloud lost")
        return None

    def _write(self, key: Key, cluster: Obj, refusal: FaultInjected | None) -> None:
        workload = self._workloads.find(cluster)
        joined = workload is not None and key.name in workload.joined
        ready = workload is not None and workload.is_ready(key.name)
        why = refusal.message if refusal is not None else ""
        no_network = "" if ready or not joined else "Node condition Ready is False: cni plugin not initialized"
        provisioned = refusal is None
        new = {
            "Available": (ready, ""),
            "Ready": (
                ready,
                in_list(no_network and f"NodeHealthy: {no_network}", why and f"InfrastructureReady: {why}"),
            ),
            "UpToDate": (True, ""),
            "BootstrapConfigReady": (True, ""),
            "InfrastructureReady": (provisioned, why),
            "NodeHealthy": (ready, no_network),
            "NodeReady": (ready, no_network),
        }
        old = {
            "Ready": (ready, why),
            "BootstrapReady": (True, ""),
            "InfrastructureReady": (provisioned, why),
            "NodeHealthy": (ready, no_network),
        }
        more: Obj = {
            "phase": "Running" if joined else "Provisioned" if provisioned else "Provisioning",
            "initialization": {"infrastructureProvisioned": provisioned, "bootstrapDataSecretCreated": True},
        }
        if joined and workload is not None:
            more["nodeRef"] = {"name": key.name}
            more["addresses"] = [{"type": "InternalIP", "address": workload.lab.address}]
        is_permanent = refusal is not None and refusal.status == _PERMANENT
        failed = {"failureReason": "CreateError", "failureMessage": why} if is_permanent else {}
        write_status(
            self._plane, MACHINES, key, new=new, old=old, more=more,
            for_v1beta1={"infrastructureReady": provisioned, "bootstrapReady": True, **failed},
        )  # fmt: skip
        if joined:
            self._plane.registry.change(MACHINES, key, _with_provider_id)

    def _remove(self, key: Key, cluster: Obj) -> None:
        """Delete the server, for which the cloud's credentials are needed, and the node."""
        infrastructure = referred(cluster, "infrastructureRef")
        found = self._plane.store.get(INFRASTRUCTURES, infrastructure) if infrastructure is not None else None
        if not has_identity(self._plane, found):
            return
        self._workloads.leave(cluster, key.name)
        self._plane.later(self._plane.delay_s, lambda: remove_finalizer(self._plane, MACHINES, key, _FINALIZER))


def _with_provider_id(machine: Obj) -> None:
    machine["spec"].setdefault("providerID", f"openstack:///{machine['metadata']['uid']}")


def new_machine(owner: Obj, *, name: str, labels: Mapping[str, str], spec: Obj) -> Obj:
    """Return a Machine of a MachineSet or a KubeadmControlPlane, before it is created."""
    annotations = value_at(owner, "spec", "template", "metadata", "annotations") or {}
    return {
        "metadata": {
            "name": name,
            "namespace": owner["metadata"]["namespace"],
            "labels": {**labels, "cluster.x-k8s.io/cluster-name": cluster_name(owner)},
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {**spec, "clusterName": cluster_name(owner)},
    }
