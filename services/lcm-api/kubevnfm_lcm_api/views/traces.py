"""``/kubevnfm/v1/operations/{id}/trace``: an operation's spans as OTLP has them in JSON, which viewers of traces import."""

from __future__ import annotations

import asyncio
import json

from aiohttp import web

from kubevnfm_lcm_api.http.context import context
from kubevnfm_lcm_api.http.routes import Answer, Route
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord, clean_up_id
from kubevnfm_lcm_api.lifecycle.core.otlp import otlp
from kubevnfm_lcm_api.lifecycle.core.spans import spans_of
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


def routes() -> list[Route]:
    """Return the route of the trace of one operation."""
    answers = {200: Answer("The spans as OTLP's ExportTraceServiceRequest in JSON", OperationTrace)}
    path, summary = "/kubevnfm/v1/operations/{id}/trace", "Show an operation as a trace"
    return [Route("Progress", "GET", path, show, summary, answers)]
