"""``/v1/connectivity-info``: cloud regions as ONAP registers them (multicloud.md MC-132)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from aiohttp import web
from kubevnfm_clients.multicloud.contents import check_empty
from kubevnfm_clients.multicloud.regions import KUBECONFIG_BYTES, CloudRegion, RegionRequest
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_lcm_api.http.bodies import FORM, read_body
from kubevnfm_lcm_api.http.context import context
from kubevnfm_lcm_api.http.routes import Answer, Route
from kubevnfm_lcm_api.multicloud.bodies import parsed, read_form
from kubevnfm_lcm_api.multicloud.services import services
from kubevnfm_lcm_api.onap.answers import GONE, NO_BODY, SEVERAL, WRONG, Connectivity, ConnectivityForm
from kubevnfm_lcm_api.onap.networks import remove_of_region
from kubevnfm_lcm_api.onap.plain import EmptyBody, region_named

_OTHER: Final = "other-connectivity-list"
_NAMES: Final = {
    "cloud-owner": "cloud_owner", "cloud-region": "cloud_region", _OTHER: _OTHER, "kubeconfig": "kubeconfig"
}  # fmt: skip
"""Members of ours by those of ONAP."""


async def register(request: web.Request) -> web.Response:
    """POST connectivity-info: 201 after the cluster has answered, also for a region that is registered with this endpoint."""
    if not await read_body(request):
        raise EmptyBody("", "a body is required")
    if request.content_type != FORM:
        raise InvalidInput("", "multipart/form-data with the parts metadata and file expected")
    given = await read_form(request, "kubeconfig", limit_bytes=KUBECONFIG_BYTES)
    for name in given:
        if name not in _NAMES:
            raise Unprocessable(name, "no such member")
    asked = {_NAMES[name]: value for name, value in given.items()}
    region, _ = await services(request).regions.register(parsed(RegionRequest, asked))
    return web.json_response(_shown(region), status=201)


async def show(request: web.Request) -> web.Response:
    """GET connectivity-info/{region}: 200."""
    return web.json_response(_shown(await region_named(request, request.match_info["region"])))


async def delete(request: web.Request) -> web.Response:
    """DELETE connectivity-info/{region}: 204, or 409 while something is in it."""
    region = await region_named(request, request.match_info["region"])
    owners = services(request)
    await check_empty(owners.links, owners.volumes, region.vim_id, f"cloud region {region.id}")
    await owners.regions.delete(region.cloud_owner, region.cloud_region, if_revision=None)
    await remove_of_region(context(request).store, region.vim_id)
    return web.Response(status=204)


def _shown(region: CloudRegion) -> JsonMapping:
    shown = region.model_dump(mode="json", by_alias=True)
    return {name: shown[ours] for name, ours in _NAMES.items() if ours in shown}


def routes() -> Iterator[Route]:
    """Yield the routes."""
    tag, many, one = "Connectivity", "/v1/connectivity-info", "/v1/connectivity-info/{region}"
    taken = {409: "It is registered with another endpoint"}
    yield Route(
        tag, "POST", many, register, "Register a cloud region", {201: Answer("The region", Connectivity)},
        ConnectivityForm, (FORM,), refusals={**NO_BODY, **taken, **WRONG},
    )  # fmt: skip
    shown = {200: Answer("The region", Connectivity)}
    yield Route(tag, "GET", one, show, "Show a cloud region", shown, refusals=SEVERAL)
    used = {409: f"{SEVERAL[409]}; or something is in it"}
    yield Route(tag, "DELETE", one, delete, "Remove a cloud region", GONE, refusals=used)
