"""The in-process bus: the common contract, and its own guarantees."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator

import pytest
from contracts.bus_suite import NEVER_S, RING, Background, MessageBusSuite, OpenBus, Recorder, Words
from kubevnfm_bus.errors import BusClosed
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict


class TestInProcess(MessageBusSuite):
    @pytest.fixture
    def open_bus(self) -> OpenBus:
        return functools.partial(InProcessBus, RING)

    @pytest.fixture
    async def in_process(self) -> AsyncIterator[InProcessBus]:
        async with InProcessBus(RING) as bus:
            yield bus

    async def test_publish_returns_when_every_handler_has_taken_the_message(
        self, in_process: InProcessBus, words: Words
    ) -> None:
        gate = asyncio.Event()

        async def slow(_: Delivery) -> Verdict:
            await gate.wait()
            return Ack()

        await in_process.consume_events("a", [f"test.{words.service}.#"], slow)
        await in_process.consume_events("b", [f"test.{words.service}.#"], Recorder())
        publishing = asyncio.create_task(in_process.publish(words.event(1)))

        await asyncio.sleep(NEVER_S)
        assert not publishing.done()
        gate.set()
        await asyncio.wait_for(publishing, timeout=60)

    async def test_closing_refuses_what_was_not_taken(self, words: Words) -> None:
        async def stuck(_: Delivery) -> Verdict:
            await asyncio.Event().wait()
            return Ack()

        async with InProcessBus(RING, drain_s=0.05) as bus:
            await bus.consume_commands(words.service, stuck, concurrency=1)
            publishing = [asyncio.create_task(bus.publish(words.command(number))) for number in range(2)]
            await asyncio.sleep(0)

        answers = await asyncio.gather(*publishing, return_exceptions=True)
        assert [type(answer) for answer in answers] == [BusClosed, BusClosed]
        with pytest.raises(BusClosed):
            await bus.publish(words.command(3))

    async def test_while_holding_events_wait_for_queues_that_are_declared_later(
        self, in_process: InProcessBus, words: Words, background: Background
    ) -> None:
        inbox = Recorder()
        with in_process.holding():
            background.publish(in_process, words.event(1))
            await asyncio.sleep(0)
            await in_process.consume_events("late", [f"test.{words.service}.#"], inbox)
        await inbox.has(1)

    async def test_quiet_waits_for_everything_under_way(
        self, in_process: InProcessBus, words: Words, background: Background
    ) -> None:
        inbox = Recorder()

        async def publishes_an_event(_: Delivery) -> Verdict:
            background.publish(in_process, words.event(2))
            return Ack()

        await in_process.consume_events("a", [f"test.{words.service}.#"], inbox)
        await in_process.consume_commands(words.service, publishes_an_event)
        background.publish(in_process, words.command(1))
        await asyncio.sleep(0)

        await in_process.quiet()
        await background.all_published()

        assert inbox.numbers == [2]
