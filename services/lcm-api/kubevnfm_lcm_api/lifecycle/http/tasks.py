"""The tasks of an instantiated VNF instance, and its modification (SOL003 clauses 5.4.3.3.4, 5.4.5 to 5.4.11a)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from aiohttp import web
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_sol.lcm import (
    ChangeCurrentVnfPkgRequest,
    ChangeExtVnfConnectivityRequest,
    ChangeVnfFlavourRequest,
    HealVnfRequest,
    OperateVnfRequest,
    ScaleVnfRequest,
    ScaleVnfToLevelRequest,
    VnfInfoModificationRequest,
)
from kubevnfm_store.query import Stored
from pydantic import BaseModel

from kubevnfm_lcm_api.http.bodies import PATCH, check_query, parse, read_json
from kubevnfm_lcm_api.http.conditions import check_unchanged, entity_tag
from kubevnfm_lcm_api.http.context import api_root
from kubevnfm_lcm_api.lifecycle.http.context import accepted, api_version, repeated, services
from kubevnfm_lcm_api.lifecycle.http.render import base_url, request_in_v2_form

B = TypeVar("B", bound=BaseModel)


async def scale(request: web.Request) -> web.Response:
    """POST .../scale: 202."""
    wanted, original = await _read(request, ScaleVnfRequest)
    return _accepted(request, await services(request).tasks.scale.accept(request.match_info["id"], wanted, *original))


async def scale_to_level(request: web.Request) -> web.Response:
    """POST .../scale_to_level: 202."""
    wanted, original = await _read(request, ScaleVnfToLevelRequest)
    return _accepted(
        request, await services(request).tasks.scale.accept_level(request.match_info["id"], wanted, *original)
    )


async def heal(request: web.Request) -> web.Response:
    """POST .../heal: 202; without a body the whole VNF is healed."""
    wanted, original = await _read(request, HealVnfRequest, is_required=False)
    return _accepted(request, await services(request).tasks.heal.accept(request.match_info["id"], wanted, *original))


async def operate(request: web.Request) -> web.Response:
    """POST .../operate: 202."""
    wanted, original = await _read(request, OperateVnfRequest)
    return _accepted(request, await services(request).tasks.operate.accept(request.match_info["id"], wanted, *original))


async def change_ext_conn(request: web.Request) -> web.Response:
    """POST .../change_ext_conn: 202."""
    wanted, original = await _read(request, ChangeExtVnfConnectivityRequest)
    return _accepted(
        request, await services(request).tasks.connectivity.accept(request.match_info["id"], wanted, *original)
    )


async def change_flavour(request: web.Request) -> web.Response:
    """POST .../change_flavour: 202."""
    wanted, original = await _read(request, ChangeVnfFlavourRequest)
    return _accepted(request, await services(request).tasks.flavour.accept(request.match_info["id"], wanted, *original))


async def change_vnfpkg(request: web.Request) -> web.Response:
    """POST .../change_vnfpkg: 202; v2 only."""
    wanted, original = await _read(request, ChangeCurrentVnfPkgRequest)
    return _accepted(request, await services(request).tasks.package.accept(request.match_info["id"], wanted, *original))


async def modify(request: web.Request) -> web.Response:
    """PATCH vnf_instances/{id}: 202, or 412 when it is not as the caller has seen it."""
    check_query(request)
    version = api_version(request)
    original = await read_json(request, PATCH)
    document = request_in_v2_form(original, version)
    wanted = parse(VnfInfoModificationRequest, document)
    if version == "v2" and "vnf_pkg_id" in wanted.model_fields_set:
        raise InvalidInput("vnfPkgId", "no such attribute; vnfdId names the package")
    for name in ("vnfdId", "vnfPkgId"):
        if isinstance(document, Mapping) and name in document and document[name] is None:
            raise InvalidInput(name, "a text expected: it cannot be removed")

    def as_seen(stored: Stored) -> None:
        check_unchanged(request, entity_tag(version, stored), stored.body["updatedAt"])

    occurrence = await services(request).tasks.modify.accept(
        request.match_info["id"], wanted, original, version, check=as_seen
    )
    return _accepted(request, occurrence)


async def _read(request: web.Request, model: type[B], *, is_required: bool = True) -> tuple[B, tuple[JsonMapping, Any]]:
    """Return the request in v2 form, and as it came with its API version."""
    check_query(request)
    version = api_version(request)
    original = await read_json(request, is_required=is_required)
    return parse(model, request_in_v2_form(original, version)), (original, version)


def _accepted(request: web.Request, occurrence_id: str) -> web.Response:
    return accepted(f"{base_url(api_version(request), api_root(request))}/vnf_lcm_op_occs/{occurrence_id}")


def routes(version: str) -> list[web.RouteDef]:
    """Return the routes of one API version."""
    one = f"/vnflcm/{version}/vnf_instances/{{id}}"
    found = [
        web.patch(one, repeated(modify)),
        web.post(f"{one}/scale", repeated(scale)),
        web.post(f"{one}/scale_to_level", repeated(scale_to_level)),
        web.post(f"{one}/heal", repeated(heal)),
        web.post(f"{one}/operate", repeated(operate)),
        web.post(f"{one}/change_ext_conn", repeated(change_ext_conn)),
        web.post(f"{one}/change_flavour", repeated(change_flavour)),
    ]
    return found if version == "v1" else [*found, web.post(f"{one}/change_vnfpkg", repeated(change_vnfpkg))]
