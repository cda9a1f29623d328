"""``/multicloud/v1/cloud-regions``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, TypeVar

from aiohttp import web
from kubevnfm_clients.multicloud.contents import check_empty
from kubevnfm_clients.multicloud.region_views import KubernetesObject, RegionFeatures, RegionHealth
from kubevnfm_clients.multicloud.regions import (
    KUBECONFIG_BYTES,
    CloudRegion,
    Kubeconfig,
    ObjectsWanted,
    RegionPatch,
    RegionRequest,
)
from kubevnfm_kit.errors import InvalidInput, OutsideUnavailable
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.http.bodies import FORM, JSON, PATCH, parse
from kubevnfm_lcm_api.http.conditions import answer, check_unchanged, entity_tag, seen_revision
from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.errors import BodyTooLarge
from kubevnfm_lcm_api.http.pages import PARAMETERS, read_page
from kubevnfm_lcm_api.http.routes import DELETED, Answer, Parameter, Route, page_of
from kubevnfm_lcm_api.multicloud.bodies import parsed, read, read_form
from kubevnfm_lcm_api.multicloud.flags import TRUTH, read_flag
from kubevnfm_lcm_api.multicloud.pages import page_answer
from kubevnfm_lcm_api.multicloud.services import PREFIX, services

_MANY: Final = f"{PREFIX}/cloud-regions"
_ONE: Final = f"{_MANY}/{{owner}}/{{region}}"
_VARIANT: Final = "cloud-regions"
_TYPES: Final = (*JSON, FORM)
_FILTERS: Final = (
    Parameter("cloud_region_id", "The id, or the name of the region alone"),
    Parameter("cloud_owner", "Equal to this"),
    Parameter("cloud_region", "Equal to this"),
    Parameter("status", "Equal to this", values=("ACTIVE", "UNREACHABLE", "ERROR")),
)


_QUERY: Final = (
    Parameter("apiVersion", "Group and version: v1, apps/v1; required"),
    Parameter("kind", "Such as Deployment; required"),
    Parameter("namespace", "Those of this namespace"),
    Parameter("name", "Those of this name"),
    Parameter("labels", "A label selector: app=a,tier in (b,c)"),
)

_FORCE: Final = Parameter("force", "Whether virtual links and persistent volumes are left there", values=TRUTH)

K = TypeVar("K", bound=Kubeconfig)


async def register(request: web.Request) -> web.Response:
    """POST cloud-regions: 201 after the cluster has answered, 200 if the region is registered with this endpoint."""
    region, is_new = await services(request).regions.register(await _read(request, RegionRequest))
    location = f"{api_root(request)}{_MANY}/{region.id}"
    tag = entity_tag(_VARIANT, region)
    if is_new:
        return web.json_response(_shown(region), status=201, headers={"Location": location, "ETag": tag})
    return web.json_response(_shown(region), headers={"ETag": tag})


async def health(request: web.Request) -> web.Response:
    """GET cloud-regions/{owner}/{region}/health: 200, also if the cluster does not answer."""
    region, found = await _region(request), await services(request).regions.health(*_key(request))
    with suppress(OutsideUnavailable):
        watch = await services(request).inventory.watch_of(region.vim_id)
        found = found.model_copy(update={"watch": watch})
    return web.json_response(found.model_dump(mode="json"))


async def features(request: web.Request) -> web.Response:
    """GET cloud-regions/{owner}/{region}/features: as the cluster has them now."""
    found = await services(request).regions.features(*_key(request))
    # In a thread: those of 5,000 nodes are some 20 MB.
    return web.json_response(text=await asyncio.to_thread(found.model_dump_json))


async def resources(request: web.Request) -> web.Response:
    """GET cloud-regions/{owner}/{region}/resources: a page of objects of one kind, as the cluster has them now."""
    await _region(request)  # 404 comes before what is wrong in the query
    asked = read_page(request, _QUERY)
    for name in ("apiVersion", "kind"):
        if name not in asked.filters:
            raise InvalidInput(name, "the query parameter is required")
    # A query, so what is wrong in it is 400.
    wanted = parse(ObjectsWanted, asked.filters)
    page = await services(request).regions.resources(*_key(request), wanted, limit=asked.limit, after=asked.after)
    return page_answer(request, asked, page, lambda item: item.model_dump(mode="json"))


async def change(request: web.Request) -> web.Response:
    """PATCH cloud-regions/{owner}/{region}: 200 with the changed region."""
    patch = await read(request, RegionPatch, PATCH)
    region = await _unchanged(request)
    owner, name, seen = region.cloud_owner, region.cloud_region, seen_revision(request, region.revision)
    changed = await services(request).regions.change(owner, name, patch, if_revision=seen)
    return web.json_response(_shown(changed), headers={"ETag": entity_tag(_VARIANT, changed)})


async def rotate(request: web.Request) -> web.Response:
    """PUT cloud-regions/{owner}/{region}/kubeconfig: 200 after the cluster has answered with it."""
    access = await _read(request, Kubeconfig)
    region = await _unchanged(request)
    owner, name, seen = region.cloud_owner, region.cloud_region, seen_revision(request, region.revision)
    changed = await services(request).regions.rotate(owner, name, access, if_revision=seen)
    return web.json_response(_shown(changed), headers={"ETag": entity_tag(_VARIANT, changed)})


async def delete(request: web.Request) -> web.Response:
    """DELETE cloud-regions/{owner}/{region}: 204, or 409 with the instances, virtual links or persistent volumes in it."""
    is_forced, region = read_flag(request, _FORCE), await _unchanged(request)
    owner, name, seen = region.cloud_owner, region.cloud_region, seen_revision(request, region.revision)
    owners = services(request)
    if not is_forced:
        await check_empty(owners.links, owners.volumes, region.vim_id, f"cloud region {region.id}")
    await owners.regions.delete(owner, name, if_revision=seen)
    return web.Response(status=204)


async def _read(request: web.Request, model: type[K]) -> K:
    """Return a request with a kubeconfig in it, or beside it in a form. Raises BodyTooLarge (413) for a larger one."""
    if request.content_type == FORM:
        wanted = parsed(model, await read_form(request, "kubeconfig", limit_bytes=KUBECONFIG_BYTES))
    else:
        wanted = await read(request, model)
    encoded = wanted.kubeconfig.reveal(context(request).ring) if wanted.kubeconfig is not None else ""
    if len(encoded) // 4 * 3 - encoded[-2:].count("=") > KUBECONFIG_BYTES:
        raise BodyTooLarge(f"a kubeconfig may have up to {KUBECONFIG_BYTES} bytes")
    return wanted


async def list_all(request: web.Request) -> web.Response:
    """GET cloud-regions: a page of them, by id."""
    asked = read_page(request, _FILTERS)
    page = await services(request).regions.find(asked.filters, limit=asked.limit, after=asked.after)
    return page_answer(request, asked, page, _shown)


async def show(request: web.Request) -> web.Response:
    """GET cloud-regions/{owner}/{region}: 200 with ETag, or 304."""
    region = await _region(request)
    return answer(request, _shown(region), entity_tag(_VARIANT, region), region.updated_at)


async def _unchanged(request: web.Request) -> CloudRegion:
    region = await _region(request)
    check_unchanged(request, entity_tag(_VARIANT, region), region.updated_at)
    return region


async def _region(request: web.Request) -> CloudRegion:
    return await services(request).regions.get(*_key(request))


def _key(request: web.Request) -> tuple[str, str]:
    return request.match_info["owner"], request.match_info["region"]


def _shown(region: CloudRegion) -> JsonObject:
    return region.model_dump(mode="json", by_alias=True, exclude={"revision"})


def routes() -> Iterator[Route]:
    """Yield the routes of cloud regions."""
    tag = "Cloud regions"
    shown = {200: Answer("The region", CloudRegion, has_etag=True)}
    made = {
        201: Answer("Registered", CloudRegion, has_location=True, has_etag=True),
        200: Answer("It is registered with this endpoint", CloudRegion, has_etag=True),
    }
    wrong = {422: "The kubeconfig or its cluster cannot be used, or an attribute is not as expected"}
    taken = {409: "It is registered with another endpoint, or a VIM has its name"}
    used = {409: "VNF instances use it, or it has virtual links or persistent volumes"}
    page = page_of(CloudRegion)
    yield Route(
        tag, "POST", _MANY, register, "Register a region", made, RegionRequest, _TYPES, refusals={**wrong, **taken}
    )
    yield Route(tag, "GET", _MANY, list_all, "List regions", page, query=(*_FILTERS, *PARAMETERS))
    yield Route(tag, "GET", _ONE, show, "Show a region", shown)
    yield Route(
        tag, "DELETE", _ONE, delete, "Remove a region", DELETED, query=(_FORCE,), conditions=True, refusals=used
    )
    yield Route(
        tag,
        "PATCH",
        _ONE,
        change,
        "Change labels and kv",
        shown,
        RegionPatch,
        PATCH,
        conditions=True,
        refusals={422: "An attribute is not as expected, or cannot be changed"},
    )
    yield Route(
        tag,
        "PUT",
        f"{_ONE}/kubeconfig",
        rotate,
        "Use other access data of the same cluster",
        shown,
        Kubeconfig,
        _TYPES,
        conditions=True,
        refusals=wrong,
    )
    away = {503: "The cluster does not answer", 422: "The cluster refuses the access data"}
    states = {200: Answer("Whether it answers", RegionHealth)}
    has = {200: Answer("The features", RegionFeatures)}
    objects, query = page_of(KubernetesObject), (*_QUERY, *PARAMETERS)
    unknown = {**away, 422: f"{away[422]}; or does not serve the kind"}
    yield Route(tag, "GET", f"{_ONE}/health", health, "Call the cluster of a region", states)
    yield Route(tag, "GET", f"{_ONE}/features", features, "Show the features of its nodes", has, refusals=away)
    yield Route(
        tag, "GET", f"{_ONE}/resources", resources, "Read objects of a kind", objects, query=query, refusals=unknown
    )
