"""The tasks of a VNF instance, and its modification (SOL003 clauses 5.4.3.3.4, 5.4.4 to 5.4.11a)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from aiohttp import web
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_sol.lcm import (
    ChangeCurrentVnfPkgRequest,
    ChangeExtVnfConnectivityRequest,
    ChangeVnfFlavourRequest,
    HealVnfRequest,
    InstantiateVnfRequest,
    OperateVnfRequest,
    ScaleVnfRequest,
    ScaleVnfToLevelRequest,
    TerminateVnfRequest,
    VnfInfoModificationRequest,
)
from kubevnfm_store.query import Stored
from pydantic import BaseModel

from kubevnfm_lcm_api.http.bodies import PATCH, parse, read_json
from kubevnfm_lcm_api.http.conditions import check_unchanged, entity_tag
from kubevnfm_lcm_api.http.routes import Route
from kubevnfm_lcm_api.lifecycle.core.acceptance import ApiVersion
from kubevnfm_lcm_api.lifecycle.http.context import (
    ACCEPTED,
    LifecycleServices,
    accepted,
    api_version,
    repeated,
    services,
)
from kubevnfm_lcm_api.lifecycle.http.render import request_in_v2_form

B = TypeVar("B", bound=BaseModel)
Accept = Callable[[str, B, JsonMapping, ApiVersion], Awaitable[str]]
"""Accepts the request for an instance, in v2 form and as it came; returns the id of the occurrence."""
_TAG = "VNF instances"
_REFUSALS = {
    404: "No such instance, or its VNFD does not support this operation",
    409: "The instance is not in a state for it, or an operation runs on it or waits on it FAILED_TEMP",
    422: "Understood and impossible",
}


async def modify(request: web.Request) -> web.Response:
    """PATCH vnf_instances/{id}: 202, or 412 when it is not as the caller has seen it."""
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
    return accepted(request, occurrence)


def routes(version: ApiVersion) -> list[Route]:
    """Return the routes of one API version."""
    one = f"/vnflcm/{version}/vnf_instances/{{id}}"

    def task(
        name: str,
        summary: str,
        model: type[B],
        accept: Callable[[LifecycleServices], Accept[B]],
        *,
        is_body_required: bool = True,
    ) -> Route:
        @repeated
        async def handle(request: web.Request) -> web.Response:
            original = await read_json(request, is_required=is_body_required)
            wanted = parse(model, request_in_v2_form(original, version))
            occurrence = await accept(services(request))(request.match_info["id"], wanted, original, version)
            return accepted(request, occurrence)

        path = f"{one}/{name}"
        return Route(
            _TAG, "POST", path, handle, summary, ACCEPTED, model, is_body_required=is_body_required, refusals=_REFUSALS
        )

    change_package = task(
        "change_vnfpkg", "Change the VNF package", ChangeCurrentVnfPkgRequest, lambda of: of.tasks.package.accept
    )
    return [
        Route(
            _TAG,
            "PATCH",
            one,
            repeated(modify),
            "Modify the information of a VNF instance",
            ACCEPTED,
            VnfInfoModificationRequest,
            PATCH,
            conditions=True,
            refusals={**_REFUSALS, 404: "No such instance"},
        ),
        task("instantiate", "Instantiate a VNF", InstantiateVnfRequest, lambda of: of.instantiate.accept),
        task("terminate", "Terminate a VNF", TerminateVnfRequest, lambda of: of.terminate.accept),
        task("scale", "Scale a VNF by steps", ScaleVnfRequest, lambda of: of.tasks.scale.accept),
        task("scale_to_level", "Scale a VNF to levels", ScaleVnfToLevelRequest, lambda of: of.tasks.scale.accept_level),
        task(
            "heal",
            "Heal a VNF, or VNFCs of it",
            HealVnfRequest,
            lambda of: of.tasks.heal.accept,
            is_body_required=False,
        ),
        task("operate", "Start or stop a VNF", OperateVnfRequest, lambda of: of.tasks.operate.accept),
        task(
            "change_ext_conn",
            "Change external connectivity",
            ChangeExtVnfConnectivityRequest,
            lambda of: of.tasks.connectivity.accept,
        ),
        task("change_flavour", "Change the flavour", ChangeVnfFlavourRequest, lambda of: of.tasks.flavour.accept),
        *([change_package] if version == "v2" else []),
    ]
