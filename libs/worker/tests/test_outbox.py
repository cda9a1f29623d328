"""Messages of a document are published at once, or after a crash, and never before the document is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events import Envelope, Message
from kubevnfm_kit.owners import Owners
from kubevnfm_store.port import AlreadyExists, Outgoing, PendingOutbox, RevisionConflict
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.relay import OutboxRelay, outgoing
from patience import until_true
from worlds.set_clock import SetClock
from worlds.worker_world import RING, Heard, MoodyStore, Work, Worked, a_command

THINGS = "things"


def an_event(number: int, *, age_s: float = 0.0) -> Envelope[Message]:
    return Envelope(Worked(number=number), source="/kubevnfm/x", time=datetime.now(UTC) - timedelta(seconds=age_s))


def numbers(heard: Heard) -> list[int]:
    return [envelope.data.number for envelope in heard.envelopes if isinstance(envelope.data, Worked)]


@pytest.fixture
async def relay(store: MoodyStore, bus: InProcessBus) -> AsyncIterator[OutboxRelay]:
    async with OutboxRelay(store, bus, collections=[THINGS], sweep_s=0.05) as relay:
        yield relay


@pytest.fixture
def outbox(store: MoodyStore, relay: OutboxRelay) -> Outbox:
    return Outbox(store, relay, RING)


async def test_every_kind_of_write_publishes_its_events_and_forgets_them(
    store: MoodyStore, outbox: Outbox, relay: OutboxRelay, heard: Heard
) -> None:
    stored = await outbox.insert(THINGS, "a", {"state": "new"}, events=[an_event(1), an_event(2)])
    stored = await outbox.replace(THINGS, "a", {"state": "old"}, if_revision=stored.revision, events=[an_event(3)])
    stored = await outbox.update(THINGS, "a", {"more": 1}, if_revision=stored.revision, events=[an_event(4)])
    assert await outbox.delete(THINGS, "a", if_revision=stored.revision, events=[an_event(5)])

    await heard.has(5)
    await relay.idle()

    assert numbers(heard) == [1, 2, 3, 4, 5]
    assert await store.pending_outbox(THINGS) == []
    assert await store.get(THINGS, "a") is None


async def test_clearing_leaves_the_revision_alone(store: MoodyStore, outbox: Outbox, relay: OutboxRelay) -> None:
    stored = await outbox.insert(THINGS, "a", {}, events=[an_event(1)])
    await relay.idle()
    await store.replace(THINGS, "a", {}, if_revision=stored.revision)


async def test_a_write_that_fails_publishes_nothing(outbox: Outbox, relay: OutboxRelay, heard: Heard) -> None:
    await outbox.insert(THINGS, "a", {})
    with pytest.raises(AlreadyExists):
        await outbox.insert(THINGS, "a", {}, events=[an_event(1)])
    with pytest.raises(RevisionConflict):
        await outbox.replace(THINGS, "a", {}, if_revision=7, events=[an_event(2)])
    with pytest.raises(RevisionConflict):
        await outbox.update(THINGS, "a", {}, if_revision=7, events=[an_event(3)])
    with pytest.raises(RevisionConflict):
        await outbox.delete(THINGS, "a", if_revision=7, events=[an_event(4)])
    assert not await outbox.delete(THINGS, "b", events=[an_event(5)])
    await outbox.update(THINGS, "a", {}, events=[an_event(6)])
    await heard.has(1)
    await relay.idle()

    assert numbers(heard) == [6]


async def test_what_a_crash_left_unpublished_is_published_in_order(
    store: MoodyStore, bus: InProcessBus, heard: Heard
) -> None:
    left = [an_event(number, age_s=60) for number in range(5)]
    await store.insert(THINGS, "a", {}, outbox=[outgoing(event, RING) for event in left])

    async with OutboxRelay(store, bus, collections=[THINGS]) as relay:
        await heard.has(5)
        await relay.idle()

    assert heard.ids == [event.id for event in left]
    assert await store.pending_outbox(THINGS) == []


async def test_young_messages_are_left_to_the_replica_that_wrote_them(
    store: MoodyStore, bus: InProcessBus, heard: Heard
) -> None:
    event = an_event(1)
    clock = SetClock(event.time)
    await store.insert(THINGS, "a", {}, outbox=[outgoing(event, RING)])
    async with OutboxRelay(store, bus, collections=[THINGS], sweep_s=0.05, settle_s=60.0, clock=clock) as relay:
        await relay.sweep()
        await relay.idle()
        assert not heard.envelopes
        clock.advance(60.0)
        await heard.has(1)  # it is left no longer when it has lain there for a while


@pytest.mark.parametrize(("set_by_s", "is_alone"), [(-3600.0, False), (0.0, True)])
async def test_messages_of_a_process_that_has_ended_do_not_wait_for_it(
    store: MoodyStore, bus: InProcessBus, heard: Heard, set_by_s: float, *, is_alone: bool
) -> None:
    """Neither if they look as if they were written in an hour, nor if no other process can have written them."""
    event = an_event(1, age_s=1)
    clock = SetClock(event.time + timedelta(seconds=1 + set_by_s))
    await store.insert(THINGS, "a", {}, outbox=[outgoing(event, RING)])
    owners = Owners(is_alone=is_alone)
    async with OutboxRelay(store, bus, collections=[THINGS], settle_s=60.0, clock=clock, owners=owners):
        await heard.has(1)


async def test_a_long_handler_holds_up_neither_other_messages_nor_the_close(
    store: MoodyStore, bus: InProcessBus, heard: Heard
) -> None:
    begun = asyncio.Event()

    async def stuck(_: Delivery) -> Verdict:
        begun.set()
        await asyncio.Event().wait()
        return Ack()

    await bus.consume_commands(Work.service, stuck)
    async with OutboxRelay(store, bus, collections=[THINGS], sweep_s=0.02, settle_s=0.0, drain_s=0.05) as relay:
        outbox = Outbox(store, relay, RING)
        await outbox.insert(THINGS, "a", {}, events=[a_command(), an_event(1)])
        await begun.wait()
        await heard.has(1)
        for _ in range(5):  # they see the command in the outbox, and must not repeat it
            await relay.sweep()
        assert numbers(heard) == [1]

    (pending,) = await store.pending_outbox(THINGS)
    assert [Work.type] == [message.document["type"] for message in pending.messages]


class HeldBus(InProcessBus):
    """A bus whose publishing takes until it is let go."""

    def __init__(self) -> None:
        super().__init__(RING)
        self.asked: list[str] = []
        self.go = asyncio.Event()
        self.published = asyncio.Event()

    async def publish(self, envelope: Envelope[Message]) -> None:
        self.asked.append(envelope.id)
        await self.go.wait()
        self.published.set()


async def test_a_sweep_repeats_nothing_whose_publishing_ends_while_it_reads(
    store: MoodyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = HeldBus()

    async def publishing_ends_meanwhile(collection: str, *, limit: int = 100) -> Sequence[PendingOutbox]:
        found = await MoodyStore.pending_outbox(store, collection, limit=limit)
        bus.go.set()
        await bus.published.wait()
        await asyncio.sleep(0)  # the task that published is forgotten a turn of the loop later
        return found

    async with OutboxRelay(store, bus, collections=[THINGS], settle_s=0.0) as relay:
        event = an_event(1)
        await Outbox(store, relay, RING).insert(THINGS, "a", {}, events=[event])
        monkeypatch.setattr(store, "pending_outbox", publishing_ends_meanwhile)
        await relay.sweep()
        await relay.idle()
        assert bus.asked == [event.id]
    assert await MoodyStore.pending_outbox(store, THINGS) == []


async def test_what_was_being_stored_again_during_a_sweep_is_looked_at_again_soon(
    store: MoodyStore, bus: InProcessBus, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = an_event(1, age_s=60)
    await store.insert(THINGS, "a", {}, outbox=[outgoing(event, RING)])
    looked: list[str] = []
    after_the_start = asyncio.Event()

    async def counted(collection: str, *, limit: int = 100) -> Sequence[PendingOutbox]:
        looked.append(collection)
        if len(looked) > 2:
            after_the_start.set()
        return await MoodyStore.pending_outbox(store, collection, limit=limit)

    monkeypatch.setattr(store, "pending_outbox", counted)
    async with asyncio.timeout(300), AsyncExitStack() as stack:
        relay = OutboxRelay(store, bus, collections=[THINGS], sweep_s=1000.0, settle_s=0.01)
        with relay.writing([event]):
            await stack.enter_async_context(relay)
            await after_the_start.wait()
            assert not heard.envelopes
        await heard.has(1)


class ClearingStore(MoodyStore):
    """Records which documents each call clears."""

    cleared: list[list[str]]

    async def clear_outbox(self, collection: str, published: Mapping[str, Sequence[str]]) -> None:
        self.cleared.append([*published])
        await super().clear_outbox(collection, published)


@pytest.fixture
async def clearing_store(tmp_path: Path) -> AsyncIterator[ClearingStore]:
    async with ClearingStore.open(tmp_path / "clearing.db") as store:
        store.cleared = []
        yield store


async def test_messages_published_one_after_the_other_are_removed_by_one_call_at_the_close(
    clearing_store: ClearingStore, bus: InProcessBus, heard: Heard
) -> None:
    async with OutboxRelay(clearing_store, bus, collections=[THINGS]) as relay:
        outbox = Outbox(clearing_store, relay, RING)
        for number in range(5):
            await outbox.insert(THINGS, str(number), {}, events=[an_event(number)])
            await heard.has(number + 1)
    assert [sorted(documents) for documents in clearing_store.cleared] == [["0", "1", "2", "3", "4"]]
    assert await clearing_store.pending_outbox(THINGS) == []


async def test_many_published_messages_are_removed_before_the_time_is_over(
    clearing_store: ClearingStore, bus: InProcessBus, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubevnfm_worker.relay._CLEAR_AFTER_S", 1000.0)
    async with OutboxRelay(clearing_store, bus, collections=[THINGS]) as relay:
        outbox = Outbox(clearing_store, relay, RING)
        for number in range(50):
            await outbox.insert(THINGS, str(number), {}, events=[an_event(number)])

        async def is_clear() -> bool:
            return not await clearing_store.pending_outbox(THINGS)

        await until_true(is_clear)
    assert len(clearing_store.cleared) == 1


async def test_what_a_kill_left_between_publish_and_removal_is_published_again_with_the_same_id(
    store: MoodyStore, bus: InProcessBus, heard: Heard
) -> None:
    killed = OutboxRelay(store, bus, collections=[THINGS], settle_s=0.0)
    event = an_event(1)
    await Outbox(store, killed, RING).insert(THINGS, "a", {}, events=[event])
    await heard.has(1)
    async with OutboxRelay(store, bus, collections=[THINGS], settle_s=0.0) as relay:
        await heard.has(2)
        await relay.idle()
    assert heard.ids == [event.id, event.id]
    assert await store.pending_outbox(THINGS) == []
    await killed.close()


async def test_an_unreadable_message_stays_and_blocks_no_other(
    store: MoodyStore, outbox: Outbox, relay: OutboxRelay, heard: Heard
) -> None:
    unknown = Outgoing(
        id="m-1", document={"specversion": "1.0", "id": "m-1", "source": "/x", "type": "kubevnfm.old.v0"}
    )
    await store.insert(THINGS, "a", {}, outbox=[unknown, outgoing(an_event(1, age_s=60), RING)])

    await heard.has(1)
    await relay.idle()

    (pending,) = await store.pending_outbox(THINGS)
    assert [message.id for message in pending.messages] == ["m-1"]


async def test_a_relay_outlives_a_database_that_goes_away(
    store: MoodyStore, bus: InProcessBus, relay: OutboxRelay, outbox: Outbox, heard: Heard
) -> None:
    await outbox.insert(THINGS, "a", {}, events=[an_event(1, age_s=60)])
    store.is_down = True
    await heard.has(1)
    await relay.idle()
    await asyncio.sleep(0.1)  # sweeps fail meanwhile
    store.is_down = False

    async def is_clear() -> bool:
        return not await store.pending_outbox(THINGS)

    await until_true(is_clear)
    assert set(numbers(heard)) == {1}
