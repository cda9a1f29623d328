"""OpenStackClouds: the tenants of all VIMs, with one cached connection for each set of access data."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Self

from kubevnfm_events import VimConnection
from kubevnfm_keystone import OpenstackMetrics
from kubevnfm_kit.metrics import Metrics
from kubevnfm_secrets import KeyRing

from kubevnfm_infra_openstack.adapters.capacity import TenantCapacity
from kubevnfm_infra_openstack.adapters.glance import GlanceImages
from kubevnfm_infra_openstack.adapters.heat import HeatStacks
from kubevnfm_infra_openstack.adapters.kuryr import KuryrCloud
from kubevnfm_infra_openstack.adapters.machine_snapshots import MachineSnapshots
from kubevnfm_infra_openstack.adapters.networks import NeutronNetworks
from kubevnfm_infra_openstack.adapters.nova import NovaServers
from kubevnfm_infra_openstack.adapters.tenants import Tenant, access_data
from kubevnfm_infra_openstack.domain.ports import Cloud


@dataclass(frozen=True)
class _Connected:
    tenant: Tenant
    stacks: HeatStacks
    cloud: Cloud
    vims: dict[str | None, VimConnection]
    """By id: those with the access data."""


class OpenStackClouds:
    """An async context manager; leaving it closes all connections and the thread pools."""

    def __init__(
        self,
        ring: KeyRing,
        *,
        threads: int,
        call_timeout_s: float,
        most_tenants: int = 256,
        rejected: Callable[[VimConnection], None] | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """``threads``: simultaneous calls; ``most_tenants``: connections that stay open for later calls.

        ``rejected`` gets each VIM whose access data Keystone rejects.
        """
        self._ring, self._timeout_s, self._most_tenants = ring, call_timeout_s, most_tenants
        self._rejected = rejected
        self._counts = OpenstackMetrics(metrics or Metrics())
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="openstack")
        # Uploads take minutes each; in a pool of their own they cannot block the short calls.
        self._uploads = ThreadPoolExecutor(max(2, threads // 8), thread_name_prefix="openstack-upload")
        self._connected: OrderedDict[str, _Connected] = OrderedDict()
        self._leaving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*map(self._close, self._connected.values()), *self._leaving)
        self._connected.clear()
        await asyncio.gather(
            *(asyncio.to_thread(pool.shutdown, cancel_futures=True) for pool in (self._pool, self._uploads))
        )

    def cloud(self, vim: VimConnection) -> Cloud:
        access = access_data(vim, self._ring)
        key = access.fingerprint()
        connected = self._connected.get(key)
        if connected is None:
            vims: dict[str | None, VimConnection] = {}
            tenant = Tenant(
                access,
                calls=self._pool,
                uploads=self._uploads,
                timeout_s=self._timeout_s,
                rejected=partial(self._reject, vims),
                counts=self._counts,
            )
            stacks = HeatStacks(tenant)
            cloud = Cloud(
                stacks,
                GlanceImages(tenant),
                TenantCapacity(tenant, now=time.monotonic),
                NovaServers(tenant),
                KuryrCloud(tenant),
                NeutronNetworks(tenant),
                MachineSnapshots(tenant),
            )
            connected = self._connected[key] = _Connected(tenant, stacks, cloud, vims)
            if len(self._connected) > self._most_tenants:
                self._close_later(self._connected.popitem(last=False)[1])
        self._connected.move_to_end(key)
        connected.vims[vim.vim_id] = vim
        return connected.cloud

    def _reject(self, vims: Mapping[str | None, VimConnection]) -> None:
        if self._rejected is None:
            return
        for vim in vims.values():
            self._rejected(vim)

    def _close_later(self, connected: _Connected) -> None:
        task = asyncio.get_running_loop().create_task(self._close(connected), name="close-tenant")
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _close(self, connected: _Connected) -> None:
        await connected.stacks.close()
        await asyncio.to_thread(connected.tenant.close)
