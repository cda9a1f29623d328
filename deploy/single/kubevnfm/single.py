"""The six services in one process, on SQLite and the in-process bus: wired by the same functions as separate processes."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import aiohttp
import structlog
from kubevnfm_access.settings import AccessSettings
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_clients.callback import PATH as CALLBACK_PATH
from kubevnfm_clients.charts import HttpChartPrograms, HttpFetchedCharts
from kubevnfm_clients.instances import HttpInstances
from kubevnfm_clients.logs import HttpCredentials, HttpNodeLogs
from kubevnfm_clients.multicloud.dry_runs import HttpDryRuns
from kubevnfm_clients.multicloud.health_checks import HttpHealthChecks
from kubevnfm_clients.multicloud.inventory import HttpInventory
from kubevnfm_clients.multicloud.links import HttpVirtualLinks
from kubevnfm_clients.multicloud.regions import HttpCloudRegions
from kubevnfm_clients.multicloud.verdicts import HttpVerdicts
from kubevnfm_clients.multicloud.volumes import HttpPersistentVolumes
from kubevnfm_clients.outbound_settings import OutboundSettings
from kubevnfm_clients.packages import HttpPackages
from kubevnfm_clients.playbooks import HttpPlaybookPrograms
from kubevnfm_clients.pod_usages import HttpPodUsages
from kubevnfm_clients.session import internal_session
from kubevnfm_clients.vims import HttpCloudIdentities, HttpVimDirectory, HttpVimUsers
from kubevnfm_clients.vnf_networks import VnfNetworks
from kubevnfm_credentials_receiver.settings import Settings as CredentialsReceiverSettings
from kubevnfm_credentials_receiver.wiring import credentials_receiver
from kubevnfm_events.contract import services
from kubevnfm_infra_k8s.export_settings import ExportSettings
from kubevnfm_infra_k8s.policy_settings import PolicySettings
from kubevnfm_infra_k8s.settings import Settings as InfraK8sSettings
from kubevnfm_infra_k8s.wiring import infra_k8s
from kubevnfm_infra_openstack.settings import Settings as InfraOpenstackSettings
from kubevnfm_infra_openstack.wiring import infra_openstack
from kubevnfm_kit import live_spans
from kubevnfm_kit.http import bound_socket
from kubevnfm_kit.metrics import Metrics
from kubevnfm_kit.owners import Owners
from kubevnfm_kit.settings import ListenerTls
from kubevnfm_lcm_api.multicloud.services import MultiCloudServices
from kubevnfm_lcm_api.settings import Settings as LcmApiSettings
from kubevnfm_lcm_api.settings import SubjectSettings
from kubevnfm_lcm_api.wiring import lcm_api
from kubevnfm_mgmt_executor.settings import ReceiverSettings
from kubevnfm_mgmt_executor.settings import Settings as MgmtExecutorSettings
from kubevnfm_mgmt_executor.wiring import mgmt_executor
from kubevnfm_secrets import KeyRing
from kubevnfm_store.measured import measured
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_vim_registry.region_settings import RegionSettings
from kubevnfm_vim_registry.settings import Settings as VimRegistrySettings
from kubevnfm_vim_registry.wiring import RunningVimRegistry, vim_registry
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.certificates import certificate_files
from kubevnfm_worker.reports import Process, reporting
from kubevnfm_worker.steady import steady_clock
from pydantic import SecretStr

from kubevnfm import keys
from kubevnfm.own_registry import OwnRegions, OwnVims
from kubevnfm.settings import Settings

log = structlog.get_logger()


@dataclass(frozen=True)
class SingleNode:
    """All of kubevnfm, running."""

    url: str
    """The gateway."""
    receiver_url: str
    """credentials-receiver, for operators; on loopback, at a port that the system chose."""


@asynccontextmanager
async def single_node(settings: Settings) -> AsyncIterator[SingleNode]:
    """Yield the running services; leaving the block ends them, and unfinished work continues at the next start."""
    ring, token = keys.key_ring(settings.data_dir), keys.internal_token(settings.data_dir)
    shared: Any = {"internal_token": SecretStr(token), "keys": SecretStr("unused: the ring is a parameter")}
    metrics = Metrics()
    scheme = "http" if settings.server_tls is None else "https"
    async with (
        _bound(*["127.0.0.1"] * 4, *([] if settings.port else [settings.host])) as sockets,
        SqliteStore.open(settings.data_dir / "kubevnfm.db") as store,
        InProcessBus(ring, metrics=metrics) as bus,
        _backends(settings, bus, store, ring, sockets, metrics) as backends,
        metrics.watching(version("kubevnfm")),
        internal_session(settings.internal_tls) as session,
        AsyncExitStack() as starting,
    ):
        # Messages that the last run left in the outboxes are published as soon as a service starts. No event may be
        # published before its consumers have declared their queues, which end with the process here.
        starting.enter_context(bus.holding())
        # The services need one another's addresses before they listen, so port 0 of the gateway is resolved here too.
        ports = [*(port for _, port in sockets), settings.port]
        vims_port, machines_port, credentials_port, objects_port, gateway_port, *_ = ports
        gateway_url = f"{scheme}://{_host_for_calls(settings.host)}:{gateway_port}"
        vims_url, machines_url, credentials_url, objects_url = map(_on_loopback, ports[:4])
        packages = HttpPackages(gateway_url, token, session, cache_dir=settings.data_dir / "cache")
        directory = HttpVimDirectory(vims_url, token, session)
        regions = HttpCloudRegions(vims_url, token, session, ring)
        credentials_token = keys.credentials_token(settings.data_dir)
        own_token: Any = {"credentials_token": SecretStr(credentials_token)}
        networks = VnfNetworks.from_settings(settings, gateway_url, vims_url, machines_url, credentials_url)
        callback_keys = SecretStr(keys.callback_master_key(settings.data_dir))
        async with (
            credentials_receiver(
                _receiver_settings(credentials_port, callback_keys, gateway_url, {**own_token, **shared}),
                backends,
                awaiting=HttpInstances(gateway_url, token, session),
                # As at the gateway. This listener has no TLS, so the mode `certificate` admits no caller here.
                access=settings,
            ),
            vim_registry(
                _vim_registry_settings(settings, vims_port, {**own_token, **shared}),
                backends,
                users=HttpVimUsers(gateway_url, token, session),
                credentials=HttpCredentials(credentials_url, credentials_token, session),
                operations=HttpInstances(gateway_url, token, session),
                networks=networks,
            ) as registered,
            mgmt_executor(
                _mgmt_executor_settings(
                    settings, machines_port, {"callback_master_keys": callback_keys, **shared}, receiver=credentials_url
                ),
                backends,
                packages=packages,
                vims=directory,
                networks=networks,
            ),
            infra_openstack(_infra_openstack_settings(settings, shared), backends, packages=packages, vims=directory),
            infra_k8s(
                _infra_k8s_settings(settings, objects_port, shared),
                backends,
                packages=packages,
                charts=HttpFetchedCharts(gateway_url, token, session, cache_dir=settings.data_dir / "cache"),
                vims=directory,
                identities=HttpCloudIdentities(vims_url, token, session),
                regions=regions,
                networks=networks,
            ),
            # Last, so it stops first: the gateway takes no request whose commands would have no consumer.
            lcm_api(
                _lcm_api_settings(settings, gateway_port, shared),
                backends,
                vims=OwnVims(registered, vims_url, token, session),
                node_logs=HttpNodeLogs(machines_url, token, session),
                playbooks=HttpPlaybookPrograms(machines_url, token, session),
                multicloud=_multicloud(registered, vims_url, objects_url, token, session, ring),
            ),
            reporting(backends),
        ):
            await starting.aclose()
            log.info("kubevnfm_started", url=gateway_url, receiver=credentials_url, data_dir=str(settings.data_dir))
            yield SingleNode(gateway_url, credentials_url)


@asynccontextmanager
async def _backends(
    settings: Settings,
    bus: InProcessBus,
    store: SqliteStore,
    ring: KeyRing,
    sockets: Mapping[tuple[str, int], socket.socket],
    metrics: Metrics,
) -> AsyncIterator[Backends]:
    """Yield the backends. The process has locked the database, so all leases of others in it are those of ended processes."""
    # Before the listeners and the session of calls, which are made for it.
    async with live_spans.sending(settings, "kubevnfm"), steady_clock(store) as clock:
        process = Process([*services()], [settings.data_dir], dict(certificate_files(settings)))
        yield Backends(
            bus,
            measured(store, "sqlite"),
            ring,
            clock,
            owners=Owners(is_alone=True),
            sockets=sockets,
            process=process,
            metrics=metrics,
            shows_metrics=False,
        )


def _receiver_settings(
    port: int, master_keys: SecretStr, gateway_url: str, shared: dict[str, Any]
) -> CredentialsReceiverSettings:
    """Return the settings of credentials-receiver."""
    return CredentialsReceiverSettings(port=port, master_keys=master_keys, lcm_api_url=gateway_url, **shared)


def _vim_registry_settings(settings: Settings, port: int, shared: dict[str, Any]) -> VimRegistrySettings:
    """Return the settings of vim-registry."""
    parts = (RegionSettings, OutboundSettings)
    given = {name: getattr(settings, name) for part in parts for name in part.model_fields}
    return VimRegistrySettings(port=port, lease_s=settings.lease_s, **given, **shared)


def _mgmt_executor_settings(
    settings: Settings, port: int, shared: dict[str, Any], *, receiver: str
) -> MgmtExecutorSettings:
    """Return the settings of mgmt-executor; ``receiver``: the root of credentials-receiver."""
    return MgmtExecutorSettings(
        port=port,
        ssh_port=settings.ssh_port,
        lease_s=settings.lease_s,
        trust_packages=settings.trust_packages,
        receiver_url=f"{receiver}{CALLBACK_PATH}",
        **{name: getattr(settings, name) for name in ReceiverSettings.model_fields},
        **shared,
    )


def _infra_openstack_settings(settings: Settings, shared: dict[str, Any]) -> InfraOpenstackSettings:
    """Return the settings of infra-openstack."""
    return InfraOpenstackSettings(
        lease_s=settings.lease_s,
        trust_packages=settings.trust_packages,
        default_zone=settings.default_zone,
        **shared,
    )


def _infra_k8s_settings(settings: Settings, port: int, shared: dict[str, Any]) -> InfraK8sSettings:
    """Return the settings of infra-k8s."""
    parts = (OutboundSettings, PolicySettings, ExportSettings)
    return InfraK8sSettings(
        port=port,
        lease_s=settings.lease_s,
        trust_packages=settings.trust_packages,
        **{name: getattr(settings, name) for part in parts for name in part.model_fields},
        **shared,
    )


def _lcm_api_settings(settings: Settings, port: int, shared: dict[str, Any]) -> LcmApiSettings:
    """Return the settings of the gateway and of the subjects behind it."""
    parts = (ListenerTls, AccessSettings, SubjectSettings)
    return LcmApiSettings(
        host=settings.host,
        port=port,
        public_url=settings.public_url,
        data_dir=settings.data_dir / "lcm-api",
        page_size=settings.page_size,
        lease_s=settings.lease_s,
        **{name: getattr(settings, name) for part in parts for name in part.model_fields},
        **shared,
    )


def _multicloud(
    registered: RunningVimRegistry,
    vims_url: str,
    objects_url: str,
    token: str,
    session: aiohttp.ClientSession,
    ring: KeyRing,
) -> MultiCloudServices:
    """Return the services behind the multi-cloud API; ``vims_url``: vim-registry; ``objects_url``: infra-k8s."""
    regions = OwnRegions(registered, vims_url, token, session, ring)
    links, volumes = HttpVirtualLinks(objects_url, token, session), HttpPersistentVolumes(objects_url, token, session)
    inventory = HttpInventory(objects_url, token, session)
    dry_runs = HttpDryRuns(objects_url, token, session, ring=ring)
    verdicts = HttpVerdicts(objects_url, token, session)
    charts = HttpChartPrograms(objects_url, token, session)
    checks = HttpHealthChecks(objects_url, token, session)
    usages = HttpPodUsages(objects_url, token, session, ring=ring)
    return MultiCloudServices(regions, links, volumes, inventory, dry_runs, verdicts, charts, checks, usages)


def _on_loopback(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def _host_for_calls(host: str) -> str:
    """Return the host by which this machine reaches the listener: a listener on all addresses includes loopback."""
    if host in {"", "0.0.0.0"}:
        return "127.0.0.1"
    if host == "::":
        return "[::1]"
    return f"[{host}]" if ":" in host else host


@asynccontextmanager
async def _bound(*hosts: str) -> AsyncIterator[Mapping[tuple[str, int], socket.socket]]:
    """Yield a socket with a free port for each host, by host and port; leaving closes those that no listener took over."""
    with ExitStack() as open_ones:
        sockets = [(host, open_ones.enter_context(bound_socket(host))) for host in hosts]
        yield {(host, one.getsockname()[1]): one for host, one in sockets}
