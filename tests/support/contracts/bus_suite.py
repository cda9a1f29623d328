"""The MessageBus contract as tests; each adapter's test module inherits ``MessageBusSuite``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from callers.metrics import metrics_text
from kubevnfm_bus import topology
from kubevnfm_bus.port import Ack, Again, Dead, Delivery, MessageBus, Verdict
from kubevnfm_events import Command, Envelope, Event, Message
from kubevnfm_kit import live_spans
from kubevnfm_kit.metrics import Metrics
from kubevnfm_kit.traces import TraceContext
from kubevnfm_secrets import KeyRing, Secret
from live_trace import facts_of, id_of, live_trace, parent_of
from opentelemetry.trace import SpanKind
from patience import until_true

NEVER_S = 0.3
"""How long a test watches for something that must not happen."""

RING = KeyRing.from_text(KeyRing.new_key())

OpenBus = Callable[..., AbstractAsyncContextManager[MessageBus]]
"""Opens a bus on the same broker; keywords: max_deliveries, drain_s, metrics."""


@dataclass(frozen=True)
class Words:
    """A service of the test's own, and what can be said to and by it, so that tests do not hear one another."""

    service: str
    command: Callable[[int], Envelope[Message]]
    event: Callable[[int], Envelope[Message]]
    other_event: Callable[[int], Envelope[Message]]


def new_words() -> Words:
    service = f"svc{uuid4().hex[:10]}"

    class Poke(Command, kind=f"test.{service}.poke", service=service):
        number: int
        password: Secret = Secret("swordfish")

    class Poked(Event, kind=f"test.{service}.thing.poked"):
        number: int

    class Left(Event, kind=f"test.{service}.left"):
        number: int

    return Words(
        service,
        command=lambda number: Envelope(Poke(number=number), source="/kubevnfm/test", subject="vnf-1"),
        event=lambda number: Envelope(Poked(number=number), source="/kubevnfm/test"),
        other_event=lambda number: Envelope(Left(number=number), source="/kubevnfm/test"),
    )


def number_of(envelope: Envelope[Message]) -> int:
    number: int = envelope.data.number  # type: ignore[attr-defined]  # every message of Words has one
    return number


@dataclass
class Recorder:
    """A handler that keeps what it was given; ``answers`` are used one a delivery, then it acks."""

    answers: Sequence[Verdict | Exception] = ()
    deliveries: list[Delivery] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, delivery: Delivery) -> Verdict:
        self.deliveries.append(delivery)
        self.at.append(time.monotonic())
        self._changed.set()
        number = len(self.deliveries)
        answer = self.answers[number - 1] if number <= len(self.answers) else Ack()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def watch(self, envelope: Envelope[Message]) -> None:
        await self(Delivery(envelope, 1))

    @property
    def numbers(self) -> list[int]:
        return [number_of(delivery.envelope) for delivery in self.deliveries]

    async def has(self, count: int, *, within_s: float = 120.0) -> None:
        """Return when ``count`` deliveries came."""
        async with asyncio.timeout(within_s):
            while len(self.deliveries) < count:
                self._changed.clear()
                await self._changed.wait()

    async def stays_at(self, count: int) -> None:
        """Assert that nothing more comes for a while."""
        await asyncio.sleep(NEVER_S)
        assert len(self.deliveries) == count


class Background:
    """Publishes without waiting: in process a publish lasts until the message is handled."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []

    def publish(self, bus: MessageBus, *envelopes: Envelope[Message]) -> None:
        async def one_after_the_other() -> None:
            for envelope in envelopes:
                await bus.publish(envelope)

        self.tasks.append(asyncio.create_task(one_after_the_other()))

    async def all_published(self) -> None:
        await asyncio.wait_for(asyncio.gather(*self.tasks), timeout=300)

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


class MessageBusSuite:
    @pytest.fixture
    def open_bus(self) -> OpenBus:
        raise NotImplementedError

    @pytest.fixture
    async def bus(self, open_bus: OpenBus) -> AsyncIterator[MessageBus]:
        async with open_bus() as bus:
            yield bus

    @pytest.fixture
    def words(self) -> Words:
        return new_words()

    @pytest.fixture
    async def background(self) -> AsyncIterator[Background]:
        background = Background()
        yield background
        await background.end()

    # --- commands -----------------------------------------------------------------------------------------------------

    async def test_a_command_reaches_its_service_with_all_its_attributes(self, bus: MessageBus, words: Words) -> None:
        inbox, other = Recorder(), Recorder()
        await bus.consume_commands(words.service, inbox)
        await bus.consume_commands(words.service + "x", other)
        sent = Envelope(
            words.command(7).data,
            source="/kubevnfm/lcm-api",
            subject="vnf-1",
            operationid="op-1",
            stepid="step-1",
            attempt=2,
            causationid="cause-1",
            traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            deadline=datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC),
        )

        await bus.publish(sent)
        await inbox.has(1)

        (got,) = inbox.deliveries
        assert got.deliveries == 1
        for name in (
            "id", "time", "source", "subject", "type", "operationid", "stepid", "attempt", "causationid",
            "traceparent", "deadline",
        ):  # fmt: skip
            assert getattr(got.envelope, name) == getattr(sent, name), name
        assert number_of(got.envelope) == 7
        assert got.envelope.data.password.reveal(RING) == "swordfish"  # type: ignore[attr-defined]
        assert not other.deliveries

    async def test_the_handling_of_a_message_is_linked_to_its_sending(self, bus: MessageBus, words: Words) -> None:
        """Both are live spans below the derived one that the message names, which the handler has as its present parent."""
        step, parents = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"), []

        async def handle(delivery: Delivery) -> Verdict:
            parents.append(live_spans.present())
            return await received(delivery)

        received = Recorder()
        await bus.consume_commands(words.service, handle)
        with live_trace() as trace:
            await bus.publish(replace(words.command(1), traceparent=str(step)))
            await bus.publish(words.command(2))
            await received.has(2)

            async def have_ended() -> bool:
                return len(trace.spans) == 2

            await until_true(have_ended)
        sent = next(span for span in trace.spans if span.kind is SpanKind.PRODUCER)
        handled = next(span for span in trace.spans if span.kind is SpanKind.CONSUMER)
        assert {parent_of(span) for span in trace.spans} == {step.span_id}
        assert [f"{link.context.span_id:016x}" for link in handled.links] == [id_of(sent)]
        assert {facts_of(span)["messaging.destination.name"] for span in trace.spans} == {
            topology.command_queue(words.service)
        }
        by_number = dict(zip(received.numbers, parents, strict=True))
        assert by_number == {1: step, 2: None}

    async def test_a_command_waits_for_its_service(self, bus: MessageBus, words: Words, background: Background) -> None:
        background.publish(bus, words.command(1))
        await asyncio.sleep(NEVER_S)
        inbox = Recorder()

        await bus.consume_commands(words.service, inbox)

        await inbox.has(1)

    async def test_messages_published_one_after_the_other_arrive_in_order(
        self, bus: MessageBus, words: Words, background: Background
    ) -> None:
        inbox = Recorder()
        await bus.consume_commands(words.service, inbox)

        background.publish(bus, *(words.command(number) for number in range(50)))
        await inbox.has(50)

        assert inbox.numbers == list(range(50))

    async def test_two_consumers_of_a_service_share_its_commands(self, bus: MessageBus, words: Words) -> None:
        first, second = Recorder(), Recorder()
        await bus.consume_commands(words.service, first)
        await bus.consume_commands(words.service, second)

        await asyncio.gather(*(bus.publish(words.command(number)) for number in range(20)))
        await until_true(lambda: _has_in_sum(20, first, second))

        assert sorted(first.numbers + second.numbers) == list(range(20))
        assert first.numbers
        assert second.numbers

    async def test_a_slow_handler_does_not_delay_other_messages(
        self, bus: MessageBus, words: Words, background: Background
    ) -> None:
        inbox, gate = Recorder(), asyncio.Event()

        async def slow_for_zero(delivery: Delivery) -> Verdict:
            if number_of(delivery.envelope) == 0:
                await gate.wait()
            return await inbox(delivery)

        await bus.consume_commands(words.service, slow_for_zero)
        for number in range(5):
            background.publish(bus, words.command(number))

        await inbox.has(4)
        assert 0 not in inbox.numbers
        gate.set()
        await inbox.has(5)

    async def test_no_more_handlers_run_at_a_time_than_allowed(
        self, bus: MessageBus, words: Words, background: Background
    ) -> None:
        running, most, full, gate = 0, 0, asyncio.Event(), asyncio.Event()
        inbox = Recorder()

        async def counted(delivery: Delivery) -> Verdict:
            nonlocal running, most
            running += 1
            most = max(most, running)
            if running == 2:
                full.set()
            await gate.wait()
            running -= 1
            return await inbox(delivery)

        await bus.consume_commands(words.service, counted, concurrency=2)
        for number in range(6):
            background.publish(bus, words.command(number))
        await asyncio.wait_for(full.wait(), timeout=300)
        await asyncio.sleep(NEVER_S)
        gate.set()
        await inbox.has(6)

        assert most == 2

    # --- verdicts -----------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("in_s", [0.0, 0.25, 1.3])
    async def test_again_delivers_after_the_pause_and_counts_no_delivery(
        self, bus: MessageBus, words: Words, background: Background, in_s: float
    ) -> None:
        inbox = Recorder(answers=[Again(in_s), Again(in_s)])
        await bus.consume_commands(words.service, inbox)

        background.publish(bus, words.command(1))
        await inbox.has(3)

        pauses = [later - earlier for earlier, later in zip(inbox.at, inbox.at[1:], strict=False)]
        assert all(in_s * 0.98 <= pause < in_s + 0.9 for pause in pauses), pauses
        assert [delivery.deliveries for delivery in inbox.deliveries] == [1, 1, 1]
        assert len({delivery.envelope.id for delivery in inbox.deliveries}) == 1
        await background.all_published()
        await inbox.stays_at(3)

    async def test_failures_before_an_again_do_not_count_to_the_dead_letter(
        self, open_bus: OpenBus, words: Words, background: Background
    ) -> None:
        async with open_bus(max_deliveries=2) as bus:
            broken = RuntimeError("database lost")
            inbox = Recorder(answers=[broken, Again(0.0), broken, Again(0.0)])
            await bus.consume_commands(words.service, inbox)

            background.publish(bus, words.command(1))
            await inbox.has(5)

            assert await bus.dead_letters(words.service) == []

    async def test_messages_that_come_again_let_others_pass(
        self, bus: MessageBus, words: Words, background: Background
    ) -> None:
        inbox = Recorder()

        async def again_for_zero(delivery: Delivery) -> Verdict:
            await inbox(delivery)
            return Again(1.2) if inbox.numbers.count(0) == 1 and number_of(delivery.envelope) == 0 else Ack()

        await bus.consume_commands(words.service, again_for_zero, concurrency=1)
        for number in range(3):
            background.publish(bus, words.command(number))
        await inbox.has(4)

        assert inbox.numbers == [0, 1, 2, 0]

    async def test_a_message_whose_handler_broke_comes_again_after_a_pause(
        self, bus: MessageBus, words: Words, background: Background
    ) -> None:
        inbox = Recorder(answers=[RuntimeError("database lost")])
        await bus.consume_commands(words.service, inbox)

        background.publish(bus, words.command(1))
        await inbox.has(2)

        assert [delivery.deliveries for delivery in inbox.deliveries] == [1, 2]
        assert inbox.at[1] - inbox.at[0] >= 0.95
        await background.all_published()

    async def test_a_message_that_breaks_its_handler_too_often_dies_with_the_reason(
        self, open_bus: OpenBus, words: Words, background: Background
    ) -> None:
        inbox = Recorder(answers=[RuntimeError("first"), RuntimeError("second: no such node")])
        metrics = Metrics()
        async with open_bus(max_deliveries=2, metrics=metrics) as bus:
            await bus.consume_commands(words.service, inbox)
            sent = words.command(1)

            background.publish(bus, sent)
            await inbox.has(2)
            await background.all_published()
            await until_true(lambda: _has_dead(bus, words.service, 1))

            (dead,) = await bus.dead_letters(words.service)
            assert (dead.service, dead.message_id, dead.type) == (words.service, sent.id, sent.type)
            assert "second: no such node" in dead.reason
            await inbox.stays_at(2)
            queue = f'queue="kubevnfm.commands.{words.service}"'
            assert {
                f"kubevnfm_messages_redelivered_total{{{queue}}} 1.0",
                f"kubevnfm_messages_dead_total{{{queue}}} 1.0",
                f"kubevnfm_queue_messages{{{queue}}} 0.0",
                f"kubevnfm_queue_consumers{{{queue}}} 1.0",
                f'kubevnfm_queue_messages{{queue="kubevnfm.dead.{words.service}"}} 1.0',
            } <= set((await metrics_text(metrics)).splitlines())

    async def test_dead_messages_are_kept_in_order_with_their_reason_and_sealed_secrets(
        self, bus: MessageBus, words: Words
    ) -> None:
        inbox = Recorder(answers=[Dead("no driver of that name"), Dead("nor of that")])
        await bus.consume_commands(words.service, inbox)

        await bus.publish(words.command(1))
        await inbox.has(1)
        await until_true(lambda: _has_dead(bus, words.service, 1))
        await bus.publish(words.command(2))
        await until_true(lambda: _has_dead(bus, words.service, 2))

        for _ in range(3):  # looking leaves them there
            dead = await bus.dead_letters(words.service)
            assert [letter.reason for letter in dead] == ["no driver of that name", "nor of that"]
            assert all(b"swordfish" not in letter.body and b"$sealed" in letter.body for letter in dead)
        assert len(await bus.dead_letters(words.service, limit=1)) == 1
        assert await bus.dead_letters(new_words().service) == []

    # --- events -------------------------------------------------------------------------------------------------------

    async def test_every_durable_queue_gets_an_event_once(self, bus: MessageBus, words: Words) -> None:
        first, first_too, second = Recorder(), Recorder(), Recorder()
        await bus.consume_events(f"{words.service}.a", [f"test.{words.service}.#"], first)
        await bus.consume_events(f"{words.service}.a", [f"test.{words.service}.#"], first_too)
        await bus.consume_events(f"{words.service}.b", [f"test.{words.service}.#", "#.poked"], second)

        for number in range(10):
            await bus.publish(words.event(number))
        await second.has(10)
        await until_true(lambda: _has_in_sum(10, first, first_too))

        assert second.numbers == list(range(10))
        assert sorted(first.numbers + first_too.numbers) == list(range(10))
        await second.stays_at(10)

    async def test_only_fitting_events_arrive(self, bus: MessageBus, words: Words) -> None:
        one_word, any_words = Recorder(), Recorder()
        await bus.consume_events(f"{words.service}.a", [f"test.{words.service}.*"], one_word)
        await bus.consume_events(f"{words.service}.b", [f"test.{words.service}.#"], any_words)

        await bus.publish(words.event(1))  # test.<service>.thing.poked
        await bus.publish(words.other_event(2))  # test.<service>.left
        await any_words.has(2)
        await one_word.has(1)

        assert one_word.numbers == [2]
        assert any_words.numbers == [1, 2]

    async def test_an_event_without_a_consumer_is_published_without_error(self, bus: MessageBus, words: Words) -> None:
        await asyncio.wait_for(bus.publish(words.event(1)), timeout=300)

    async def test_a_dead_event_is_found_with_its_queues_service(self, bus: MessageBus, words: Words) -> None:
        inbox = Recorder(answers=[Dead("not for us")])
        await bus.consume_events(f"{words.service}.wake", [f"test.{words.service}.#"], inbox)

        await bus.publish(words.event(1))
        await until_true(lambda: _has_dead(bus, words.service, 1))

    async def test_a_watch_shows_events_in_order_while_it_lasts(self, bus: MessageBus, words: Words) -> None:
        watcher, durable = Recorder(), Recorder()
        await bus.consume_events(f"{words.service}.a", [f"test.{words.service}.#"], durable)

        await bus.publish(words.event(0))
        async with bus.watch_events([f"test.{words.service}.#"], watcher.watch):
            for number in range(1, 21):
                await bus.publish(words.event(number))
            await watcher.has(20)
        await bus.publish(words.event(21))
        await durable.has(22)

        assert watcher.numbers == list(range(1, 21))

    async def test_a_watcher_that_breaks_on_one_event_sees_the_next(self, bus: MessageBus, words: Words) -> None:
        watcher = Recorder(answers=[RuntimeError("cannot draw this")])
        async with bus.watch_events([f"test.{words.service}.#"], watcher.watch):
            await bus.publish(words.event(1))
            await bus.publish(words.event(2))
            await watcher.has(2)

        assert watcher.numbers == [1, 2]

    # --- life ---------------------------------------------------------------------------------------------------------

    async def test_closing_lets_a_running_handler_end(
        self, open_bus: OpenBus, words: Words, background: Background
    ) -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def slow(_: Delivery) -> Verdict:
            begun.set()
            await asyncio.sleep(0.3)
            ended.set()
            return Ack()

        async with open_bus() as bus:
            await bus.consume_commands(words.service, slow)
            background.publish(bus, words.command(1))
            await asyncio.wait_for(begun.wait(), timeout=300)

        assert ended.is_set()
        await background.all_published()

    async def test_an_open_bus_becomes_ready(self, bus: MessageBus) -> None:
        await until_true(bus.is_ready)


async def _has_in_sum(count: int, *recorders: Recorder) -> bool:
    return sum(len(recorder.deliveries) for recorder in recorders) >= count


async def _has_dead(bus: MessageBus, service: str, count: int) -> bool:
    return len(await bus.dead_letters(service)) >= count
