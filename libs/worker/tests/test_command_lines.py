"""The lines about a command: one line at its begin, one at its end, and one when it waits for something else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_events import Envelope, Message
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.errors import OutsideUnavailable, VnfmError
from kubevnfm_worker.inbox import Inbox
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext
from kubevnfm_worker.relay import OutboxRelay
from kubevnfm_worker.worker import CommandWorker
from patience import until_true
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs
from worlds.worker_world import INBOX, RING, SERVICE, Heard, MoodyStore, Publisher, Work, Worked, a_command

DONE = Done(Worked(number=7))


class NodeBroke(VnfmError, code="node-broke", title="Management driver failed", status=422):
    """It names the node."""

    def __init__(self) -> None:
        super().__init__("worker-1: kubeadm join ended with 1")
        self.node = "worker-1"


@asynccontextmanager
async def a_worker(
    store: MoodyStore, bus: InProcessBus, answers: Sequence[Outcome | BaseException]
) -> AsyncIterator[list[Any]]:
    """Yield the lines that are written while a worker handles commands with these answers."""
    left = [*answers]

    async def handle(command: Work, context: StepContext) -> Outcome:
        answer = left.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    with capture_logs([merge_contextvars]) as lines:
        async with CommandWorker(service=SERVICE, bus=bus, store=store, key_ring=RING) as worker:
            worker.handle(Work, handle)
            await worker.start()
            yield lines


def of_commands(lines: Sequence[Any]) -> list[Any]:
    """Return the lines that an operator sees."""
    return [line for line in lines if line["event"].startswith("command_") and line["log_level"] != "debug"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (DONE, {"outcome": "done", "log_level": "info"}),
        (
            NodeBroke(),
            {
                "outcome": "failed", "log_level": "info", "code": "node-broke", "node": "worker-1",
                "reason": "worker-1: kubeadm join ended with 1",
            },
        ),
        (
            ZeroDivisionError("ours"),
            {
                "outcome": "failed", "log_level": "error", "code": "internal-error", "node": None,
                "reason": f"unexpected error in {SERVICE}",
            },
        ),
    ],
    ids=["done", "failed", "broke"],
)  # fmt: skip
async def test_a_command_is_two_lines_in_the_context_of_its_operation(
    answer: Outcome | BaseException,
    expected: dict[str, Any],
    store: MoodyStore,
    bus: InProcessBus,
    heard: Heard,
    publish: Publisher,
) -> None:
    command = replace(a_command(), requestid="r-1", operationid="op-1", stepid="join/worker-1", attempt=2)
    async with a_worker(store, bus, [answer]) as lines:
        publish(command)
        await heard.has(1)
        await publish.settled()
    facts = {
        "request_id": "r-1", "operation_id": "op-1", "step_id": "join/worker-1", "attempt": 2, "type": command.type,
        "message_id": command.id,
    }  # fmt: skip
    begun, ended = of_commands(lines)
    assert begun == {"event": "command_begun", "log_level": "info", **facts}
    assert ended.pop("duration_s") >= 0
    assert ended.pop("exc_info", None) is (answer if isinstance(answer, ZeroDivisionError) else None)
    assert ended == {"event": "command_ended", **facts, **expected}


async def test_a_wait_is_said_when_it_changes_and_not_at_each_try(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    answers: list[Outcome | BaseException] = [
        NotYet(again_in_s=0.0, waits_for="the stack"),
        NotYet(again_in_s=0.0, waits_for="the stack"),
        NotYet(again_in_s=0.0, waits_for="the network"),
        OutsideUnavailable("connection refused by port 5001"),
        OutsideUnavailable("connection refused by port 5002"),
        DONE,
    ]
    async with a_worker(store, bus, answers) as lines:
        publish(a_command(deadline=datetime.now(UTC) + timedelta(days=1)))
        await heard.has(1)
        await publish.settled()
    begun, *waits, ended = of_commands(lines)
    assert [begun["event"], ended["event"], ended["outcome"]] == ["command_begun", "command_ended", "done"]
    assert [(line["event"], line["log_level"], line["reason"], line["code"]) for line in waits] == [
        ("command_waits", "info", "the stack", None),
        ("command_waits", "info", "the network", None),
        ("command_waits", "warning", "connection refused by port 5001", "outside-unavailable"),
    ]


async def test_a_passed_deadline_is_an_outcome(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    async with a_worker(store, bus, []) as lines:
        publish(a_command(deadline=datetime.now(UTC) - timedelta(seconds=1)))
        await heard.has(1)
        await publish.settled()
    ended = of_commands(lines)[-1]
    assert (ended["outcome"], ended["code"], ended["log_level"]) == ("timed_out", "step-timed-out", "error")


async def test_a_command_that_is_taken_over_begins_once_and_lasts_since_then(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    command: Envelope[Message] = a_command()
    await claimed_before(command, store, bus)
    async with a_worker(store, bus, [DONE]) as lines:
        publish(command)
        await heard.has(1)
        await publish.settled()
    (ended,) = of_commands(lines)
    assert ended["outcome"] == "done"
    assert ended["duration_s"] >= 3600


async def claimed_before(command: Envelope[Message], store: MoodyStore, bus: InProcessBus) -> None:
    """Leave the record of a command that a process has claimed an hour ago, and that has ended."""

    class Earlier(SystemClock):
        def now(self) -> datetime:
            return super().now() - timedelta(hours=1)

    relay = OutboxRelay(store, bus, collections=[INBOX])
    inbox = Inbox(store, relay, RING, collection=INBOX, owner="earlier", lease_s=5.0, clock=Earlier())
    await inbox.claim(command)


async def test_while_the_database_is_away_no_command_is_a_warning(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    store.is_down = True
    async with a_worker(store, bus, [DONE]) as lines:
        publish(a_command())

        async def is_postponed() -> bool:
            return "command_postponed" in {line["event"] for line in lines}

        await until_true(is_postponed)
        store.is_down = False
        await heard.has(1)
        await publish.settled()
    assert [line for line in lines if line["log_level"] in {"warning", "error"}] == []
