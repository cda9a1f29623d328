"""The engine of lcm-api on a store file and a bus; it can be killed between any two writes or sends and started again.

A life ends like a killed process: from one moment on nothing is written or sent, running tasks are cancelled, and
nothing is closed in order. The next life finds only the store's file. The twins of the other services answer each
delivery of a command with the same event, as the services do from their inboxes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, cast

from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events import CommandFailed, Envelope, Message
from kubevnfm_events.contract import commands
from kubevnfm_events.lcm import AdvanceOperation, OperationChanged, RemoveRemains, StepChanged
from kubevnfm_events.queues import REPLIES
from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.engine import Engine
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.instances import Instances
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.states import Task
from kubevnfm_store.query import Stored
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.relay import OutboxRelay
from kubevnfm_worker.worker import CommandWorker

from worlds.lcm_builders import RING, answer_to
from worlds.watched_store import WatchedStore

SERVICES: Final = sorted({command.service for command in commands()} - {"lcm-api"})
EVENTS: Final = ("lcm.operation.changed", "lcm.step.changed", "lcm.instance.deleted", "lcm.remains.removed")
COLLECTIONS: Final = (instances.COLLECTION, occurrences.COLLECTION)


@dataclass
class Life:
    """Counts the moments before each write and send, and can end at one of them."""

    ends_at: int | None = None
    moments: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)
    was_killed: bool = False

    def moment(self) -> None:
        """Pass a moment. Raises CancelledError if the life ends at it or has ended before."""
        self.check()
        self.moments += 1
        if self.moments == self.ends_at:
            self.was_killed = True
            self.over.set()
        self.check()

    def check(self) -> None:
        """Raise CancelledError if the life is over."""
        if self.over.is_set():
            raise asyncio.CancelledError("killed")

    async def until(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work, or leave it when the life ends. Raises CancelledError then."""
        tasks = asyncio.create_task(work), asyncio.create_task(self.over.wait())
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            self.check()
            await tasks[0]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


class MortalStore(WatchedStore):
    """A store that stops working when the life ends; each write is a moment."""

    life: Life

    def before_write(self) -> None:
        self.life.moment()

    async def get(self, collection: str, id: str) -> Stored | None:
        self.life.check()
        return await super().get(collection, id)

    async def clear_outbox(self, collection: str, published: Mapping[str, Sequence[str]]) -> None:
        self.life.moment()
        await super().clear_outbox(collection, published)


class MortalBus(InProcessBus):
    """A bus that stops working when the life ends; each send is a moment. It may deliver every message twice."""

    def __init__(self, life: Life, *, times: int = 1) -> None:
        super().__init__(RING, drain_s=0.0)
        self._life, self._times = life, times

    async def publish(self, envelope: Envelope[Message]) -> None:
        self._life.moment()
        await asyncio.gather(*(super(MortalBus, self).publish(envelope) for _ in range(self._times)))


class SetClock:
    """A clock that runs ``ahead_s`` seconds ahead of the system clock."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.ahead_s)


@dataclass
class Twins:
    """The other services, over all lives: record each command and answer it, unless ``waits`` matches it."""

    fails: Callable[[Envelope[Message]], bool] = lambda _: False
    waits: Callable[[Envelope[Message]], bool] = lambda _: False
    reply: Callable[[Envelope[Message]], Envelope[Message]] = answer_to
    """Asked once for each command that succeeds."""
    commands: list[Envelope[Message]] = field(default_factory=list)
    answers: dict[str, Envelope[Message]] = field(default_factory=dict)
    """By the command's id: a service stores its outcome and publishes the same event for each delivery."""

    def answer(self, command: Envelope[Message]) -> Envelope[Message]:
        if command.id not in self.answers:
            self.answers[command.id] = _failure(command) if self.fails(command) else self.reply(command)
        return self.answers[command.id]

    def asked(self) -> list[tuple[str, str, int]]:
        """Return each command once, by operation, step and attempt, in the order of the first delivery."""
        return [
            (command.operationid, command.stepid, command.attempt)
            for command in {each.id: each for each in self.commands}.values()
        ]


@dataclass
class Living:
    """A running engine, with helpers that call it and wait for results."""

    life: Life
    store: MortalStore
    bus: MortalBus
    relay: OutboxRelay
    engine: Engine
    instances: Instances

    async def record(self, operation_id: str) -> OccurrenceRecord | None:
        stored = await self.store.get(occurrences.COLLECTION, operation_id)
        return None if stored is None else OccurrenceRecord.from_document(stored.body)

    async def instance(self, instance_id: str = "inst-1") -> InstanceRecord | None:
        stored = await self.store.get(instances.COLLECTION, instance_id)
        return None if stored is None else InstanceRecord.from_document(stored.body)

    async def accept(self, record: OccurrenceRecord) -> None:
        """Start the operation, unless an earlier life has accepted it."""
        stored = await self.store.get(instances.COLLECTION, record.occ.vnf_instance_id)
        known = await self.record(record.occ.id)
        assert stored is not None
        if known is None and InstanceRecord.from_document(stored.body).internals.current_operation is None:
            await self.engine.accept(stored, record, {})

    async def ask(self, task: Task, operation_id: str) -> None:
        """Request the task, unless an earlier life has accepted it. The operation must be at rest."""
        record = await self.record(operation_id)
        assert record is not None
        if record.occ.operation_state == "FAILED_TEMP" and record.ending is None:
            engine = self.engine
            tasks: dict[Task, Callable[[str], Awaitable[object]]] = {
                "retry": engine.retry, "rollback": engine.rollback, "fail": engine.fail
            }  # fmt: skip
            await tasks[task](operation_id)

    async def reaches(self, operation_id: str, *states: str) -> None:
        """Return when the occurrence is in one of the states."""

        async def is_there() -> bool:
            record = await self.record(operation_id)
            return record is not None and record.occ.operation_state in states

        await self.until(is_there)

    async def settles(self) -> None:
        """Return when no message waits in a document or on the bus."""

        async def is_settled() -> bool:
            # Otherwise published messages stay in their documents for a second. Without a store, a worker of a life that
            # is over has its command delivered again and again, so its publish never ends.
            await self.life.until(self.relay.idle())
            collections = (*COLLECTIONS, "inbox_lcm_api")
            return not any([await self.store.pending_outbox(collection) for collection in collections])

        await self.until(is_settled)

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(300):
            while not await condition():
                await asyncio.sleep(0.002)
                self.life.check()


@dataclass
class EngineWorld:
    """Everything that is kept from one life to the next."""

    folder: Path
    twins: Twins = field(default_factory=Twins)
    clock: SetClock = field(default_factory=SetClock)
    worker_clock: SetClock = field(default_factory=SetClock)
    received: dict[str, Envelope[Message]] = field(default_factory=dict)
    """The recorded events by id."""
    wake_ups: dict[str, Envelope[Message]] = field(default_factory=dict)
    """The engine's commands to itself by id."""
    twice: bool = False
    """Whether every message is delivered twice."""
    traces: dict[str, set[str]] = field(default_factory=dict)
    """The ids of the spans of each operation that a test has ended."""

    def events(self) -> list[tuple[str, ...]]:
        """Return the published states of operations and steps, sorted."""
        return sorted(_summary(envelope) for envelope in self.received.values())

    async def put(self, record: InstanceRecord) -> None:
        """Store an instance before the first life."""
        async with SqliteStore.open(self.folder / "store.db") as store:
            await store.insert(instances.COLLECTION, record.vnf.id, record.document(RING))

    @asynccontextmanager
    async def life(self, ends_at: int | None = None) -> AsyncIterator[Living]:
        """Yield a running engine. If its life ends within the block, the CancelledError does not leave the block."""
        life = Life()  # moments during start-up do not count
        async with MortalStore.open(self.folder / "store.db") as store:
            store.life = life
            bus = MortalBus(life, times=2 if self.twice else 1)
            relay = OutboxRelay(store, bus, collections=COLLECTIONS, settle_s=0.0, sweep_s=0.05, drain_s=0.0)
            # Each life begins after the leases of the previous one have expired and its messages have settled.
            self.worker_clock.ahead_s += 60.0
            worker = CommandWorker(
                service="lcm-api", bus=bus, store=store, key_ring=RING, drain_s=0.0, clock=self.worker_clock
            )
            outbox = Outbox(store, relay, RING)
            engine = Engine(store=store, outbox=outbox, ring=RING, clock=self.clock, clean_up_poll_s=0.01)
            # Deleting an instance does not use the packages.
            all_instances = Instances(
                store=store, outbox=outbox, engine=engine, packages=cast("Any", None), ring=RING, clock=self.clock
            )
            living = Living(life, store, bus, relay, engine, all_instances)
            with suppress(asyncio.CancelledError) if ends_at is not None else nullcontext():
                await self._start(living, relay, worker)
                life.ends_at = None if ends_at is None else life.moments + ends_at
                yield living
            if ends_at is None and not life.over.is_set():
                await living.settles()
            life.over.set()
            for close in (relay.close, worker.close):
                with suppress(asyncio.CancelledError):
                    await close()
            await bus.__aexit__(None, None, None)

    async def _start(self, living: Living, relay: OutboxRelay, worker: CommandWorker) -> None:
        async def receive(delivery: Delivery) -> Verdict:
            self.received.setdefault(delivery.envelope.id, delivery.envelope)
            return Ack()

        async def answer(delivery: Delivery) -> Verdict:
            self.twins.commands.append(delivery.envelope)
            if not self.twins.waits(delivery.envelope):
                await living.bus.publish(self.twins.answer(delivery.envelope))
            return Ack()

        async def advance(delivery: Delivery) -> Verdict:
            self.wake_ups[delivery.envelope.id] = delivery.envelope
            return await living.engine.advance_operation(delivery)

        with living.bus.holding():
            for service in SERVICES:
                await living.bus.consume_commands(service, answer)
            worker.handle_direct(AdvanceOperation, advance)
            worker.handle(RemoveRemains, living.engine.remove_remains)
            await worker.start()
            await living.bus.consume_events(REPLIES.name, REPLIES.patterns, living.engine.resume_operation)
            await living.bus.consume_events("tests.events", EVENTS, receive)
            relay.start()


def _failure(command: Envelope[Message]) -> Envelope[Message]:
    failed = CommandFailed(command=command.type, code="stack-failed", title="Failed", detail="no host", status=422)
    return command.follow_up(failed, source="/kubevnfm/twin")


def _summary(envelope: Envelope[Message]) -> tuple[str, ...]:
    match envelope.data:
        case OperationChanged(state=state):
            return ("operation", envelope.operationid, state)
        case StepChanged(step=step, state=state, attempt=attempt):
            return ("step", envelope.operationid, step, state, str(attempt))
        case other:
            return (type(other).routing_key(), envelope.subject)
