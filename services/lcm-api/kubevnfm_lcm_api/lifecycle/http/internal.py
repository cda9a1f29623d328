"""``/internal/v1``: instances and the users of a VIM, for the other services."""

from __future__ import annotations

from aiohttp import web

from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.http.context import services
from kubevnfm_lcm_api.lifecycle.http.models import AwaitedCallbacks, InstanceExists, VimUsers


async def vim_users(request: web.Request) -> web.Response:
    """GET vims/{id}/users: the ids of the instances that have resources on a VIM."""
    return web.json_response({"users": await services(request).instances.users(request.match_info["id"])})


async def instance(request: web.Request) -> web.Response:
    """GET instances/{id}: 200 if the VNF instance exists, with the id of the operation that runs on it, else 404."""
    found = await services(request).instances.get(request.match_info["id"])
    record = InstanceRecord.from_document(found.body)
    return web.json_response({"id": found.id, "operation": record.internals.current_operation})


async def awaited_callbacks(request: web.Request) -> web.Response:
    """GET awaited-callbacks: what a call-back of an instance must say now; none also for an unknown instance."""
    awaiting = services(request).awaited_callbacks
    found = await awaiting.awaited(request.query.get("vnfInstanceId", ""), request.query.get("operation", ""))
    return web.json_response({"awaited": [] if found is None else [found.model_dump(mode="json", exclude_none=True)]})


def routes() -> list[Route]:
    """Return the internal routes of the life cycle."""
    tag, base = "Between the services", "/internal/v1"
    users, exists = {200: Answer("Their ids", VimUsers)}, {200: Answer("It exists", InstanceExists)}
    awaited = {200: Answer("It, if there is one", AwaitedCallbacks)}
    about = (Parameter("vnfInstanceId", "The instance"), Parameter("operation", "What the call-back names"))
    summary = "Ask which call-back of a workload cluster an instance awaits"
    return [
        Route(tag, "GET", f"{base}/vims/{{id}}/users", vim_users, "Ask which instances live on a VIM", users),
        Route(tag, "GET", f"{base}/instances/{{id}}", instance, "Ask whether an instance exists", exists),
        Route(tag, "GET", f"{base}/awaited-callbacks", awaited_callbacks, summary, awaited, query=about),
    ]
