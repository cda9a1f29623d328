"""``/vnflcm/{v1,v2}/subscriptions`` (SOL003 clauses 5.4.18 and 5.4.19), ``/vnfpkgm/{v1,v2}/subscriptions`` (clauses
10.4.7 and 10.4.8, and SOL005's 9.4.8 and 9.4.9) and ``/vnffm/v1/subscriptions`` (clauses 7.4.4 and 7.4.5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from kubevnfm_access.middleware import CALLER
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_secrets import shown_url

from kubevnfm_lcm_api.http.bodies import parse_body, read_json
from kubevnfm_lcm_api.http.context import api_root
from kubevnfm_lcm_api.http.listing import PARAMETERS, list_page
from kubevnfm_lcm_api.http.models import Shown
from kubevnfm_lcm_api.http.routes import DELETED, Answer, Route, page_of
from kubevnfm_lcm_api.notifications.domain.faults import FmSubscriptionRequest
from kubevnfm_lcm_api.notifications.domain.lifecycle import LccnSubscriptionRequest
from kubevnfm_lcm_api.notifications.domain.packages import PkgmSubscriptionRequest
from kubevnfm_lcm_api.notifications.domain.subscription import APIS, COLLECTION, ApiName, SubscriptionRequest
from kubevnfm_lcm_api.notifications.http.context import services
from kubevnfm_lcm_api.notifications.http.models import FmSubscription, LccnSubscription, PkgmSubscription
from kubevnfm_lcm_api.notifications.http.shapes import SUBSCRIPTIONS

_REQUESTS: Final[Mapping[ApiName, type[SubscriptionRequest]]] = {
    "v1": LccnSubscriptionRequest,
    "v2": LccnSubscriptionRequest,
    "vnfpkgm": PkgmSubscriptionRequest,
    "vnfpkgm-v2": PkgmSubscriptionRequest,
    "vnffm": FmSubscriptionRequest,
}
_SHOWN: Final[Mapping[type[SubscriptionRequest], tuple[type[Shown], str]]] = {
    LccnSubscriptionRequest: (LccnSubscription, "life-cycle changes"),
    PkgmSubscriptionRequest: (PkgmSubscription, "news of VNF packages"),
    FmSubscriptionRequest: (FmSubscription, "alarms"),
}
"""The type that is shown, and what is subscribed to, by the type of the request."""


def subscription_url(document: JsonMapping, root: str) -> str:
    """Return where a subscription is shown."""
    return f"{root}{APIS[document['apiVersion']].prefix}/subscriptions/{document['id']}"


def view(document: JsonMapping, root: str) -> JsonObject:
    """Return LccnSubscription, PkgmSubscription or FmSubscription; authentication, and the values of the address's query, are never shown."""
    shown = {name: document[name] for name in ("id", "callbackUri", "verbosity") if name in document}
    # Sealed already, unless a process of version 0.1.0 has stored it since this one started.
    shown["callbackUri"] = shown_url(shown["callbackUri"])
    wanted = {name: value for name, value in document.get("filter", {}).items() if value}
    links = {"self": {"href": subscription_url(document, root)}}
    metadata = {"metadata": document["metadata"]} if document.get("metadata") else {}
    return {**shown, **({"filter": wanted} if wanted else {}), **metadata, "_links": links}


@dataclass(frozen=True)
class _OfApi:
    """The handlers of one API's subscriptions."""

    api: ApiName

    async def create(self, request: web.Request) -> web.Response:
        wanted = await parse_body(request, _REQUESTS[self.api], await read_json(request))
        caller = request[CALLER].subject
        made = await services(request).subscriptions.create(wanted, self.api, by_caller=caller)
        shown = view(made, api_root(request))
        return web.json_response(shown, status=201, headers={"Location": shown["_links"]["self"]["href"]})

    async def list_all(self, request: web.Request) -> web.StreamResponse:
        root = api_root(request)
        return await list_page(request, COLLECTION, SUBSCRIPTIONS[self.api], lambda document: view(document, root))

    async def show(self, request: web.Request) -> web.Response:
        stored = await services(request).subscriptions.get(request.match_info["id"], self.api)
        return web.json_response(view(stored.body, api_root(request)))

    async def delete(self, request: web.Request) -> web.Response:
        await services(request).subscriptions.delete(request.match_info["id"], self.api)
        return web.Response(status=204)


def routes() -> Iterator[Route]:
    """Yield the routes of every API's subscriptions."""
    tag, refusals = "Subscriptions", {422: "The test of the callback failed"}
    for name, wanted in _REQUESTS.items():
        base, of = f"{APIS[name].prefix}/subscriptions", _OfApi(name)
        model, subject = _SHOWN[wanted]
        made = {201: Answer("Subscribed", model, has_location=True)}
        shown = {200: Answer("The subscription", model)}
        one = f"{base}/{{id}}"
        yield Route(tag, "POST", base, of.create, f"Subscribe to {subject}", made, wanted, refusals=refusals)
        yield Route(tag, "GET", base, of.list_all, "List subscriptions", page_of(model), query=PARAMETERS)
        yield Route(tag, "GET", one, of.show, "Show a subscription", shown)
        yield Route(tag, "DELETE", one, of.delete, "End a subscription", DELETED)
