"""``/kubevnfm/v1/operations``: our own views of operations: steps, nodes, times, logs, and what happens in them."""

from __future__ import annotations

from aiohttp import web
from kubevnfm_kit.errors import NotFound
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_sol.lcm import OperationState

from kubevnfm_lcm_api.http.bodies import EVENT_STREAM, check_accept
from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord, clean_up_id
from kubevnfm_lcm_api.lifecycle.http.context import services
from kubevnfm_lcm_api.views.causes import Situation, cause_of, next_of
from kubevnfm_lcm_api.views.models import OperationView
from kubevnfm_lcm_api.views.services import views
from kubevnfm_lcm_api.views.steps import step_views


async def show(request: web.Request) -> web.StreamResponse:
    """GET operations/{id}: the operation with its steps, its nodes and their tasks, and times.

    Asked for ``text/event-stream`` (as a browser's EventSource does), the operation's events follow.
    """
    check_accept(request, "application/json", EVENT_STREAM)
    record = await _record(request)
    if EVENT_STREAM in request.headers.get("Accept", ""):
        return await views(request).operation_events(request, record.occ.id, await _view(request, record))
    return web.json_response(await _view(request, record))


async def _view(request: web.Request, record: OccurrenceRecord) -> JsonObject:
    occ = record.occ
    sequence = views(request).sequence()
    tasks = await services(request).progress.operation_tasks(record)
    nodes: dict[str, list[JsonObject]] = {}
    for task in tasks:
        nodes.setdefault(task["node"], []).append({name: value for name, value in task.items() if name != "node"})
    root = api_root(request)
    situation = Situation(record, tasks, context(request).clock.now())
    cause = cause_of(situation)
    return {
        "sequence": sequence,
        "id": occ.id,
        "vnfInstanceId": occ.vnf_instance_id,
        "operation": occ.operation,
        "state": occ.operation_state,
        "startTime": occ.start_time,
        "stateEnteredTime": occ.state_entered_time,
        **({"error": occ.error.model_dump(by_alias=True, exclude_none=True)} if occ.error else {}),
        **({"warnings": list(occ.warnings)} if occ.warnings else {}),
        **({"cause": cause.model_dump(exclude_none=True)} if cause is not None else {}),
        "next": [each.model_dump(exclude_none=True) for each in next_of(situation, cause, root)],
        "steps": step_views(record),
        **await _clean_up(request, record),
        "nodes": [{"name": name, "tasks": found} for name, found in sorted(nodes.items()) if name],
        "tasks": nodes.get("", []),
        "_links": {
            "self": {"href": f"{root}/kubevnfm/v1/operations/{occ.id}"},
            "log": {"href": f"{root}/kubevnfm/v1/operations/{occ.id}/log"},
            "vnfLcmOpOcc": {"href": f"{root}/vnflcm/v2/vnf_lcm_op_occs/{occ.id}"},
        },
    }


async def log(request: web.Request) -> web.StreamResponse:
    """GET operations/{id}/log[?node=]: what the machines printed, as text, secrets masked."""
    record = await _record(request)
    response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
    chunks = services(request).node_logs.log(record.occ.id, node=request.query.get("node"))
    first = await anext(chunks, b"")
    await response.prepare(request)
    await response.write(first)
    async for chunk in chunks:
        await response.write(chunk)
    await response.write_eof()
    return response


async def _record(request: web.Request) -> OccurrenceRecord:
    occurrence_id = request.match_info["id"]
    stored = await context(request).store.get(occurrences.COLLECTION, occurrence_id)
    if stored is None:
        raise NotFound(f"operation {occurrence_id} does not exist")
    return OccurrenceRecord.from_document(stored.body)


async def _clean_up(request: web.Request, failed: OccurrenceRecord) -> JsonObject:
    """Return where the removal of what a FAILED operation left stands; nothing while none was begun."""
    stored = await context(request).store.get(occurrences.COLLECTION, clean_up_id(failed.occ.id))
    if stored is None:
        return {}
    record = OccurrenceRecord.from_document(stored.body)
    # Until a compensation fails, its error is the one of the operation that it cleans up after.
    error = record.occ.error if record.occ.operation_state is OperationState.FAILED_TEMP else None
    return {
        "cleanUp": {
            "id": stored.id,
            "state": record.occ.operation_state,
            "stateEnteredTime": record.occ.state_entered_time,
            **({"error": error.model_dump(by_alias=True, exclude_none=True)} if error is not None else {}),
            "steps": step_views(record),
        }
    }


def routes() -> list[Route]:
    """Return the routes of our own views."""
    one = "/kubevnfm/v1/operations/{id}"
    view = {200: Answer("Steps, nodes, tasks and times", OperationView)}
    printed = {200: Answer("Text as it is printed, secrets masked", media_types=("text/plain",))}
    node = Parameter("node", "Of this machine only")
    summary = "Read what the machines printed"
    return [
        Route("Progress", "GET", one, show, "Show how an operation goes", view, checks_accept=False),
        Route("Progress", "GET", f"{one}/log", log, summary, printed, query=(node,), checks_accept=False),
    ]
