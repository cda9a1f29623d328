"""Which class stands behind which port; alone in importing adapters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubevnfm_clients.ports import Packages, VimDirectory
from kubevnfm_events.kuryr import AwaitTrunks, PrepareKuryr, RemoveKuryr
from kubevnfm_events.snapshots import RemoveSnapshot, RevertMachine, TakeSnapshot
from kubevnfm_events.stacks import (
    ChangeConnections,
    ChangeTemplate,
    CompareStacks,
    CreateResources,
    DeleteResources,
    HealResources,
    OperateServers,
    RestoreResources,
    ScaleResources,
)
from kubevnfm_sandbox.runs import Limits
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.parts import PACKAGE_CODE

from kubevnfm_infra_openstack.adapters.clouds import OpenStackClouds
from kubevnfm_infra_openstack.adapters.package_flavours import CachedFlavours
from kubevnfm_infra_openstack.adapters.user_data_process import UserDataProcess
from kubevnfm_infra_openstack.change_handlers import StackChangeHandlers
from kubevnfm_infra_openstack.comparison_handler import ComparisonHandler
from kubevnfm_infra_openstack.domain.changes import StackChanges
from kubevnfm_infra_openstack.domain.grace import GracePeriods
from kubevnfm_infra_openstack.domain.ordering import StackOrders
from kubevnfm_infra_openstack.domain.snapshots import StackSnapshots
from kubevnfm_infra_openstack.handlers import InfraOpenstackHandlers
from kubevnfm_infra_openstack.kuryr_handlers import KuryrHandlers
from kubevnfm_infra_openstack.server_handlers import ServerHandlers
from kubevnfm_infra_openstack.settings import Settings
from kubevnfm_infra_openstack.snapshot_handlers import SnapshotHandlers

SERVICE = "infra-openstack"
LAYER = "Stack"


@asynccontextmanager
async def infra_openstack(
    settings: Settings, backends: Backends, *, packages: Packages, vims: VimDirectory
) -> AsyncIterator[InfraOpenstackHandlers]:
    """Yield the service, consuming; leaving the block drains and closes it."""
    store, key_ring, clock = backends.store, backends.key_ring, backends.clock
    flavours = CachedFlavours(packages)
    user_data = UserDataProcess(
        Limits(
            timeout_s=settings.user_data_timeout_s,
            memory_mib=settings.user_data_memory_mib,
            parallel=settings.user_data_parallel,
            trust_packages=settings.trust_packages,
        )
    )
    backends.states[PACKAGE_CODE] = await user_data.state()
    # An operator corrects the access data then, and may retry at once.
    async with OpenStackClouds(
        key_ring,
        threads=settings.threads,
        call_timeout_s=settings.call_timeout_s,
        rejected=vims.forget,
        metrics=backends.metrics,
    ) as clouds:
        orders, grace = StackOrders(flavours, user_data, key_ring, settings.default_zone), GracePeriods(store, clock)
        handlers = InfraOpenstackHandlers(
            clouds=clouds, vims=vims, packages=flavours, orders=orders, grace=grace, wait_s=settings.wait_s
        )
        changes = StackChangeHandlers(
            clouds=clouds,
            vims=vims,
            changes=StackChanges(orders),
            snapshots=StackSnapshots(store, key_ring),
            grace=grace,
            wait_s=settings.wait_s,
        )
        kuryr = KuryrHandlers(clouds=clouds, vims=vims)
        servers = ServerHandlers(clouds=clouds, vims=vims, grace=grace)
        snapshots = SnapshotHandlers(clouds=clouds, vims=vims, clock=clock)
        comparison = ComparisonHandler(clouds=clouds, vims=vims, bus=backends.bus, clock=clock)
        worker = backends.worker(SERVICE, layer=LAYER, lease_s=settings.lease_s, concurrency=settings.concurrency)
        worker.handle(CreateResources, handlers.create_resources, abort=changes.abort)
        worker.handle(DeleteResources, handlers.delete_resources)
        worker.handle(ScaleResources, changes.scale_resources, abort=changes.abort)
        worker.handle(HealResources, changes.heal_resources, abort=changes.abort)
        worker.handle(ChangeConnections, changes.change_connections, abort=changes.abort)
        worker.handle(ChangeTemplate, changes.change_template, abort=changes.abort)
        worker.handle(RestoreResources, changes.restore_resources, abort=changes.abort)
        worker.handle(OperateServers, servers.operate_servers)
        worker.handle(TakeSnapshot, snapshots.take_snapshot)
        worker.handle(RemoveSnapshot, snapshots.remove_snapshot)
        worker.handle(RevertMachine, snapshots.revert_machine)
        worker.handle(PrepareKuryr, kuryr.prepare_kuryr)
        worker.handle(AwaitTrunks, kuryr.await_trunks)
        worker.handle(RemoveKuryr, kuryr.remove_kuryr)
        worker.handle_direct(CompareStacks, comparison.compare_stacks)
        async with worker:
            await worker.start()
            yield handlers
