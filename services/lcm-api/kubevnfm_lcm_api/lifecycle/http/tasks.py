"""The tasks of a VNF instance, and its modification (SOL003 clauses 5.4.3.3.4, 5.4.4 to 5.4.11a)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from aiohttp import web
from kubevnfm_access.middleware import CALLER
from kubevnfm_events import ApiVersion
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_sol.base import SolType
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
from kubevnfm_sol.snapshots import CreateVnfSnapshotRequest, RevertToVnfSnapshotRequest
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.http.bodies import PATCH, parse, read_json
from kubevnfm_lcm_api.http.conditions import check_unchanged, entity_tag
from kubevnfm_lcm_api.http.routes import Route
from kubevnfm_lcm_api.lifecycle.containers.helm_releases import with_values_read
from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.core.request_parameters import VALUES
from kubevnfm_lcm_api.lifecycle.core.revision import Origin
from kubevnfm_lcm_api.lifecycle.http.context import ACCEPTED, accepted, api_version, repeated, services
from kubevnfm_lcm_api.lifecycle.http.render import request_in_v2_form
from kubevnfm_lcm_api.lifecycle.requests import changes, instantiate, scale, snapshots, terminate
from kubevnfm_lcm_api.lifecycle.requests import modify as modification
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices

B = TypeVar("B", bound=SolType)
Accept = Callable[[RequestServices, str, Asked[B]], Awaitable[str]]
"""Accepts a request for an instance, and returns the id of the occurrence."""
_TAG = "VNF instances"
_SECRETS_IN = ("additionalParams", VALUES)
"""The values of a CNF whose package has an order, in requests that take them."""
_REFUSALS = {
    404: "No such instance, or its VNFD does not support this operation",
    409: "The instance is not in a state for it, or an operation runs on it or waits on it FAILED_TEMP",
    422: "Understood and impossible",
}


async def modify(request: web.Request) -> web.Response:
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

    on, asked = services(request).requests, Asked(wanted, original, version, origin=Origin(request[CALLER].subject))
    return accepted(request, await modification.accept(on, request.match_info["id"], asked, check=as_seen))


def routes(version: ApiVersion) -> list[Route]:
    """Return the routes of one API version."""
    one = f"/vnflcm/{version}/vnf_instances/{{id}}"

    def task(
        name: str,
        summary: str,
        model: type[B],
        accept: Accept[B],
        *,
        needs_body: bool = True,
        secrets_in: tuple[str, ...] = (),
    ) -> Route:
        @repeated
        async def handle(request: web.Request) -> web.Response:
            original = await read_json(request, is_required=needs_body, secrets_in=secrets_in)
            wanted = parse(model, with_values_read(request_in_v2_form(original, version)))
            asked = Asked(wanted, original, version, origin=Origin(request[CALLER].subject))
            return accepted(request, await accept(services(request).requests, request.match_info["id"], asked))

        route = Route(_TAG, "POST", f"{one}/{name}", handle, summary, ACCEPTED, model, refusals=_REFUSALS)
        return replace(route, is_body_required=needs_body)

    summary, refusals = "Modify the information of a VNF instance", {**_REFUSALS, 404: "No such instance"}
    patched = Route(_TAG, "PATCH", one, repeated(modify), summary, ACCEPTED, VnfInfoModificationRequest, PATCH)
    found = [
        replace(patched, conditions=True, refusals=refusals),
        task("instantiate", "Instantiate a VNF", InstantiateVnfRequest, instantiate.accept, secrets_in=_SECRETS_IN),
        task("terminate", "Terminate a VNF", TerminateVnfRequest, terminate.accept),
        task("scale", "Scale a VNF by steps", ScaleVnfRequest, scale.accept),
        task("scale_to_level", "Scale a VNF to levels", ScaleVnfToLevelRequest, scale.accept_level),
        task("heal", "Heal a VNF, or VNFCs of it", HealVnfRequest, changes.accept_heal, needs_body=False),
        task("operate", "Start or stop a VNF", OperateVnfRequest, changes.accept_operate),
        task("change_ext_conn", "Change external connectivity", ChangeExtVnfConnectivityRequest, changes.accept_links),
        task("change_flavour", "Change the flavour", ChangeVnfFlavourRequest, changes.accept_flavour),
    ]
    if version == "v2":
        summary = "Change the VNF package"
        found.append(
            task("change_vnfpkg", summary, ChangeCurrentVnfPkgRequest, changes.accept_package, secrets_in=_SECRETS_IN)
        )
        taken, back = "Take a snapshot of a VNF", "Revert a VNF to a snapshot"
        found += [
            task("create_snapshot", taken, CreateVnfSnapshotRequest, snapshots.accept_creation),
            task("revert_to_snapshot", back, RevertToVnfSnapshotRequest, snapshots.accept_reversal),
        ]
    return found
