"""A store, a bus and commands of an invented service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events import Command, Envelope, Event, Message
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import Outgoing, PendingOutbox, StoreUnavailable

from worlds.watched_store import WatchedStore

SERVICE = "testing"
INBOX = "inbox_testing"
RING = KeyRing.from_text(KeyRing.new_key())


class Work(Command, kind="test.worker.work", service=SERVICE):
    number: int = 0


class Unheard(Command, kind="test.worker.unheard", service=SERVICE):
    pass


class Worked(Event, kind="test.worker.worked"):
    number: int = 0


class Progressed(Event, kind="test.worker.progressed"):
    number: int = 0


class MoodyStore(WatchedStore):
    """A store that counts its writes of documents; it is unavailable while ``is_down`` is set."""

    writes = 0
    is_down = False
    on_state: Callable[[str], None] | None = None
    """Gets the state of each record of a command when it was written."""

    async def is_ready(self) -> bool:
        return not self.is_down and await super().is_ready()

    def before_write(self) -> None:
        self._check()
        self.writes += 1

    def after_write(self, collection: str, id: str, body: JsonMapping | None, outbox: Sequence[Outgoing]) -> None:
        if self.on_state is not None and collection == INBOX and body is not None:
            self.on_state(str(body["state"]))

    async def pending_outbox(self, collection: str, *, limit: int = 100) -> Sequence[PendingOutbox]:
        self._check()
        return await super().pending_outbox(collection, limit=limit)

    async def clear_outbox(self, collection: str, published: Mapping[str, Sequence[str]]) -> None:
        self._check()
        await super().clear_outbox(collection, published)

    def _check(self) -> None:
        if self.is_down:
            raise StoreUnavailable("unavailable by request of the test")


class Heard:
    """Records the envelopes of events, in the order in which they arrive."""

    def __init__(self) -> None:
        self.envelopes: list[Envelope[Message]] = []
        self._changed = asyncio.Event()

    async def __call__(self, delivery: Delivery) -> Verdict:
        self.envelopes.append(delivery.envelope)
        self._changed.set()
        return Ack()

    @property
    def ids(self) -> list[str]:
        return [envelope.id for envelope in self.envelopes]

    async def has(self, count: int) -> None:
        async with asyncio.timeout(300):
            while len(self.envelopes) < count:
                self._changed.clear()
                await self._changed.wait()


def a_command(*, data: Message | None = None, deadline: datetime | None = None) -> Envelope[Message]:
    return Envelope(
        data or Work(number=7),
        source="/kubevnfm/lcm-api",
        subject="vnf-1",
        operationid="op-1",
        stepid="step-1",
        attempt=2,
        deadline=deadline,
    )


class Publisher:
    """Publishes without waiting for the handlers."""

    def __init__(self, bus: InProcessBus) -> None:
        self._bus = bus
        self._tasks: list[asyncio.Task[None]] = []

    def __call__(self, *envelopes: Envelope[Message]) -> None:
        self._tasks.extend(asyncio.create_task(self._bus.publish(envelope)) for envelope in envelopes)

    async def settled(self) -> None:
        """Return when every message was acknowledged or buried."""
        await asyncio.wait_for(asyncio.gather(*self._tasks), timeout=300)

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[MoodyStore]:
    async with MoodyStore.open(tmp_path / "store.db") as store:
        yield store


@pytest.fixture
async def bus() -> AsyncIterator[InProcessBus]:
    async with InProcessBus(RING, drain_s=0.5) as bus:
        yield bus


@pytest.fixture
async def heard(bus: InProcessBus) -> Heard:
    """Records every event except progress."""
    heard = Heard()
    await bus.consume_events("ears", ["test.worker.worked", "service.command.failed"], heard)
    return heard


@pytest.fixture
async def publish(bus: InProcessBus) -> AsyncIterator[Publisher]:
    publisher = Publisher(bus)
    yield publisher
    await publisher.end()
