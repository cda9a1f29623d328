"""A broker whose answers are lost: the publisher waits for a limited time, and then continues on another channel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from contracts.bus_suite import RING, Recorder, Words, new_words
from kubevnfm_bus import rabbit_link
from kubevnfm_bus.rabbit import RabbitBus
from servers.mute_broker import CONFIRM, DECLARED, MuteBroker, mute_broker
from servers.rabbitmq import RabbitServer

pytestmark = pytest.mark.server


@pytest.fixture
async def proxy(rabbitmq: RabbitServer) -> AsyncIterator[MuteBroker]:
    async with mute_broker(rabbitmq.url) as proxy:
        yield proxy


@pytest.fixture
def words() -> Words:
    return new_words()


async def test_a_channel_that_lost_a_confirm_is_replaced_and_the_message_published_again(
    proxy: MuteBroker, words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = Recorder()
    async with RabbitBus.connect(proxy.url, service="test", key_ring=RING) as bus:
        await bus.consume_commands(words.service, inbox)
        await bus.publish(words.command(1))
        monkeypatch.setattr(rabbit_link, "_CONFIRM_TIMEOUT_S", 2.0)
        # The channel whose confirm is lost first stays mute.
        proxy.drops = lambda channel, method: method == CONFIRM and channel in (proxy.dropped or [channel])

        async with asyncio.timeout(120):
            await asyncio.gather(*(bus.publish(words.command(number)) for number in (2, 3)))
            await bus.publish(words.command(4))
            while not {1, 2, 3, 4} <= set(inbox.numbers):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    assert proxy.dropped
    assert proxy.connections == 1


async def test_a_declaration_without_an_answer_is_repeated(
    proxy: MuteBroker, words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with RabbitBus.connect(proxy.url, service="test", key_ring=RING) as bus:
        await bus.publish(words.event(1))
        monkeypatch.setattr(rabbit_link, "_CONFIRM_TIMEOUT_S", 2.0)
        proxy.drops = lambda _, method: method == DECLARED and not proxy.dropped

        async with asyncio.timeout(120):
            await bus.publish(words.command(1))

    assert len(proxy.dropped) == 1
