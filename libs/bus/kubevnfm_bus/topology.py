"""Everything that kubevnfm has on RabbitMQ, in one place; works from 3.10 on, and on 4.x.

    exchange kubevnfm.commands (direct)   --service-->  queue kubevnfm.commands.<service>
    exchange kubevnfm.events (topic)      --key----->   queue kubevnfm.events.<queue>
    exchange kubevnfm.dead (direct)       --service-->  queue kubevnfm.dead.<service>
    exchange kubevnfm.buried (topic)      --service-->  queue kubevnfm.dead.<service>
    exchange kubevnfm.later.<n>s (topic)  ----------->  queue kubevnfm.delay.<n>s  --after n s-->  the queue it came from

All shared queues are durable quorum queues, because 4.x removed mirrored queues and deprecates transient shared ones.
The routing key of a delayed message is the name of the queue that it returns to: a delay queue keeps the key when it
dead-letters to the default exchange, so one set of delay queues serves every queue.

Services publish to topic exchanges wherever the key decides who gets the message, because the broker checks a user's
routing keys on topic exchanges only (`definitions`). ``kubevnfm.dead`` is the broker's own: it moves messages there at
the delivery limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from kubevnfm_kit.json_types import JsonMapping, JsonObject

from kubevnfm_bus.routing import owner_of

COMMANDS: Final = "kubevnfm.commands"
EVENTS: Final = "kubevnfm.events"
DEAD: Final = "kubevnfm.dead"
BURIED: Final = "kubevnfm.buried"

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


@dataclass(frozen=True)
class DurableQueue:
    """A shared queue with its bindings."""

    name: str
    arguments: JsonMapping
    bindings: Sequence[tuple[str, str]]
    """(exchange, binding key)."""


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
    return f"kubevnfm.later.{delay_s}s"


def exchanges() -> Mapping[str, Literal["direct", "topic"]]:
    """Return the type of every exchange, by name; all are durable."""
    kinds: dict[str, Literal["direct", "topic"]] = {
        COMMANDS: "direct",
        EVENTS: "topic",
        DEAD: "direct",
        BURIED: "topic",
    }
    kinds.update((delay_exchange(delay_s), "topic") for delay_s in DELAYS_S)
    return kinds


def delay_queues() -> Iterator[DurableQueue]:
    """Yield the queues in which messages wait."""
    for delay_s in DELAYS_S:
        yield DurableQueue(
            f"kubevnfm.delay.{delay_s}s",
            _QUORUM | _CONFIRMED_DEAD_LETTERING | {"x-message-ttl": delay_s * 1000, "x-dead-letter-exchange": ""},
            [(delay_exchange(delay_s), "#")],
        )


def dead_queue_of(service: str) -> DurableQueue:
    """Return the queue for the dead messages of a service."""
    return DurableQueue(
        dead_queue(service),
        _QUORUM | {"x-delivery-limit": _NO_DELIVERY_LIMIT},
        [(DEAD, service), (BURIED, service)],
    )


def command_queue_of(service: str) -> DurableQueue:
    """Return the queue for a service's commands."""
    return DurableQueue(command_queue(service), _working_queue(service), [(COMMANDS, service)])


def event_queue_of(name: str, patterns: Sequence[str]) -> DurableQueue:
    """Return a durable event queue of the service that its name begins with."""
    return DurableQueue(event_queue(name), _working_queue(owner_of(name)), [(EVENTS, pattern) for pattern in patterns])


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
