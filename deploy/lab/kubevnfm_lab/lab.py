"""The lab as a whole: one event loop, one HTTP server, and the classes behind the inner ports."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from kubevnfm_lab.control import Control
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes.clusters import LabClusters
from kubevnfm_lab.machines import MachineSettings, SshMachines
from kubevnfm_lab.openstack.cloud import Cloud
from kubevnfm_lab.openstack.settings import CloudSettings

_LARGEST_REQUEST = 64 << 20
"""A stack's request contains its templates and files in one body."""


@dataclass(frozen=True)
class LabSettings:
    """Everything that can be set about a lab before it starts."""

    host: str = "127.0.0.1"
    port: int = 0
    """Port of the HTTP server with all OpenStack services and the control interface; 0: a free one."""
    cloud: CloudSettings = field(default_factory=CloudSettings)
    machines: MachineSettings = field(default_factory=MachineSettings)
    controller_delay_s: float = 0.0
    """The delay of what takes time in a real cluster: a pod's start, a node's becoming ready."""
    state_dir: Path | None = None
    """Folder of the machines' files; None: a temporary folder, removed with the lab."""


class Lab:
    """A running lab. Created by `Lab.start`."""

    def __init__(
        self,
        settings: LabSettings,
        *,
        base_url: str,
        cloud: Cloud,
        machines: SshMachines,
        clusters: LabClusters,
        faults: FaultBook,
        ledger: CallLedger,
    ) -> None:
        self.settings, self.base_url = settings, base_url
        self.cloud, self.machines, self.clusters = cloud, machines, clusters
        self.faults, self.ledger = faults, ledger

    @classmethod
    @asynccontextmanager
    async def start(cls, settings: LabSettings | None = None) -> AsyncIterator[Lab]:
        """Yield a running lab; leaving the block stops everything in it. Raises StateDirInUse."""
        settings = settings or LabSettings()
        faults, ledger = FaultBook(), CallLedger()
        async with AsyncExitStack() as stack:
            state_dir = settings.state_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lab-")))
            clusters = LabClusters(faults=faults, ledger=ledger, controller_delay_s=settings.controller_delay_s)
            await clusters.start()
            stack.push_async_callback(clusters.close)
            machines = await stack.enter_async_context(
                SshMachines.running(
                    state_dir, clusters=clusters, faults=faults, ledger=ledger, settings=settings.machines
                )
            )
            cloud = Cloud(settings.cloud, machines=machines, faults=faults, ledger=ledger)
            stack.push_async_callback(cloud.close)
            # Calls that hang in a fault continue; otherwise the server would wait for them when it stops.
            stack.callback(faults.clear)
            app = web.Application(client_max_size=_LARGEST_REQUEST)
            cloud.serve_on(app)
            Control(cloud=cloud, machines=machines, clusters=clusters, faults=faults, ledger=ledger).serve_on(app)
            base_url = await stack.enter_async_context(serving(app, settings.host, settings.port))
            cloud.reached_at(base_url)
            yield cls(
                settings,
                base_url=base_url,
                cloud=cloud,
                machines=machines,
                clusters=clusters,
                faults=faults,
                ledger=ledger,
            )

    @property
    def auth_url(self) -> str:
        """Keystone's address, as clients expect it."""
        return f"{self.base_url}/identity/v3"

    @property
    def control_url(self) -> str:
        """The address of the lab's own interface."""
        return f"{self.base_url}/lab/v1"

    @property
    def ssh_port(self) -> int:
        """The port of every machine's sshd."""
        return self.machines.ssh_port

    def endpoints(self) -> dict[str, object]:
        """Return the endpoints and credentials, as ``python -m kubevnfm_lab`` prints them."""
        first = self.settings.cloud.credentials[0]
        networks = self.cloud.neutron.networks.values()
        subnets = self.cloud.neutron.subnets
        return {
            "auth_url": self.auth_url,
            "control_url": self.control_url,
            "ssh_port": self.ssh_port,
            "username": first.username,
            "password": first.password,
            "project": first.project,
            "domain": first.domain,
            "region": self.settings.cloud.region,
            "networks": {n.name: str(subnets[n.subnet_ids[0]].cidr) for n in networks if n.builtin},
        }


@asynccontextmanager
async def serving(app: web.Application, host: str, port: int) -> AsyncIterator[str]:
    """Serve an application; yield its address."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, backlog=1024)
        await site.start()
        bound = runner.addresses[0]
        yield f"http://{bound[0]}:{bound[1]}"
    finally:
        await runner.cleanup()
