"""The paths of Tacker that monitoring systems call: at the root of the gateway, without a version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from aiohttp import web

from kubevnfm_lcm_api.http.bodies import read_json
from kubevnfm_lcm_api.http.routes import Answer, Route, add_routes
from kubevnfm_lcm_api.webhooks.domain.ports import Count
from kubevnfm_lcm_api.webhooks.http.models import AlertMessage
from kubevnfm_lcm_api.webhooks.receiving import Webhook, alerts_of, counted

TAG: Final = "Monitoring systems"
_STORED: Final = {204: Answer("All of it is stored")}
_SUMMARIES: Final = {
    "/alert": "Raise and clear alarms",
}
_REFUSALS: Final = {
    422: "Alerts name what does not exist, or does not allow it; the others are stored",
    503: "It cannot be stored now; repeat the message",
}


def add_to(app: web.Application, webhooks: Sequence[Webhook[Any]], count: Count) -> None:
    """Add the paths to an application."""
    add_routes(app, [_route(each, count) for each in webhooks])


def _route(webhook: Webhook[Any], count: Count) -> Route:
    path = webhook.path

    async def receive(request: web.Request) -> web.Response:
        with counted(path, count):
            alerts = alerts_of(await read_json(request))
        await webhook.receive(alerts, count)
        return web.Response(status=204)

    return Route(TAG, "POST", path, receive, _SUMMARIES[path], _STORED, AlertMessage, refusals=_REFUSALS)
