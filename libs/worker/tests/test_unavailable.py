"""A command whose outside system does not answer fails after a limit of its own, well before a distant deadline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from kubevnfm_bus import InProcessBus
from kubevnfm_events import CommandFailed, Envelope, Message
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.errors import OutsideUnavailable, VnfmError
from kubevnfm_worker import CommandWorker, Done, NotYet, OutboxRelay, Outcome, StepContext
from kubevnfm_worker.inbox import Claim, Inbox
from worker_world import INBOX, RING, SERVICE, Heard, MoodyStore, Publisher, Work, Worked, a_command, eventually

ELEVEN_MINUTES = timedelta(minutes=11)


class StillBusy(VnfmError):
    """The outside system answered: not now."""

    code = "still-busy"
    retryable = True


@dataclass
class AheadClock:
    """The system's clock plus what the test adds."""

    ahead_s: float = 0.0

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.ahead_s)


@dataclass
class Handler:
    """Returns or raises one answer a call, then Done; each call takes ``call_s`` by the clock."""

    answers: Sequence[Outcome | VnfmError]
    clock: AheadClock = field(default_factory=AheadClock)
    call_s: float = 0.0
    calls: int = 0

    async def __call__(self, command: Work, context: StepContext) -> Outcome:
        self.calls += 1
        self.clock.ahead_s += self.call_s
        answer = self.answers[self.calls - 1] if self.calls <= len(self.answers) else Done(Worked(number=7))
        if isinstance(answer, VnfmError):
            raise answer
        return answer


@asynccontextmanager
async def a_worker(
    store: MoodyStore, bus: InProcessBus, handler: Handler, *, unavailable_limit_s: float = 600.0
) -> AsyncIterator[None]:
    async with CommandWorker(
        service=SERVICE,
        bus=bus,
        store=store,
        key_ring=RING,
        unavailable_limit_s=unavailable_limit_s,
        clock=handler.clock,
    ) as worker:
        worker.handle(Work, handler)
        await worker.start()
        yield


def a_long_command() -> Envelope[Message]:
    return a_command(deadline=datetime.now(UTC) + timedelta(days=1))


async def silent_for(silence: timedelta, command: Envelope[Message], store: MoodyStore, bus: InProcessBus) -> None:
    """Leave the record of a command whose tries have failed for so long."""
    relay = OutboxRelay(store, bus, collections=[INBOX])
    inbox = Inbox(store, relay, RING, collection=INBOX, owner="earlier", lease_s=5.0, clock=SystemClock())
    claim = await inbox.claim(command)
    assert isinstance(claim, Claim)
    await inbox.rest(claim, tries=1, unavailable_since=datetime.now(UTC) - silence)


async def test_a_silence_of_ten_minutes_fails_the_command_with_the_last_error(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    command, handler = a_long_command(), Handler([OutsideUnavailable("Nova: connection refused")])
    await silent_for(ELEVEN_MINUTES, command, store, bus)
    async with a_worker(store, bus, handler):
        publish(command)
        await heard.has(1)

    failure = heard.envelopes[0].data
    assert isinstance(failure, CommandFailed)
    assert (failure.code, failure.status, failure.detail) == ("outside-unavailable", 503, "Nova: connection refused")
    assert handler.calls == 1


async def test_the_silence_is_measured_from_its_first_failure(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    handler = Handler([OutsideUnavailable(text) for text in ("first", "second", "third", "fourth")])
    async with a_worker(store, bus, handler, unavailable_limit_s=1.2):
        publish(a_long_command())  # tried at 0, 0.5 and 1.5 s
        await heard.has(1)

    failure = heard.envelopes[0].data
    assert isinstance(failure, CommandFailed)
    assert failure.detail == "third"
    assert handler.calls == 3


@pytest.mark.parametrize("answer", [NotYet(again_in_s=0.0), StillBusy("Heat works on the resource")], ids=repr)
async def test_an_answer_ends_the_silence(
    answer: Outcome | VnfmError, store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    command, handler = a_long_command(), Handler([answer, OutsideUnavailable("Nova: connection refused")])
    await silent_for(ELEVEN_MINUTES, command, store, bus)
    async with a_worker(store, bus, handler):
        publish(command)
        await heard.has(1)

    assert heard.envelopes[0].data == Worked(number=7)
    assert handler.calls == 3


async def test_a_try_that_ran_long_had_answers(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    command, handler = a_long_command(), Handler([OutsideUnavailable("the session broke")], call_s=200.0)
    await silent_for(ELEVEN_MINUTES, command, store, bus)
    async with a_worker(store, bus, handler):
        publish(command)
        await heard.has(1)

    assert heard.envelopes[0].data == Worked(number=7)


async def test_a_worker_that_ends_keeps_the_silence(store: MoodyStore, bus: InProcessBus, publish: Publisher) -> None:
    command, begun = a_long_command(), asyncio.Event()

    async def endless(command: Work, context: StepContext) -> Outcome:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    await silent_for(ELEVEN_MINUTES, command, store, bus)
    before = await store.get(INBOX, command.id)
    async with CommandWorker(service=SERVICE, bus=bus, store=store, key_ring=RING, drain_s=0.0) as worker:
        worker.handle(Work, endless)
        await worker.start()
        publish(command)
        await begun.wait()

    async def is_resting() -> bool:
        record = await store.get(INBOX, command.id)
        return record is not None and record.body["state"] == "resting"

    await eventually(is_resting)
    after = await store.get(INBOX, command.id)
    assert before is not None
    assert after is not None
    assert after.body["unavailableSince"] == before.body["unavailableSince"] is not None
