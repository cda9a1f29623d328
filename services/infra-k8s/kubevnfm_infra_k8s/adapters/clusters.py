"""Connections to clusters, pooled by address and credentials."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Self

from cachetools import LRUCache
from kubevnfm_clients.cluster_access import read_access
from kubevnfm_clients.cluster_login import ClusterTokens
from kubevnfm_clients.vnf_networks import VnfNetworks
from kubevnfm_events import VimConnection
from kubevnfm_kit.metrics import Metrics
from kubevnfm_kit.tls import keep_tls_buffers_small
from kubevnfm_secrets import KeyRing

from kubevnfm_infra_k8s.adapters.call_guard import CallGuard
from kubevnfm_infra_k8s.adapters.kubernetes import KubernetesCluster
from kubevnfm_infra_k8s.adapters.region_metrics import RegionMetrics
from kubevnfm_infra_k8s.adapters.transport import Transport
from kubevnfm_infra_k8s.domain.concurrency import BURST, REQUESTS_PER_S

_MOST_IDLE: Final = 32
_MOST_GUARDS: Final = 4096


@dataclass
class _Pooled:
    cluster: KubernetesCluster
    users: int = 0


class KubernetesClusters:
    """`ports.Clusters`. A cluster's connections stay open while they are in use, and the last idle ones after that."""

    def __init__(
        self,
        key_ring: KeyRing,
        networks: VnfNetworks,
        *,
        per_s: float = REQUESTS_PER_S,
        burst: int = BURST,
        metrics: Metrics | None = None,
    ) -> None:
        """``per_s``, ``burst``: the calls of one cluster in a second, and after a time with fewer."""
        self._per_s, self._burst = per_s, burst
        self.metrics = RegionMetrics(metrics or Metrics())
        self._guards: LRUCache[str, CallGuard] = LRUCache(_MOST_GUARDS)
        """Kept longer than connections: a cluster that does not answer has none."""
        self._key_ring, self._networks = key_ring, networks
        self._pool: OrderedDict[tuple[str, str], _Pooled] = OrderedDict()
        """By access data and VIM: the calls of each VIM are counted as its own."""
        self._connecting = asyncio.Lock()
        self._tokens = ClusterTokens()

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        key_ring: KeyRing,
        networks: VnfNetworks,
        *,
        per_s: float = REQUESTS_PER_S,
        burst: int = BURST,
        metrics: Metrics | None = None,
    ) -> AsyncIterator[Self]:
        """Yield the pool; leaving closes all connections. ``networks``: for the clusters of VNFs."""
        keep_tls_buffers_small()
        clusters = cls(key_ring, networks, per_s=per_s, burst=burst, metrics=metrics)
        try:
            yield clusters
        finally:
            for pooled in clusters._pool.values():
                await pooled.cluster.close()

    @asynccontextmanager
    async def cluster(self, vim: VimConnection) -> AsyncIterator[KubernetesCluster]:
        access = read_access(vim, self._key_ring)
        data, vim_id = access.fingerprint, vim.vim_id or ""
        name = (data, vim_id)
        async with self._connecting:
            # Under the lock, or two commands would create two pools for the same cluster.
            if name not in self._pool:
                if data not in self._guards:
                    self._guards[data] = CallGuard(access.endpoint, per_s=self._per_s, burst=self._burst)
                guard = self._guards[data].counted_by(self.metrics.of_region(vim_id))
                transport = await Transport.connect(access, self._networks, self._tokens, guard)
                self._pool[name] = _Pooled(KubernetesCluster(transport))
            pooled = self._pool[name]
            self._pool.move_to_end(name)
            pooled.users += 1
        try:
            yield pooled.cluster
        finally:
            pooled.users -= 1
            await self._close_idle()

    async def _close_idle(self) -> None:
        # The pool is ordered by last use, so the first ones are the longest unused.
        idle = [name for name, pooled in self._pool.items() if not pooled.users]
        for name in idle[: max(0, len(idle) - _MOST_IDLE)]:
            await self._pool.pop(name).cluster.close()
