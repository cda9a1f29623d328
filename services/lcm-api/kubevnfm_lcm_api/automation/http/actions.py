"""``/kubevnfm/v1/automatic-actions``: the automatic heals and scalings for people, those that have not ended first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from kubevnfm_access.middleware import CALLER
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.prefixes import with_id
from kubevnfm_store.query import AllOf, Compare, Filter, Op, Sort
from pydantic import Field

from kubevnfm_lcm_api.automation.decisions import AutomaticOperations
from kubevnfm_lcm_api.automation.domain.action import COLLECTION, FACTS, Action, ActionState, Direction, WaitsFor
from kubevnfm_lcm_api.automation.domain.trigger import TriggerKind
from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.models import Linked, Shown
from kubevnfm_lcm_api.http.pages import PARAMETERS, PageRequest, read_page, words
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route, add_routes
from kubevnfm_lcm_api.views.instance_rows import PREFIX
from kubevnfm_lcm_api.views.lists import ID, ListPage, Part, find_named, find_page, list_answer
from kubevnfm_lcm_api.views.services import Found, views

_OPEN: Final = ("COLLECTING", "WAITING", "STARTED")
_ENDED: Final = ("DONE", "NOT_DONE", "TRIAL")
_STATE: Final = Parameter("state", "In one of these states", values=(*_OPEN, *_ENDED), is_repeated=True)
_INSTANCE: Final = Parameter("vnfInstanceId", "Of this VNF instance")
_FILTERS: Final = (_STATE, _INSTANCE, ID)
_NEWEST: Final = Sort("createdAt", descending=True)
_MANY: Final = f"{PREFIX}/automatic-actions"
_ONE: Final = f"{_MANY}/{{id}}"
_TAG: Final = "Automatic operations"
_MOST_TRIGGERS: Final = 100


class ActionTrigger(Shown):
    """A fact that has asked for the action."""

    kind: TriggerKind
    id: str
    text: str
    at: str
    vnfcIds: list[str] | None = None  # noqa: N815  # as it is on the wire
    """The VNFCs that it names."""


class ActionWaiting(Shown):
    """The obstacle that an action waits for."""

    what: WaitsFor = Field(alias="for")
    text: str
    since: str
    operationId: str | None = None  # noqa: N815  # as it is on the wire


class LeftOutVnfc(Shown):
    """A VNFC that was named and is not healed."""

    vnfcId: str  # noqa: N815  # as it is on the wire
    reason: str


class AutomaticAction(Linked):
    """An automatic heal or scaling."""

    id: str
    vnfInstanceId: str  # noqa: N815  # as it is on the wire
    vnfInstanceName: str | None = None  # noqa: N815  # as it is on the wire
    operation: str
    aspectId: str | None = None  # noqa: N815  # as it is on the wire
    direction: Direction | None = None
    state: ActionState
    stateSince: str  # noqa: N815  # as it is on the wire
    createdAt: str  # noqa: N815  # as it is on the wire
    endedAt: str | None = None  # noqa: N815  # as it is on the wire
    text: str
    """Why it was asked for."""
    triggers: list[ActionTrigger]
    """The first 100."""
    vnfcIds: list[str] | None = None  # noqa: N815  # as it is on the wire
    """Those that are healed, once that is decided."""
    leftOut: list[LeftOutVnfc] | None = None  # noqa: N815  # as it is on the wire
    waiting: ActionWaiting | None = None
    reason: str | None = None
    """Why it was not done; TRIAL: what would have been done."""
    operationId: str | None = None  # noqa: N815  # as it is on the wire
    operationState: str | None = None  # noqa: N815  # as it is on the wire


class AutomaticActionsPage(ListPage):
    """A page of automatic actions."""

    items: list[AutomaticAction]


@dataclass(frozen=True)
class _Handlers:
    automatic: AutomaticOperations

    async def list_all(self, request: web.Request) -> web.Response:
        """GET automatic-actions: those that have not ended first, each group with the newest first."""
        asked = read_page(request, _FILTERS)
        sequence, store, root = views(request).sequence(), context(request).store, api_root(request)
        parts = _parts(asked)
        if ID.name in asked.filters:
            found = await find_named(store, COLLECTION, parts, asked)
        else:
            found = await find_page(store, COLLECTION, parts, asked, exclude=(FACTS,))
        items = [_shown(Action.from_document(each.body), root) for each in found.items]
        return list_answer(request, asked, sequence, items, found.after)

    async def show(self, request: web.Request) -> web.Response:
        action = await self.automatic.get(request.match_info["id"])
        return web.json_response(_shown(action, api_root(request)))

    async def cancel(self, request: web.Request) -> web.Response:
        await self.automatic.cancel(request.match_info["id"], request[CALLER].subject)
        return web.Response(status=204)


def _parts(asked: PageRequest) -> Sequence[Part]:
    given = asked.filters
    wanted = set(words([given[_STATE.name]], _STATE) if _STATE.name in given else _STATE.values)
    of_instance = given.get(_INSTANCE.name)
    more: list[Filter] = [] if of_instance is None else [Compare("vnfInstanceId", Op.EQ, [of_instance])]
    return [
        Part([AllOf([*more, Compare("state", Op.EQ, [each])]) for each in states if each in wanted], _NEWEST)
        for states in (_OPEN, _ENDED)
        if wanted & set(states)
    ]


def _shown(action: Action, root: str) -> JsonObject:
    body = action.body
    shown = {name: body[name] for name in body if name not in {"internal", "triggers", "waiting"}}
    links = {
        "self": {"href": f"{root}{_MANY}/{action.id}"},
        "vnfInstance": {"href": f"{root}/vnflcm/v2/vnf_instances/{action.vnf_instance_id}"},
    }
    if action.operation_id is not None:
        links["operation"] = {"href": f"{root}{PREFIX}/operations/{action.operation_id}"}
    if action.waiting is not None:
        shown["waiting"] = {"for" if name == "what" else name: value for name, value in body["waiting"].items()}
    return {**shown, "text": action.text, "triggers": body["triggers"][:_MOST_TRIGGERS], "_links": links}


@dataclass(frozen=True)
class ActionSearch:
    """Finds automatic actions by the beginning of their ids, for the search of the views."""

    store: DocumentStore

    async def with_id(self, text: str, *, limit: int) -> Sequence[Found]:
        """Return actions whose ids begin so."""
        found = await with_id(self.store, COLLECTION, text, limit=limit, exclude=("triggers", "internal"))
        return [Found(each.id, each.body["operation"], each.body["state"]) for each in found]


def add_to(app: web.Application, automatic: AutomaticOperations) -> None:
    """Add the resources of automatic actions to an application."""
    handlers = _Handlers(automatic)
    page = {200: Answer("A page; `next` and Link name the next one", AutomaticActionsPage, is_page=True)}
    shown = {200: Answer("The action", AutomaticAction)}
    gone = {204: Answer("It is not done")}
    summary, refusals = "Cancel an automatic action that has not begun", {409: "It has begun or ended"}
    add_routes(
        app,
        [
            Route(
                _TAG, "GET", _MANY, handlers.list_all, "List automatic actions, open ones first", page,
                query=(*_FILTERS, *PARAMETERS),
            ),
            Route(_TAG, "GET", _ONE, handlers.show, "Show an automatic action", shown),
            Route(_TAG, "DELETE", _ONE, handlers.cancel, summary, gone, refusals=refusals),
        ],
    )  # fmt: skip
