"""``/kubevnfm/v1/subscriptions``: the subscriptions of every API, each with the state of its deliveries."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import quote

from aiohttp import web
from kubevnfm_clients.multicloud.object_health import Health
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_secrets import shown_url
from kubevnfm_store.query import AllOf, Compare, Exists, Op, Sort, Stored

from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.models import Linked
from kubevnfm_lcm_api.http.pages import PARAMETERS, PageRequest, read_page
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route
from kubevnfm_lcm_api.notifications.delivery_record import FAILING_SINCE
from kubevnfm_lcm_api.notifications.domain.subscription import APIS, COLLECTION, SEALED_ADDRESS, ApiName
from kubevnfm_lcm_api.notifications.http.context import services
from kubevnfm_lcm_api.notifications.subscriptions import DeliveryState
from kubevnfm_lcm_api.views.causes.wording import line
from kubevnfm_lcm_api.views.instance_rows import PREFIX
from kubevnfm_lcm_api.views.lists import ListPage, Part, find_page, list_answer
from kubevnfm_lcm_api.views.services import views
from kubevnfm_lcm_api.views.subscription_words import filter_words

_MANY: Final = f"{PREFIX}/subscriptions"
_API: Final = Parameter("api", "Made by this API", values=tuple(APIS))
_PROBLEM: Final = Parameter("problem", "Whose subscriber does not accept notifications", values=("true",))
_FILTERS: Final = (_API, _PROBLEM)
UNREAD: Final = ("authentication", "keys", SEALED_ADDRESS)
"""Attributes that lists are read without."""
_COUNTED: Final = 1000
_AT_ONCE: Final = 10


class SubscriptionSummary(Linked):
    """A subscription with the state of its deliveries."""

    id: str
    api: ApiName
    """The API that it was made by: version 1 or 2 of VNF LCM, of the VNF package API, changes of multi-cloud, or ONAP."""
    callbackUri: str  # noqa: N815  # as it is on the wire
    """Without the values of its query."""
    filter: list[str]
    """In words; empty: it is to everything."""
    createdAt: str  # noqa: N815  # as it is on the wire
    createdBy: str | None = None  # noqa: N815  # as it is on the wire
    """The caller that has made it; absent: an earlier version stored it."""
    vnfInstanceId: str | None = None  # noqa: N815  # as it is on the wire
    """The instance that a subscription of ONAP belongs to."""
    metadata: dict[str, str] | None = None
    """As the request had it."""
    minNotifyIntervalS: int | None = None  # noqa: N815  # as it is on the wire
    """Changes within so many seconds are sent together."""
    health: Health
    text: str | None = None
    """Why the health is not ``ok``."""
    since: str | None = None
    """Since when the subscriber has accepted nothing, if its deliveries fail."""
    state: Literal["IDLE", "DELIVERING", "WAITING"]
    """WAITING: the subscriber has not accepted a notification; the next try is at nextTryAt."""
    pending: int
    """Notifications that are not delivered yet: at most 1,000 are counted in a list, and 10,000 in the view of one."""
    oldestPendingAt: str | None = None  # noqa: N815  # as it is on the wire
    failuresInARow: int  # noqa: N815  # as it is on the wire
    dropped: int
    """Notifications that were given up since the subscription was created."""
    lastSuccessAt: str | None = None  # noqa: N815  # as it is on the wire
    lastFailureAt: str | None = None  # noqa: N815  # as it is on the wire
    lastFailure: str | None = None  # noqa: N815  # as it is on the wire
    lastStatus: int | None = None  # noqa: N815  # as it is on the wire
    """The status of HTTP that the subscriber answered last; absent: it did not answer, or was not called yet."""
    nextTryAt: str | None = None  # noqa: N815  # as it is on the wire


class SubscriptionsPage(ListPage):
    """A page of subscriptions."""

    items: list[SubscriptionSummary]


class SubscriptionDetails(SubscriptionSummary):
    """One subscription."""

    sequence: str
    """The place in the event stream: sent as ``Last-Event-ID``, the stream goes on from this state."""


async def list_all(request: web.Request) -> web.Response:
    """GET subscriptions: newest first; with ``problem`` those first that have failed for the longest time."""
    asked = read_page(request, _FILTERS)
    sequence = views(request).sequence()
    found = await find_page(context(request).store, COLLECTION, [_part(asked)], asked, exclude=UNREAD)
    gate, root = asyncio.Semaphore(_AT_ONCE), api_root(request)

    async def row(stored: Stored) -> JsonObject:
        async with gate:
            return _shown(await services(request).subscriptions.delivery_state_of(stored, most=_COUNTED), root)

    rows = await asyncio.gather(*map(row, found.items))
    return list_answer(request, asked, sequence, rows, found.after)


def _part(asked: PageRequest) -> Part:
    api = asked.filters.get(_API.name)
    wanted = [] if api is None else [Compare("apiVersion", Op.EQ, [api])]
    if _PROBLEM.name in asked.filters:
        return Part([AllOf([Exists(FAILING_SINCE), *wanted])], Sort(FAILING_SINCE))
    return Part([AllOf(wanted)], Sort("createdAt", descending=True))


async def show(request: web.Request) -> web.Response:
    """GET subscriptions/{id}: the API of its creation does not matter."""
    sequence = views(request).sequence()
    state = await services(request).subscriptions.delivery_state(request.match_info["id"])
    return web.json_response({"sequence": sequence, **_shown(state, api_root(request))})


def _shown(state: DeliveryState, root: str) -> JsonObject:
    document = state.subscription
    record: JsonObject = document.get("delivery", {})
    failures = record.get("failures", 0)
    # A turn without an owner is a back-off. Without pending notifications it is a leftover and says nothing.
    turn = document.get("turn", {}) if state.pending else {}
    last = document.get("lastNotified", {})
    health, text = _judged(document, state.pending)
    facts = {
        "createdBy": document.get("createdBy"),
        "vnfInstanceId": (document.get("onap") or {}).get("vnfInstanceId"),
        "metadata": document.get("metadata") or None,
        "minNotifyIntervalS": document.get("minNotifyIntervalS") or None,
        "text": text,
        "since": document.get(FAILING_SINCE) or None,
        "oldestPendingAt": state.oldest_pending_at,
        "lastSuccessAt": record.get("last_success_at"),
        "lastFailureAt": record.get("last_failure_at"),
        "lastFailure": line(record["last_failure"]) if record.get("last_failure") else None,
        "lastStatus": last.get("status"),
        "nextTryAt": turn.get("until") if failures and turn.get("owner") == "-" else None,
    }
    return {
        "id": document["id"],
        "api": document["apiVersion"],
        "callbackUri": shown_url(document["callbackUri"]),
        "filter": filter_words(document),
        "createdAt": document["createdAt"],
        "health": health,
        "state": "WAITING" if state.pending and failures else "DELIVERING" if state.pending else "IDLE",
        "pending": state.pending,
        "failuresInARow": failures,
        "dropped": record.get("dropped", 0),
        **{name: value for name, value in facts.items() if value is not None},
        "_links": {
            "self": {"href": f"{root}{_MANY}/{document['id']}"},
            "subscription": {"href": f"{root}{_path(document)}"},
        },
    }


def _path(document: JsonMapping) -> str:
    """Return where a subscription is shown by its own API, and deleted."""
    onap: Mapping[str, object] | None = document.get("onap")
    if onap:
        return f"/v1/instance/{quote(str(onap['vnfInstanceId']))}/status/subscription/{quote(str(onap['name']))}"
    return f"{APIS[document['apiVersion']].prefix}/subscriptions/{document['id']}"


def _judged(document: JsonMapping, pending: int) -> tuple[Health, str | None]:
    record = document.get("delivery", {})
    # As the list of problems finds them. Failures that an earlier version has stored are dated at the next try.
    if document.get(FAILING_SINCE):
        why = line(str(record.get("last_failure", ""))) or "no reason was reported"
        what = "the subscriber does not accept notifications" if pending else "notifications were given up"
        return "problem", f"{what}: {why}"
    return ("progressing", "notifications are being delivered") if pending else ("ok", None)


def routes() -> list[Route]:
    """Return the routes of subscriptions."""
    page = {200: Answer("A page; Link names the next one", SubscriptionsPage)}
    state = {200: Answer("What is pending, what failed, when it is tried again", SubscriptionDetails)}
    summary, one = "List subscriptions with their deliveries", "Show how notifications are delivered"
    return [
        Route("Views", "GET", _MANY, list_all, summary, page, query=(*_FILTERS, *PARAMETERS)),
        Route("Views", "GET", f"{_MANY}/{{id}}", show, one, state),
    ]
