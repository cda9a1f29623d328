"""Everything that kubevnfm declares on RabbitMQ, in one place; works from 3.10 on, and on 4.x.

    exchange kubevnfm.commands (direct)  --service-->  queue kubevnfm.commands.<service>
    exchange kubevnfm.events (topic)     --key----->   queue kubevnfm.events.<queue>
    exchange kubevnfm.dead (direct)      --service-->  queue kubevnfm.dead.<service>
    exchange kubevnfm.delay.<n>s (fanout) ---------->  queue kubevnfm.delay.<n>s  --after n s-->  the queue it came from

All shared queues are durable quorum queues, because 4.x removed mirrored queues and deprecates transient shared ones.
The routing key of a delayed message is the name of the queue that it returns to: a delay queue keeps the key when it
dead-letters to the default exchange, so one set of delay queues serves every queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel, AbstractQueue
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_bus.routing import owner_of

COMMANDS: Final = "kubevnfm.commands"
EVENTS: Final = "kubevnfm.events"
DEAD: Final = "kubevnfm.dead"

DELAYS_S: Final[Sequence[int]] = (1, 2, 5, 10, 30, 60, 300)
"""The delay queues; other delays pass through several of them."""

_DELIVERY_LIMIT: Final = 100
"""Returns by the broker (a consumer died, the broker restarted) after which a message is dead-lettered. The
default of RabbitMQ 4.x is 20: too few for services that are restarted often while long steps run."""

_NO_DELIVERY_LIMIT: Final = 1_000_000_000
"""Reading dead letters returns them to the queue, and each return counts; 3.10 has no -1 for "without limit"."""

_QUORUM: Final[JsonObject] = {"x-queue-type": "quorum"}
_CONFIRMED_DEAD_LETTERING: Final[JsonObject] = {
    # A message leaves its queue only when its dead-letter queue has confirmed it; this requires reject-publish.
    "x-dead-letter-strategy": "at-least-once",
    "x-overflow": "reject-publish",
}


def command_queue(service: str) -> str:
    """Return the name of the queue that holds a service's commands."""
    return f"{COMMANDS}.{service}"


def event_queue(queue: str) -> str:
    """Return the broker's name of a durable event queue."""
    return f"{EVENTS}.{queue}"


def dead_queue(service: str) -> str:
    """Return the name of the queue that holds a service's dead messages."""
    return f"{DEAD}.{service}"


def delay_exchange(delay_s: int) -> str:
    """Return the exchange that delays by one of ``DELAYS_S``."""
    return f"kubevnfm.delay.{delay_s}s"


async def declare_exchanges(channel: AbstractChannel) -> None:
    """Declare the exchanges and the delay queues."""
    await channel.declare_exchange(COMMANDS, ExchangeType.DIRECT, durable=True)
    await channel.declare_exchange(EVENTS, ExchangeType.TOPIC, durable=True)
    await channel.declare_exchange(DEAD, ExchangeType.DIRECT, durable=True)
    for delay_s in DELAYS_S:
        name = delay_exchange(delay_s)
        await channel.declare_exchange(name, ExchangeType.FANOUT, durable=True)
        queue = await channel.declare_queue(
            name,
            durable=True,
            arguments=_QUORUM
            | _CONFIRMED_DEAD_LETTERING
            | {"x-message-ttl": delay_s * 1000, "x-dead-letter-exchange": ""},
        )
        await queue.bind(name)


async def declare_dead_queue(channel: AbstractChannel, service: str) -> AbstractQueue:
    """Declare the queue for the dead messages of a service."""
    queue = await channel.declare_queue(
        dead_queue(service), durable=True, arguments=_QUORUM | {"x-delivery-limit": _NO_DELIVERY_LIMIT}
    )
    await queue.bind(DEAD, service)
    return queue


async def declare_command_queue(channel: AbstractChannel, service: str) -> AbstractQueue:
    """Declare the queue for a service's commands, and its dead-letter queue."""
    await declare_dead_queue(channel, service)
    queue = await channel.declare_queue(command_queue(service), durable=True, arguments=_working_queue(service))
    await queue.bind(COMMANDS, service)
    return queue


async def declare_event_queue(channel: AbstractChannel, name: str, patterns: Sequence[str]) -> AbstractQueue:
    """Declare a durable event queue; patterns that an earlier version bound and this one lacks stay bound."""
    service = owner_of(name)
    await declare_dead_queue(channel, service)
    queue = await channel.declare_queue(event_queue(name), durable=True, arguments=_working_queue(service))
    for pattern in patterns:
        await queue.bind(EVENTS, pattern)
    return queue


async def declare_watch_queue(channel: AbstractChannel, patterns: Sequence[str]) -> AbstractQueue:
    """Declare a queue that this connection alone reads and that ends with it."""
    # A classic queue: quorum queues cannot be exclusive.
    queue = await channel.declare_queue(exclusive=True, auto_delete=True)
    for pattern in patterns:
        await queue.bind(EVENTS, pattern)
    return queue


def _working_queue(service: str) -> JsonObject:
    return (
        _QUORUM
        | _CONFIRMED_DEAD_LETTERING
        | {
            "x-delivery-limit": _DELIVERY_LIMIT,
            "x-dead-letter-exchange": DEAD,
            "x-dead-letter-routing-key": service,
        }
    )
