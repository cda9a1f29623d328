"""Whether a message came by the way that its kind takes; the permissions of users on the broker are about these ways.

A user may publish certain routing keys, but the broker does not look into the body, and it routes a copy by the keys in
the header ``CC`` too. So a body that does not fit its way is not handled.
"""

from __future__ import annotations

from kubevnfm_events import Command, Envelope, Event, Message

from kubevnfm_bus import topology


def wrong_way(envelope: Envelope[Message], *, exchange: str, routing_key: str, queue: str) -> str | None:
    """Return why a message on ``queue`` did not come from a user who may send it; None if it did.

    ``exchange`` and ``routing_key`` are those of its delivery. A delayed message comes from the default exchange.
    """
    match envelope.data:
        case _ if exchange == "":
            # With its queue's own name as the key: a copy by CC has the name of another queue.
            fits = routing_key == queue
        case Command() as command:
            fits = exchange == topology.COMMANDS and routing_key == command.service
        case Event() as event:
            fits = exchange == topology.EVENTS and routing_key == event.own_key()
        case _:
            fits = False
    return None if fits else f"{envelope.type} came by {exchange or 'the default exchange'} with the key {routing_key}"
