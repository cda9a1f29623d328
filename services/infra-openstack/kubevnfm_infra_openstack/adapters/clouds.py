"""OpenStackClouds: every VIM's tenants, one connection for each set of access data, kept while it is used."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

from kubevnfm_events import VimConnection
from kubevnfm_secrets import KeyRing

from kubevnfm_infra_openstack.adapters.capacity import TenantCapacity
from kubevnfm_infra_openstack.adapters.glance import GlanceImages
from kubevnfm_infra_openstack.adapters.heat import HeatStacks
from kubevnfm_infra_openstack.adapters.nova import NovaServers
from kubevnfm_infra_openstack.adapters.tenants import Tenant, access_data
from kubevnfm_infra_openstack.domain.ports import Cloud


@dataclass(frozen=True)
class _Kept:
    tenant: Tenant
    stacks: HeatStacks
    cloud: Cloud


class OpenStackClouds:
    """An async context manager; leaving it closes every connection and the thread pools."""

    def __init__(self, ring: KeyRing, *, threads: int, call_timeout_s: float, tenants_kept: int = 256) -> None:
        self._ring, self._timeout_s, self._tenants_kept = ring, call_timeout_s, tenants_kept
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="openstack")
        self._uploads = ThreadPoolExecutor(max(2, threads // 8), thread_name_prefix="openstack-upload")
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._leaving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*map(self._forget, self._kept.values()), *self._leaving)
        self._kept.clear()
        await asyncio.gather(
            *(asyncio.to_thread(pool.shutdown, cancel_futures=True) for pool in (self._pool, self._uploads))
        )

    def cloud(self, vim: VimConnection) -> Cloud:
        """See Clouds."""
        access = access_data(vim, self._ring)
        key = access.fingerprint()
        kept = self._kept.get(key)
        if kept is None:
            tenant = Tenant(access, calls=self._pool, uploads=self._uploads, timeout_s=self._timeout_s)
            stacks = HeatStacks(tenant)
            cloud = Cloud(stacks, GlanceImages(tenant), TenantCapacity(tenant, now=time.monotonic), NovaServers(tenant))
            kept = self._kept[key] = _Kept(tenant, stacks, cloud)
            if len(self._kept) > self._tenants_kept:
                self._leave(self._kept.popitem(last=False)[1])
        self._kept.move_to_end(key)
        return kept.cloud

    def _leave(self, kept: _Kept) -> None:
        task = asyncio.get_running_loop().create_task(self._forget(kept), name="forget-tenant")
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _forget(self, kept: _Kept) -> None:
        await kept.stacks.close()
        await asyncio.to_thread(kept.tenant.close)
