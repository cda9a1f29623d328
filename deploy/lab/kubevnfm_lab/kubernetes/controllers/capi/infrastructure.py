"""OpenStackClusters: network, router and load balancer of a Cluster, which give it the address of its API."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Final

from kubevnfm_lab.kubernetes.controllers.capi.objects import (
    CLUSTERS,
    INFRASTRUCTURES,
    MACHINES,
    add_finalizer,
    cluster_of,
    is_paused,
    is_true,
    of_cluster,
    of_the_same_cluster,
    remove_finalizer,
    write_status,
)
from kubevnfm_lab.kubernetes.controllers.capi.workloads import Workloads
from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, itself
from kubevnfm_lab.kubernetes.objects import Key, Obj, is_terminating, key_of, value_at
from kubevnfm_lab.ports import ConnectionDropped, FaultInjected, Faults

_FINALIZER: Final = "openstackcluster.infrastructure.cluster.x-k8s.io"
_AGAIN_S: Final = 0.1
_PERMANENT: Final = 422
"""The status of a fault that makes a failure permanent."""


class OpenStackClusters:
    """Provisions every OpenStackCluster whose Cluster exists."""

    def __init__(self, plane: ControlPlane, workloads: Workloads, faults: Faults) -> None:
        self._plane, self._workloads, self._faults = plane, workloads, faults
        self._busy: set[str] = set()
        """Uids of those whose task runs."""

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {
            INFRASTRUCTURES: itself,
            CLUSTERS: of_the_same_cluster(self._plane, INFRASTRUCTURES),
            MACHINES: of_the_same_cluster(self._plane, INFRASTRUCTURES),
        }

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        infrastructure = self._plane.store.get(INFRASTRUCTURES, key)
        if infrastructure is None:
            return
        uid, cluster = infrastructure["metadata"]["uid"], cluster_of(self._plane, infrastructure)
        if is_terminating(infrastructure):
            if uid not in self._busy:
                self._busy.add(uid)
                self._plane.spawn(self._remove(key, uid))
            return
        if cluster is None or is_paused(cluster):
            return
        add_finalizer(self._plane, INFRASTRUCTURES, key, _FINALIZER)
        if not is_true(infrastructure, "status", "initialization", "provisioned") and uid not in self._busy:
            self._busy.add(uid)
            self._plane.spawn(self._provision(key, uid))

    async def _provision(self, key: Key, uid: str) -> None:
        try:
            while (found := self._plane.store.get(INFRASTRUCTURES, key)) is not None and not is_terminating(found):
                cluster = cluster_of(self._plane, found)
                if cluster is None or is_paused(cluster):
                    return
                refusal = await self._refusal(cluster["metadata"]["name"])
                if refusal is None:
                    workload = await self._workloads.reserve(cluster)
                    endpoint = {"host": workload.lab.address, "port": workload.lab.port}
                    self._plane.registry.change(INFRASTRUCTURES, key, partial(_reached_at, endpoint=endpoint))
                    self._write(key, None)
                    return
                self._write(key, refusal)
                await asyncio.sleep(_AGAIN_S)
        finally:
            self._busy.discard(uid)

    async def _refusal(self, name: str) -> FaultInjected | None:
        await asyncio.sleep(self._plane.delay_s)
        try:
            await self._faults.check("capi", f"provision {name}")
        except FaultInjected as fault:
            return fault
        except ConnectionDropped:
            return FaultInjected(status=503, message="connection to the cloud lost")
        return None

    def _write(self, key: Key, refusal: FaultInjected | None) -> None:
        done, why = refusal is None, refusal.message if refusal is not None else ""
        failed = (
            {"failureReason": "CreateError", "failureMessage": why} if refusal and refusal.status == _PERMANENT else {}
        )
        write_status(
            self._plane,
            INFRASTRUCTURES,
            key,
            new=dict.fromkeys(("Ready", "NetworkReady", "RouterReady", "APIServerIngressReady"), (done, why)),
            old={"Ready": (done, why)},
            more={"initialization": {"provisioned": done}},
            for_v1beta1={"ready": done, **failed},
        )

    async def _remove(self, key: Key, uid: str) -> None:
        """Remove the network once no machine is on it; without its credentials the cloud cannot be asked."""
        try:
            while (found := self._plane.store.get(INFRASTRUCTURES, key)) is not None:
                cluster = cluster_of(self._plane, found)
                if cluster is None:
                    return
                if not of_cluster(self._plane, MACHINES, cluster) and has_identity(self._plane, found):
                    await self._workloads.close(cluster["metadata"]["uid"])
                    remove_finalizer(self._plane, INFRASTRUCTURES, key, _FINALIZER)
                    return
                await asyncio.sleep(_AGAIN_S)
        finally:
            self._busy.discard(uid)


def _reached_at(infrastructure: Obj, *, endpoint: Obj) -> None:
    infrastructure["spec"]["controlPlaneEndpoint"] = endpoint


def has_identity(plane: ControlPlane, infrastructure: Obj | None) -> bool:
    """Return whether the Secret with the cloud's credentials exists, or none is named."""
    name = value_at(infrastructure, "spec", "identityRef", "name")
    if infrastructure is None or not name:
        return True
    return plane.store.get("secrets", Key(key_of(infrastructure).namespace, name)) is not None
