"""The trace of an operation as OTLP has it in JSON (ExportTraceServiceRequest)."""

from __future__ import annotations

from typing import Literal

from kubevnfm_lcm_api.http.models import Shown


class ArrayValue(Shown):
    """A list of texts."""

    values: list[AttributeValue]


class AttributeValue(Shown):
    """One of the attributes is there."""

    stringValue: str | None = None  # noqa: N815  # as it is on the wire
    intValue: str | None = None  # noqa: N815  # as it is on the wire
    """Digits: 64 bits."""
    boolValue: bool | None = None  # noqa: N815  # as it is on the wire
    arrayValue: ArrayValue | None = None  # noqa: N815  # as it is on the wire


class Attribute(Shown):
    """A named value."""

    key: str
    value: AttributeValue


class SpanEvent(Shown):
    """A moment in a span: a state that the operation entered, a wait of a step."""

    name: str
    timeUnixNano: str  # noqa: N815  # as it is on the wire
    attributes: list[Attribute]


class SpanLink(Shown):
    """A span that this one came after."""

    traceId: str  # noqa: N815  # as it is on the wire
    spanId: str  # noqa: N815  # as it is on the wire


class SpanStatus(Shown):
    """How it ended."""

    code: Literal[0, 1, 2]
    """0: it has not ended, or was cancelled; 1: well; 2: it failed."""


class TraceSpan(Shown):
    """The operation, an attempt of a step, or a task of an attempt."""

    traceId: str  # noqa: N815  # as it is on the wire
    """32 hexadecimal digits."""
    spanId: str  # noqa: N815  # as it is on the wire
    """16 of them; derived, so each reading has the same."""
    parentSpanId: str | None = None  # noqa: N815  # as it is on the wire
    name: str
    kind: Literal[1]
    """Internal."""
    startTimeUnixNano: str  # noqa: N815  # as it is on the wire
    endTimeUnixNano: str  # noqa: N815  # as it is on the wire
    """The time of the answer, if the span has the attribute `kubevnfm.unfinished`."""
    attributes: list[Attribute]
    events: list[SpanEvent]
    links: list[SpanLink]
    droppedLinksCount: int | None = None  # noqa: N815  # as it is on the wire
    status: SpanStatus


class Scope(Shown):
    """The maker of the spans."""

    name: str
    version: str


class ScopeSpans(Shown):
    """The spans of one maker."""

    scope: Scope
    spans: list[TraceSpan]


class Resource(Shown):
    """The service that did what the spans are about."""

    attributes: list[Attribute]


class ResourceSpans(Shown):
    """The spans of one service."""

    resource: Resource
    scopeSpans: list[ScopeSpans]  # noqa: N815  # as it is on the wire


class OperationTrace(Shown):
    """The spans of an operation, by service."""

    resourceSpans: list[ResourceSpans]  # noqa: N815  # as it is on the wire
