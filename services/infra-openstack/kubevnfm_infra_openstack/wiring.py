"""Which class stands behind which port; alone in importing adapters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubevnfm_bus.port import MessageBus
from kubevnfm_clients.ports import Packages, VimDirectory
from kubevnfm_events.infra import CreateResources, DeleteResources
from kubevnfm_kit.clock import SystemClock
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import DocumentStore
from kubevnfm_worker import CommandWorker

from kubevnfm_infra_openstack.adapters.clouds import OpenStackClouds
from kubevnfm_infra_openstack.adapters.package_flavours import CachedFlavours
from kubevnfm_infra_openstack.adapters.user_data_process import Limits, UserDataProcess
from kubevnfm_infra_openstack.domain.grace import GracePeriods
from kubevnfm_infra_openstack.domain.ordering import StackOrders
from kubevnfm_infra_openstack.handlers import InfraOpenstackHandlers
from kubevnfm_infra_openstack.settings import Settings

SERVICE = "infra-openstack"
LAYER = "Stack"


@asynccontextmanager
async def infra_openstack(
    settings: Settings,
    *,
    bus: MessageBus,
    store: DocumentStore,
    key_ring: KeyRing,
    packages: Packages,
    vims: VimDirectory,
) -> AsyncIterator[InfraOpenstackHandlers]:
    """Yield the service, consuming; leaving the block drains and closes it."""
    clock = SystemClock()
    flavours = CachedFlavours(packages)
    user_data = UserDataProcess(
        Limits(
            timeout_s=settings.user_data_timeout_s,
            memory_mib=settings.user_data_memory_mib,
            parallel=settings.user_data_parallel,
        )
    )
    async with OpenStackClouds(key_ring, threads=settings.threads, call_timeout_s=settings.call_timeout_s) as clouds:
        handlers = InfraOpenstackHandlers(
            clouds=clouds,
            vims=vims,
            packages=flavours,
            orders=StackOrders(flavours, user_data, key_ring),
            grace=GracePeriods(store, clock),
            wait_s=settings.wait_s,
        )
        worker = CommandWorker(
            service=SERVICE,
            bus=bus,
            store=store,
            key_ring=key_ring,
            lease_s=settings.lease_s,
            concurrency=settings.concurrency,
            layer=LAYER,
            clock=clock,
        )
        worker.handle(CreateResources, handlers.create_resources)
        worker.handle(DeleteResources, handlers.delete_resources)
        async with worker:
            await worker.start()
            yield handlers
