"""The lab clusters behind Clusters: reserved with their address, started with the first control plane machine."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from kubevnfm_lab import yaml_text
from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane
from kubevnfm_lab.kubernetes.objects import Key, Obj, condition_is_true, value_at
from kubevnfm_lab.kubernetes.store import Change, Store

_PORT: Final = 6443
_TRIES: Final = 50
"""Addresses to try: other labs on this host take theirs from the same range."""


class WorkloadLab(Protocol):
    """The part of a lab cluster that the controllers use."""

    address: str
    port: int
    store: Store
    plane: ControlPlane

    async def add_node(self, name: str, *, address: str, control_plane: bool) -> None: ...

    async def resume(self) -> None: ...

    async def suspend(self) -> None: ...

    def new_admin_kubeconfig(self) -> str: ...


class WorkloadLabs(Protocol):
    """Starts and stops lab clusters."""

    async def create(
        self, *, address: str, port: int, version: str, pod_cidr: str, service_cidr: str, has_network: bool
    ) -> WorkloadLab: ...

    async def close_at(self, address: str) -> None: ...


@dataclass
class Workload:
    """The lab cluster of one Cluster."""

    lab: WorkloadLab
    is_started: bool = False
    joined: set[str] = field(default_factory=set)

    def is_ready(self, node: str) -> bool:
        """Return whether the node of a Machine is Ready."""
        found = self.lab.store.get("nodes", Key("", node))
        return found is not None and condition_is_true(found, "Ready")


class Workloads:
    """The lab clusters by the uid of their Cluster."""

    def __init__(self, clusters: WorkloadLabs) -> None:
        self._clusters = clusters
        self._by_uid: dict[str, Workload] = {}
        self._node_changed: Callable[[Key], None] = lambda machine: None

    def on_node_change(self, call: Callable[[Key], None]) -> None:
        """Call back with the key of the Machine whose node has changed."""
        self._node_changed = call

    def find(self, cluster: Obj | None) -> Workload | None:
        """Return the workload cluster, once it is reserved."""
        return self._by_uid.get(cluster["metadata"]["uid"]) if cluster is not None else None

    async def reserve(self, cluster: Obj) -> Workload:
        """Return the workload cluster of a Cluster: its address is known, and nothing answers there yet."""
        uid, network = cluster["metadata"]["uid"], value_at(cluster, "spec", "clusterNetwork")
        if uid in self._by_uid:
            return self._by_uid[uid]
        lab = await self._create(
            version=_version(cluster),
            pod_cidr=(value_at(network, "pods", "cidrBlocks") or ["192.168.0.0/16"])[0],
            service_cidr=(value_at(network, "services", "cidrBlocks") or ["10.96.0.0/12"])[0],
        )
        await lab.suspend()
        namespace = cluster["metadata"]["namespace"]

        def look(change: Change) -> None:
            if change.resource == "nodes":
                self._node_changed(Key(namespace, change.key.name))

        lab.store.subscribe(look)
        return self._by_uid.setdefault(uid, Workload(lab))

    async def _create(self, *, version: str, pod_cidr: str, service_cidr: str) -> WorkloadLab:
        for tries_left in reversed(range(_TRIES)):
            address = f"127.{random.randint(210, 249)}.{random.randint(0, 255)}.{random.randint(1, 254)}"
            try:
                return await self._clusters.create(
                    address=address, port=_PORT, version=version, pod_cidr=pod_cidr, service_cidr=service_cidr,
                    has_network=False,
                )  # fmt: skip
            except OSError:
                if not tries_left:
                    raise
        raise AssertionError("unreachable")

    async def join(self, cluster: Obj, node: str, *, control_plane: bool) -> None:
        """Add the node of a Machine; the first one of the control plane starts the API server."""
        workload = self._by_uid[cluster["metadata"]["uid"]]
        if control_plane and not workload.is_started:
            await workload.lab.resume()
            workload.is_started = True
        if node not in workload.joined:
            workload.joined.add(node)
            await workload.lab.add_node(node, address=workload.lab.address, control_plane=control_plane)

    def leave(self, cluster: Obj | None, node: str) -> None:
        """Remove the node of a Machine."""
        workload = self.find(cluster)
        if workload is None:
            return
        workload.joined.discard(node)
        found = workload.lab.store.get("nodes", Key("", node))
        if found is not None:
            workload.lab.plane.delete("nodes", found)

    async def close(self, cluster_uid: str) -> None:
        """Stop the workload cluster of a Cluster that is deleted."""
        workload = self._by_uid.pop(cluster_uid, None)
        if workload is not None:
            await self._clusters.close_at(workload.lab.address)


def _version(cluster: Obj) -> str:
    return str(value_at(cluster, "spec", "topology", "version") or "v1.33.1")


def kubeconfig_of(workload: Workload, name: str) -> str:
    """Return a kubeconfig as Cluster API writes it: user ``<cluster>-admin`` with a client certificate of its own."""
    config = yaml_text.load(workload.lab.new_admin_kubeconfig())
    user, context = f"{name}-admin", f"{name}-admin@{name}"
    config["clusters"][0]["name"] = name
    config["users"][0]["name"] = user
    config["contexts"][0] = {"name": context, "context": {"cluster": name, "user": user}}
    config["current-context"] = context
    return yaml_text.dump(config, sort_keys=False)


def encoded(text: str) -> str:
    """Return the text as the data of a Secret."""
    return base64.b64encode(text.encode()).decode()
