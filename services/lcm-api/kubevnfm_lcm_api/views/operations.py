"""``/kubevnfm/v1/operations``: our own views of operations: steps, nodes, times, logs, and what happens in them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence

from aiohttp import web
from kubevnfm_kit.errors import NotFound
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_sol.lcm import TERMINAL, OperationState
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.http.bodies import EVENT_STREAM, check_accept
from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.routes import Answer, Route
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord, clean_up_id
from kubevnfm_lcm_api.lifecycle.core.progress import TIMES
from kubevnfm_lcm_api.lifecycle.core.states import CAN_BE_ROLLED_BACK
from kubevnfm_lcm_api.lifecycle.core.traces import operation_span
from kubevnfm_lcm_api.lifecycle.http.context import services
from kubevnfm_lcm_api.views.earlier_runs import usual_s
from kubevnfm_lcm_api.views.heads import found_of, head_of
from kubevnfm_lcm_api.views.models import OperationView
from kubevnfm_lcm_api.views.services import views
from kubevnfm_lcm_api.views.steps import step_views
from kubevnfm_lcm_api.views.waits import waits_of


async def show(request: web.Request) -> web.StreamResponse:
    """GET operations/{id}: the operation with its steps, its nodes and their tasks, and times.

    Asked for ``text/event-stream`` (as a browser's EventSource does), the operation's events follow.
    """
    check_accept(request, "application/json", EVENT_STREAM)
    view = await _view(request)
    if EVENT_STREAM in request.headers.get("Accept", ""):
        return await views(request).operation_events(request, view["id"], view)
    return web.json_response(text=await asyncio.to_thread(json.dumps, view))


async def _view(request: web.Request) -> JsonObject:
    # Before the state is read: what happens in between comes in the stream too.
    sequence = views(request).sequence()
    stored = await stored_operation(request)
    record = OccurrenceRecord.from_document(stored.body)
    tasks = await services(request).progress.operation_tasks(record)
    runs = (await views(request).earlier_runs.by_plan([record]))[record.plan]
    names = {} if record.occ.operation_state in TERMINAL else await views(request).vim_names.by_id(record.facts.vim_ids)
    clean_up, is_away = await _clean_up(request, record), not await views(request).is_broker_ready()
    root, now = api_root(request), context(request).clock.now()

    def made() -> JsonObject:
        nodes: dict[str, list[JsonObject]] = {}
        for task in tasks:
            shown = {name: value for name, value in task.items() if name not in {"node", TIMES}}
            nodes.setdefault(task["node"], []).append(shown)
        occ, warned = record.occ, [each.model_dump(exclude_none=True) for each in record.warnings]
        return {
            "sequence": sequence,
            **head_of(stored.body, root),
            **found_of(record, tasks, runs, now, root, vim_names=names, is_broker_away=is_away),
            "isReversible": record.is_reversible and CAN_BE_ROLLED_BACK.get(occ.operation, False),
            "traceId": operation_span(record).trace_id,
            **({"warnings": warned} if warned else {}),
            **waits_of(record, tasks),
            "steps": _with_usual(step_views(record), usual_s(runs, record)),
            **clean_up,
            "nodes": [{"name": name, "tasks": found} for name, found in sorted(nodes.items()) if name],
            "tasks": nodes.get("", []),
        }

    # In a thread: a cluster of 200 machines has thousands of tasks.
    return await asyncio.to_thread(made)


def _with_usual(steps: Sequence[JsonObject], usual: Mapping[str, float]) -> list[JsonObject]:
    return [each | ({"usualS": round(usual[each["name"]], 3)} if each["name"] in usual else {}) for each in steps]


async def stored_operation(request: web.Request) -> Stored:
    """Return the operation that a path names. Raises NotFound."""
    occurrence_id = request.match_info["id"]
    stored = await context(request).store.get(occurrences.COLLECTION, occurrence_id)
    if stored is None:
        raise NotFound(f"operation {occurrence_id} does not exist")
    return stored


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
    """Return the route of one operation."""
    view = {200: Answer("Steps, nodes, tasks, waits and times", OperationView)}
    path, summary = "/kubevnfm/v1/operations/{id}", "Show how an operation goes"
    return [Route("Progress", "GET", path, show, summary, view, checks_accept=False)]
