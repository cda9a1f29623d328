"""``/v1/instance/{id}/healthcheck``: the tests of the chart of an instance are run (multicloud.md MC-134)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from aiohttp import web
from kubevnfm_clients.multicloud.health_checks import HealthCheck, HookResult
from kubevnfm_kit.errors import Conflict
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_sol.lcm import InstantiationState

from kubevnfm_lcm_api.http.routes import Answer, Route
from kubevnfm_lcm_api.multicloud.services import services, vnfs
from kubevnfm_lcm_api.onap.answers import CheckOverview, CheckSummary, ShownCheck
from kubevnfm_lcm_api.onap.instances import name_of, vnf_named

_MANY: Final = "/v1/instance/{id}/healthcheck"
_ONE: Final = f"{_MANY}/{{check}}"
_NEVER: Final = "0001-01-01T00:00:00Z"
"""The time of nothing, as programs in Go write it."""


async def create(request: web.Request) -> web.Response:
    """POST healthcheck: 201 while its tests run."""
    vnf = await vnf_named(request)
    record = vnf.record
    if record.internals.current_operation is not None:
        raise Conflict(f"operation {record.internals.current_operation} runs on the instance")
    if record.vnf.instantiation_state is not InstantiationState.INSTANTIATED:
        raise Conflict("the instance is not up")
    await vnfs(request).suspensions.check(record, record.internals.vim_ids)
    made = await services(request).health_checks.create(record.vnf.id)
    return web.json_response(_summary(made), status=201)


async def list_all(request: web.Request) -> web.Response:
    """GET healthcheck: 200."""
    vnf = await vnf_named(request)
    found = await services(request).health_checks.find(vnf.record.vnf.id)
    shown = {"instance-id": name_of(vnf), "healthcheck-summary": [_summary(each) for each in found], "hooks": None}
    return web.json_response(shown)


async def show(request: web.Request) -> web.Response:
    """GET healthcheck/{check}: 200."""
    vnf = await vnf_named(request)
    found = await services(request).health_checks.get(vnf.record.vnf.id, request.match_info["check"])
    suite = {
        "StartedAt": found.started_at,
        "CompletedAt": found.completed_at or _NEVER,
        "Results": [_result(each) for each in found.results],
    }
    # `reason` is not of ONAP.
    shown = {"instance-id": name_of(vnf), **_summary(found), "test-suite": suite, "reason": found.reason}
    return web.json_response(shown)


async def delete(request: web.Request) -> web.Response:
    """DELETE healthcheck/{check}: 202; the objects of its tests are deleted."""
    vnf = await vnf_named(request)
    await services(request).health_checks.delete(vnf.record.vnf.id, request.match_info["check"])
    return web.Response(status=202)


def _summary(check: HealthCheck) -> JsonObject:
    return {"healthcheck-id": check.id, "status": check.status}


def _result(result: HookResult) -> JsonObject:
    return {
        "name": result.name,
        "status": result.status or "Unknown",
        "started_at": result.started_at or _NEVER,
        "completed_at": result.completed_at or _NEVER,
        "kind": result.kind,
        "namespace": result.namespace,
        "reason": result.reason,
    }


def routes() -> Iterator[Route]:
    """Yield the routes."""
    tag, made = "Instances", {201: Answer("The check, while its tests run", CheckSummary)}
    busy = {409: "The instance is not up, an operation or another check of it runs, or it is suspended"}
    overview, found = {200: Answer("Those of the instance", CheckOverview)}, {200: Answer("The check", ShownCheck)}
    yield Route(tag, "POST", _MANY, create, "Run the tests of its chart", made, refusals=busy)
    yield Route(tag, "GET", _MANY, list_all, "List health checks", overview)
    yield Route(tag, "GET", _ONE, show, "Show a health check", found)
    yield Route(tag, "DELETE", _ONE, delete, "Remove a health check", {202: Answer("It is being removed")})
