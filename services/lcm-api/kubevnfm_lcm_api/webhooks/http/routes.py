"""The paths of Tacker that monitoring systems call: at the root of the gateway, without a version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from aiohttp import web
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_sol.wrong_attributes import wrong_attributes
from pydantic import ValidationError

from kubevnfm_lcm_api.http.bodies import read_json
from kubevnfm_lcm_api.http.routes import Answer, Route, add_routes
from kubevnfm_lcm_api.server_alarms.work import SERVER_FAULTS
from kubevnfm_lcm_api.webhooks.domain.ports import Count
from kubevnfm_lcm_api.webhooks.http.models import AlertMessage, ServerFault, ServerNotification
from kubevnfm_lcm_api.webhooks.receiving import Webhook, alerts_of, counted
from kubevnfm_lcm_api.webhooks.server_faults import ServerFaults

TAG: Final = "Monitoring systems"
_STORED: Final = {204: Answer("All of it is stored")}
_SUMMARIES: Final = {
    "/alert": "Raise and clear alarms",
    "/pm_event": "Report values of PM jobs",
    "/pm_threshold": "Report values that thresholds are compared with",
    "/alert/auto_healing": "Have VNFCs healed",
    "/alert/auto_scaling": "Have aspects scaled by one step",
}
_REFUSALS: Final = {
    422: "Alerts name what does not exist, or does not allow it; the others are stored",
    503: "It cannot be stored now; repeat the message",
}


def add_to(app: web.Application, webhooks: Sequence[Webhook[Any]], servers: ServerFaults, count: Count) -> None:
    """Add the paths to an application."""
    add_routes(app, [*(_route(each, count) for each in webhooks), _server_route(servers, count)])


def _route(webhook: Webhook[Any], count: Count) -> Route:
    path = webhook.path

    async def receive(request: web.Request) -> web.Response:
        with counted(path, count):
            alerts = alerts_of(await read_json(request))
        await webhook.receive(alerts, count)
        return web.Response(status=204)

    return Route(TAG, "POST", path, receive, _SUMMARIES[path], _STORED, AlertMessage, refusals=_REFUSALS)


def _server_route(servers: ServerFaults, count: Count) -> Route:
    async def receive(request: web.Request) -> web.Response:
        with counted(SERVER_FAULTS, count):
            fault = _server_fault(await read_json(request))
            instance_id, server_id = (request.match_info[name] for name in ("id", "serverId"))
            await servers.heal(instance_id, server_id, alarm_id=fault.alarm_id, fault_id=fault.fault_id)
        count(SERVER_FAULTS, "accepted", 1)
        return web.Response(status=204)

    summary, refusals = "Report a fault of a server, whose VNFC is healed", {409: "It does not allow that", **_REFUSALS}
    return Route(TAG, "POST", SERVER_FAULTS, receive, summary, _STORED, ServerNotification, refusals=refusals)


def _server_fault(body: object) -> ServerFault:
    if not isinstance(body, dict):
        raise InvalidInput("", "a JSON object expected")
    try:
        return ServerNotification.model_validate(body).notification
    except ValidationError as error:
        first, *more = wrong_attributes(error, ServerNotification)
        raise InvalidInput(*first, *more) from error
