"""Chooses the class behind each port. No other module imports adapters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from kubevnfm_clients.cluster_api import ClusterApi
from kubevnfm_clients.ports import NodeLogs, Packages, VimDirectory
from kubevnfm_events import VimConnection
from kubevnfm_events.credentials import SendCredentials, WithdrawCredentials
from kubevnfm_events.mgmt import ForgetInstance, RunPhase, RunScript
from kubevnfm_sandbox.process import Limits
from kubevnfm_secrets import KeyRing
from kubevnfm_worker.backends import Backends

from kubevnfm_mgmt_executor.adapters import host_keys, journal, node_logs
from kubevnfm_mgmt_executor.adapters.http import internal_api
from kubevnfm_mgmt_executor.adapters.own_files import OwnFiles
from kubevnfm_mgmt_executor.adapters.package_files import FetchedPackage
from kubevnfm_mgmt_executor.adapters.receivers import HttpReceivers
from kubevnfm_mgmt_executor.adapters.script_process import ScriptProcess
from kubevnfm_mgmt_executor.adapters.ssh import SshMachines
from kubevnfm_mgmt_executor.credential_handlers import CredentialHandlers
from kubevnfm_mgmt_executor.domain.capi.collecting import Collector, Connect
from kubevnfm_mgmt_executor.domain.capi.delivery import Sender
from kubevnfm_mgmt_executor.domain.drivers import DRIVERS
from kubevnfm_mgmt_executor.handlers import MgmtHandlers
from kubevnfm_mgmt_executor.script_handlers import ScriptHandlers
from kubevnfm_mgmt_executor.settings import Settings

SERVICE = "mgmt-executor"
LAYER = "Management driver"
_CLUSTER_TIMEOUT_S = 20.0
"""Time limit for one request to a management cluster or a workload cluster."""
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
    """The same log, for callers in this process."""


@asynccontextmanager
async def mgmt_executor(
    settings: Settings, backends: Backends, *, packages: Packages, vims: VimDirectory
) -> AsyncIterator[MgmtExecutor]:
    """Yield the service, consuming and serving; leaving the block drains and closes it."""
    await backends.ensure_indexes(INDEXES)
    store, clock = backends.store, backends.clock
    keys = host_keys.StoredHostKeys(store, clock)
    logs = node_logs.StoredOutputLog(store)
    handlers = MgmtHandlers(
        drivers=DRIVERS,
        machines=SshMachines(keys, port=settings.ssh_port),
        journal=journal.StoredJournal(store, clock),
        host_keys=keys,
        output_log=logs,
        package_files=lambda package: FetchedPackage(packages, package),
        own_files=OwnFiles(),
        key_ring=backends.key_ring,
        clock=clock,
    )
    scripts = ScriptProcess(
        Limits(
            timeout_s=settings.script_timeout_s,
            memory_mib=settings.script_memory_mib,
            parallel=settings.script_parallel,
            trust_packages=settings.trust_packages,
        ),
        ssh_port=settings.ssh_port,
    )
    backends.states["packageCode"] = await scripts.state()
    script_handlers = ScriptHandlers(
        scripts=scripts,
        folder=packages.folder,
        journal=journal.StoredJournal(store, clock),
        output_log=logs,
        key_ring=backends.key_ring,
        clock=clock,
        timeout_s=settings.script_timeout_s,
    )
    worker = backends.worker(SERVICE, layer=LAYER, lease_s=settings.lease_s, concurrency=settings.concurrency)
    worker.handle(RunPhase, handlers.run_phase)
    worker.handle(RunScript, script_handlers.run_script)
    worker.handle(ForgetInstance, handlers.forget_instance)
    api = internal_api(logs, token=settings.internal_token.get_secret_value())
    # The worker closes first: the logs of phases that still drain can be read until they end, and so can clusters.
    async with (
        aiohttp.ClientSession() as session,
        HttpReceivers.connected(settings.receiver_tls) as receivers,
        backends.serving(api, host=settings.host, port=settings.port, tls=settings.server_tls) as port,
        worker,
    ):
        credentials = CredentialHandlers(
            collector=Collector(_connector(session, backends.key_ring)),
            sender=Sender(receivers, clock, settings.callback_keys),
            vims=vims,
            journal=journal.StoredJournal(store, clock),
            key_ring=backends.key_ring,
            receiver_url=settings.receiver_url,
            allowed_hosts=settings.allowed_receivers,
        )
        worker.handle(SendCredentials, credentials.send_credentials)
        worker.handle(WithdrawCredentials, credentials.withdraw_credentials)
        await worker.start()
        yield MgmtExecutor(port, logs)


def _connector(session: aiohttp.ClientSession, ring: KeyRing) -> Connect:
    def connect(vim: VimConnection) -> ClusterApi:
        return ClusterApi(session, vim, ring, timeout_s=_CLUSTER_TIMEOUT_S)

    return connect
