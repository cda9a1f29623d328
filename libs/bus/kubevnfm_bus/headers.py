"""The AMQP headers that carry a message's history from one delivery to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_kit.traces import TraceContext, read_traceparent

from kubevnfm_bus.topology import DELAYS_S

_FAILURES: Final = "kubevnfm-failures"
_REST_MS: Final = "kubevnfm-rest-ms"
_REASON: Final = "kubevnfm-reason"
SYSTEM: Final = "rabbitmq"
"""The kind of bus, in spans."""
_SENT_BY: Final = "traceparent"


@dataclass(frozen=True)
class Past:
    """How often the handler raised on a message, and how much of its delay is left."""

    failures: int = 0
    rest_s: float = 0.0

    @classmethod
    def from_headers(cls, headers: JsonMapping) -> Past:
        """Read the headers that ``headers`` wrote; missing ones count as zero."""
        return cls(failures=_number(headers.get(_FAILURES)), rest_s=_number(headers.get(_REST_MS)) / 1000)

    def headers(self) -> JsonObject:
        """Return the headers to publish with."""
        return {_FAILURES: self.failures, _REST_MS: round(self.rest_s * 1000)}


def first_delay(delay_s: float) -> tuple[int, float]:
    """Return the longest queue delay that is not above ``delay_s`` (>= 1), and the rest."""
    chosen = max(step for step in DELAYS_S if step <= delay_s)
    return chosen, delay_s - chosen


def sent_headers(span: TraceContext | None) -> JsonObject:
    """Return the headers of a message that is sent for the first time; ``span``: the live one of its sending."""
    return {} if span is None else {_SENT_BY: str(span)}


def sent_by(headers: JsonMapping) -> TraceContext | None:
    """Return the live span of the sending, if the message names one."""
    value = headers.get(_SENT_BY)
    return read_traceparent(value) if isinstance(value, str) else None


def returns(headers: JsonMapping) -> int:
    """Return how often the broker took the message back from a consumer that was lost."""
    return _number(headers.get("x-delivery-count"))


def dead_headers(reason: str) -> JsonObject:
    """Return the headers of a message that died; the reason is shortened to fit easily into an AMQP frame."""
    return {_REASON: reason[:4000]}


def reason_of(headers: JsonMapping) -> str:
    """Return why a message was dead-lettered: our reason, or the broker's if it gave up by itself."""
    reason = headers.get(_REASON)
    if isinstance(reason, str):
        return reason
    # The broker gives up by itself at the delivery limit, without our header.
    noted = headers.get("x-first-death-reason")
    if noted == "delivery_limit":
        return "delivered too often without an answer: every consumer was lost over it"
    return str(noted or "unknown")


def _number(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
