"""One call of a handler, the same for both adapters: its verdict, or the fact that it raised."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

import structlog
from kubevnfm_events import Envelope, Message
from kubevnfm_kit import live_spans
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.errors import VnfmError

from kubevnfm_bus.port import Dead, Delivery, Handler, Verdict
from kubevnfm_bus.spans import processing

log = structlog.get_logger()

REDELIVERY: Final = BackOff(1.0, 60.0)
"""The pauses of a message whose handler raises."""


@dataclass(frozen=True)
class Broken:
    """The handler raised; the message is delivered again after a pause, or dead-lettered."""

    reason: str


async def attempt(handler: Handler, delivery: Delivery, *, system: str, queue: str) -> Verdict | Broken:
    """Call the handler with the message's facts bound to every log line. ``system``: the kind of bus."""
    envelope = delivery.envelope
    facts = _facts(envelope)
    with structlog.contextvars.bound_contextvars(**facts) if facts else nullcontext():
        try:
            if not live_spans.is_on():
                return await handler(delivery)
            with processing(delivery, system, queue) as span:
                verdict = await handler(delivery)
                span.note("kubevnfm.verdict", type(verdict).__name__.lower())
                if isinstance(verdict, Dead):
                    span.failed("dead")
                return verdict
        except Exception as error:  # the edge: no error of a handler may end the consumer
            if isinstance(error, VnfmError) and error.is_said:
                log.debug("message_postponed", message_id=envelope.id, type=envelope.type, reason=str(error))
                return Broken(f"{type(error).__name__}: {error}")
            log.exception("handler_broke", message_id=envelope.id, type=envelope.type, deliveries=delivery.deliveries)
            return Broken(f"{type(error).__name__}: {error}")


def _facts(envelope: Envelope[Message]) -> dict[str, str | int]:
    facts: dict[str, str | int] = {
        "operation_id": envelope.operationid,
        "step_id": envelope.stepid,
        "attempt": envelope.attempt,
        "request_id": envelope.requestid,
    }
    return {name: value for name, value in facts.items() if value}
