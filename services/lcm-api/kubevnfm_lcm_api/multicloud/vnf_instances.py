"""``/multicloud/v1/vnf_instances``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from aiohttp import web
from kubevnfm_kit.errors import NotFound

from kubevnfm_lcm_api.http.bodies import read_json
from kubevnfm_lcm_api.http.conditions import answer
from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.routes import Answer, Route
from kubevnfm_lcm_api.multicloud import vnf_requests
from kubevnfm_lcm_api.multicloud.bodies import parsed
from kubevnfm_lcm_api.multicloud.prefer import read_preference
from kubevnfm_lcm_api.multicloud.services import PREFIX, services, vnfs
from kubevnfm_lcm_api.multicloud.vnf_types import VnfInstance, VnfInstanceRequest
from kubevnfm_lcm_api.multicloud.vnf_views import Vnf, with_operation
from kubevnfm_lcm_api.multicloud.waiting import ended

_MANY: Final = f"{PREFIX}/vnf_instances"
_ONE: Final = f"{_MANY}/{{id}}"


async def bring_up(request: web.Request) -> web.Response:
    """POST vnf_instances: 201 once its operation has ended or waits FAILED_TEMP, 202 if it runs on."""
    body = await read_json(request, secrets_in=("values",))
    wanted = parsed(VnfInstanceRequest, body)
    preference = read_preference(request)
    made, operation_id = await vnf_requests.accept(vnfs(request), services(request).regions, wanted, body)
    state = await ended(context(request).store, operation_id, preference.wait_s)
    vnf = await _vnf(request, made.vnf.id)
    root = api_root(request)
    headers = {**preference.headers, "Location": f"{root}{_MANY}/{made.vnf.id}", "ETag": vnf.tag}
    status = 202 if state is None else 201
    return web.json_response(vnf.view(root, operation_id), status=status, headers=headers)


async def show(request: web.Request) -> web.Response:
    """GET vnf_instances/{id}: 200 with ETag, or 304."""
    vnf = await _vnf(request, request.match_info["id"])
    return answer(request, vnf.view(api_root(request)), vnf.tag, vnf.record.updated_at)


async def _vnf(request: web.Request, instance_id: str) -> Vnf:
    """Return a VNF of this API. Raises NotFound."""
    vnf = await with_operation(context(request).store, await vnfs(request).instances.get(instance_id))
    if vnf.record.internals.multicloud is None:
        raise NotFound(f"VNF instance {instance_id} was not made by this API")
    return vnf


def routes() -> Iterator[Route]:
    """Yield the routes of VNFs."""
    tag = "VNF instances"
    made = {
        201: Answer("Its operation has ended: status says how", VnfInstance, has_location=True, has_etag=True),
        202: Answer("Not finished in time", VnfInstance, has_location=True, has_etag=True),
    }
    shown = {200: Answer("The VNF", VnfInstance, has_etag=True)}
    wrong = {
        422: "An attribute is not as expected, or does not fit the package or the region",
        503: "The region does not answer",
    }
    yield Route(tag, "POST", _MANY, bring_up, "Bring a VNF up", made, VnfInstanceRequest, refusals=wrong)
    yield Route(tag, "GET", _ONE, show, "Show a VNF", shown)
