"""``/v1/instance/{id}/status`` and ``/query``, and ``/v1/query``: objects as regions have them now (multicloud.md MC-134)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from aiohttp import web
from kubevnfm_clients.multicloud.regions import ObjectsWanted
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.http.bodies import parse
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route
from kubevnfm_lcm_api.multicloud.services import services
from kubevnfm_lcm_api.multicloud.vnf_status import report_on
from kubevnfm_lcm_api.onap.answers import (
    AWAY,
    NO_PARAMETER,
    NOT_THERE,
    SEVERAL,
    FoundObjects,
    FoundOfInstance,
    InstanceState,
)
from kubevnfm_lcm_api.onap.instances import group_version_kind, shown_request, vnf_named
from kubevnfm_lcm_api.onap.plain import MissingParameter, region_named

_QUERY: Final = (
    Parameter("ApiVersion", "That of the objects", is_required=True),
    Parameter("Kind", "That of the objects", is_required=True),
    Parameter("Name", "The name of the one object"),
    Parameter("Labels", "A label selector"),
)
_OF_REGION: Final = (
    *_QUERY,
    Parameter("CloudRegion", "The name of the region, or its id", is_required=True),
    Parameter("Namespace", "That of the objects"),
)
_PAGE: Final = 100
_MOST: Final = 1000
_MOST_BYTES: Final = 8 * 2**20
_INSTANCE_LABEL: Final = "kubevnfm.io/vnf-instance-id"


async def status(request: web.Request) -> web.Response:
    """GET instance/{id}/status: 200 with each object as it is, the pods of the instance among them."""
    vnf = await vnf_named(request)
    report = await report_on(services(request), vnf, whole=True)
    place = vnf.record.internals.multicloud
    assert place is not None
    shown = [
        _entry(each.api_version, each.kind, each.name, each.status) for each in report.resources if each.hook is None
    ]
    pods = ObjectsWanted(
        apiVersion="v1", kind="Pod", namespace=place.namespace, labels=f"{_INSTANCE_LABEL}={vnf.record.vnf.id}"
    )
    known = {each.name for each in report.resources if each.kind == "Pod"}
    read, is_cut = await _read(request, place.key, pods)
    found = [each for each in read if each["name"] not in known]
    return web.json_response(
        {
            "request": await shown_request(request, vnf),
            "ready": report.ready,
            "resourceCount": len(shown) + len(found),
            "resourcesStatus": [*shown, *found],
            **({"truncated": True} if is_cut else {}),
        }
    )


async def query(request: web.Request) -> web.Response:
    """GET instance/{id}/query: 200 with the objects of a kind that belong to the instance."""
    vnf = await vnf_named(request)
    place = vnf.record.internals.multicloud
    assert place is not None
    own = f"{_INSTANCE_LABEL}={vnf.record.vnf.id}"
    given = _wanted(request)
    labels = ",".join(filter(None, (given.get("labels"), own)))
    wanted = parse(ObjectsWanted, {**given, "labels": labels})
    found = await _objects(request, place.key, wanted)
    return web.json_response({"request": await shown_request(request, vnf), **_counted(found)})


async def query_region(request: web.Request) -> web.Response:
    """GET query: 200 with the objects of a kind in a region."""
    given = _wanted(request)
    name = request.query.get("CloudRegion")
    if not name:
        raise MissingParameter("CloudRegion", "the query parameter is required")
    region = await region_named(request, name)
    if request.query.get("Namespace"):
        given["namespace"] = request.query["Namespace"]
    key = region.cloud_owner, region.cloud_region
    return web.json_response(_counted(await _objects(request, key, parse(ObjectsWanted, given))))


async def health(_: web.Request) -> web.Response:
    """GET healthcheck: 200 while requests are answered."""
    return web.json_response({})


def _wanted(request: web.Request) -> dict[str, str]:
    names = {"ApiVersion": "apiVersion", "Kind": "kind", "Name": "name", "Labels": "labels"}
    for name in ("ApiVersion", "Kind"):
        if not request.query.get(name):
            raise MissingParameter(name, "the query parameter is required")
    return {ours: request.query[name] for name, ours in names.items() if request.query.get(name)}


async def _objects(request: web.Request, key: tuple[str, str], wanted: ObjectsWanted) -> list[JsonObject]:
    """Return all objects that are wanted. Raises Unprocessable for too many."""
    found, is_cut = await _read(request, key, wanted)
    if is_cut:
        raise Unprocessable("Labels", f"more than {_MOST} objects, or {_MOST_BYTES} bytes: name fewer")
    return found


async def _read(request: web.Request, key: tuple[str, str], wanted: ObjectsWanted) -> tuple[list[JsonObject], bool]:
    """Return the objects that are wanted, and whether there are more than an answer may have."""
    found: list[JsonObject] = []
    after, size = None, 0
    while True:
        page = await services(request).regions.resources(*key, wanted, limit=_PAGE, after=after)
        for item in page.items:
            body = item.model_dump(mode="json")
            size += len(json.dumps(body))
            if len(found) == _MOST or size > _MOST_BYTES:
                return found, True
            found.append(_entry(wanted.apiVersion, wanted.kind, _name(body), body))
        after = page.next_after
        if after is None:
            return found, False


def _name(body: Mapping[str, object]) -> str:
    metadata = body.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""


def _counted(found: list[JsonObject]) -> JsonObject:
    return {"resourceCount": len(found), "resourcesStatus": found}


def _entry(api_version: str, kind: str, name: str, body: object) -> JsonObject:
    return {"name": name, "GVK": group_version_kind(api_version, kind), "status": body}


def routes() -> Iterator[Route]:
    """Yield the routes."""
    tag = "Objects"
    refusing = "The region refuses the access data"
    many = {422: f"{refusing}; or more than {_MOST} objects, or {_MOST_BYTES} bytes, are there"}
    state = {200: Answer("Each object as it is, with the pods", InstanceState)}
    yield Route(
        tag, "GET", "/v1/instance/{id}/status", status, "Read the objects of an instance", state,
        refusals={422: refusing, **AWAY},
    )  # fmt: skip
    yield Route(
        tag, "GET", "/v1/instance/{id}/query", query, "Read objects of a kind of an instance",
        {200: Answer("The objects", FoundOfInstance)}, query=_QUERY, refusals={**NO_PARAMETER, **many, **AWAY},
    )  # fmt: skip
    yield Route(
        tag, "GET", "/v1/query", query_region, "Read objects of a kind of a region",
        {200: Answer("The objects", FoundObjects)}, query=_OF_REGION,
        refusals={**NO_PARAMETER, **NOT_THERE, **SEVERAL, **many, **AWAY},
    )  # fmt: skip
    answers = {200: Answer("It answers requests", is_any_object=True)}
    yield Route(tag, "GET", "/v1/healthcheck", health, "Whether requests are answered", answers)
