"""Machines that people give, behind mgmt-executor's command handlers: real SSH and kubeadm, without a cloud and a bus."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Self

import aiohttp
import asyncssh
from kubevnfm_cluster.parameters import CLUSTER, ClusterParameters
from kubevnfm_events import Event
from kubevnfm_events.common import ClusterAccess, PackageRef
from kubevnfm_events.mgmt import ManagedNode, Phase, PhaseDone, RunPhase, TaskProgressed
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.ids import new_id
from kubevnfm_mgmt_executor.adapters.host_keys import StoredHostKeys
from kubevnfm_mgmt_executor.adapters.journal import StoredJournal
from kubevnfm_mgmt_executor.adapters.node_logs import StoredOutputLog
from kubevnfm_mgmt_executor.adapters.own_files import OwnFiles
from kubevnfm_mgmt_executor.adapters.package_files import FetchedPackage
from kubevnfm_mgmt_executor.adapters.ssh import SshMachines
from kubevnfm_mgmt_executor.domain.drivers import DRIVERS
from kubevnfm_mgmt_executor.domain.errors import ConnectionLost, NodeFailure
from kubevnfm_mgmt_executor.handlers import MgmtHandlers
from kubevnfm_mgmt_executor.wiring import INDEXES
from kubevnfm_secrets import KeyRing, hide
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.outcome import Done, StepContext
from pydantic import BaseModel, ConfigDict, model_validator
from servers.vnf_networks import networks
from worlds.mgmt_lab import OneFolder

FILE: Final = os.environ.get("KUBEVNFM_MACHINES")
"""The file that names the machines; the tests of this folder are skipped without it."""
CNI: Final = "Files/kubernetes/given.yaml"
VOLUME: Final = "volume"
STORAGE_PORT: Final = "storage_CP"
Role = Literal["master", "worker", "storage", "other"]
_LOOK_AGAIN_S: Final = 1.0


class GivenRegistry(BaseModel):
    """A registry that the nodes connect to."""

    model_config = ConfigDict(extra="forbid")

    connection: dict[str, Any]
    """As an element of ``private_registry_connection_info``, without ``certificate_path``."""
    ca_file: Path | None = None
    image: str
    """An image in it with a shell."""

    @property
    def certificate_path(self) -> str:
        """Where its CA is in the package."""
        return f"Files/kubernetes/{self.connection['server'].replace(':', '-')}.crt"

    @property
    def connected(self) -> dict[str, Any]:
        """Return the connection as a request has it."""
        return {**self.connection, **({"certificate_path": self.certificate_path} if self.ca_file is not None else {})}


class GivenStorage(BaseModel):
    """A machine that becomes a storage server."""

    model_config = ConfigDict(extra="forbid")

    address: str
    volume_id: str
    """The serial number of its second disk, in the form of a UUID."""
    attach: tuple[str, ...]
    """The command that connects that disk, with all that is on it, to the machine at ``{address}``."""


class GivenMachines(BaseModel):
    """The content of the file; `docs/real-machines.md` describes it."""

    model_config = ConfigDict(extra="forbid")

    masters: tuple[str, ...]
    workers: tuple[str, ...]
    subnet_cidr: str
    username: str
    password: str | None = None
    private_key_file: Path | None = None
    ssh_port: int = 22
    virtual_address: str | None = None
    """The address that several masters share."""
    renew: tuple[str, ...] = ()
    """The command that puts an empty machine at ``{address}``, a part of its words."""
    cut: tuple[str, ...] = ()
    """The command that takes the power of the machine at ``{address}``."""
    start: tuple[str, ...] = ()
    """The command that starts it again, with its disk."""
    cni_manifest: Path | None = None
    image: str = "busybox"
    registries: tuple[GivenRegistry, ...] = ()
    storage: GivenStorage | None = None
    parameters: dict[str, Any] = {}

    @model_validator(mode="after")
    def _has_one_login(self) -> Self:
        if (self.password is None) == (self.private_key_file is None):
            raise ValueError("password or private_key_file expected, and not both")
        return self

    @property
    def login(self) -> dict[str, str]:
        """Return the login as a group of nodes has it in a request."""
        if self.private_key_file is not None:
            return {"username": self.username, "private_key": self.private_key_file.read_text(encoding="utf-8")}
        return {"username": self.username, "password": str(self.password)}


@dataclass
class RealMachines:
    """The machines of the file, a store, and handlers as the service wires them."""

    given: GivenMachines
    handlers: MgmtHandlers
    logs: StoredOutputLog
    ring: KeyRing
    package: Path
    """The folder of the VNF package."""
    instance_id: str = field(default_factory=new_id)
    news: list[TaskProgressed] = field(default_factory=list)
    _awaited: list[tuple[Callable[[TaskProgressed], bool], asyncio.Future[None]]] = field(default_factory=list)
    _operations: int = 0
    _begun: float = field(default_factory=time.monotonic)

    @classmethod
    @asynccontextmanager
    async def of_file(cls, file: Path, folder: Path) -> AsyncIterator[RealMachines]:
        """Yield the machines that the file names; what is stored about them is below ``folder``."""
        given, clock = GivenMachines.model_validate_json(file.read_bytes()), SystemClock()
        async with SqliteStore.open(folder / "store.db") as store:
            for collection, indexes in INDEXES.items():
                await store.ensure_indexes(collection, indexes)
            keys, logs = StoredHostKeys(store, clock), StoredOutputLog(store)
            package, ring = OneFolder.sample(folder), KeyRing([os.urandom(32)])
            added = {registry.certificate_path: registry.ca_file for registry in given.registries}
            for path, source in {CNI: given.cni_manifest, **added}.items():
                if source is not None:
                    shutil.copy(source, package.root / path)
            handlers = MgmtHandlers(
                drivers=DRIVERS,
                machines=SshMachines(keys, networks("0.0.0.0/0"), port=given.ssh_port),
                journal=StoredJournal(store, clock),
                host_keys=keys,
                output_log=logs,
                package_files=lambda reference: FetchedPackage(package, reference),
                own_files=OwnFiles(),
                key_ring=ring,
                clock=clock,
            )
            yield cls(given, handlers, logs, ring, package.root)

    def node(self, address: str, role: Role, *, name: str | None = None) -> ManagedNode:
        """Return the machine at an address, as one that was never seen before."""
        return ManagedNode(
            vnfc_id=f"vnfc-{new_id()}",
            role=role,
            ssh_address=address,
            nic_address=address,
            subnet_cidr=self.given.subnet_cidr,
            host=f"host-of-{address.replace(':', '-')}",
            server_id=address,
            name=name,
        )

    def command(
        self,
        phase: Phase,
        nodes: Sequence[ManagedNode],
        *,
        targets: Sequence[ManagedNode] | None = None,
        gone: Sequence[ManagedNode] = (),
        parameters: Mapping[str, Any] | None = None,
    ) -> RunPhase:
        """Return the command as lcm-api sends it; ``targets`` are the nodes that it works on, by default all.

        ``parameters``: attributes of the cluster beside those of the file.
        """
        cluster: dict[str, Any] = {
            "script_path": "Scripts/install_k8s_cluster.sh",
            "master_node": {**self.given.login, "ssh_cp_name": "CP1", "cluster_cp_name": "CP1"},
            "worker_node": {**self.given.login, "ssh_cp_name": "CP1"},
            **({"x_cni": CNI} if self.given.cni_manifest is not None else {}),
        }
        for name, value in {**self.given.parameters, **(parameters or {})}.items():
            cluster[name] = {**cluster.get(name, {}), **value} if isinstance(value, dict) else value
        storage = self.given.storage if "storage_server" in cluster else None
        several = sum(node.role == "master" for node in nodes) > 1
        chosen = [node.model_copy(update={"is_target": targets is None or node in targets}) for node in nodes]
        return RunPhase(
            vnf_instance_id=self.instance_id,
            driver="mgmt-drivers-kubernetes",
            phase=phase,
            package=PackageRef(package_id="p", vnfd_id="d"),
            nodes=tuple(chosen),
            gone=tuple(gone),
            parameters=hide({CLUSTER: cluster}),
            cluster=ClusterParameters.model_validate(cluster),
            cluster_address=self.given.virtual_address if several else nodes[0].nic_address,
            max_nodes=len(self.given.masters) + len(self.given.workers),
            volumes={} if storage is None else {VOLUME: storage.volume_id},
            nfs_addresses={} if storage is None else {STORAGE_PORT: storage.address},
        )

    async def run(self, command: RunPhase, folder: Path) -> PhaseDone:
        """Carry the command out; print each change of a task, and write what the machines printed into the folder."""
        self._operations += 1
        operation = f"{self._operations:02}-{command.phase}"
        self.news.clear()
        context = StepContext(
            message_id=new_id(),
            operation_id=operation,
            step_id=command.phase,
            attempt=1,
            subject=self.instance_id,
            deadline=None,
            fencing=self._operations,
            publish=self._report,
        )
        self.say(f"=== {command.phase}")
        try:
            outcome = await self.handlers.run_phase(command, context)
        finally:
            output = b"".join([part async for part in self.logs.log(operation, node=None)])
            (folder / f"{operation}.log").write_bytes(output)
            self.say(f"output of the machines: {folder / operation}.log")
        assert isinstance(outcome, Done)
        assert isinstance(outcome.event, PhaseDone)
        return outcome.event

    async def _report(self, event: Event) -> None:
        assert isinstance(event, TaskProgressed)
        self.news.append(event)
        for is_it, moment in self._awaited:
            if is_it(event) and not moment.done():
                moment.set_result(None)
        took = f"{event.duration_s:.1f} s" if event.duration_s is not None else ""
        self.say(f"{event.node:<12} {event.task:<10} {event.state:<10} {took} {event.message or ''}")

    async def when(self, is_it: Callable[[TaskProgressed], bool], *, work: asyncio.Task[PhaseDone]) -> None:
        """Return at the next news of this kind from the command that is carried out as ``work``, which must not end before."""
        moment = asyncio.get_running_loop().create_future()
        self._awaited.append((is_it, moment))
        await asyncio.wait({moment, work}, return_when=asyncio.FIRST_COMPLETED)
        assert moment.done(), f"it ended too early: {work}"

    async def cut_during(self, work: asyncio.Task[PhaseDone], address: str) -> None:
        """Take the power of a machine; the command that is carried out as ``work`` must fail, and name a node."""
        await self.do("cut", address)
        try:
            await work
        except (NodeFailure, ConnectionLost) as error:
            self.say(f"failed as expected: {error}")
        else:
            raise AssertionError(f"the power cut of {address} was not noticed")

    def say(self, text: str) -> None:
        """Print a line with the seconds since the beginning."""
        print(f"{time.monotonic() - self._begun:7.1f}  {text.rstrip()}", flush=True)  # noqa: T201  # read by a person

    def tasks(self, *states: str) -> set[tuple[str, str]]:
        """Return task and node of what the last command reported in these states."""
        return {(news.task, news.node) for news in self.news if news.state in states}

    async def do(self, what: Literal["renew", "cut", "start", "attach"], *addresses: str) -> None:
        """Run a command of the file for the machines at the addresses, one after another."""
        command: Sequence[str] = getattr(self.given.storage if what == "attach" else self.given, what)
        for address in addresses:
            self.say(f"=== {what} {address}")
            words = [word.replace("{address}", address) for word in command]
            process = await asyncio.create_subprocess_exec(*words)
            assert await process.wait() == 0, f"{words} ended with exit code {process.returncode}"

    async def on(self, address: str, command: str) -> str:
        """Return what a command prints that root runs on the machine at ``address``. Raises asyncssh.ProcessError."""
        login = self.given
        keys = [] if login.private_key_file is None else [str(login.private_key_file)]
        async with asyncssh.connect(
            address,
            login.ssh_port,
            username=login.username,
            password=login.password,
            client_keys=keys,
            known_hosts=None,  # machines of this bed come and go at their addresses
            config=None,
        ) as connection:
            done = await connection.run(f"sudo -n bash -c {shlex.quote(command)}", check=True)
            return str(done.stdout)

    async def ask_api(self, access: ClusterAccess, path: str, *, method: str = "GET", body: Any = None) -> Any:
        """Call the cluster's API from outside, with the access of the installation; a PATCH is a merge patch."""
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

    async def nodes_of(self, access: ClusterAccess) -> dict[str, Any]:
        """Return the cluster's Nodes by name."""
        listed = await self.ask_api(access, "/api/v1/nodes")
        return {one["metadata"]["name"]: one for one in listed["items"]}

    async def until(self, what: str, is_so: Callable[[], Awaitable[bool]], *, within_s: float = 300.0) -> None:
        """Return once the cluster shows something."""
        async with asyncio.timeout(within_s):
            # A cluster of others sends no event to wait for.
            while not await is_so():  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_AGAIN_S)
        self.say(f"seen: {what}")


def is_ready(thing: Any) -> bool:
    """Return whether a Node or a Pod is Ready."""
    conditions = thing["status"].get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def is_news(task: str, state: str, *, node: str = "") -> Callable[[TaskProgressed], bool]:
    """Return a check for a change of a task, on any node if none is given."""
    return lambda news: (news.task, news.state) == (task, state) and node in {"", news.node}
