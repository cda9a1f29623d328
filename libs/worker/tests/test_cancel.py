"""A cancelled command's work ends wherever it is: running here, running elsewhere, resting, or not come yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_events import CancelStep, CommandFailed, Envelope, Facts, Message
from kubevnfm_kit.clock import Clock
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext
from kubevnfm_worker.worker import CommandWorker
from worlds.set_clock import SetClock
from worlds.worker_world import RING, SERVICE, Heard, MoodyStore, Publisher, Work, Worked, a_command


class Cancel(CancelStep, kind="test.worker.cancel", service=SERVICE):
    pass


class Left(Facts):
    number: int


class Handler:
    """Works until it is let, or answers that it takes longer."""

    def __init__(self, *, rests: bool = False) -> None:
        self.begun, self.let, self.rests = asyncio.Event(), asyncio.Event(), rests
        self.calls = self.aborts = 0
        self.was_ended = False

    async def work(self, command: Work, context: StepContext) -> Outcome:
        self.calls += 1
        self.begun.set()
        if self.rests:
            return NotYet(60.0)
        try:
            await self.let.wait()
        except asyncio.CancelledError:
            self.was_ended = True
            raise
        return Done(Worked(number=command.number))

    async def abort(self, command: Work, context: StepContext) -> Left:
        self.aborts += 1
        return Left(number=command.number)


@asynccontextmanager
async def a_worker(
    store: MoodyStore, bus: InProcessBus, handler: Handler, *, lease_s: float = 60.0, clock: Clock | None = None
) -> AsyncIterator[CommandWorker]:
    async with CommandWorker(
        service=SERVICE, bus=bus, store=store, key_ring=RING, lease_s=lease_s, clock=clock
    ) as worker:
        worker.handle(Work, handler.work, abort=handler.abort)
        await worker.start()
        yield worker


def the_cancel(command: Envelope[Message]) -> Envelope[Message]:
    return Envelope(data=Cancel(command=command.document(RING)), source="/kubevnfm/test")


def cancelled(heard: Heard) -> CommandFailed:
    (answer,) = heard.envelopes
    assert isinstance(answer.data, CommandFailed)
    assert (answer.data.code, answer.data.status) == ("cancelled", 409)
    assert (answer.operationid, answer.stepid, answer.attempt) == ("op-1", "step-1", 2)
    return answer.data


async def test_running_work_is_ended_before_its_failure_is_published(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    """API-052."""
    handler, command = Handler(), a_command()
    async with a_worker(store, bus, handler, lease_s=600):  # no renewal comes by itself within this test
        publish(command)
        await handler.begun.wait()
        publish(the_cancel(command))
        await heard.has(1)
        await publish.settled()
    assert handler.was_ended
    assert handler.aborts == 1
    assert cancelled(heard).remains == {"number": 7}


async def test_work_that_runs_in_another_process_is_ended_at_its_next_renewal(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    here, there, command = Handler(), Handler(), a_command()
    # A third of the lease passes before the renewal. By this clock the lease never runs out before it, however late it is.
    clock = SetClock(datetime.now(UTC))
    async with a_worker(store, bus, there, lease_s=3.0, clock=clock):
        publish(command)
        await there.begun.wait()
        elsewhere = CommandWorker(service=SERVICE, bus=bus, store=store, key_ring=RING, lease_s=3.0, clock=clock)
        elsewhere.handle(Work, here.work, abort=here.abort)
        await elsewhere._cancel(the_cancel(command).data)  # type: ignore[arg-type]  # as a delivery there would
        await heard.has(1)
        await publish.settled()
        await elsewhere.close()
    assert there.was_ended
    assert (here.calls, here.aborts, there.aborts) == (0, 0, 1)
    cancelled(heard)


async def test_work_that_rests_is_not_called_again(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    handler, command = Handler(rests=True), a_command()
    async with a_worker(store, bus, handler):
        publish(command)
        await handler.begun.wait()
        publish(the_cancel(command))
        await heard.has(1)
    assert (handler.calls, handler.aborts) == (1, 1)
    cancelled(heard)


async def test_a_command_that_comes_after_its_cancel_is_not_begun(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    handler, command = Handler(), a_command()
    async with a_worker(store, bus, handler):
        publish(the_cancel(command))
        await heard.has(1)
        publish(command)
        await publish.settled()
    assert handler.calls == 0
    assert {envelope.id for envelope in heard.envelopes} == {heard.envelopes[0].id}


async def test_a_cancel_of_what_is_done_changes_nothing(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    handler, command = Handler(), a_command()
    handler.let.set()
    async with a_worker(store, bus, handler):
        publish(command)
        await heard.has(1)
        publish(the_cancel(command))
        await publish.settled()
    assert handler.aborts == 0
    assert {type(envelope.data) for envelope in heard.envelopes} == {Worked}
