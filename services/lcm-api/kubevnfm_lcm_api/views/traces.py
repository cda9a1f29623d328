"""``/kubevnfm/v1/operations/{id}/trace``: an operation's spans as OTLP has them in JSON, which viewers of traces import."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version

from aiohttp import web
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.http.context import context
from kubevnfm_lcm_api.http.routes import Answer, Route
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord, clean_up_id
from kubevnfm_lcm_api.lifecycle.core.spans import NAMESPACE, SCOPE, Span, Value, nanoseconds, spans_of
from kubevnfm_lcm_api.lifecycle.http.context import services
from kubevnfm_lcm_api.views.operations import stored_operation
from kubevnfm_lcm_api.views.trace_models import OperationTrace


async def show(request: web.Request) -> web.StreamResponse:
    """GET operations/{id}/trace: the operation, the attempts of its steps, their tasks, and its clean-up if there is one."""
    record = OccurrenceRecord.from_document((await stored_operation(request)).body)
    clean_up = await context(request).store.get(occurrences.COLLECTION, clean_up_id(record.occ.id))
    records = [record] if clean_up is None else [record, OccurrenceRecord.from_document(clean_up.body)]
    found = [(each, await services(request).progress.trace_of(each)) for each in records]
    now = context(request).clock.now()

    def made() -> str:
        return json.dumps(otlp([span for each, tasks in found for span in spans_of(each, tasks, now)]))

    # In a thread: a cluster of 200 machines has thousands of tasks.
    return web.json_response(text=await asyncio.to_thread(made))


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


def routes() -> list[Route]:
    """Return the route of the trace of one operation."""
    answers = {200: Answer("The spans as OTLP's ExportTraceServiceRequest in JSON", OperationTrace)}
    path, summary = "/kubevnfm/v1/operations/{id}/trace", "Show an operation as a trace"
    return [Route("Progress", "GET", path, show, summary, answers)]
