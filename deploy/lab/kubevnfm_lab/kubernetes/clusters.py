"""All clusters of the lab, by the address of their control plane."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from kubevnfm_lab.kubernetes.cluster import LabCluster
from kubevnfm_lab.ports import Faults, Ledger


class LabClusters:
    """``kubevnfm_lab.ports.Clusters``."""

    def __init__(self, *, faults: Faults, ledger: Ledger, controller_delay_s: float = 0.0) -> None:
        """``controller_delay_s``: the delay of a pod's start, a node's becoming ready and the like."""
        self._faults, self._ledger, self._delay_s = faults, ledger, controller_delay_s
        self._clusters: dict[tuple[str, int], LabCluster] = {}

    async def start(self) -> None:
        """Do nothing: each cluster starts when it is created."""

    async def close(self) -> None:
        """Stop all clusters."""
        clusters, self._clusters = tuple(self._clusters.values()), {}
        await asyncio.gather(*(cluster.close() for cluster in clusters))

    async def create(
        self,
        *,
        address: str,
        port: int = 6443,
        version: str,
        pod_cidr: str,
        service_cidr: str,
        san: Sequence[str] = (),
        has_network: bool = True,
    ) -> LabCluster:
        """See `ports.Clusters`; without ``has_network``, nodes are ready once a DaemonSet brings the pods' network."""
        cluster = LabCluster(
            address=address,
            port=port,
            version=version,
            pod_cidr=pod_cidr,
            service_cidr=service_cidr,
            san=san,
            faults=self._faults,
            ledger=self._ledger,
            delay_s=self._delay_s,
            has_network=has_network,
            clusters=self,
        )
        try:
            await cluster.start()
        except (OSError, asyncio.CancelledError):
            # Otherwise the controllers of a cluster that never served would keep running, or its port would stay taken.
            await cluster.close()
            raise
        self._clusters[address, port] = cluster
        return cluster

    def find(self, address: str, port: int) -> LabCluster | None:
        """See `ports.Clusters`."""
        return self._clusters.get((address, port))

    async def close_at(self, address: str) -> None:
        """See `ports.Clusters`."""
        for place in [place for place in self._clusters if place[0] == address]:
            await self._clusters.pop(place).close()

    async def suspend_at(self, address: str) -> None:
        """Stop serving on the address, as a control plane that is powered off; all objects are kept."""
        for cluster in self._on(address):
            await cluster.suspend()

    async def resume_at(self, address: str) -> None:
        """Serve on the address again; raise OSError if it was taken meanwhile."""
        for cluster in self._on(address):
            await cluster.resume()

    def _on(self, address: str) -> Sequence[LabCluster]:
        return [cluster for place, cluster in self._clusters.items() if place[0] == address]

    def inventory(self) -> Sequence[Mapping[str, Any]]:
        """See `ports.Clusters`."""
        return [cluster.inventory() for cluster in self._clusters.values()]
