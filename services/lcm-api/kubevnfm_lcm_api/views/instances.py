"""``/kubevnfm/v1/instances``: lists of VNF instances, and the tree of one with all that belongs to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Final, Protocol

from aiohttp import web
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_sol.lcm import InstantiationState, OperationState, OperationType
from kubevnfm_store.matching import fits
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.prefixes import prefixed
from kubevnfm_store.query import AllOf, Compare, Exists, Filter, Op, Query, Sort, Stored, by

from kubevnfm_lcm_api.alarm_marks import marked_after
from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.pages import PARAMETERS, PageRequest, read_page
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route
from kubevnfm_lcm_api.lifecycle.containers.trouble_marks import marks_after
from kubevnfm_lcm_api.lifecycle.core import dependencies, drift
from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.multicloud.vnf_lists import claimed_by
from kubevnfm_lcm_api.views.instance_rows import LARGE, PREFIX, InstanceSummary, with_operations
from kubevnfm_lcm_api.views.lists import ID, Found, ListPage, Part, find_named, find_page, list_answer
from kubevnfm_lcm_api.views.services import views
from kubevnfm_lcm_api.views.tree.building import parts_of, tree_of
from kubevnfm_lcm_api.views.tree.facts import TreeFacts
from kubevnfm_lcm_api.views.tree.model import TreeView
from kubevnfm_lcm_api.views.tree.ordering import arrange
from kubevnfm_lcm_api.views.tree.reading import read_facts

TAG: Final = "Views"
_STATE: Final = Parameter("state", "In this state", values=("INSTANTIATED", "NOT_INSTANTIATED"))
_VNFD: Final = Parameter("vnfdId", "Of this VNFD")
_NAME: Final = Parameter("name", "Whose name begins so")
_VIM: Final = Parameter("vimId", "With resources on this VIM")
_PROBLEM: Final = Parameter("problem", "With a problem: see ``health``", values=("true",))
_FILTERS: Final = (ID, _STATE, _VNFD, _NAME, _VIM, _PROBLEM)
_GROUP: Final = Parameter(
    "group",
    "Whether large groups of equal parts without a problem are one node; true unless given",
    values=("true", "false"),
)
_AT_ONCE: Final = 300
"""Parts of a tree from which on it is made in a thread."""
_NEWEST_FIRST: Final = Sort("createdAt", descending=True)
_BY_NAME: Final = Sort("vnfInstanceName")
_MARKS: Final = (drift.PATH, dependencies.PATH, instances.REMAINS_OF)
"""The marks of an instance with a problem; a sparse index leads to each."""
_BATCH: Final = 500
_STANDING: Final = by(instantiationState=InstantiationState.INSTANTIATED.value)
"""The mark of the pods of an instance counts as long as it is INSTANTIATED."""
_ANY_OPERATION: Final = tuple(each.value for each in OperationType)


class _IdsAfter(Protocol):
    """Reads ids of marked instances, those behind ``after`` in their order."""

    async def __call__(self, store: DocumentStore, after: str | None, *, limit: int) -> Sequence[str]: ...


class InstancesPage(ListPage):
    """A page of VNF instances."""

    items: list[InstanceSummary]


async def list_all(request: web.Request) -> web.Response:
    """GET instances: newest first; by name with ``name``, by id with ``vimId`` and ``problem``."""
    asked = read_page(request, _FILTERS)
    store, sequence = context(request).store, views(request).sequence()
    is_named, is_troubled = ID.name in asked.filters, _PROBLEM.name in asked.filters
    is_by_id = not is_named and (is_troubled or _VIM.name in asked.filters)
    found = await (_by_id if is_by_id else _in_order)(store, asked)
    rows = await with_operations(store, found.items, api_root(request))
    if is_named and is_troubled:
        # They are few, so no index has to lead to them.
        rows = [each for each in rows if each.health == "problem"]
    shown = [each.model_dump(mode="json", exclude_none=True) for each in rows]
    return list_answer(request, asked, sequence, shown, found.after)


async def _in_order(store: DocumentStore, asked: PageRequest) -> Found:
    parts = [Part([AllOf(_wanted(asked))], _BY_NAME if _NAME.name in asked.filters else _NEWEST_FIRST)]
    if ID.name in asked.filters:
        return await find_named(store, instances.COLLECTION, parts, asked)
    return await find_page(store, instances.COLLECTION, parts, asked, exclude=LARGE)


async def _by_id(store: DocumentStore, asked: PageRequest) -> Found:
    """Return a page by id: an index leads to the instances on a VIM, and one to each mark of a problem in them.

    Operations that have failed and wait are few, and are read before their instances.
    """
    wanted, most = _wanted(asked), asked.limit + 1
    after = None if asked.after is None else str(asked.after[0])

    async def matching(*more: Filter) -> Sequence[Stored]:
        behind = None if after is None else (after, after)
        query = Query(AllOf([*wanted, *more]), after=behind, limit=most, exclude=LARGE)
        return await store.find(instances.COLLECTION, query)

    if _PROBLEM.name in asked.filters:
        # Without a filter nearly all of a batch are listed: more than a page would not be used.
        batch_of = _BATCH if wanted else most
        failed = claimed_by(store, wanted, (_ANY_OPERATION, [OperationState.FAILED_TEMP]), most, after)
        parts = await asyncio.gather(
            failed,
            _marked(store, _troubles_after, [*wanted, _STANDING], most, after, batch_of=batch_of),
            _marked(store, marked_after, wanted, most, after, batch_of=batch_of),
            *(matching(Exists(path)) for path in _MARKS),
        )
    else:
        parts = [await matching()]
    merged = {each.id: each for part in parts for each in part}
    listed = [merged[key] for key in sorted(merged)][:most]
    return Found(listed[: asked.limit], [listed[asked.limit - 1].id] if len(listed) > asked.limit else None)


async def _marked(
    store: DocumentStore, ids_after: _IdsAfter, wanted: Sequence[Filter], most: int, after: str | None, *, batch_of: int
) -> Sequence[Stored]:
    """Return the instances that have marks outside of their documents, by id: the marks are few, so they are read first."""
    found: list[Stored] = []
    while len(found) < most and (batch := await ids_after(store, after, limit=batch_of)):
        seen = await store.get_many(instances.COLLECTION, batch)
        found += sorted((each for each in seen if fits(AllOf(wanted), each.body)), key=lambda each: each.id)
        after = batch[-1]
    return found[:most]


async def _troubles_after(store: DocumentStore, after: str | None, *, limit: int) -> Sequence[str]:
    return [each.id for each in await marks_after(store, after, limit=limit)]


def _wanted(asked: PageRequest) -> list[Filter]:
    wanted: list[Filter] = []
    for parameter, path in ((_STATE, "instantiationState"), (_VNFD, "vnfdId"), (_VIM, "internal/vimIds")):
        if parameter.name in asked.filters:
            wanted.append(Compare(path, Op.EQ, [asked.filters[parameter.name]]))
    name = asked.filters.get(_NAME.name)
    if name is not None:
        wanted += prefixed("vnfInstanceName", name)
    return wanted


async def tree(request: web.Request) -> web.Response:
    """GET instances/{id}/tree: the instance with all that belongs to it; what cannot be asked now is shown as stored."""
    wanted = request.query.get(_GROUP.name, "true")
    if wanted not in _GROUP.values:
        raise InvalidInput(_GROUP.name, f"{' or '.join(_GROUP.values)} expected")
    is_grouped = wanted == "true"
    sequence = views(request).sequence()
    facts = await read_facts(request, request.match_info["id"])
    if parts_of(facts) < _AT_ONCE:
        text = _tree(facts, sequence, is_grouped)
    else:
        # In a thread: 5,000 objects take some tenths of a second.
        text = await asyncio.to_thread(_tree, facts, sequence, is_grouped)
    return web.json_response(text=text)


def _tree(facts: TreeFacts, sequence: str, is_grouped: bool) -> str:
    root = tree_of(facts)
    arrange(root, group=is_grouped)
    return json.dumps({"sequence": sequence, "root": root.shown()})


def routes() -> list[Route]:
    """Return the routes of instances."""
    many = f"{PREFIX}/instances"
    page = {200: Answer("A page; Link names the next one", InstancesPage)}
    shown = {200: Answer("The instance with all that belongs to it", TreeView)}
    return [
        Route(TAG, "GET", many, list_all, "List VNF instances", page, query=(*_FILTERS, *PARAMETERS)),
        Route(
            TAG, "GET", f"{many}/{{id}}/tree", tree, "Show a VNF instance with all its parts", shown, query=(_GROUP,)
        ),
    ]
