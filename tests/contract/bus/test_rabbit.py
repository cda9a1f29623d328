"""The RabbitMQ bus: the common contract, also with broker outages, dying consumers and poison messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import aio_pika
import pytest
from callers.metrics import metrics_text
from contracts.bus_suite import RING, Background, MessageBusSuite, OpenBus, Recorder, Words
from kubevnfm_bus import rabbit
from kubevnfm_bus.port import Ack, Again, Delivery, MessageBus, Verdict
from kubevnfm_bus.rabbit import RabbitBus
from kubevnfm_kit.metrics import Metrics
from patience import until_true
from servers.rabbitmq import RabbitServer

pytestmark = pytest.mark.server


class TestRabbit(MessageBusSuite):
    @pytest.fixture(autouse=True)
    def left_running(self, rabbitmq: RabbitServer) -> Iterator[None]:
        """Start the broker again if a test failed while it was stopped, so that later tests do not fail too."""
        yield
        if not rabbitmq.runs:
            rabbitmq.start()

    @pytest.fixture
    def open_bus(self, rabbitmq: RabbitServer) -> OpenBus:
        @asynccontextmanager
        async def open_bus(
            *, max_deliveries: int = 10, drain_s: float = 10.0, metrics: Metrics | None = None
        ) -> AsyncIterator[MessageBus]:
            async with RabbitBus.connect(
                rabbitmq.url,
                service="test",
                key_ring=RING,
                max_deliveries=max_deliveries,
                drain_s=drain_s,
                metrics=metrics,
            ) as bus:
                yield bus

        return open_bus

    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            (b"\xff\x00 no JSON", "not JSON"),
            (b"[1]", "not a JSON object"),
            (
                b'{"specversion": "1.0", "id": "1", "source": "/x", "type": "kubevnfm.no.such.v1"}',
                "not a message of this contract",
            ),
            (b'{"specversion": "1.0", "id": "1", "source": "/x"}', "type: required"),
        ],
    )
    async def test_a_message_outside_the_contract_dies_with_the_reason(
        self, bus: MessageBus, words: Words, rabbitmq: RabbitServer, body: bytes, reason: str
    ) -> None:
        inbox = Recorder()
        await bus.consume_commands(words.service, inbox)

        await publish_raw(rabbitmq, "kubevnfm.commands", words.service, body)
        await bus.publish(words.command(1))
        await inbox.has(1)
        await until_true(lambda: has_dead(bus, words.service))

        (dead,) = await bus.dead_letters(words.service)
        assert reason in dead.reason
        assert dead.body == body
        assert inbox.numbers == [1]

    async def test_invalid_data_dies_without_a_value_in_the_reason(
        self, bus: MessageBus, words: Words, rabbitmq: RabbitServer
    ) -> None:
        document = words.command(1).document(RING)
        document["data"] = {"number": "swordfish"}
        await bus.consume_commands(words.service, Recorder())

        await publish_raw(rabbitmq, "kubevnfm.commands", words.service, json.dumps(document).encode())
        await until_true(lambda: has_dead(bus, words.service))

        (dead,) = await bus.dead_letters(words.service)
        assert "data.number" in dead.reason
        assert "swordfish" not in dead.reason

    async def test_a_delay_between_two_delay_queues_is_exact(
        self, bus: MessageBus, words: Words, background: Background
    ) -> None:
        inbox = Recorder(answers=[Again(3.4)])
        await bus.consume_commands(words.service, inbox)

        background.publish(bus, words.command(1))
        await inbox.has(2)

        assert inbox.at[1] - inbox.at[0] >= 3.35

    async def test_what_a_dying_consumer_had_in_hand_is_delivered_to_another(
        self, open_bus: OpenBus, words: Words
    ) -> None:
        begun = asyncio.Event()

        async def dies(_: Delivery) -> Verdict:
            begun.set()
            await asyncio.Event().wait()
            return Ack()

        inbox = Recorder()
        async with open_bus(drain_s=0.0) as first:
            await first.consume_commands(words.service, dies)
            await first.publish(words.command(1))
            await asyncio.wait_for(begun.wait(), timeout=300)
        async with open_bus() as second:
            await second.consume_commands(words.service, inbox)
            await inbox.has(1)

        assert inbox.deliveries[0].deliveries == 2

    async def test_no_number_of_a_queue_is_shown_while_the_broker_is_away(
        self, open_bus: OpenBus, words: Words, rabbitmq: RabbitServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rabbit, "EVERY_S", 0.0)
        metrics = Metrics()
        queue = f'kubevnfm_queue_consumers{{queue="kubevnfm.commands.{words.service}"}}'
        async with open_bus(metrics=metrics) as bus:
            await bus.consume_commands(words.service, Recorder())
            assert f"{queue} 1.0" in await metrics_text(metrics)
            rabbitmq.stop()
            await until_true(lambda: _is_away(bus))
            assert queue not in await metrics_text(metrics)
            rabbitmq.start()
            await until_true(bus.is_ready)
            await until_true(lambda: _shows(metrics, f"{queue} 1.0"))

    async def test_a_durable_queue_keeps_events_while_no_consumer_is_connected(
        self, open_bus: OpenBus, words: Words
    ) -> None:
        before, after = Recorder(), Recorder()
        async with open_bus() as bus:
            await bus.consume_events(f"{words.service}.a", [f"test.{words.service}.#"], before)
        async with open_bus() as bus:
            await bus.publish(words.event(1))
        async with open_bus() as bus:
            await bus.consume_events(f"{words.service}.a", [f"test.{words.service}.#"], after)
            await after.has(1)

        assert not before.deliveries

    async def test_a_consumer_declares_a_deleted_queue_again(
        self, bus: MessageBus, words: Words, rabbitmq: RabbitServer
    ) -> None:
        inbox = Recorder()
        await bus.consume_commands(words.service, inbox)
        await bus.publish(words.command(1))
        await inbox.has(1)

        connection = await aio_pika.connect(rabbitmq.url)
        async with connection, connection.channel() as channel:
            await channel.queue_delete(f"kubevnfm.commands.{words.service}")
        await bus.publish(words.command(2))
        await inbox.has(2)

    @pytest.mark.slow
    @pytest.mark.parametrize("kill", [False, True], ids=["restarted", "killed"])
    async def test_nothing_is_lost_while_the_broker_is_away(
        self, open_bus: OpenBus, words: Words, background: Background, rabbitmq: RabbitServer, kill: bool
    ) -> None:
        inbox, events, watcher, gate = Recorder(), Recorder(), Recorder(), asyncio.Event()
        slow_ended = 0

        async def slow_for_zero(delivery: Delivery) -> Verdict:
            nonlocal slow_ended
            await inbox(delivery)
            if inbox.numbers[-1] == 0:
                await gate.wait()
                slow_ended += 1
            if inbox.numbers == [0, 1]:
                return Again(5.0)
            return Ack()

        async with open_bus() as bus:
            await bus.consume_commands(words.service, slow_for_zero)
            await bus.consume_events(f"{words.service}.a", [f"test.{words.service}.#"], events)
            async with bus.watch_events([f"test.{words.service}.#"], watcher.watch):
                await bus.publish(words.command(0))
                await inbox.has(1)
                await bus.publish(words.command(1))  # rests in a delay queue while the broker is away
                await inbox.has(2)
                # RabbitMQ writes a new quorum queue's registration to disk within a second; a kill before that
                # leaves the queue without its process (seen on 3.10), which is not what this test is about.
                await asyncio.sleep(1.8)

                await asyncio.to_thread(rabbitmq.stop, kill=kill)
                await until_true(lambda: is_away(bus))
                background.publish(bus, *(words.command(number) for number in range(2, 12)))
                background.publish(bus, *(words.event(number) for number in range(10)))
                gate.set()  # its answer finds no broker
                await asyncio.to_thread(rabbitmq.start)

                await background.all_published()
                await until_true(lambda: seen(inbox, set(range(12))))
                await until_true(lambda: seen(events, set(range(10))))
                await until_true(lambda: seen_twice(inbox, {0, 1}))  # the delay of 1 may end last
                assert inbox.numbers.count(0) == 2
                assert inbox.numbers.count(1) == 2
                assert await bus.is_ready()

                await bus.publish(words.event(99))
                await until_true(lambda: seen(watcher, {99}))
                await until_true(lambda: seen(events, {99}))
        assert slow_ended == 2

    async def test_a_bus_waits_for_a_broker_that_comes_later(self, words: Words, rabbitmq: RabbitServer) -> None:
        wrong = rabbitmq.url_for("unknown", "wrong")
        async with RabbitBus.connect(wrong, service="test", key_ring=RING) as bus:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(bus.publish(words.command(1)), timeout=0.5)
            assert not await bus.is_ready()


async def is_away(bus: MessageBus) -> bool:
    return not await bus.is_ready()


async def _is_away(bus: MessageBus) -> bool:
    return not await bus.is_ready()


async def _shows(metrics: Metrics, line: str) -> bool:
    return line in await metrics_text(metrics)


async def has_dead(bus: MessageBus, service: str) -> bool:
    return len(await bus.dead_letters(service)) > 0


async def seen(recorder: Recorder, numbers: set[int]) -> bool:
    return numbers <= set(recorder.numbers)


async def seen_twice(recorder: Recorder, numbers: set[int]) -> bool:
    return all(recorder.numbers.count(number) >= 2 for number in numbers)


async def publish_raw(server: RabbitServer, exchange: str, routing_key: str, body: bytes) -> None:
    connection = await aio_pika.connect(server.url)
    async with connection, connection.channel() as channel:
        target = await channel.get_exchange(exchange)
        await target.publish(aio_pika.Message(body), routing_key)
