"""``kubevnfm wait``: it says how an operation stands, what blocks it and how it ended, and never ends too early or too late."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from unittest.mock import patch

import pytest
from callers.command_line import Running, kubevnfm
from kubevnfm_cli.lists import read_list
from kubevnfm_events.mgmt import TaskProgressed
from worlds.lcm_world import World

STEP: Final = "infra.openstack.create_resources"


class Line:
    """A connection to a gateway that can be cut and made again, as a restart does."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._server: asyncio.Server | None = None
        self._ends: list[asyncio.StreamWriter] = []
        self.port = 0
        self.made = asyncio.Semaphore(0)
        """One for each connection."""

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._joined, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        assert self._server is not None
        self._server.close()
        for end in self._ends:
            end.transport.abort()
        self._ends.clear()
        await self._server.wait_closed()

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._to)
        self._ends += [writer, to_writer]
        self.made.release()
        await asyncio.gather(_copied(reader, to_writer), _copied(to_reader, writer), return_exceptions=True)


async def _copied(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        to.write(data)
    to.close()


@asynccontextmanager
async def a_line(world: World) -> AsyncIterator[Line]:
    line = Line(int(world.url.rpartition(":")[2]))
    await line.open()
    try:
        yield line
    finally:
        await line.cut()


@pytest.fixture
async def vm(world: World) -> World:
    await world.sample()
    return world


def waiting(url: str, *words: str, is_terminal: bool = False) -> Running:
    """Begin a wait. It has an end, as the end of a test that has failed would wait for its thread."""
    ends = () if "--timeout" in words else ("--timeout", "120s")
    return Running("wait", *words, *ends, environment={"KUBEVNFM_URL": url, "TERM": "xterm"}, is_terminal=is_terminal)


def watching(url: str, *words: str) -> Running:
    """Begin a watch, which has an end too."""
    return Running("get", *words, "-w", "--timeout", "120s", environment={"KUBEVNFM_URL": url})


async def reports(world: World, **task: Any) -> None:
    """Publish what the worker of the held command says."""
    given = {"node": "", "task": "wait", "state": "started", **task}
    held = world.twins.held[0]
    await world.bus.publish(held.follow_up(TaskProgressed(**given), source="/kubevnfm/infra-openstack"))


@pytest.mark.parametrize(("state", "code"), [("COMPLETED", 0), ("FAILED_TEMP", 5), ("FAILED", 5), ("ROLLED_BACK", 5)])
async def test_it_ends_at_once_if_the_operation_has_ended(state: str, code: int, vm: World) -> None:
    """Complaint 1 about another tool: the wait hangs if the thing is done already. It shows what has happened, with durations."""
    operation_id = await vm.an_operation_in(state)
    ran = await waiting(vm.url, operation_id).end()
    assert (ran.code, ran.err) == (code, "")
    lines = ran.out.splitlines()
    assert re.fullmatch(r"20..-..-..T..:..:..[.]...Z INSTANTIATE begins", lines[0])
    assert any(re.search(r"Z step 1/\d+ .*: (done|undone|FAILED) \(\d.*s\)", line) for line in lines)
    assert any(re.fullmatch(rf"INSTANTIATE of .*: {state} after .*s", line) for line in lines)
    # Complaint 3: a failure is missed. It is the exit code, with its reason.
    assert any("no host" in line.lower() for line in lines) is (code == 5)
    commands = [line.split()[:2] for line in lines if line.startswith("  kubevnfm ")]
    assert (["kubevnfm", "retry"] in commands) is (state == "FAILED_TEMP")


async def test_it_says_what_blocks_and_how_to_go_on_when_its_time_runs_out(vm: World) -> None:
    """Complaint 2: it does not say what blocks. The operation is not changed."""
    operation_id = await vm.an_operation_in("PROCESSING")
    running = waiting(vm.url, "op", operation_id[:13], "--timeout", "4s")
    await running.says("PROCESSING")
    await reports(vm, message="the quota of cores is used up\x1b[2J")
    await running.says(r"waits: the quota of cores is used up\x1b[2J")
    ran = await running.end()
    assert ran.code == 3
    assert f"the operation goes on: kubevnfm wait op {operation_id} waits again" in ran.err
    assert (await vm.operation(operation_id))["operationState"] == "PROCESSING"
    again = await kubevnfm(vm.url, "wait", operation_id, "--timeout", "0s")
    assert again.code == 3
    assert "the quota of cores is used up" in again.out


async def test_passing_trouble_does_not_end_it(vm: World) -> None:
    """Complaint 4: it ends too early. Complaint 5: no durations. The gateway goes away and is there again meanwhile."""
    operation_id = await vm.an_operation_in("PROCESSING")
    async with a_line(vm) as line:
        running = waiting(f"http://127.0.0.1:{line.port}", operation_id)
        await running.says("PROCESSING")
        await reports(vm, message="no valid host")
        await running.says("waits: no valid host")
        await line.cut()
        await running.says("connection lost: ")
        await vm.twins.release()
        await vm.reached(operation_id, "COMPLETED")
        await line.open()
        ran = await running.end()
    assert ran.code == 0
    assert "connected again" in ran.err
    assert re.search(r"^INSTANTIATE of .*: COMPLETED after .*s$", ran.out, re.MULTILINE)
    # The events of the time without a connection are not lost.
    assert re.search(r"Z step 1/\d+ .*: done \(.*s\)", ran.out)
    assert len(re.findall(r"INSTANTIATE COMPLETED", ran.out)) == 1


async def test_a_failure_while_it_waits_ends_it_with_cause_and_next(vm: World) -> None:
    """Complaint 3: it misses a failure."""
    operation_id = await vm.an_operation_in("PROCESSING")
    running = waiting(vm.url, "vnf", str((await vm.operation(operation_id))["vnfInstanceId"]))
    await running.says("PROCESSING")
    vm.twins.failing.add(STEP)
    await vm.twins.release()
    ran = await running.end()
    assert ran.code == 5
    shown = ran.out.splitlines()
    assert [line for line in shown if line.startswith("why: ") and "no host" in line.lower()]
    assert f"  kubevnfm retry {operation_id}" in ran.out


async def test_a_terminal_has_a_live_view_and_then_how_it_ended(vm: World) -> None:
    operation_id = await vm.an_operation_in("PROCESSING")
    running = waiting(vm.url, operation_id, is_terminal=True)
    await running.says("▸")
    await reports(vm, node="vdu1-0", task="boot", message="\x1b]0;title\x07")
    await running.says("vdu1-0")
    await vm.twins.release()
    ran = await running.end()
    assert ran.code == 0
    assert "\x1b]0;" not in ran.out + ran.err
    assert ran.out.splitlines()[-1].endswith("s\x1b[0m")
    assert "COMPLETED after" in ran.out.splitlines()[-1]


async def test_ctrl_c_ends_the_wait_and_not_the_operation(vm: World) -> None:
    operation_id = await vm.an_operation_in("PROCESSING")
    # A shell that runs the tests in the background has them, and their programs, ignore the signal.
    command = ("env", "--default-signal=INT", sys.executable, "-m", "kubevnfm_cli")
    process = await asyncio.create_subprocess_exec(
        *command, "wait", operation_id, "--url", vm.url, stdout=PIPE, stderr=PIPE
    )
    try:
        assert process.stdout is not None
        assert b"INSTANTIATE begins" in await asyncio.wait_for(process.stdout.readline(), 60)
        process.send_signal(signal.SIGINT)
        _, said = await asyncio.wait_for(process.communicate(), 60)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 3
    assert b"interrupted; the operation goes on" in said
    assert vm.twins.asked() == [STEP]


async def test_a_watched_list_shows_each_change_and_survives_a_restart_of_the_gateway(vm: World) -> None:
    async with a_line(vm) as line:
        url = f"http://127.0.0.1:{line.port}"
        listing = watching(url, "vnf")
        first = (await kubevnfm(vm.url, "create", "vnf", "--package", "Virtual machine", "--name", "first")).out.strip()
        kinds = watching(url, first, first.removeprefix("vnf/"), "-o", "jsonl", "--output-watch-events")  # named twice
        rows = watching(url, first, "-o", "csv", "--no-headers")
        for running in (listing, kinds, rows):
            await running.says(first.removeprefix("vnf/"))
        await line.cut()
        await listing.says("connection lost: ")
        assert (await kubevnfm(vm.url, "modify", first, "--name", "second", "--wait")).code == 0
        await line.open()
        for running in (listing, kinds, rows):
            await running.says("second")
        with patch("kubevnfm_cli.lists.read_list", side_effect=read_list) as asked:
            assert (
                await kubevnfm(vm.url, "modify", first, "--description", "x", "--name", "third", "--wait")
            ).code == 0
            for running in (listing, kinds, rows):
                await running.says("third")
        queries = [call.args[2] for call in asked.call_args_list if call.args[1].name == "vnf"]
        assert queries, "something was read"
        assert all(query.get("id") == [first.removeprefix("vnf/")] for query in queries), "only what has changed"
        assert (await kubevnfm(vm.url, "delete", first)).code == 0
        assert (await kinds.end()).code == 0, "nothing can come after it"
        assert (await rows.end()).code == 0
        assert [each.split(",")[1] for each in rows.out.getvalue().splitlines()] == ["first", "second", "third"]
        await listing.says(f"{first} (third) is deleted")
        read = [json.loads(each) for each in kinds.out.getvalue().splitlines()]
        found = [(each["type"], each["object"]["vnfInstanceName"]) for each in read]
        assert found == [("ADDED", "first"), ("MODIFIED", "second"), ("MODIFIED", "third"), ("DELETED", "third")]
        names = [each.split()[1] for each in listing.out.getvalue().splitlines()]
        assert names == ["NAME", "first", "second", "third"]
        with patch.object(listing.out, "write", side_effect=BrokenPipeError):  # `| head`
            assert (await kubevnfm(vm.url, "create", "vnf", "--package", "Virtual machine")).code == 0
            assert (await listing.end()).code == 0
    assert (await kubevnfm(vm.url, "get", "vnf", first, "-w")).code == 1, "it does not exist"
