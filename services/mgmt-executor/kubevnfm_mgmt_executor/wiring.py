"""Which class stands behind which port; alone in importing adapters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kubevnfm_bus.port import MessageBus
from kubevnfm_clients.ports import NodeLogs, Packages
from kubevnfm_events.mgmt import ForgetInstance, RunPhase
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.http import serving
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import DocumentStore
from kubevnfm_worker import CommandWorker

from kubevnfm_mgmt_executor.adapters import host_keys, journal, node_logs
from kubevnfm_mgmt_executor.adapters.http import internal_api
from kubevnfm_mgmt_executor.adapters.package_files import FetchedPackage
from kubevnfm_mgmt_executor.adapters.ssh import SshMachines
from kubevnfm_mgmt_executor.domain.driver import Drivers
from kubevnfm_mgmt_executor.domain.kubernetes.driver import NAMES, KubernetesDriver
from kubevnfm_mgmt_executor.handlers import MgmtHandlers
from kubevnfm_mgmt_executor.settings import Settings

SERVICE = "mgmt-executor"
LAYER = "Management driver"
INDEXES = {
    journal.TASKS: journal.INDEXES,
    host_keys.HOST_KEYS: host_keys.INDEXES,
    node_logs.NODE_LOGS: node_logs.INDEXES,
}


@dataclass(frozen=True)
class MgmtExecutor:
    """The running service."""

    port: int
    """Where the internal API listens."""
    node_logs: NodeLogs
    """The same log for those in this process."""


@asynccontextmanager
async def mgmt_executor(
    settings: Settings, *, bus: MessageBus, store: DocumentStore, key_ring: KeyRing, packages: Packages
) -> AsyncIterator[MgmtExecutor]:
    """Yield the service, consuming and serving; leaving the block drains and closes it."""
    for collection, indexes in INDEXES.items():
        await store.ensure_indexes(collection, indexes)
    clock = SystemClock()
    keys = host_keys.StoredHostKeys(store, clock)
    logs = node_logs.StoredOutputLog(store)
    kubernetes = KubernetesDriver(clock=clock)
    handlers = MgmtHandlers(
        drivers=Drivers(dict.fromkeys(NAMES, kubernetes)),
        machines=SshMachines(keys, port=settings.ssh_port),
        journal=journal.StoredJournal(store, clock),
        host_keys=keys,
        output_log=logs,
        package_files=lambda package: FetchedPackage(packages, package),
        key_ring=key_ring,
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
    worker.handle(RunPhase, handlers.run_phase)
    worker.handle(ForgetInstance, handlers.forget_instance)
    api = internal_api(logs, internal_token=settings.internal_token.get_secret_value(), ready=store.is_ready)
    async with serving(api, host=settings.host, port=settings.port, tls=settings.server_tls) as port, worker:
        await worker.start()
        yield MgmtExecutor(port, logs)
