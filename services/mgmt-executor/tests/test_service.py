"""The service as it is wired: commands in, events out, logs over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_clients.logs import HttpNodeLogs
from kubevnfm_events import CommandFailed, Envelope, Event, VimConnection
from kubevnfm_events.credentials import SendCredentials, WorkloadCluster
from kubevnfm_events.mgmt import ForgetInstance, InstanceForgotten, PhaseDone
from kubevnfm_mgmt_executor.settings import Settings
from kubevnfm_mgmt_executor.wiring import MgmtExecutor, mgmt_executor
from kubevnfm_secrets import KeyRing, Secret
from kubevnfm_store.query import Query
from kubevnfm_worker.backends import Backends
from pydantic import SecretStr
from servers.vnf_networks import networks
from worlds.given_vims import GivenVims
from worlds.mgmt_lab import MgmtLab

TOKEN = "internal-token-of-the-tests"


class Service:
    """The running service, and a sender of commands."""

    def __init__(self, lab: MgmtLab, bus: InProcessBus, running: MgmtExecutor) -> None:
        self.lab, self.bus, self.running = lab, bus, running
        self.answers: asyncio.Queue[Event] = asyncio.Queue()

    async def collect(self, delivery: Delivery) -> Verdict:
        assert isinstance(delivery.envelope.data, Event)
        await self.answers.put(delivery.envelope.data)
        return Ack()

    async def ask(self, command: object, *, operation: str = "op-1") -> Event:
        await self.bus.publish(
            Envelope(data=command, source="/test", subject=self.lab.instance_id, operationid=operation)  # type: ignore[arg-type]
        )
        async with asyncio.timeout(300):
            return await self.answers.get()

    async def get(self, path: str, *, token: str | None = TOKEN) -> tuple[int, str]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.get(f"http://127.0.0.1:{self.running.port}{path}") as response,
        ):
            return response.status, await response.text()


@asynccontextmanager
async def a_service(lab: MgmtLab) -> AsyncIterator[Service]:
    settings = Settings(
        port=0,
        internal_token=SecretStr(TOKEN),
        keys=SecretStr(KeyRing.new_key()),
        ssh_port=lab.machines.ssh_port,
        callback_master_keys=SecretStr(KeyRing.new_key()),
    )
    async with (
        InProcessBus(lab.ring) as bus,
        mgmt_executor(
            settings,
            Backends(bus, lab.store, lab.ring),
            packages=lab.packages,
            vims=GivenVims(),
            networks=networks(),
        ) as running,
    ):
        service = Service(lab, bus, running)
        await bus.consume_events(
            "tests", ["mgmt.phase.done", "mgmt.instance.forgotten", "service.command.failed"], service.collect
        )
        yield service


@pytest.fixture
async def service(lab: MgmtLab, tmp_path: Path) -> AsyncIterator[Service]:
    async with a_service(lab) as running:
        yield running


async def test_a_command_on_the_bus_is_answered_by_the_phases_end(service: Service) -> None:
    nodes = await service.lab.boot_cluster(workers=1)
    done = await service.ask(service.lab.command(nodes))
    assert isinstance(done, PhaseDone)
    assert done.cluster is not None
    await service.lab.assert_ready(done.cluster, ["master10", "worker20"])
    await operators_read_what_machines_said_with_the_internal_token(service)
    await a_forgotten_instance_leaves_nothing_behind(service)


async def operators_read_what_machines_said_with_the_internal_token(service: Service) -> None:
    path = "/internal/v1/operations/op-1/log"
    status, everything = await service.get(path)
    assert status == 200
    assert "master10 init: exit code 0" in everything
    assert "worker20 join: exit code 0" in everything
    _, of_one = await service.get(f"{path}?node=worker20")
    assert "worker20 join" in of_one
    assert "master10" not in of_one.replace("== ", "", 1).splitlines()[0]
    _, of_task = await service.get(f"{path}?node=worker20&task=join")
    assert of_task in of_one
    assert "worker20 join" in of_task
    assert "worker20 prepare" not in of_task
    async with aiohttp.ClientSession() as session:
        logs = HttpNodeLogs(f"http://127.0.0.1:{service.running.port}", TOKEN, session)
        followed, place = b"", dict[str, object]()
        while (part := await logs.following("op-1", place, 0.0, node="worker20")).text:
            followed, place = followed + part.text, dict(part.place)
    assert followed.decode() == of_one
    assert await service.get("/internal/v1/operations/other/log") == (200, "")
    for token in (None, "wrong"):
        assert (await service.get(path, token=token))[0] == 401
    assert (await service.get("/health/ready", token=None))[0] == 200


async def a_forgotten_instance_leaves_nothing_behind(service: Service) -> None:
    for _ in range(2):
        answer = await service.ask(ForgetInstance(vnf_instance_id=service.lab.instance_id), operation="op-2")
        assert isinstance(answer, InstanceForgotten)
    for collection in ("tasks", "host_keys", "node_logs"):
        assert not await service.lab.store.find(collection, Query())


async def test_a_failure_names_node_task_and_layer(service: Service) -> None:
    nodes = await service.lab.boot_cluster(workers=1)
    service.lab.faults.add(part="program", verb="kubeadm join", status=1, message="x509: unknown authority")
    failed = await service.ask(service.lab.command(nodes))
    assert isinstance(failed, CommandFailed)
    assert (failed.node, failed.task, failed.title, failed.status) == (
        "worker20",
        "join",
        "Management driver failed",
        422,
    )
    assert "x509: unknown authority" in failed.detail


@pytest.mark.parametrize("is_of_vnf", [True, False])
async def test_the_address_of_a_management_cluster_that_a_vnf_has_built_is_judged(
    service: Service, is_of_vnf: bool
) -> None:
    """A connection to 0.0.0.0 reaches this host, and its address is never granted; that of an operator's VIM is not judged."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"no TLS\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = int(server.sockets[0].getsockname()[1])
        vim = VimConnection(
            vim_id="vim-1",
            vim_type="ETSINFV.KUBERNETES.V_1",
            interface_info={"endpoint": f"https://0.0.0.0:{port}", "ssl_ca_cert": "system"},
            access_info={"bearer_token": Secret("t")},
            of_vnf=is_of_vnf,
        )
        cluster = WorkloadCluster(name="edge", namespace="default", api_version="cluster.x-k8s.io/v1beta2")
        failed = await service.ask(
            SendCredentials(
                vnf_instance_id=service.lab.instance_id, vnfd_id="d", vim=vim, cluster=cluster, vim_name="edge"
            )
        )
    assert isinstance(failed, CommandFailed)
    assert f"https://0.0.0.0:{port}" in failed.detail
    assert ("is never granted: it is an address of this host" in failed.detail) is is_of_vnf, failed.detail


@pytest.mark.slow
async def test_a_service_that_ends_in_the_middle_is_followed_by_one_that_finishes(lab: MgmtLab) -> None:
    nodes = await lab.boot_cluster(workers=1)
    lab.faults.add(part="program", verb="kubeadm init", effect="hang", times=1)
    async with a_service(lab) as first:
        command = Envelope(
            data=lab.command(nodes), source="/test", subject=lab.instance_id, operationid="op-1", id="the-command"
        )
        # The in-process bus returns once the handler is done, which this test does not wait for.
        publishing = asyncio.create_task(first.bus.publish(command))
        async with asyncio.timeout(300):
            await lab.running(nodes[0], "kubeadm init")
        publishing.cancel()
    async with a_service(lab) as second:
        await second.bus.publish(command)  # as the broker does with a command that was not acknowledged
        async with asyncio.timeout(300):
            done = await second.answers.get()
    assert isinstance(done, PhaseDone)
    assert done.cluster is not None
    await lab.assert_ready(done.cluster, ["master10", "worker20"])
