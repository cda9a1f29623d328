"""The topology and each service's permissions as RabbitMQ definitions, for brokers on which no service may configure.

``python -m kubevnfm_bus FILE`` writes them in the form that ``rabbitmqctl import_definitions`` and the
management API read. They name the users and have no passwords: `deploy/base/rabbitmq/users.py` adds these.

Each service has a user of its name. It reads its own queues only. It publishes the events of its own, and to
``kubevnfm.commands`` if it sends commands. On a topic exchange the broker checks the routing key too, so a service
delays and buries messages of its own queues only.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kubevnfm_events.contract import COMMANDER, commands, published_by, services
from kubevnfm_events.queues import EVENT_QUEUES, WATCHED
from kubevnfm_kit.json_types import JsonMapping, JsonObject

from kubevnfm_bus import topology
from kubevnfm_bus.topology import DurableQueue

_VHOST: Final = "/"
_NOTHING: Final = "^$"
_ANY_WATCH_QUEUE: Final = r"amq\.gen-.*"
"""The broker names these queues at random, and only their own connection can use them."""


def definitions() -> JsonObject:
    """Return the whole document."""
    content = _content()
    marked = [*content["exchanges"], _exchange(VERSION_EXCHANGE, "fanout")]
    return {**content, "exchanges": marked}


def _content() -> dict[str, list[JsonObject]]:
    queues = list(_queues())
    return {
        "vhosts": [{"name": _VHOST}],
        "exchanges": [_exchange(name, kind) for name, kind in topology.exchanges().items()],
        "queues": [
            {
                "name": queue.name,
                "vhost": _VHOST,
                "durable": True,
                "auto_delete": False,
                "arguments": dict(queue.arguments),
            }
            for queue in queues
        ],
        "bindings": [
            {
                "source": exchange,
                "vhost": _VHOST,
                "destination": queue.name,
                "destination_type": "queue",
                "routing_key": key,
                "arguments": {},
            }
            for queue in queues
            for exchange, key in queue.bindings
        ],
        "permissions": [_permission(service) for service in services()],
        "topic_permissions": [
            {"user": service, "vhost": _VHOST, "exchange": exchange, "write": write, "read": read}
            for service in services()
            for exchange, write, read in _topic_permissions(service)
        ],
    }


def _exchange(name: str, kind: str) -> JsonObject:
    return {
        "name": name,
        "vhost": _VHOST,
        "type": kind,
        "durable": True,
        "auto_delete": False,
        "internal": False,
        "arguments": {},
    }


def _queues() -> Iterator[DurableQueue]:
    yield from topology.delay_queues()
    for service in services():
        if _own_queues(service):
            yield topology.dead_queue_of(service)
    for service in _workers():
        yield topology.command_queue_of(service)
    for queue in EVENT_QUEUES:
        yield topology.event_queue_of(queue.name, queue.patterns)


def _workers() -> Sequence[str]:
    return sorted({command.service for command in commands()})


def _own_queues(service: str) -> Sequence[str]:
    """Return the queues from which a service consumes."""
    asked = [topology.command_queue(service)] if service in _workers() else []
    return asked + [topology.event_queue(queue.name) for queue in EVENT_QUEUES if queue.service == service]


def _permission(service: str) -> JsonObject:
    own = _own_queues(service)
    writes: list[str] = [topology.COMMANDS] if service == COMMANDER else []
    if published_by(service):
        writes.append(topology.EVENTS)
    if own:
        writes += [topology.BURIED, *map(topology.delay_exchange, topology.DELAYS_S)]
    reads = [*own, topology.dead_queue(service)] if own else []
    # To bind a queue is to write to it and to read from the exchange.
    watch = [_ANY_WATCH_QUEUE] if service in WATCHED else []
    return {
        "user": service,
        "vhost": _VHOST,
        "configure": _one_of([], watch),
        "write": _one_of(writes, watch),
        "read": _one_of([*reads, topology.EVENTS] if watch else reads, watch),
    }


def _topic_permissions(service: str) -> Iterator[tuple[str, str, str]]:
    """Yield (exchange, routing keys to publish with, keys to bind with). Without an entry the broker allows all keys."""
    yield (
        topology.EVENTS,
        _one_of(event.key_of(service) for event in published_by(service)),
        _one_of(WATCHED.get(service, ())),
    )
    yield topology.BURIED, _one_of([service] if _own_queues(service) else []), _NOTHING
    for delay_s in topology.DELAYS_S:
        yield topology.delay_exchange(delay_s), _one_of(_own_queues(service)), _NOTHING


def _one_of(names: Iterable[str], patterns: Sequence[str] = ()) -> str:
    """Return the regular expression that matches exactly these names."""
    either = [*(re.escape(name).replace(r"\-", "-") for name in names), *patterns]
    return f"^({'|'.join(either)})$" if either else _NOTHING


def _digest(document: JsonMapping) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:12]


VERSION_EXCHANGE: Final = f"kubevnfm.definitions.{_digest(_content())}"
"""An exchange that no message passes. A service looks for it to know whether the definitions of its version are loaded:
with older ones an event that is new would reach no queue."""


def text() -> str:
    """Return the document as its file holds it."""
    return json.dumps(definitions(), indent=1) + "\n"
