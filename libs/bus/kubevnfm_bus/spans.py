"""Live spans of messages: their sending, and each handling, which is linked to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from kubevnfm_events import Command, Envelope, Message
from kubevnfm_kit import live_spans
from kubevnfm_kit.live_spans import LiveSpan, Value
from kubevnfm_kit.traces import TraceContext

from kubevnfm_bus import topology
from kubevnfm_bus.port import Delivery


def step_of(envelope: Envelope[Message]) -> TraceContext | None:
    """Return the derived span that a message belongs to, as the parent of live spans; None while none are recorded."""
    if not live_spans.is_on():
        return None
    return live_spans.derived_parent(envelope.traceparent, envelope.operationid)


def sending(envelope: Envelope[Message], system: str) -> LiveSpan:
    """Return the span of a message that is sent."""
    parent = step_of(envelope)
    if parent is None:
        return live_spans.NOT_RECORDED
    to = topology.command_queue(envelope.data.service) if isinstance(envelope.data, Command) else topology.EVENTS
    facts = _facts(envelope, "send", system, to)
    return live_spans.span(f"send {envelope.type}", "producer", facts, parent=parent)


@contextmanager
def processing(delivery: Delivery, system: str, queue: str) -> Iterator[LiveSpan]:
    """Yield the span of a message that is handled. Spans that begin meanwhile have the derived span as their parent, not this one: it is lost with its process."""
    envelope = delivery.envelope
    parent = step_of(envelope)
    with live_spans.under(parent):
        if parent is None:
            yield live_spans.NOT_RECORDED
            return
        facts = _facts(envelope, "process", system, queue)
        with live_spans.span(
            f"process {envelope.type}", "consumer", facts, parent=parent, link=delivery.sent_by
        ) as span:
            yield span


def _facts(
    envelope: Envelope[Message], operation: Literal["send", "process"], system: str, destination: str
) -> dict[str, Value]:
    facts: dict[str, Value] = {
        "messaging.system": system,
        "messaging.operation.type": operation,
        "messaging.operation.name": operation,
        "messaging.destination.name": destination,
        "messaging.message.id": envelope.id,
        "kubevnfm.message.type": envelope.type,
    }
    more: dict[str, Value] = {
        "kubevnfm.operation.id": envelope.operationid,
        "kubevnfm.step.id": envelope.stepid,
        "kubevnfm.step.attempt": envelope.attempt,
    }
    facts.update({name: value for name, value in more.items() if value})
    return facts
