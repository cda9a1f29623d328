"""Which class stands behind which port; alone in importing adapters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Final

import aiohttp
from kubevnfm_clients.names import cluster_connector
from kubevnfm_clients.outbound import outbound_session
from kubevnfm_clients.ports import CredentialsStore, InstanceOperations, VimUsers
from kubevnfm_clients.vnf_networks import VnfNetworks
from kubevnfm_events.queues import CREDENTIALS
from kubevnfm_events.vim import DeregisterVim, RecordCapiProviders, RegisterReceived, RegisterVim, ReleaseVim
from kubevnfm_kit.client_session import client_session
from kubevnfm_kit.http_client import HttpConnector
from kubevnfm_kit.run import background, repeat
from kubevnfm_kit.tls import ClientTls, client_context
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.worker import CommandWorker

from kubevnfm_vim_registry.adapters.aai import AaiRegions
from kubevnfm_vim_registry.adapters.cloud_logins import OpenstackLogins
from kubevnfm_vim_registry.adapters.cluster_profiles import ClusterProfiles
from kubevnfm_vim_registry.adapters.http import internal_api
from kubevnfm_vim_registry.adapters.http_regions import region_routes
from kubevnfm_vim_registry.adapters.kubernetes import KubernetesProbe
from kubevnfm_vim_registry.adapters.kubernetes_regions import KubernetesRegions
from kubevnfm_vim_registry.adapters.openstack import OpenstackProbe
from kubevnfm_vim_registry.capacities import Capacities
from kubevnfm_vim_registry.cloud_identities import CloudIdentities
from kubevnfm_vim_registry.clusters import ClusterVims
from kubevnfm_vim_registry.domain.ports import Probes
from kubevnfm_vim_registry.handlers import VimHandlers
from kubevnfm_vim_registry.monitor import VimMonitor
from kubevnfm_vim_registry.records import COLLECTION, VimRecords
from kubevnfm_vim_registry.region_access import RegionAccess
from kubevnfm_vim_registry.region_inventories import RegionInventories
from kubevnfm_vim_registry.region_reading import RegionReading
from kubevnfm_vim_registry.region_suspensions import RegionSuspensions
from kubevnfm_vim_registry.regions import Regions
from kubevnfm_vim_registry.registry import VimRegistry
from kubevnfm_vim_registry.settings import Settings
from kubevnfm_vim_registry.views import VimViews

SERVICE = "vim-registry"
LAYER = "VIM registration"
_CONNECTIONS: Final = 32


@dataclass(frozen=True)
class RunningVimRegistry:
    """The running service."""

    port: int
    """The port on which the internal API listens."""
    registry: VimRegistry
    """Implements the ports Vims and VimDirectory for callers in the same process."""
    identities: CloudIdentities
    """Implements the port of the same name."""
    suspensions: RegionSuspensions
    """Returns the suspensions of regions to callers in the same process."""


@asynccontextmanager
async def vim_registry(
    settings: Settings,
    backends: Backends,
    *,
    users: VimUsers,
    credentials: CredentialsStore,
    operations: InstanceOperations,
    networks: VnfNetworks,
) -> AsyncIterator[RunningVimRegistry]:
    """Yield the service, consuming, serving and watching; leaving the block drains and closes it."""
    bus, store, key_ring, clock = backends.bus, backends.store, backends.key_ring, backends.clock
    async with (
        _threads(settings.monitor_parallel) as threads,
        client_session(connector=_own_connections()) as session,
        networks.session() as vnf_session,
        _outbound_session(settings) as outbound,
        backends.relay([COLLECTION]) as relay,
        backends.worker(SERVICE, layer=LAYER, lease_s=settings.lease_s) as worker,
    ):
        clusters = KubernetesProbe(session, vnf_session, key_ring, timeout_s=settings.verify_timeout_s)
        clouds = OpenstackProbe(key_ring, threads, timeout_s=settings.verify_timeout_s, metrics=backends.metrics)
        probes: Probes = {"kubernetes": clusters, "openstack": clouds}
        records = VimRecords(store, Outbox(store, relay, key_ring), key_ring, clock)
        await records.prepare()
        registry = VimRegistry(records, probes, users, key_ring, verify_timeout_s=settings.verify_timeout_s)
        logins = OpenstackLogins(key_ring, threads, timeout_s=settings.verify_timeout_s)
        identities = CloudIdentities(records, logins)
        handlers = VimHandlers(
            ClusterVims(records, registry, credentials, key_ring),
            bus,
            clock,
            credentials_tries_s=settings.credentials_tries_s,
        )
        _handle(worker, handlers)
        await worker.start()
        await bus.consume_events(CREDENTIALS.name, CREDENTIALS.patterns, handlers.handle_credentials)

        region_probe = KubernetesRegions(clusters)
        sources = AaiRegions(outbound, key_ring, settings.verify_timeout_s), ClusterProfiles(clusters, key_ring)
        access = RegionAccess(records, *sources, key_ring, settings.allowed, settings.verify_timeout_s)
        regions = Regions(records, registry, region_probe, access, key_ring)
        inventories = RegionInventories(records, access, regions, at_a_time=settings.monitor_parallel)
        reading = RegionReading(region_probe, clock, timeout_s=settings.monitor_timeout_s)
        suspensions = RegionSuspensions(records, regions)
        monitor = VimMonitor(
            records,
            probes,
            operations,
            clock,
            key_ring,
            rejected=inventories.rejected,
            timeout_s=settings.monitor_timeout_s,
            at_a_time=settings.monitor_parallel,
            tolerated_s=settings.monitor_tolerance_s,
            metrics=backends.metrics,
        )
        capacities = Capacities(
            {"kubernetes": region_probe, "openstack": clouds}, clock, at_a_time=settings.monitor_parallel
        )
        app = internal_api(
            registry,
            VimViews(records, monitor, capacities, key_ring, clock),
            region_routes(regions, reading, suspensions),
            identities,
            key_ring,
            rejected=inventories.rejected,
            token=settings.internal_token.get_secret_value(),
        )
        async with (
            aclosing(capacities),
            background(
                vim_monitor=repeat(monitor.check_all, every_s=settings.monitor_every_s),
                region_inventories=repeat(inventories.read_due, every_s=settings.inventory_every_s),
            ),
            backends.serving(app, SERVICE, host=settings.host, port=settings.port, tls=settings.server_tls) as port,
        ):
            yield RunningVimRegistry(port, registry, identities, suspensions)


def _handle(worker: CommandWorker, handlers: VimHandlers) -> None:
    """Register the handlers of the commands."""
    worker.handle(RegisterVim, handlers.register_vim)
    worker.handle(RegisterReceived, handlers.register_received)
    worker.handle(ReleaseVim, handlers.release_vim)
    worker.handle(DeregisterVim, handlers.deregister_vim)
    worker.handle(RecordCapiProviders, handlers.record_capi_providers)


@asynccontextmanager
async def _outbound_session(settings: Settings) -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a session for addresses that requests name."""
    async with (
        client_context(ClientTls(settings.outbound_ca_file)) as trusted,
        outbound_session(settings.address_rules, tls=trusted) as session,
    ):
        yield session


def _own_connections() -> HttpConnector:
    # For each server: those that wait for a dead one are none of the others' (multicloud.md MC-083).
    return cluster_connector(limit=0, limit_per_host=_CONNECTIONS)


@asynccontextmanager
async def _threads(count: int) -> AsyncIterator[ThreadPoolExecutor]:
    """Yield threads for calls to Keystone; leaving waits for the calls that are under way."""
    threads = ThreadPoolExecutor(count, thread_name_prefix="keystone")
    try:
        yield threads
    finally:
        # Not on the event loop: in the single process, all other services would stand still as long as a VIM is silent.
        await asyncio.to_thread(threads.shutdown, cancel_futures=True)
