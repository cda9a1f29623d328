"""Spans in the JSON form of OTLP (ExportTraceServiceRequest)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version

from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.lifecycle.core.spans import NAMESPACE, SCOPE, Span, Value, nanoseconds


def otlp(spans: Iterable[Span]) -> JsonObject:
    """Return spans as the JSON form of OTLP, by service."""
    by_service: dict[str, list[Span]] = {}
    for span in spans:
        by_service.setdefault(span.service, []).append(span)
    scope = {"name": SCOPE, "version": version("kubevnfm-lcm-api")}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes({"service.namespace": NAMESPACE, "service.name": service})},
                "scopeSpans": [{"scope": scope, "spans": [_span(each) for each in found]}],
            }
            for service, found in by_service.items()
        ]
    }


def _span(span: Span) -> JsonObject:
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        **({"parentSpanId": span.parent_id} if span.parent_id else {}),
        "name": span.name,
        "kind": 1,
        # 64 bits are texts in the JSON form of protobuf.
        "startTimeUnixNano": str(nanoseconds(span.began)),
        "endTimeUnixNano": str(nanoseconds(span.ended)),
        "attributes": _attributes(span.attributes),
        "events": [
            {
                "name": each.name,
                "timeUnixNano": str(nanoseconds(each.at)),
                "attributes": _attributes(each.attributes),
            }
            for each in span.happenings
        ],
        "links": [{"traceId": span.trace_id, "spanId": each} for each in span.links],
        **({"droppedLinksCount": span.more_links} if span.more_links else {}),
        "status": {"code": span.outcome.value},
    }


def _attributes(found: Mapping[str, Value]) -> Sequence[JsonObject]:
    return [{"key": key, "value": _value(value)} for key, value in found.items()]


def _value(value: Value) -> JsonObject:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case str():
            return {"stringValue": value}
        case _:
            return {"arrayValue": {"values": [{"stringValue": each} for each in value]}}
