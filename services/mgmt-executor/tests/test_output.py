"""Collected output has no secrets, in whatever pieces the bytes arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest
from kubevnfm_kit.clock import SystemClock
from kubevnfm_mgmt_executor.adapters.node_logs import INDEXES, NODE_LOGS, PAGE, StoredOutputLog
from kubevnfm_mgmt_executor.domain.errors import ConnectionLost
from kubevnfm_mgmt_executor.domain.node_session import NodeSession, ScriptFiles
from kubevnfm_mgmt_executor.domain.output import (
    AFTER_FAILURE,
    HEAD_CHARS,
    LONGEST_LINE,
    LONGEST_WAIT,
    TAIL_CHARS,
    CollectedOutput,
)
from kubevnfm_mgmt_executor.domain.ports import Address, CommandOutput, Login
from kubevnfm_secrets import Mask
from kubevnfm_store.sqlite.store import SqliteStore


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_a_secret_in_pieces_is_masked(size: int) -> None:
    output = CollectedOutput(Mask(["s3cret"]))
    data = b"one s3cret\r\ntwo\nthree s3cret"
    for start in range(0, len(data), size):
        output.add(data[start : start + size])
    assert output.text() == "one ***\ntwo\nthree ***"


@pytest.mark.parametrize("before", range(LONGEST_LINE - 8, LONGEST_LINE + 2))
def test_a_secret_where_an_endless_line_is_cut_is_masked(before: int) -> None:
    output = CollectedOutput(Mask(["s3cret"]))
    for start in range(0, 4 * LONGEST_LINE, 1000):
        text = (b"." * before + b"s3cret" + b"." * 4 * LONGEST_LINE)[start : start + 1000]
        output.add(text)
    assert "s3cret" not in output.text().replace("\n", "")


def test_what_a_script_waits_for_is_said_once_its_line_is_whole() -> None:
    said: list[str] = []
    output = CollectedOutput(Mask(["s3cret"]), on_wait=said.append)
    for part in (
        b"prepare: waits: for s3",
        b"cret\x1b\nother: waits\n x: waits: y\nverify: waits:",
        b"\n",
        b"a: waits: " + b"x" * 9000,
    ):
        output.add(part)
    assert said == ["for ***\N{REPLACEMENT CHARACTER}", ""]
    output.add(b"\n")
    assert said[2] == "x" * LONGEST_WAIT


class _BreakingMachine:
    """Its first session breaks while the script waits for a lock."""

    def __init__(self, news: list[str]) -> None:
        self._news, self._runs, self._is_said = news, 0, asyncio.Event()

    async def waits(self, text: str) -> None:
        self._news.append(text)
        self._is_said.set()

    async def reach(self, *_: object, **__: object) -> _BreakingMachine:
        return self

    async def run(self, *_: object, output: Callable[[bytes], None], **__: object) -> int:
        self._runs += 1
        self._news.append("run")
        if self._runs > 1:
            return 0
        output(b"prepare: waits: for the lock\n")
        async with asyncio.timeout(60):
            await self._is_said.wait()
        raise ConnectionLost("the session broke", node="worker1")

    async def upload(self, *_: object) -> None: ...

    async def read(self, *_: object, **__: object) -> bytes:
        return b""

    async def close(self) -> None: ...


async def test_what_a_script_waits_for_is_taken_back_when_its_session_breaks() -> None:
    news: list[str] = []
    machine = _BreakingMachine(news)
    session = NodeSession(
        Address("worker1", "vnf-1", "vnfc-1", "192.0.2.1"), Login("ubuntu"), ScriptFiles("folder", "install.sh"),
        machines=cast("Any", machine), output_log=AsyncMock(), mask=Mask(), clock=SystemClock(), operation_id="op-1",
        ready_within_s=1.0, waits=machine.waits,
    )  # fmt: skip
    assert not (await session.change("prepare", {}, timeout_s=60.0)).changed
    assert news == ["run", "for the lock", "", "run"]


def test_long_output_keeps_its_beginning_and_its_end() -> None:
    output = CollectedOutput(Mask())
    for number in range(100_000):
        output.add(f"line {number}\n".encode())
    text = output.text()
    assert len(text) < HEAD_CHARS + TAIL_CHARS + 1000
    assert text.startswith("line 0\n")
    assert text.endswith("line 99999")
    assert "characters left out]" in text


def test_the_last_lines_skip_empty_ones() -> None:
    output = CollectedOutput(Mask())
    output.add(b"\n".join(b"line %d" % number for number in range(30)) + b"\n\n  \nlast")
    assert output.last_lines().splitlines()[-1] == "last"
    assert len(output.last_lines().splitlines()) == 12
    output.add(b"".join(b"%d%s\n" % (n, b"x" * 500) for n in range(12)))
    assert output.last_lines() == "\n".join(f"{n}{'x' * 500}" for n in (9, 10, 11)), "none is cut"


def test_the_end_of_output_has_so_many_bytes_and_no_half_character() -> None:
    """CR-009: an error quotes 4 KiB of a script's stderr."""
    output = CollectedOutput(Mask(["sesame"]))
    output.add("first\näß sesame\n\n".encode())
    assert output.end(4096) == "first\näß ***"
    assert output.end(7) == "ß ***", "not the half of a character"


def test_the_last_lines_end_where_a_script_shows_the_machine() -> None:
    output = CollectedOutput(Mask())
    output.add(b"the cause\n" + AFTER_FAILURE.encode() + b"\n---- pods\nmany\n")
    assert output.last_lines() == "the cause"
    assert "many" in output.text()
    script = Path(__file__).parents[1] / "kubevnfm_mgmt_executor/files/install_k8s_cluster.sh"
    assert AFTER_FAILURE in script.read_text()


def test_bytes_that_are_not_text_are_replaced() -> None:
    output = CollectedOutput(Mask())
    output.add(b"\xff\xfe\x00ok")
    assert output.text().endswith("ok")


class SetClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 27, 10, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment


def printed(number: int, *, node: str = "worker1", task: str = "join", operation: str = "op-1") -> CommandOutput:
    """Return the output of the command that was started as number so many."""
    return CommandOutput(
        "vnf-1", operation, node, task, f"2026-11-27T09:{number:02}:00.000Z", 1.0, 0, f"output {number}"
    )


def numbers(text: bytes) -> list[int]:
    return [int(line.split()[1]) for line in text.decode().splitlines() if line.startswith("output ")]


async def test_output_that_comes_is_followed_in_the_order_of_its_end_and_none_twice(tmp_path: Path) -> None:
    clock = SetClock()
    async with SqliteStore.open(tmp_path / "store.db") as store:
        await store.ensure_indexes(NODE_LOGS, INDEXES)
        logs = StoredOutputLog(store, clock)
        for number in range(40, 40 - PAGE - 5, -1):
            await logs.keep(printed(number))
        first = await logs.following("op-1", {}, 0.0)
        # It was started before all others, and ends between two reads.
        await logs.keep(printed(1))
        second = await logs.following("op-1", first.place, 0.0)
        assert numbers(first.text + second.text) == list(range(40 - PAGE - 4, 41))
        third = await logs.following("op-1", second.place, 0.0)
        assert numbers(third.text) == [1]
        none = await logs.following("op-1", third.place, 0.0)
        assert none.text == b""

        place, found = none.place, list[int]()
        for number in range(50, 56):
            clock.moment += timedelta(seconds=1)
            waiting = asyncio.create_task(logs.following("op-1", place, 300.0))
            await asyncio.sleep(0)
            await logs.keep(printed(number - 45, operation="op-2"))
            await logs.keep(printed(number))
            if number == 53:
                # By a process whose clock is behind.
                await StoredOutputLog(store, SetBack(clock)).keep(printed(2))
            part = await waiting
            found, place = found + numbers(part.text), part.place
        found += numbers((await logs.following("op-1", place, 0.0)).text)
        assert sorted(found) == [2, 50, 51, 52, 53, 54, 55]
        assert len(place["seen"]) < 10, "it has those of the last seconds alone"

        await logs.keep(printed(60, node="worker2", task="drain"))
        for only in ({"node": "worker2"}, {"task": "drain"}, {"node": "worker2", "task": "drain"}):
            assert numbers((await logs.following("op-1", {}, 0.0, **only)).text) == [60]
            assert numbers(b"".join([part async for part in logs.log("op-1", **only)])) == [60]
        assert numbers((await logs.following("op-1", {}, 0.0, node="worker1", task="drain")).text) == []


class SetBack:
    """A clock that is a little behind another one."""

    def __init__(self, other: SetClock) -> None:
        self._other = other

    def now(self) -> datetime:
        return self._other.now() - timedelta(seconds=2)
