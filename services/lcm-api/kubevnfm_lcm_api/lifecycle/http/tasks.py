"""The tasks of a VNF instance, and its modification (SOL003 clauses 5.4.3.3.4, 5.4.4 to 5.4.11a)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

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

from kubevnfm_lcm_api.http.bodies import PATCH, parse_body, read_json
from kubevnfm_lcm_api.http.conditions import check_unchanged, entity_tag
from kubevnfm_lcm_api.http.routes import Route
from kubevnfm_lcm_api.lifecycle.containers.helm_releases import with_values_read
from kubevnfm_lcm_api.lifecycle.core.acceptance import CheckedRequest
from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.core.request_parameters import VALUES
from kubevnfm_lcm_api.lifecycle.core.revision import Origin
from kubevnfm_lcm_api.lifecycle.http.context import ACCEPTED, accepted, api_version, repeated, services
from kubevnfm_lcm_api.lifecycle.http.dry_runs import ANSWER, PARAMETER, foreseen, is_dry_run
from kubevnfm_lcm_api.lifecycle.http.render import request_in_v2_form
from kubevnfm_lcm_api.lifecycle.requests import changes, instantiate, scale, snapshots, terminate
from kubevnfm_lcm_api.lifecycle.requests import modify as modification
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices

B = TypeVar("B", bound=SolType)
Check = Callable[[RequestServices, str, Asked[B]], Awaitable[CheckedRequest]]
"""Checks a request for an instance."""
Accept = Callable[[RequestServices, CheckedRequest], Awaitable[str]]
"""Accepts a checked request, and returns the id of the occurrence."""
_TAG = "VNF instances"
_SECRETS_IN = ("additionalParams", VALUES)
"""The values of a CNF whose package has an order, in requests that take them."""
_ANSWERS: Final = {200: ANSWER, **ACCEPTED}
_REFUSALS = {
    404: "No such instance, or its VNFD does not support this operation",
    409: "The instance is not in a state for it, or an operation runs on it or waits on it FAILED_TEMP",
    422: "Understood and impossible",
}


async def modify(request: web.Request) -> web.Response:
    version = api_version(request)
    original = await read_json(request, PATCH)
    document = request_in_v2_form(original, version)
    wanted = await parse_body(request, VnfInfoModificationRequest, document)
    if version == "v2" and "vnf_pkg_id" in wanted.model_fields_set:
        raise InvalidInput("vnfPkgId", "no such attribute; vnfdId names the package")
    for name in ("vnfdId", "vnfPkgId"):
        if isinstance(document, Mapping) and name in document and document[name] is None:
            raise InvalidInput(name, "a text expected: it cannot be removed")

    def as_seen(stored: Stored) -> None:
        check_unchanged(request, entity_tag(version, stored), stored.body["updatedAt"])

    on, asked = services(request).requests, Asked(wanted, original, version, origin=Origin(request[CALLER].subject))
    is_dry = is_dry_run(request)
    checked = await modification.checked_change(on, request.match_info["id"], asked, check=as_seen)
    return await _answer(request, checked, is_dry=is_dry)


async def _accept(on: RequestServices, checked: CheckedRequest) -> str:
    return await on.acceptance.accept(checked)


async def _answer(
    request: web.Request, checked: CheckedRequest, *, is_dry: bool, accept: Accept = _accept
) -> web.Response:
    on = services(request).requests
    if is_dry:
        return foreseen(request, await on.acceptance.foreseen(checked))
    return accepted(request, await accept(on, checked))


def routes(version: ApiVersion) -> list[Route]:
    """Return the routes of one API version."""
    one = f"/vnflcm/{version}/vnf_instances/{{id}}"

    def task(
        name: str,
        summary: str,
        model: type[B],
        check: Check[B],
        accept: Accept = _accept,
        *,
        needs_body: bool = True,
        secrets_in: tuple[str, ...] = (),
    ) -> Route:
        @repeated
        async def handle(request: web.Request) -> web.Response:
            original = await read_json(request, is_required=needs_body, secrets_in=secrets_in)
            wanted = await parse_body(request, model, with_values_read(request_in_v2_form(original, version)))
            asked = Asked(wanted, original, version, origin=Origin(request[CALLER].subject))
            is_dry = is_dry_run(request)
            checked = await check(services(request).requests, request.match_info["id"], asked)
            return await _answer(request, checked, is_dry=is_dry, accept=accept)

        route = Route(_TAG, "POST", f"{one}/{name}", handle, summary, _ANSWERS, model, refusals=_REFUSALS)
        return replace(route, is_body_required=needs_body, query=(PARAMETER,), checks_accept=False)

    summary, refusals = "Modify the information of a VNF instance", {**_REFUSALS, 404: "No such instance"}
    patched = Route(_TAG, "PATCH", one, repeated(modify), summary, _ANSWERS, VnfInfoModificationRequest, PATCH)
    found = [
        replace(patched, conditions=True, refusals=refusals, query=(PARAMETER,), checks_accept=False),
        task("instantiate", "Instantiate a VNF", InstantiateVnfRequest, instantiate.checked, secrets_in=_SECRETS_IN),
        task("terminate", "Terminate a VNF", TerminateVnfRequest, terminate.checked),
        task("scale", "Scale a VNF by steps", ScaleVnfRequest, scale.checked),
        task("scale_to_level", "Scale a VNF to levels", ScaleVnfToLevelRequest, scale.checked_level),
        task("heal", "Heal a VNF, or VNFCs of it", HealVnfRequest, changes.checked_heal, needs_body=False),
        task("operate", "Start or stop a VNF", OperateVnfRequest, changes.checked_operate),
        task("change_ext_conn", "Change external connectivity", ChangeExtVnfConnectivityRequest, changes.checked_links),
        task("change_flavour", "Change the flavour", ChangeVnfFlavourRequest, changes.checked_flavour),
    ]
    if version == "v2":
        summary = "Change the VNF package"
        found.append(
            task("change_vnfpkg", summary, ChangeCurrentVnfPkgRequest, changes.checked_package, secrets_in=_SECRETS_IN)
        )
        taken, back = "Take a snapshot of a VNF", "Revert a VNF to a snapshot"
        found += [
            task("create_snapshot", taken, CreateVnfSnapshotRequest, snapshots.checked_creation, snapshots.accept),
            task("revert_to_snapshot", back, RevertToVnfSnapshotRequest, snapshots.checked_reversal, snapshots.accept),
        ]
    return found
