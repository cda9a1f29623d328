"""The place in a distributed trace that a caller names, and the ids of our own spans.

Ids are derived from facts, never random: a process that computes those of a step after a crash gets the same ones.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_TRACEPARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_B3: Final = re.compile(r"([0-9a-f]{32}|[0-9a-f]{16})-([0-9a-f]{16})(?:-([01d])(?:-[0-9a-f]{16})?)?")
_TRACE_ID: Final = re.compile(r"[0-9a-f]{32}|[0-9a-f]{16}")
_SPAN_ID: Final = re.compile(r"[0-9a-f]{16}")
_LONGEST: Final = 256


@dataclass(frozen=True)
class TraceContext:
    """A span, as what comes after it names its parent."""

    trace_id: str
    """32 hexadecimal digits, not all 0."""
    span_id: str
    """16 of them."""
    is_sampled: bool = True
    """Whether the beginner of the trace wants it recorded."""

    def __str__(self) -> str:
        """Return the value of ``traceparent`` (W3C Trace Context, version 00)."""
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.is_sampled else '00'}"


def read_traceparent(text: str) -> TraceContext | None:
    """Return the context that a ``traceparent`` names; None if it names none."""
    found = _TRACEPARENT.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    # Later versions may have more fields behind these; version ff is forbidden.
    if found is None or found[1] == "ff" or (found[1] == "00" and found[5] is not None):
        return None
    return _context(found[2], found[3], is_sampled=bool(int(found[4], 16) & 1))


def trace_of(headers: Mapping[str, str]) -> TraceContext | None:
    """Return the context that the headers of a request name: W3C's, else those of B3, as one header or several.

    A wrong header is as if it were not there: no request is refused for its trace.
    """
    return (
        read_traceparent(headers.get("traceparent", ""))
        or _one_header(headers.get("b3", ""))
        or _several_headers(headers)
    )


def derived_trace_id(*facts: str) -> str:
    """Return the trace id of these facts: the same facts, the same id."""
    return _digest("trace", facts)[:32]


def operation_trace_id(operation_id: str) -> str:
    """Return the trace id of an operation whose caller has named none."""
    return derived_trace_id("operation", operation_id)


def is_in_ratio(trace_id: str, ratio: float) -> bool:
    """Return whether a trace is among the part that is recorded.

    The rule of OpenTelemetry's TraceIdRatioBased: each process, and each other system with this ratio, decides alike.
    """
    return int(trace_id[16:], 16) < round(ratio * 2**64)


def derived_span_id(*facts: str) -> str:
    """Return the span id of these facts: the same facts, the same id."""
    return _digest("span", facts)[:16]


_CALLER: ContextVar[TraceContext | None] = ContextVar("caller_trace", default=None)


def callers_trace() -> TraceContext | None:
    """Return the context that the request which is being answered has named."""
    return _CALLER.get()


@contextmanager
def traced_by(context: TraceContext | None) -> Iterator[None]:
    """Let `callers_trace` return this context in the block, and in tasks that are begun in it."""
    token = _CALLER.set(context)
    try:
        yield
    finally:
        _CALLER.reset(token)


def _one_header(text: str) -> TraceContext | None:
    found = _B3.fullmatch(text.strip().lower()) if len(text) <= _LONGEST else None
    return None if found is None else _context(found[1], found[2], is_sampled=found[3] != "0")


def _several_headers(headers: Mapping[str, str]) -> TraceContext | None:
    trace, span = (headers.get(name, "")[:_LONGEST].strip().lower() for name in ("X-B3-TraceId", "X-B3-SpanId"))
    if _TRACE_ID.fullmatch(trace) is None or _SPAN_ID.fullmatch(span) is None:
        return None
    is_debug = headers.get("X-B3-Flags", "").strip() == "1"
    # No decision is left to us, and we take what is offered.
    is_sampled = is_debug or headers.get("X-B3-Sampled", "").strip().lower() not in {"0", "false"}
    return _context(trace, span, is_sampled=is_sampled)


def _context(trace_id: str, span_id: str, *, is_sampled: bool) -> TraceContext | None:
    if not int(trace_id, 16) or not int(span_id, 16):
        return None
    # B3 has ids of 64 bits too; OpenTelemetry fills them with zeros.
    return TraceContext(trace_id.rjust(32, "0"), span_id, is_sampled)


@lru_cache(maxsize=1024)
def _digest(kind: str, facts: tuple[str, ...]) -> str:
    # A length before each fact: ("a|b",) and ("a", "b") differ.
    text = "".join(f"{len(each)}:{each}" for each in ("kubevnfm", kind, *facts))
    return hashlib.sha256(text.encode()).hexdigest()
