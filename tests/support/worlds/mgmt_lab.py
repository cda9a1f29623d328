"""The management executor's handlers in front of the lab's machines: for tests that install clusters."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Literal

import aiohttp
from kubevnfm_cluster.parameters import CLUSTER, ClusterParameters
from kubevnfm_events import Event
from kubevnfm_events.common import ClusterAccess, PackageRef
from kubevnfm_events.mgmt import ManagedNode, Phase, PhaseDone, RunPhase, TaskProgressed
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.errors import NotFound
from kubevnfm_kit.ids import new_id
from kubevnfm_lab.faults import CallLedger, Fault, FaultBook
from kubevnfm_lab.kubernetes import LabClusters
from kubevnfm_lab.machines import MachineSettings
from kubevnfm_lab.machines import SshMachines as LabMachines
from kubevnfm_lab.machines.machine import Machine
from kubevnfm_lab.ports import MachineSpec, Nic
from kubevnfm_mgmt_executor.adapters.host_keys import StoredHostKeys
from kubevnfm_mgmt_executor.adapters.journal import TASKS, StoredJournal
from kubevnfm_mgmt_executor.adapters.node_logs import StoredOutputLog
from kubevnfm_mgmt_executor.adapters.own_files import OwnFiles
from kubevnfm_mgmt_executor.adapters.package_files import FetchedPackage
from kubevnfm_mgmt_executor.adapters.ssh import SshMachines
from kubevnfm_mgmt_executor.domain.drivers import DRIVERS
from kubevnfm_mgmt_executor.handlers import MgmtHandlers
from kubevnfm_mgmt_executor.wiring import INDEXES
from kubevnfm_secrets import KeyRing, hide
from kubevnfm_store.query import by
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.outcome import Done, StepContext
from servers.vnf_networks import networks

SAMPLE = Path(__file__).parents[3] / "deploy/samples/cluster"

_subnets = itertools.count(1)


class OneFolder:
    """Every package is this folder."""

    def __init__(self, folder: Path) -> None:
        self.root = folder

    @classmethod
    def sample(cls, folder: Path) -> OneFolder:
        """Return a copy of the sample package, in which the files that the sample links to are files."""
        return cls(shutil.copytree(SAMPLE, folder / "package"))

    async def folder(self, package: PackageRef) -> Path:
        return self.root

    async def stream(self, package: PackageRef, path: str) -> AsyncIterator[bytes]:
        raise NotFound(f"no file {path}")
        yield b""  # makes it an async generator


@dataclass
class MgmtLab:
    """Machines, a store, and handlers as the service wires them."""

    machines: LabMachines
    clusters: LabClusters
    faults: FaultBook
    store: SqliteStore
    handlers: MgmtHandlers
    logs: StoredOutputLog
    packages: OneFolder
    ring: KeyRing
    instance_id: str = field(default_factory=new_id)
    news: list[TaskProgressed] = field(default_factory=list)
    _news_arrived: asyncio.Event = field(default_factory=asyncio.Event)
    subnet: int = field(default_factory=lambda: next(_subnets))

    @classmethod
    @asynccontextmanager
    async def start(cls, folder: Path, settings: MachineSettings | None = None) -> AsyncIterator[MgmtLab]:
        """Yield the lab; its files are under ``folder``."""
        faults, ledger, clock = FaultBook(), CallLedger(), SystemClock()
        clusters = LabClusters(faults=faults, ledger=ledger)
        await clusters.start()
        async with (
            LabMachines.running(
                folder / "lab", clusters=clusters, faults=faults, ledger=ledger, settings=settings
            ) as machines,
            SqliteStore.open(folder / "store.db") as store,
        ):
            for collection, indexes in INDEXES.items():
                await store.ensure_indexes(collection, indexes)
            keys, logs = StoredHostKeys(store, clock), StoredOutputLog(store)
            packages, ring = OneFolder.sample(folder), KeyRing([os.urandom(32)])
            handlers = MgmtHandlers(
                drivers=DRIVERS,
                machines=SshMachines(keys, networks(), port=machines.ssh_port),
                journal=StoredJournal(store, clock),
                host_keys=keys,
                output_log=logs,
                package_files=lambda package: FetchedPackage(packages, package),
                own_files=OwnFiles(),
                key_ring=ring,
                clock=clock,
            )
            try:
                yield cls(machines, clusters, faults, store, handlers, logs, packages, ring)
            finally:
                faults.clear()
                await clusters.close()

    async def boot(
        self,
        role: Literal["master", "worker", "storage"],
        octet: int,
        *,
        host: str | None = None,
        public_key: str | None = None,
        volumes: Sequence[str] = (),
    ) -> ManagedNode:
        """Start a machine whose address ends in ``octet``; one with a key refuses passwords. ``volumes``: Cinder ids."""
        # Each test and process has its own network, so that tests can run side by side.
        address = IPv4Address(f"127.{60 + os.getpid() % 100}.{(os.getpid() // 100 + 7 * self.subnet) % 250}.{octet}")
        server_id = new_id()
        await self.machines.boot(
            MachineSpec(
                server_id,
                f"{role}Node{octet}",
                [Nic(address, f"fa:16:3e:00:00:{octet:02x}", "net")],
                user_data="#cloud-config\nssh_pwauth: false\n" if public_key else "",
                public_key=public_key,
                volumes=volumes,
            )
        )
        return ManagedNode(
            vnfc_id=f"vnfc-{server_id}",
            role=role,
            ssh_address=str(address),
            nic_address=str(address),
            subnet_cidr=f"{address}/32",
            host=host,
            server_id=server_id,
        )

    async def boot_cluster(self, *, workers: int) -> Sequence[ManagedNode]:
        """Start a master and workers, two workers per compute host."""
        master = await self.boot("master", 10, host="compute-0")
        return [master, *[await self.boot("worker", 20 + n, host=f"compute-{n // 2}") for n in range(workers)]]

    @staticmethod
    def parameters(changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return additionalParams; ``changes`` replace attributes, within a group of nodes only the named ones."""
        login = {"username": "ubuntu", "password": "ubuntu"}
        given: dict[str, Any] = {
            "script_path": "Scripts/install_k8s_cluster.sh",
            "master_node": {**login, "ssh_cp_name": "masterNode_CP1", "cluster_cp_name": "masterNode_CP1"},
            "worker_node": {**login, "ssh_cp_name": "workerNode_CP2"},
            "x_timeouts": {"ssh_ready": 20, "node_install": 60, "command": 20, "node_ready": 20},
            "x_max_parallel_nodes": 100,
        }
        for name, value in changes.items():
            given[name] = {**given[name], **value} if name in ("master_node", "worker_node") else value
        return {CLUSTER: given}

    def command(
        self,
        nodes: Sequence[ManagedNode],
        *,
        phase: Phase = "instantiate_end",
        changes: Mapping[str, Any] | None = None,
    ) -> RunPhase:
        """Return the command for the nodes; ``changes`` go into k8s_cluster_installation_param."""
        parameters = self.parameters(changes or {})
        return RunPhase(
            vnf_instance_id=self.instance_id,
            driver="mgmt-drivers-kubernetes",
            phase=phase,
            package=PackageRef(package_id="p", vnfd_id="d"),
            nodes=tuple(nodes),
            parameters=hide(parameters),
            cluster=ClusterParameters.model_validate(parameters[CLUSTER]),
            cluster_address=nodes[0].nic_address,
        )

    def context(self, *, operation: str = "op-1", message: str = "m-1", fencing: int = 1) -> StepContext:
        """Return the facts of a delivery; the events that the handler reports are stored in ``news``."""

        async def report(event: Event) -> None:
            assert isinstance(event, TaskProgressed)
            self.news.append(event)
            self._news_arrived.set()

        return StepContext(
            message_id=message,
            operation_id=operation,
            step_id="instantiate_end",
            attempt=1,
            subject=self.instance_id,
            deadline=None,
            fencing=fencing,
            publish=report,
        )

    async def run(self, command: RunPhase, **context: Any) -> PhaseDone:
        """Run the phase until it succeeds."""
        outcome = await self.handlers.run_phase(command, self.context(**context))
        assert isinstance(outcome, Done)
        assert isinstance(outcome.event, PhaseDone)
        return outcome.event

    async def run_until(self, command: RunPhase, task: str, node: str, **context: Any) -> None:
        """Start the phase and kill it once a task has begun on a node."""
        work = asyncio.create_task(self.handlers.run_phase(command, self.context(**context)))
        begun = asyncio.create_task(self.begun(task, node))
        await asyncio.wait({work, begun}, return_when=asyncio.FIRST_COMPLETED, timeout=300)
        assert begun.done(), f"{task} on {node} did not begin: {work}"
        await self.kill(work)

    async def kill(self, work: asyncio.Task[Any]) -> None:
        """Cancel a phase; return once all that it has asked of the store is written, as no process writes after its end."""
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        # Writes are done one after another, so those before are done with this one, which deletes nothing.
        await self.store.delete_many(TASKS, by(vnfInstanceId=""))

    async def begun(self, task: str, node: str) -> None:
        """Return once a task was reported as started on a node."""
        await self.until(lambda: any((n.task, n.node, n.state) == (task, node, "started") for n in self.news))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return once the condition holds; it is checked after each reported event."""
        while not holds():
            self._news_arrived.clear()
            await self._news_arrived.wait()

    async def running(self, node: ManagedNode, program: str) -> None:
        """Return once a stand-in program was started on a node."""
        await self.until_called(node, program, times=1)

    async def until_called(self, node: ManagedNode, program: str, *, times: int) -> None:
        """Return once a stand-in program was started so often on a node."""
        while self.calls(node, program) < times:  # noqa: ASYNC110  # the lab has a count, but no event
            await asyncio.sleep(0.01)

    async def reached(self, fault: Fault) -> None:
        """Return once a call is in a fault that was added for one call."""
        while fault.times:  # noqa: ASYNC110  # as above
            await asyncio.sleep(0.01)

    def machine(self, node: ManagedNode) -> Machine:
        """Return the lab's machine behind a node."""
        return next(machine for machine in self.machines.all() if machine.spec.machine_id == node.server_id)

    def name(self, node: ManagedNode) -> str:
        """Return the node's host name."""
        return f"{node.role}{node.nic_address.rpartition('.')[2]}"

    def finished(self) -> set[tuple[str, str]]:
        """Return task and node of every task that was reported as done."""
        return {(news.task, news.node) for news in self.news if news.state in ("finished", "skipped")}

    def assert_done_once(self, nodes: Sequence[ManagedNode], finished: set[tuple[str, str]]) -> None:
        """Fail if a machine was installed, joined or reset again although that task had finished."""
        for node in nodes:
            calls, name = self.machine(node).calls, self.name(node)
            for task, program in (("prepare", "apt-get install"), ("join", "kubeadm join")):
                if (task, name) in finished:
                    assert calls[program] == 1, (name, program, calls[program])
            if {("init", name), ("join", name)} & finished:
                assert calls["kubeadm reset"] == 0, name

    async def ask_api(self, access: ClusterAccess, path: str, *, method: str = "GET", body: Any = None) -> Any:
        """Call the cluster's API with the phase's result, its CA included; a PATCH is a merge patch."""
        context = ssl.create_default_context(cadata=access.ssl_ca_cert)
        headers = {"Authorization": f"Bearer {access.bearer_token.reveal(self.ring)}"}
        if method == "PATCH":
            headers["Content-Type"] = "application/merge-patch+json"
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.request(method, access.server + path, json=body, ssl=context) as response,
        ):
            response.raise_for_status()
            return await response.json()

    async def assert_ready(self, access: ClusterAccess, names: Sequence[str]) -> None:
        """Fail unless the cluster's nodes are exactly these, all Ready."""
        listed = await self.ask_api(access, "/api/v1/nodes")
        ready = {
            item["metadata"]["name"]
            for item in listed["items"]
            if any(c["type"] == "Ready" and c["status"] == "True" for c in item["status"]["conditions"])
        }
        assert ready == set(names)

    def calls(self, node: ManagedNode, program: str) -> int:
        """Return how often a stand-in ran on the node: ``kubeadm init``, ``apt-get install``."""
        return self.machine(node).calls[program]

    async def log(self, operation: str = "op-1", node: str | None = None) -> str:
        """Return the log that operators read."""
        return b"".join([part async for part in self.logs.log(operation, node=node)]).decode()
