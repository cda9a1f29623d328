"""``/vnflcm/{v1,v2}/subscriptions`` (SOL003 clauses 5.4.18 and 5.4.19)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from kubevnfm_lcm_api.domain.subscription import COLLECTION, SubscriptionRequest
from kubevnfm_lcm_api.gateway.bodies import check_accept, check_query, parse, read_json
from kubevnfm_lcm_api.gateway.context import api_root, api_version, gateway
from kubevnfm_lcm_api.gateway.listing import SUBSCRIPTIONS, list_page
from kubevnfm_lcm_api.gateway.render import base_url


def view(document: Mapping[str, Any], version: Any, root: str) -> dict[str, Any]:
    """Return LccnSubscription; authentication is never shown."""
    me = f"{base_url(version, root)}/subscriptions/{document['id']}"
    shown = {name: document[name] for name in ("id", "callbackUri", "verbosity")}
    wanted = {name: value for name, value in document.get("filter", {}).items() if value}
    return {**shown, **({"filter": wanted} if wanted else {}), "_links": {"self": {"href": me}}}


async def create(request: web.Request) -> web.Response:
    """POST subscriptions: 201, its callback tested."""
    check_query(request)
    check_accept(request, "application/json")
    wanted = parse(SubscriptionRequest, await read_json(request))
    version = api_version(request)
    shown = view(await gateway(request).subscriptions.create(wanted, version), version, api_root(request))
    return web.json_response(shown, status=201, headers={"Location": shown["_links"]["self"]["href"]})


async def list_all(request: web.Request) -> web.StreamResponse:
    """GET subscriptions: a page, filtered."""
    check_accept(request, "application/json")
    version, root = api_version(request), api_root(request)
    return await list_page(request, COLLECTION, SUBSCRIPTIONS[version], lambda document: view(document, version, root))


async def show(request: web.Request) -> web.Response:
    """GET subscriptions/{id}: 200."""
    check_query(request)
    check_accept(request, "application/json")
    version = api_version(request)
    stored = await gateway(request).subscriptions.get(request.match_info["id"], version)
    return web.json_response(view(stored.body, version, api_root(request)))


async def delete(request: web.Request) -> web.Response:
    """DELETE subscriptions/{id}: 204."""
    check_query(request)
    await gateway(request).subscriptions.delete(request.match_info["id"], api_version(request))
    return web.Response(status=204)


def routes(version: str) -> list[web.RouteDef]:
    """Return the routes of one API version."""
    base = f"/vnflcm/{version}/subscriptions"
    return [
        web.post(base, create),
        web.get(base, list_all),
        web.get(f"{base}/{{id}}", show),
        web.delete(f"{base}/{{id}}", delete),
    ]
