"""Chooses the class behind each port. No other module imports adapters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypedDict

import aiohttp
from kubevnfm_clients.cluster_api import ClusterApi
from kubevnfm_clients.cluster_login import ClusterTokens
from kubevnfm_clients.ports import NodeLogs, Packages, VimDirectory
from kubevnfm_clients.vnf_networks import VnfNetworks, addresses_of
from kubevnfm_events import VimConnection
from kubevnfm_events.credentials import SendCredentials, WithdrawCredentials
from kubevnfm_events.mgmt import ForgetInstance, RunPhase, RunScript
from kubevnfm_kit.client_session import client_session
from kubevnfm_kit.tls import machine_cas
from kubevnfm_sandbox.runs import Limits
from kubevnfm_secrets import KeyRing
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.parts import PACKAGE_CODE

from kubevnfm_mgmt_executor.adapters import host_keys, journal, node_logs
from kubevnfm_mgmt_executor.adapters.cluster_addresses import serves_at
from kubevnfm_mgmt_executor.adapters.granted import GrantedAddresses
from kubevnfm_mgmt_executor.adapters.http import internal_api
from kubevnfm_mgmt_executor.adapters.machines import LateSshMachines
from kubevnfm_mgmt_executor.adapters.own_files import OwnFiles
from kubevnfm_mgmt_executor.adapters.package_files import FetchedPackage
from kubevnfm_mgmt_executor.adapters.receivers import HttpReceivers
from kubevnfm_mgmt_executor.adapters.script_process import ScriptProcess, why_no_ansible
from kubevnfm_mgmt_executor.adapters.task_metrics import TaskMetrics
from kubevnfm_mgmt_executor.credential_handlers import CredentialHandlers
from kubevnfm_mgmt_executor.domain.capi.collecting import Collector, Connect
from kubevnfm_mgmt_executor.domain.capi.delivery import Sender
from kubevnfm_mgmt_executor.domain.drivers import DRIVERS
from kubevnfm_mgmt_executor.handlers import MgmtHandlers
from kubevnfm_mgmt_executor.script_handlers import ScriptHandlers
from kubevnfm_mgmt_executor.script_senders import ScriptSenders, TrustedCas
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


class _Sending(TypedDict):
    """The needs of both senders of credentials: the driver, and scripts of packages."""

    collector: Collector
    sender: Sender
    vims: VimDirectory
    key_ring: KeyRing
    receiver_url: str | None
    allowed_hosts: Collection[str]


@dataclass(frozen=True)
class MgmtExecutor:
    """The running service."""

    port: int
    """Where the internal API listens."""
    node_logs: NodeLogs
    """The same log, for callers in this process."""


@asynccontextmanager
async def mgmt_executor(
    settings: Settings, backends: Backends, *, packages: Packages, vims: VimDirectory, networks: VnfNetworks
) -> AsyncIterator[MgmtExecutor]:
    """Yield the service, consuming and serving; leaving the block drains and closes it."""
    await backends.ensure_indexes(INDEXES)
    store, clock = backends.store, backends.clock
    tasks = journal.StoredJournal(store, clock, TaskMetrics(backends.metrics))
    keys = host_keys.StoredHostKeys(store, clock)
    logs = node_logs.StoredOutputLog(store, clock)
    handlers = MgmtHandlers(
        drivers=DRIVERS,
        machines=LateSshMachines(keys, networks, port=settings.ssh_port),
        journal=tasks,
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
        )
    )
    grants = GrantedAddresses(networks, ssh_port=settings.ssh_port)
    backends.states[PACKAGE_CODE] = await scripts.state()
    worker = backends.worker(SERVICE, layer=LAYER, lease_s=settings.lease_s, concurrency=settings.concurrency)
    worker.handle(RunPhase, handlers.run_phase)
    worker.handle(ForgetInstance, handlers.forget_instance)
    api = internal_api(logs, token=settings.internal_token.get_secret_value(), why_no_playbooks=why_no_ansible)
    # The worker closes first: the logs of phases that still drain can be read until they end, and so can clusters.
    async with (
        client_session() as session,
        networks.session() as vnf_session,
        HttpReceivers.connected(settings.receiver_tls, settings.receiver_url) as receivers,
        backends.serving(api, SERVICE, host=settings.host, port=settings.port, tls=settings.server_tls) as port,
        worker,
    ):
        sending: _Sending = {
            "collector": Collector(_connector(session, vnf_session, backends.key_ring)),
            "sender": Sender(receivers, clock, settings.callback_keys),
            "vims": vims,
            "key_ring": backends.key_ring,
            "receiver_url": settings.receiver_url,
            "allowed_hosts": settings.allowed_receivers,
        }
        credentials = CredentialHandlers(**sending, journal=tasks)
        script_handlers = ScriptHandlers(
            scripts=scripts,
            folder=packages.folder,
            journal=tasks,
            output_log=logs,
            key_ring=backends.key_ring,
            clock=clock,
            timeout_s=settings.script_timeout_s,
            grants=grants,
            senders=ScriptSenders(
                **sending,
                access=settings.sender_access,
                addresses_of=addresses_of,
                serves_at=partial(serves_at, ring=backends.key_ring),
                grants=grants,
                trusted_cas=partial(asyncio.to_thread, _trusted_cas, settings.receiver_ca_file),
            ),
        )
        worker.handle(RunScript, script_handlers.run_script)
        worker.handle(SendCredentials, credentials.send_credentials)
        worker.handle(WithdrawCredentials, credentials.withdraw_credentials)
        await worker.start()
        yield MgmtExecutor(port, logs)


def _connector(session: aiohttp.ClientSession, vnf_session: aiohttp.ClientSession, ring: KeyRing) -> Connect:
    tokens = ClusterTokens(timeout_s=_CLUSTER_TIMEOUT_S)

    def connect(vim: VimConnection) -> ClusterApi:
        judged = vnf_session if vim.of_vnf else session
        return ClusterApi(judged, vim, ring, timeout_s=_CLUSTER_TIMEOUT_S, tokens=tokens)

    return connect


def _trusted_cas(receiver_ca_file: Path | None) -> TrustedCas:
    """Read the files, as they are now: certificates are replaced while the service runs."""
    machine = machine_cas()
    return TrustedCas(machine, machine if receiver_ca_file is None else receiver_ca_file.read_text(encoding="utf-8"))
