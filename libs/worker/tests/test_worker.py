"""The worker does each command's work once, whatever is delivered, dies or is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
import structlog
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_events import CommandFailed, Envelope, Message
from kubevnfm_kit.clock import Clock, Reading, SteadyClock, SystemClock
from kubevnfm_kit.errors import Conflict, OutsideUnavailable, VnfmError
from kubevnfm_kit.owners import Owners
from kubevnfm_store.query import AllOf, by
from kubevnfm_worker.inbox import Claim, Finished, Inbox, LeaseLost, Taken
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext
from kubevnfm_worker.relay import OutboxRelay
from kubevnfm_worker.steady import CLOCKS, Others, keep_reading, steady_clock
from kubevnfm_worker.worker import CommandWorker
from patience import until_true
from worlds.set_clock import SetClock
from worlds.worker_world import (
    INBOX,
    RING,
    SERVICE,
    Heard,
    MoodyStore,
    Progressed,
    Publisher,
    Unheard,
    Work,
    Worked,
    a_command,
)


@dataclass
class Handler:
    """Returns the given answers one by one, then Done; a test can make it slow."""

    answers: Sequence[Outcome | BaseException] = ()
    gate: asyncio.Event | None = None
    contexts: list[StepContext] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    was_cancelled: bool = False

    async def __call__(self, command: Work, context: StepContext) -> Outcome:
        self.contexts.append(context)
        self.begun.set()
        if self.gate is not None:
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.was_cancelled = True
                raise
        calls = len(self.contexts)
        answer = self.answers[calls - 1] if calls <= len(self.answers) else Done(Worked(number=command.number))
        if isinstance(answer, BaseException):
            raise answer
        return answer

    @property
    def calls(self) -> int:
        return len(self.contexts)


class NodeBroke(VnfmError):
    code = "node-broke"
    title = "Management driver failed"
    status = 422

    def __init__(self) -> None:
        super().__init__("worker-1: kubeadm join ended with 1")
        self.node, self.task = "worker-1", "join"


@asynccontextmanager
async def a_worker(
    store: MoodyStore,
    bus: InProcessBus,
    handler: Handler,
    *,
    lease_s: float = 60.0,
    hold_s: float = 30.0,
    drain_s: float = 0.5,
    clock: Clock | None = None,
) -> AsyncIterator[CommandWorker]:
    """A running worker."""
    async with CommandWorker(
        service=SERVICE,
        bus=bus,
        store=store,
        key_ring=RING,
        lease_s=lease_s,
        hold_s=hold_s,
        drain_s=drain_s,
        clock=clock,
    ) as worker:
        worker.handle(Work, handler)
        await worker.start()
        yield worker


def an_inbox(
    store: MoodyStore, bus: InProcessBus, *, owner: str, lease_s: float = 60.0, clock: Clock | None = None
) -> Inbox:
    """The view of another worker on the records."""
    relay = OutboxRelay(store, bus, collections=[INBOX])
    return Inbox(store, relay, RING, collection=INBOX, owner=owner, lease_s=lease_s, clock=clock or SystemClock())


async def state_of(store: MoodyStore, command: Envelope[Message]) -> str | None:
    record = await store.get(INBOX, command.id)
    return None if record is None else str(record.body["state"])


# --- the plain case ---------------------------------------------------------------------------------------------------


async def test_the_outcome_is_published_as_an_answer_to_the_command(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    handler = Handler()
    command = a_command()
    async with a_worker(store, bus, handler):
        publish(command)
        await heard.has(1)
        await publish.settled()

    (answer,) = heard.envelopes
    assert answer.data == Worked(number=7)
    assert (answer.causationid, answer.operationid, answer.stepid, answer.attempt, answer.subject) == (
        command.id, "op-1", "step-1", 2, "vnf-1",
    )  # fmt: skip
    assert answer.source == "/kubevnfm/testing"
    (context,) = handler.contexts
    assert (context.message_id, context.operation_id, context.step_id, context.attempt) == (
        command.id, "op-1", "step-1", 2,
    )  # fmt: skip
    assert context.fencing == 1


async def test_a_quick_command_costs_two_writes(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    async with a_worker(store, bus, Handler()):
        publish(a_command())
        await heard.has(1)
        await publish.settled()
        assert store.writes == 2


async def test_the_outbox_is_empty_after_the_outcome_was_published(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    async with a_worker(store, bus, Handler()):
        publish(a_command())
        await heard.has(1)

        async def is_empty() -> bool:
            return not await store.pending_outbox(INBOX)

        await until_true(is_empty)


async def test_log_lines_of_a_handler_carry_the_operation(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    bound: dict[str, object] = {}

    async def handler(_: Work, __: StepContext) -> Outcome:
        bound.update(structlog.contextvars.get_contextvars())
        return Done(Worked())

    async with CommandWorker(service=SERVICE, bus=bus, store=store, key_ring=RING) as worker:
        worker.handle(Work, handler)
        await worker.start()
        publish(a_command())
        await heard.has(1)

    assert bound == {"operation_id": "op-1", "step_id": "step-1", "attempt": 2}


async def test_progress_is_published_while_the_work_continues(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    news = Heard()
    await bus.consume_events("news", ["test.worker.progressed"], news)

    async def handler(_: Work, context: StepContext) -> Outcome:
        for number in range(3):
            await context.publish(Progressed(number=number))
        await news.has(3)
        return Done(Worked())

    async with CommandWorker(service=SERVICE, bus=bus, store=store, key_ring=RING) as worker:
        worker.handle(Work, handler)
        await worker.start()
        publish(a_command())
        await heard.has(1)

    assert [envelope.data for envelope in news.envelopes] == [Progressed(number=number) for number in range(3)]
    assert {envelope.stepid for envelope in news.envelopes} == {"step-1"}


# --- more than one delivery -------------------------------------------------------------------------------------------


async def test_a_repeated_delivery_repeats_the_outcome_but_not_the_work(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    handler = Handler()
    command = a_command()
    async with a_worker(store, bus, handler):
        publish(command)
        await heard.has(1)
        publish(command)
        await heard.has(2)
        await publish.settled()

    assert handler.calls == 1
    assert len(set(heard.ids)) == 1
    assert [envelope.data for envelope in heard.envelopes] == [Worked(number=7)] * 2


async def test_deliveries_at_the_same_time_share_one_run(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    handler = Handler(gate=asyncio.Event())
    command = a_command()
    async with a_worker(store, bus, handler):
        publish(command, command, command)
        await handler.begun.wait()
        assert handler.gate is not None
        handler.gate.set()
        await publish.settled()

    assert handler.calls == 1


async def test_two_workers_do_not_work_on_one_command(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    first, second = Handler(gate=asyncio.Event()), Handler(gate=asyncio.Event())
    command, clock = a_command(), SetClock(datetime.now(UTC).replace(microsecond=0))
    third = an_inbox(store, bus, owner="third", clock=clock)
    # The lease is shorter than the work, so it holds only because it is renewed. The clock moves on after each renewal.
    async with (
        a_worker(store, bus, first, lease_s=1.5, clock=clock),
        a_worker(store, bus, second, lease_s=1.5, clock=clock),
    ):
        publish(command, command)
        begun = [asyncio.create_task(handler.begun.wait()) for handler in (first, second)]
        _, waiting = await asyncio.wait(begun, timeout=300, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()

        async def is_renewed() -> bool:
            claim = await third.claim(command)
            return isinstance(claim, Taken) and claim.for_s == 1.5

        for _ in range(3):
            await until_true(is_renewed)
            clock.advance(1.0)
        for handler in (first, second):
            assert handler.gate is not None
            handler.gate.set()
        await publish.settled()

    assert first.calls + second.calls == 1


async def test_a_dead_workers_command_is_taken_over_when_its_lease_runs_out(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    command = a_command()
    claimed_at = asyncio.get_running_loop().time()
    dead = await an_inbox(store, bus, owner="dead", lease_s=0.5).claim(command)
    assert isinstance(dead, Claim)
    handler = Handler()

    # If the worker waited for a lease of its own, the outcome would not be heard in time.
    async with a_worker(store, bus, handler, lease_s=3600.0):
        publish(command)
        await heard.has(1)
        taken_after_s = asyncio.get_running_loop().time() - claimed_at

    assert taken_after_s >= 0.45
    assert [context.fencing for context in handler.contexts] == [2]


async def test_who_lost_the_lease_is_stopped_and_stores_nothing(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    handler = Handler(gate=asyncio.Event())
    command = a_command()
    async with a_worker(store, bus, handler, lease_s=3.0):
        publish(command)
        await handler.begun.wait()
        await store.update(
            INBOX, command.id, {"owner": "thief", "fencing": 2, "leaseUntil": "2999-01-01T00:00:00.000Z"}
        )

        async def is_cancelled() -> bool:
            return handler.was_cancelled

        await until_true(is_cancelled)

    record = await store.get(INBOX, command.id)
    assert record is not None
    assert (record.body["owner"], record.body["state"]) == ("thief", "claimed")
    assert not heard.envelopes


@pytest.mark.parametrize("successor", ["another", "itself"])
async def test_a_smaller_fencing_number_writes_nothing(store: MoodyStore, bus: InProcessBus, successor: str) -> None:
    """A process that has lost its lease, because the database was away, may claim the command again."""
    command = a_command()
    slow = an_inbox(store, bus, owner="slow", lease_s=0.0)
    quick = an_inbox(store, bus, owner="quick") if successor == "another" else slow
    old = await slow.claim(command)
    new = await quick.claim(command)
    assert isinstance(old, Claim)
    assert isinstance(new, Claim)
    assert (old.fencing, new.fencing) == (1, 2)

    with pytest.raises(LeaseLost):
        await slow.finish(old, command, Worked(number=1), source="/kubevnfm/slow")
    with pytest.raises(LeaseLost):
        await slow.rest(old, tries=0)
    with pytest.raises(LeaseLost):
        await slow.renew(old, unavailable_since=None)
    assert await state_of(store, command) == "claimed"


async def test_of_two_that_take_over_one_gets_it(store: MoodyStore, bus: InProcessBus) -> None:
    command = a_command()
    await an_inbox(store, bus, owner="dead", lease_s=0.0).claim(command)

    answers = await asyncio.gather(*(an_inbox(store, bus, owner=str(number)).claim(command) for number in range(8)))

    assert sum(isinstance(answer, Claim) for answer in answers) == 1


async def test_a_handler_that_outlasts_the_broker_goes_on_and_is_found_again(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    handler = Handler(gate=asyncio.Event())
    command = a_command()
    async with a_worker(store, bus, handler, hold_s=0.1):
        publish(command)
        await asyncio.sleep(1.6)  # given back after 0.1 s, delivered again after one more second
        assert not heard.envelopes
        assert handler.gate is not None
        handler.gate.set()
        await publish.settled()
        await heard.has(1)

    assert handler.calls == 1
    assert set(heard.ids) == {heard.ids[0]}


async def test_closing_lets_the_next_worker_start_at_once(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    stuck, next_one = Handler(gate=asyncio.Event()), Handler()
    command = a_command()
    async with a_worker(store, bus, stuck, lease_s=60.0, drain_s=0.05):
        publish(command)
        await stuck.begun.wait()
    assert stuck.was_cancelled
    assert await state_of(store, command) == "resting"

    async with a_worker(store, bus, next_one):
        publish(command)
        await heard.has(1)

    assert next_one.contexts[0].fencing == 2


# --- deadlines --------------------------------------------------------------------------------------------------------


async def test_a_command_past_its_deadline_is_not_begun(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    handler = Handler()
    async with a_worker(store, bus, handler):
        publish(a_command(deadline=datetime.now(UTC) - timedelta(seconds=1)))
        await heard.has(1)

    assert handler.calls == 0
    failure = heard.envelopes[0].data
    assert isinstance(failure, CommandFailed)
    assert (failure.code, failure.status, failure.command) == ("step-timed-out", 504, Work.type)
    assert "testing" in failure.title


async def test_a_handler_is_stopped_at_the_deadline(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    handler = Handler(gate=asyncio.Event())
    async with a_worker(store, bus, handler):
        publish(a_command(deadline=datetime.now(UTC) + timedelta(seconds=0.4)))
        await heard.has(1)
        await publish.settled()

    assert handler.was_cancelled
    assert isinstance(heard.envelopes[0].data, CommandFailed)
    assert heard.envelopes[0].data.code == "step-timed-out"


async def test_not_yet_does_not_sleep_past_the_deadline(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    handler = Handler(answers=[NotYet(again_in_s=300.0, waits_for="the guests leave")])
    async with a_worker(store, bus, handler):
        publish(a_command(deadline=datetime.now(UTC) + timedelta(seconds=0.4)))
        await heard.has(1)

    assert isinstance(heard.envelopes[0].data, CommandFailed)
    assert heard.envelopes[0].data.detail.endswith(
        " was not done when its deadline passed; it waited: the guests leave"
    )


# --- answers ----------------------------------------------------------------------------------------------------------


async def test_not_yet_lets_go_and_is_called_again(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    handler = Handler(answers=[NotYet(again_in_s=0.3), NotYet(again_in_s=0.0)])
    command, calls = a_command(), list[int]()

    def look(state: str) -> None:
        if state == "resting":
            calls.append(handler.calls)

    store.on_state = look
    async with a_worker(store, bus, handler):
        publish(command)
        await heard.has(1)
    assert calls == [1, 2]

    assert [context.fencing for context in handler.contexts] == [1, 2, 3]


async def test_an_error_that_may_pass_is_tried_again(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    handler = Handler(answers=[OutsideUnavailable("the VIM does not answer")])
    async with a_worker(store, bus, handler):
        publish(a_command())
        await heard.has(1)

    assert handler.calls == 2
    assert heard.envelopes[0].data == Worked(number=7)


async def test_without_a_deadline_the_tenth_try_is_the_last(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    command = a_command()
    inbox = an_inbox(store, bus, owner="earlier")
    claim = await inbox.claim(command)
    assert isinstance(claim, Claim)
    await inbox.rest(claim, tries=9)
    handler = Handler(answers=[OutsideUnavailable("the VIM does not answer")])

    async with a_worker(store, bus, handler):
        publish(command)
        await heard.has(1)

    failure = heard.envelopes[0].data
    assert isinstance(failure, CommandFailed)
    assert (failure.code, failure.status, failure.detail) == ("outside-unavailable", 503, "the VIM does not answer")


async def test_with_a_deadline_the_last_error_is_published_when_no_try_fits_any_more(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    handler = Handler(answers=[OutsideUnavailable("down"), OutsideUnavailable("still down")])
    async with a_worker(store, bus, handler):
        publish(a_command(deadline=datetime.now(UTC) + timedelta(seconds=1.0)))
        await heard.has(1)

    failure = heard.envelopes[0].data
    assert isinstance(failure, CommandFailed)
    assert (failure.code, failure.detail) == ("outside-unavailable", "still down")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            NodeBroke(),
            CommandFailed(
                command=Work.type,
                code="node-broke",
                title="Management driver failed",
                detail="worker-1: kubeadm join ended with 1",
                status=422,
                node="worker-1",
                task="join",
            ),
        ),
        (
            Conflict("a stack of that name is there"),
            CommandFailed(
                command=Work.type, code="conflict", title="Conflict", detail="a stack of that name is there", status=409
            ),
        ),
    ],
    ids=["with node", "without"],
)
async def test_a_permanent_error_is_published_at_once(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher, error: VnfmError, expected: CommandFailed
) -> None:
    handler = Handler(answers=[error])
    async with a_worker(store, bus, handler):
        publish(a_command())
        await heard.has(1)
        await publish.settled()

    assert handler.calls == 1
    assert heard.envelopes[0].data == expected
    assert await bus.dead_letters(SERVICE) == []


async def test_a_bug_is_published_without_its_text_and_the_command_is_stored(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    handler = Handler(answers=[KeyError("password=swordfish")])
    command = a_command()
    async with a_worker(store, bus, handler):
        publish(command)
        await heard.has(1)
        await publish.settled()
        (dead,) = await bus.dead_letters(SERVICE)
        publish(command)  # as an operator does who replays the dead letter
        await heard.has(2)

    assert heard.envelopes[0].data == CommandFailed(
        command=Work.type,
        code="internal-error",
        title="Internal error",
        detail="unexpected error in testing",
        status=500,
    )
    assert dead.message_id == command.id
    assert "swordfish" not in dead.reason
    assert handler.calls == 1
    assert len(set(heard.ids)) == 1


async def test_a_command_without_handler_fails_and_dies(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    async with a_worker(store, bus, Handler()):
        publish(a_command(data=Unheard()))
        await heard.has(1)
        await publish.settled()
        assert len(await bus.dead_letters(SERVICE)) == 1

    assert isinstance(heard.envelopes[0].data, CommandFailed)


# --- a database that goes away ----------------------------------------------------------------------------------------


async def test_a_database_that_is_away_at_the_claim_costs_no_delivery(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    handler = Handler()
    async with a_worker(store, bus, handler):
        store.is_down = True
        publish(a_command())
        await asyncio.sleep(0.1)
        assert handler.calls == 0
        store.is_down = False
        await heard.has(1)

    assert handler.calls == 1


async def test_a_database_that_is_away_at_the_end_does_not_lose_the_work(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    handler = Handler(gate=asyncio.Event())
    async with a_worker(store, bus, handler):
        publish(a_command())
        await handler.begun.wait()
        store.is_down = True
        assert handler.gate is not None
        handler.gate.set()
        await asyncio.sleep(0.1)
        assert not heard.envelopes
        store.is_down = False
        await heard.has(1)

    assert handler.calls == 1


# --- housekeeping -----------------------------------------------------------------------------------------------------


@dataclass
class _Yesteryear:
    def now(self) -> datetime:
        return datetime.now(UTC) - timedelta(days=8)


async def test_records_of_work_that_was_done_a_week_ago_are_deleted(store: MoodyStore, bus: InProcessBus) -> None:
    old, young = a_command(), a_command()
    for command, clock in ((old, _Yesteryear()), (young, SystemClock())):
        async with OutboxRelay(store, bus, collections=[INBOX]) as relay:
            inbox = Inbox(store, relay, RING, collection=INBOX, owner="x", lease_s=5.0, clock=clock)
            claim = await inbox.claim(command)
            assert isinstance(claim, Claim)
            await inbox.finish(claim, command, Worked(), source="/kubevnfm/x")
            await relay.idle()

    async with a_worker(store, bus, Handler()):
        await until_true(partial(_is_gone, store, old.id))

    assert await store.get(INBOX, young.id) is not None
    assert await store.count(INBOX, by(state="done"), limit=10) == 1


async def _is_gone(store: MoodyStore, id: str) -> bool:
    return await store.get(INBOX, id) is None


async def test_one_command_has_one_handler(store: MoodyStore, bus: InProcessBus) -> None:
    worker = CommandWorker(service=SERVICE, bus=bus, store=store, key_ring=RING)
    worker.handle(Work, Handler())
    with pytest.raises(ValueError, match="already has a handler"):
        worker.handle(Work, Handler())


async def test_a_direct_handler_gets_the_deliveries_themselves(
    store: MoodyStore, bus: InProcessBus, publish: Publisher
) -> None:
    direct = Heard()
    command = a_command(data=Unheard())
    async with CommandWorker(service=SERVICE, bus=bus, store=store, key_ring=RING) as worker:
        worker.handle_direct(Unheard, direct)
        await worker.start()
        publish(command, command)
        await publish.settled()

    assert direct.ids == [command.id, command.id]
    assert store.writes == 0


async def test_a_finished_command_is_known_to_every_worker(store: MoodyStore, bus: InProcessBus) -> None:
    command = a_command()
    inbox = an_inbox(store, bus, owner="first")
    claim = await inbox.claim(command)
    assert isinstance(claim, Claim)
    await inbox.finish(claim, command, Worked(number=3), source="/kubevnfm/first")

    found = await an_inbox(store, bus, owner="second").claim(command)

    assert isinstance(found, Finished)
    assert found.outcome.data == Worked(number=3)


# --- clocks that are set, and predecessors ----------------------------------------------------------------------------


async def test_a_lease_that_a_clock_ahead_has_written_holds_nothing_up(store: MoodyStore, bus: InProcessBus) -> None:
    """An hour ahead: the lease was for 15 s."""
    command, clock = a_command(), SetClock(datetime.now(UTC))
    ahead = SetClock(clock.at + timedelta(hours=1))
    assert isinstance(await an_inbox(store, bus, owner="one", lease_s=15.0, clock=ahead).claim(command), Claim)
    again = await an_inbox(store, bus, owner="other", lease_s=15.0, clock=clock).claim(command)
    assert isinstance(again, Claim)
    assert again.fencing == 2


async def test_a_command_of_a_process_that_has_ended_is_taken_over_at_once(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher
) -> None:
    command = a_command()
    assert isinstance(await an_inbox(store, bus, owner="killed", lease_s=3600.0).claim(command), Claim)
    worker = CommandWorker(
        service=SERVICE, bus=bus, store=store, key_ring=RING, lease_s=3600.0, owners=Owners(is_alone=True)
    )
    handler = Handler()
    async with worker:
        worker.handle(Work, handler)
        await worker.start()
        publish(command)
        await heard.has(1)
        await publish.settled()
    assert [context.fencing for context in handler.contexts] == [2]


@pytest.mark.parametrize("set_by_s", [-3600.0, 3 * 3600.0])
async def test_a_command_has_its_time_whatever_is_done_to_the_clock(
    store: MoodyStore, bus: InProcessBus, heard: Heard, publish: Publisher, set_by_s: float
) -> None:
    """Set while it waits: the command is handled once more, and not late."""
    machine = SetClock(datetime.now(UTC))
    clock = SteadyClock(machine)

    class SetsTheClock(Handler):
        async def __call__(self, command: Work, context: StepContext) -> Outcome:
            machine.at = machine.at + timedelta(seconds=set_by_s)
            return await super().__call__(command, context)

    handler = SetsTheClock([NotYet(again_in_s=0.01), Done(Worked(number=7))])
    async with a_worker(store, bus, handler, clock=clock):
        publish(a_command(deadline=machine.at + timedelta(seconds=60)))
        await heard.has(1)
        await publish.settled()
    assert heard.envelopes[0].data == Worked(number=7)
    assert handler.calls == 2


async def test_the_time_of_a_service_goes_on_in_the_next_process(store: MoodyStore) -> None:
    machine = SetClock(datetime.now(UTC))

    async def is_stored() -> bool:
        return bool(await store.count(CLOCKS, AllOf(), limit=1))

    async with steady_clock(store, machine) as clock:
        began = clock.now()
        await until_true(is_stored)
    machine.advance(3 * 3600.0)
    async with steady_clock(store, machine) as clock:
        assert clock.now() - began < timedelta(minutes=30)


async def test_a_clock_that_alone_is_wrong_is_set_while_another_machine_runs(store: MoodyStore) -> None:
    """Not by what a machine has stored that no longer runs."""
    right = datetime.now(UTC)
    machine = SetClock(right - timedelta(hours=1))
    clock = SteadyClock(machine)
    machine.at, others = right, Others(store, clock)
    for age_s, is_set in [(20.0, False), (20.0, False), (10.0, True)]:
        await keep_reading(store, Reading("another-machine", 5.0, right - timedelta(seconds=age_s)))
        await others.compare()
        assert (abs(clock.now() - right) < timedelta(minutes=1)) == is_set
