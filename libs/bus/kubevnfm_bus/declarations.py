"""How a service gets its exchanges and queues: it declares them, or an administrator has loaded them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel, AbstractQueue

from kubevnfm_bus import topology
from kubevnfm_bus.definitions import VERSION_EXCHANGE
from kubevnfm_bus.routing import owner_of
from kubevnfm_bus.topology import DurableQueue


class Declarations(Protocol):
    """Has what a connection needs on the broker. Each raises what aio-pika raises when the broker closes the channel."""

    async def exchanges(self, channel: AbstractChannel) -> None:
        """Have the exchanges and the delay queues."""
        ...

    async def dead_queue(self, channel: AbstractChannel, service: str) -> AbstractQueue:
        """Have the queue for the dead messages of a service."""
        ...

    async def command_queue(self, channel: AbstractChannel, service: str) -> AbstractQueue:
        """Have the queue for a service's commands, and its dead-letter queue."""
        ...

    async def event_queue(self, channel: AbstractChannel, name: str, patterns: Sequence[str]) -> AbstractQueue:
        """Have a durable event queue; patterns that an earlier version bound and this one lacks stay bound."""
        ...


class Declared:
    """The service declares everything: its user may configure all that is named ``kubevnfm.*``."""

    async def exchanges(self, channel: AbstractChannel) -> None:
        for name, kind in topology.exchanges().items():
            await channel.declare_exchange(name, ExchangeType(kind), durable=True)
        for queue in topology.delay_queues():
            await _declare(channel, queue)

    async def dead_queue(self, channel: AbstractChannel, service: str) -> AbstractQueue:
        return await _declare(channel, topology.dead_queue_of(service))

    async def command_queue(self, channel: AbstractChannel, service: str) -> AbstractQueue:
        await self.dead_queue(channel, service)
        return await _declare(channel, topology.command_queue_of(service))

    async def event_queue(self, channel: AbstractChannel, name: str, patterns: Sequence[str]) -> AbstractQueue:
        await self.dead_queue(channel, owner_of(name))
        return await _declare(channel, topology.event_queue_of(name, patterns))


class Provided:
    """An administrator has loaded the definitions; the service's user may configure nothing, and only looks."""

    async def exchanges(self, channel: AbstractChannel) -> None:
        """The definitions must be those of this version."""
        await channel.get_exchange(VERSION_EXCHANGE)

    async def dead_queue(self, channel: AbstractChannel, service: str) -> AbstractQueue:
        return await channel.get_queue(topology.dead_queue(service))

    async def command_queue(self, channel: AbstractChannel, service: str) -> AbstractQueue:
        return await channel.get_queue(topology.command_queue(service))

    async def event_queue(self, channel: AbstractChannel, name: str, patterns: Sequence[str]) -> AbstractQueue:
        return await channel.get_queue(topology.event_queue(name))


async def declare_watch_queue(channel: AbstractChannel, patterns: Sequence[str]) -> AbstractQueue:
    """Declare a queue that this connection alone reads and that ends with it."""
    # A classic queue: quorum queues cannot be exclusive.
    queue = await channel.declare_queue(exclusive=True, auto_delete=True)
    for pattern in patterns:
        await queue.bind(topology.EVENTS, pattern)
    return queue


async def _declare(channel: AbstractChannel, wanted: DurableQueue) -> AbstractQueue:
    queue = await channel.declare_queue(wanted.name, durable=True, arguments=dict(wanted.arguments))
    for exchange, key in wanted.bindings:
        await queue.bind(exchange, key)
    return queue
