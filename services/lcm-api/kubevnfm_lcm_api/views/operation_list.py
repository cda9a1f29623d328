"""``GET /kubevnfm/v1/operations``: the operations of all VNFs, open ones first, in each group the newest first."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from aiohttp import web
from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_sol.lcm import TERMINAL, OperationState, OperationType
from kubevnfm_store.query import AllOf, Compare, Filter, Op, Sort, Stored, by

from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.pages import PARAMETERS, PageRequest, read_page, words
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.http.context import services
from kubevnfm_lcm_api.views.earlier_runs import LARGE, without_draft
from kubevnfm_lcm_api.views.heads import counts_of, found_of, head_of
from kubevnfm_lcm_api.views.lists import ID, Part, find_named, find_page, list_answer
from kubevnfm_lcm_api.views.models import OperationList
from kubevnfm_lcm_api.views.services import views

_ENDED: Final = tuple(each for each in OperationState if each in TERMINAL)
_OPEN: Final = tuple(each for each in OperationState if each not in TERMINAL)
_GROUPS: Final[Mapping[str, Sequence[OperationState]]] = {"open": _OPEN, "ended": _ENDED}
_STATE: Final = Parameter(
    "state",
    f"In one of these states; open: {', '.join(_OPEN)}; ended: {', '.join(_ENDED)}",
    values=(*_GROUPS, *OperationState),
    is_repeated=True,
)
_INSTANCE: Final = Parameter("vnfInstanceId", "Of this VNF instance only")
_OPERATION: Final = Parameter("operation", "Of this kind only", values=tuple(OperationType))
_SINCE: Final = Parameter("since", "Started at this time (RFC 3339) or later")
_FILTERS: Final = (ID, _STATE, _INSTANCE, _OPERATION, _SINCE)
_NEWEST: Final = Sort("startTime", descending=True)


async def list_all(request: web.Request) -> web.Response:
    """GET operations: a page of them."""
    asked = read_page(request, _FILTERS)
    parts = _parts(asked)
    sequence = views(request).sequence()
    store = context(request).store
    if ID.name in asked.filters:
        page = await find_named(store, occurrences.COLLECTION, parts, asked)
    else:
        page = await find_page(store, occurrences.COLLECTION, parts, asked, exclude=LARGE)
    # In a thread, as plans may have hundreds of steps.
    records = await asyncio.to_thread(_open_records, page.items)
    tasks = await services(request).progress.unfinished_tasks(list(records.values()))
    runs = await views(request).earlier_runs.by_plan(records.values())
    vim_names = await views(request).vim_names.by_id(one for each in records.values() for one in each.facts.vim_ids)
    now, root, is_away = context(request).clock.now(), api_root(request), not await views(request).is_broker_ready()

    def shown(stored: Stored) -> JsonObject:
        head = _summary(stored, record := records.get(stored.id), root)
        if record is None:
            return head
        return head | found_of(
            record, tasks[stored.id], runs[record.plan], now, root, vim_names=vim_names, is_broker_away=is_away
        )

    items = await asyncio.to_thread(lambda: [shown(each) for each in page.items])
    return list_answer(request, asked, sequence, items, page.after)


def _parts(asked: PageRequest) -> Sequence[Part]:
    """Return the groups of the list; its marker has their numbers. Raises InvalidInput."""
    given = words([asked.filters[_STATE.name]] if _STATE.name in asked.filters else [], _STATE)
    states = {state for word in given for state in _GROUPS.get(word, ())} | (set(given) - set(_GROUPS))
    groups = [[each for each in group if not given or each in states] for group in _GROUPS.values()]
    more = [occurrences.PUBLIC, *_of_kind(asked), *_since(asked)]
    return [Part(_filters(asked, group, more), _NEWEST) for group in groups]


def _filters(asked: PageRequest, states: Sequence[OperationState], more: Sequence[Filter]) -> Sequence[Filter]:
    instance = asked.filters.get(_INSTANCE.name)
    if instance is None or not states:
        # One for each state: an index on (state, time) then gives the newest.
        return [AllOf([by(operationState=each.value), *more]) for each in states]
    # An instance has few operations; the complement of the states leads no database to the index on all operations in them.
    others = [each.value for each in OperationState if each not in states]
    return [AllOf([by(vnfInstanceId=instance), Compare("operationState", Op.NIN, others), *more])]


def _of_kind(asked: PageRequest) -> Sequence[Filter]:
    kind = asked.filters.get(_OPERATION.name)
    if kind is None:
        return []
    if _INSTANCE.name not in asked.filters:
        return [by(operation=kind)]
    return [Compare("operation", Op.NIN, [each.value for each in OperationType if each != kind])]


def _since(asked: PageRequest) -> Sequence[Filter]:
    given = asked.filters.get(_SINCE.name)
    if given is None:
        return []
    try:
        since = datetime.fromisoformat(given)
        if since.tzinfo is None:
            raise ValueError("no zone")
        return [Compare("startTime", Op.GTE, [rfc3339(since)])]
    except (ValueError, OverflowError) as error:
        raise InvalidInput(_SINCE.name, "a time with its zone expected, as 2026-11-27T10:00:00Z") from error


def _open_records(found: Sequence[Stored]) -> Mapping[str, OccurrenceRecord]:
    """Return the records of those that are open, without their drafts."""
    return {each.id: without_draft(each.body) for each in found if each.body["operationState"] not in TERMINAL}


def _summary(stored: Stored, record: OccurrenceRecord | None, root: str) -> JsonObject:
    return {
        **head_of(stored.body, root),
        "steps": counts_of(stored.body["internal"]["steps"], record),
        "warningCount": len(stored.body.get("warnings") or ()),
    }


def routes() -> list[Route]:
    """Return the route of the list."""
    page = {200: Answer("A page; `next` and Link name the next one", OperationList, is_page=True)}
    summary = "List operations, open ones first"
    return [
        Route("Progress", "GET", "/kubevnfm/v1/operations", list_all, summary, page, query=(*_FILTERS, *PARAMETERS))
    ]
