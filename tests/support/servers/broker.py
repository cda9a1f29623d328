"""Helpers for tests against a real broker: count dead letters, deliver every message twice."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import aio_pika
from aio_pika.abc import AbstractIncomingMessage
from aio_pika.exceptions import ChannelNotFoundEntity
from kubevnfm_bus.topology import COMMANDS, EVENTS, dead_queue

from servers.rabbitmq import RabbitServer
from servers.six_processes import SERVICES

_DOUBLED: Final = "x-doubled-by-a-test"


@asynccontextmanager
async def everything_twice(rabbit: RabbitServer) -> AsyncIterator[list[str]]:
    """Within the block, publish every message a second time; yield the list of the types that were repeated."""
    doubled: list[str] = []
    async with await aio_pika.connect(rabbit.url) as connection:
        channel = await connection.channel()
        exchanges = {name: await channel.get_exchange(name) for name in (COMMANDS, EVENTS)}
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind(exchanges[EVENTS], "#")
        for service in SERVICES:
            await queue.bind(exchanges[COMMANDS], service)

        async def again(message: AbstractIncomingMessage) -> None:
            if _DOUBLED in message.headers:
                return
            copy = aio_pika.Message(
                message.body,
                headers={**message.headers, _DOUBLED: 1},
                content_type=message.content_type,
                delivery_mode=message.delivery_mode,
                message_id=message.message_id,
                type=message.type,
            )
            await exchanges[str(message.exchange)].publish(copy, str(message.routing_key))
            doubled.append(json.loads(message.body)["type"])

        await queue.consume(again, no_ack=True)
        yield doubled


async def dead_letters(rabbit: RabbitServer) -> dict[str, int]:
    """Return the number of dead letters by service; services that have none are left out."""
    counts: dict[str, int] = {}
    async with await aio_pika.connect(rabbit.url) as connection:
        for service in SERVICES:
            channel = await connection.channel()
            try:
                queue = await channel.declare_queue(dead_queue(service), passive=True)
            except ChannelNotFoundEntity:  # a service that takes no messages has none; the broker closes the channel
                continue
            counts[service] = queue.declaration_result.message_count or 0
    return {service: count for service, count in counts.items() if count}
