"""A command whose outside system does not answer fails after a limit of its own, well before a distant deadline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_events import CommandFailed, Envelope, Message
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.errors import OutsideUnavailable, VnfmError
from kubevnfm_store.query import Stored
from kubevnfm_worker.inbox import Claim, Inbox
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext
from kubevnfm_worker.relay import OutboxRelay
from kubevnfm_worker.worker import CommandWorker
from patience import until_true
from worlds.worker_world import INBOX, RING, SERVICE, Heard, MoodyStore, Publisher, Work, Worked, a_command

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
    errors = [OutsideUnavailable(text) for text in ("first", "second", "third", "fourth")]
    handler = Handler(errors, call_s=100.0)
    async with a_worker(store, bus, handler, unavailable_limit_s=150.0):
        publish(a_long_command())  # fails at 100, 200 and 300 s by its clock, and a pause later each
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


@pytest.mark.parametrize(
    ("minutes", "call_s", "is_over"),
    [(9, 0.0, False), (9, 110.0, True), (11, 0.0, True), (11, 110.0, True), (11, 130.0, False)],
)
async def test_a_try_belongs_to_the_silence_unless_it_ran_so_long_that_it_had_answers(
    minutes: int,
    call_s: float,
    is_over: bool,
    store: MoodyStore,
    bus: InProcessBus,
    heard: Heard,
    publish: Publisher,
) -> None:
    command, handler = a_long_command(), Handler([OutsideUnavailable("the session broke")], call_s=call_s)
    await silent_for(timedelta(minutes=minutes), command, store, bus)
    async with a_worker(store, bus, handler):
        publish(command)
        await heard.has(1)

    assert isinstance(heard.envelopes[0].data, CommandFailed if is_over else Worked)
    assert handler.calls == (1 if is_over else 2)


@asynccontextmanager
async def an_endless_try(
    store: MoodyStore,
    bus: InProcessBus,
    publish: Publisher,
    command: Envelope[Message],
    *,
    call_s: float,
    lease_s: float,
) -> AsyncIterator[None]:
    """Enter while the handler is running, ``call_s`` after its call by the clock."""
    clock, begun = AheadClock(), asyncio.Event()

    async def handler(_: Work, __: StepContext) -> Outcome:
        clock.ahead_s += call_s
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async with CommandWorker(
        service=SERVICE, bus=bus, store=store, key_ring=RING, lease_s=lease_s, drain_s=0.0, clock=clock
    ) as worker:
        worker.handle(Work, handler)
        await worker.start()
        publish(command)
        await begun.wait()
        yield


async def record_of(store: MoodyStore, command: Envelope[Message]) -> Stored:
    record = await store.get(INBOX, command.id)
    assert record is not None
    return record


async def silence_of(store: MoodyStore, command: Envelope[Message], *, state: str) -> object:
    record = await record_of(store, command)
    assert record.body["state"] == state
    return record.body["unavailableSince"]


in_short_and_long_tries = pytest.mark.parametrize(("call_s", "is_kept"), [(0.0, True), (130.0, False)])


@in_short_and_long_tries
async def test_a_worker_that_ends_keeps_the_silence_unless_its_try_had_answers(
    store: MoodyStore, bus: InProcessBus, publish: Publisher, call_s: float, is_kept: bool
) -> None:
    command = a_long_command()
    await silent_for(ELEVEN_MINUTES, command, store, bus)
    before = await silence_of(store, command, state="resting")
    async with an_endless_try(store, bus, publish, command, call_s=call_s, lease_s=60.0):
        pass
    assert before is not None
    assert await silence_of(store, command, state="resting") == (before if is_kept else None)


@in_short_and_long_tries
async def test_a_worker_that_is_killed_keeps_the_silence_unless_its_try_had_answers(
    store: MoodyStore, bus: InProcessBus, publish: Publisher, call_s: float, is_kept: bool
) -> None:
    command = a_long_command()
    await silent_for(ELEVEN_MINUTES, command, store, bus)
    before = await silence_of(store, command, state="resting")
    async with an_endless_try(store, bus, publish, command, call_s=call_s, lease_s=3.0):
        revision = (await record_of(store, command)).revision

        async def is_renewed() -> bool:
            return (await record_of(store, command)).revision > revision

        await until_true(is_renewed)
        # The record as a killed process leaves it: claimed, and renewed since.
        assert before is not None
        assert await silence_of(store, command, state="claimed") == (before if is_kept else None)
