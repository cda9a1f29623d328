"""``/multicloud/v1/vnf_instances/{id}/revisions`` and ``/rollback`` (multicloud.md MC-042)."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import Any, Final, TypeVar

from aiohttp import web
from kubevnfm_access.middleware import CALLER
from kubevnfm_clients.multicloud.types import MultiCloudRequest, MultiCloudType, Page
from kubevnfm_events.objects import ObjectsOrder
from kubevnfm_kit.errors import Conflict, ConflictingInput, InvalidInput, NotFound, Unprocessable
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_secrets import mask
from kubevnfm_sol.lcm import ChangeCurrentVnfPkgRequest
from pydantic import Field

from kubevnfm_lcm_api.http.bodies import parse
from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.pages import PARAMETERS, read_page
from kubevnfm_lcm_api.http.routes import Answer, Route, page_of
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.core.request_parameters import COMPUTE_PROFILES, VALUES
from kubevnfm_lcm_api.lifecycle.core.revision import Cause, Inputs, Origin, Result, result_of
from kubevnfm_lcm_api.lifecycle.http.context import repeated
from kubevnfm_lcm_api.lifecycle.requests.revisions import Kept
from kubevnfm_lcm_api.multicloud import dry_runs
from kubevnfm_lcm_api.multicloud.bodies import read
from kubevnfm_lcm_api.multicloud.pages import page_answer
from kubevnfm_lcm_api.multicloud.prefer import read_preference
from kubevnfm_lcm_api.multicloud.repeats import seed_of
from kubevnfm_lcm_api.multicloud.services import PREFIX, ends, services, vnfs
from kubevnfm_lcm_api.multicloud.taken_places import place_check
from kubevnfm_lcm_api.multicloud.vnf_holds import asked_networks, asked_volumes, shown_networks, shown_volumes
from kubevnfm_lcm_api.multicloud.vnf_reading import as_seen, unchanged_vnf, vnf_in_path
from kubevnfm_lcm_api.multicloud.vnf_requests import accept_change, order_of_change, package_of
from kubevnfm_lcm_api.multicloud.vnf_types import VnfInstance, VnfNetwork, VnfVolume
from kubevnfm_lcm_api.multicloud.vnf_views import Vnf

_ONE: Final = f"{PREFIX}/vnf_instances/{{id}}"
_REVISION: Final = "revision"
_LARGEST_NUMBER: Final = 2**53

T = TypeVar("T")


class VnfRevisionEntry(MultiCloudType):
    """A revision in the list."""

    revision: int
    by: str
    at: str
    cause: Cause
    rollback_to: int | None = None
    csar_id: str
    digest: str | None = None
    """That of the objects that it makes; absent if the request lists manifests."""
    operation: str
    result: Result


class VnfRevision(VnfRevisionEntry):
    """A revision with its inputs; secret values are ``***``."""

    values: JsonObject
    compute_profiles: tuple[JsonObject, ...]
    networks: tuple[VnfNetwork, ...]
    volumes: tuple[VnfVolume, ...]


class RollbackRequest(MultiCloudRequest):
    """The revision to return to."""

    revision: int = Field(strict=True, ge=1, le=_LARGEST_NUMBER)


async def list_all(request: web.Request) -> web.Response:
    """GET revisions: the newest first, without their inputs."""
    asked, vnf = read_page(request, ()), await vnf_in_path(request)
    below = _number(asked.after) if asked.after is not None else None
    found, has_more = await vnfs(request).revisions.newest_first(vnf.record, limit=asked.limit, below=below)
    page = Page(found, str(found[-1].revision.number) if has_more else None)
    return page_answer(request, asked, page, lambda each: _shown(VnfRevisionEntry(**_entry(request, each))))


async def show(request: web.Request) -> web.Response:
    """GET revisions/{revision}: with its inputs."""
    vnf, named = await vnf_in_path(request), request.match_info["revision"]
    number = int(named) if named.isascii() and named.isdigit() and len(named) < 16 else 0
    found = await vnfs(request).revisions.get(vnf.record, number)
    if found is None:
        raise NotFound(f"VNF instance {vnf.record.vnf.id} has no revision {named}, or none any more")
    kept, inputs = found
    parameters = mask(inputs.parameters)
    shown = VnfRevision(
        **_entry(request, kept),
        values=parameters.get(VALUES, {}),
        compute_profiles=tuple(parameters.get(COMPUTE_PROFILES, ())),
        networks=shown_networks(inputs.networks),
        volumes=shown_volumes(inputs.volumes),
    )
    return web.json_response(_shown(shown))


@repeated
async def roll_back(request: web.Request) -> web.Response:
    """POST rollback: 200 once its operation has ended or waits FAILED_TEMP, 202 if it runs on."""
    wanted = await read(request, RollbackRequest)
    if (mode := dry_runs.mode_of(request)) is not None:
        vnf = await unchanged_vnf(request)
        order = await _of_revision(_order(request, vnf, wanted.revision))
        return await dry_runs.report(request, mode, order, vnf.record.vnf.id, "rollback")
    preference, seed = read_preference(request), seed_of(request)
    operation_id = None if seed is None else derived_id("multicloud-rollback", seed)
    stored = None if operation_id is None else await context(request).store.get(occurrences.COLLECTION, operation_id)
    if operation_id is None or stored is None:
        vnf, check = await unchanged_vnf(request), as_seen(request)
        asked = await asked_rollback(request, vnf, wanted.revision, operation_id)
        places = place_check(services(request).dry_runs)
        accepting = accept_change(vnfs(request), vnf, asked, check=check, check_places=places)
        operation_id = await _of_revision(accepting)
    state = await ends(request).ended(operation_id, preference.wait_s)
    vnf = await vnf_in_path(request)
    headers = {**preference.headers, "ETag": vnf.tag}
    view = vnf.view(api_root(request), operation_id)
    return web.json_response(view, status=202 if state is None else 200, headers=headers)


async def asked_rollback(
    request: web.Request, vnf: Vnf, number: int, operation_id: str | None = None
) -> Asked[ChangeCurrentVnfPkgRequest]:
    """Return the request of SOL003 that applies the inputs of a revision again.

    Raises: Unprocessable if there is none of this number; ConflictingInput for the newest one, and if its package is gone.
    """
    if number == vnf.record.internals.revision:
        raise ConflictingInput("revision", f"an earlier one expected: {number} is the newest revision")
    found = await vnfs(request).revisions.get(vnf.record, number)
    if found is None:
        raise Unprocessable("revision", f"the VNF has no revision {number}, or none any more")
    _, inputs = found
    try:
        package = await package_of(vnfs(request), inputs.package.package_id)
    except InvalidInput as error:
        raise ConflictingInput("revision", f"its package cannot be used: {error.places[0][1]}") from error
    except Conflict as error:
        raise ConflictingInput("revision", f"its package cannot be used: {error}") from error
    original = _original(package.vnfd_id, inputs)
    return Asked(
        parse(ChangeCurrentVnfPkgRequest, original),
        original,
        "v2",
        asked_networks(inputs.networks),
        asked_volumes(inputs.volumes),
        origin=Origin(request[CALLER].subject, "rollback", number, operation_id),
        is_whole=True,
    )


async def _order(request: web.Request, vnf: Vnf, number: int) -> ObjectsOrder:
    asked = await asked_rollback(request, vnf, number)
    return await order_of_change(vnfs(request), vnf, asked)


async def _of_revision(work: Awaitable[T]) -> T:
    """Return the result; raise faults of the earlier inputs as faults of the revision."""
    try:
        return await work
    except InvalidInput as error:
        kind = type(error) if isinstance(error, Unprocessable | ConflictingInput) else Unprocessable
        faults = [
            (place, reason) if place == _REVISION else (_REVISION, f"{place}: {reason}")
            for place, reason in error.places
        ]
        raise kind(*faults[0], *faults[1:]) from error


def _original(vnfd_id: str, inputs: Inputs) -> dict[str, Any]:
    return {"vnfdId": vnfd_id, "additionalParams": dict(inputs.parameters)}


def _entry(request: web.Request, kept: Kept) -> dict[str, Any]:
    revision = kept.revision
    return {
        "revision": revision.number,
        "by": revision.by,
        "at": kept.at,
        "cause": revision.cause,
        "rollback_to": revision.rollback_to,
        "csar_id": revision.csar_id,
        "digest": revision.digest or None,
        "operation": f"{api_root(request)}/vnflcm/v2/vnf_lcm_op_occs/{kept.occurrence_id}",
        "result": result_of(kept.state),
    }


def _shown(revision: VnfRevisionEntry) -> JsonObject:
    return revision.model_dump(mode="json", exclude_none=True)


def _number(marker: str) -> int:
    return int(marker)


def routes() -> Iterator[Route]:
    """Yield the routes of revisions."""
    tag, one = "VNF instances", {200: Answer("The revision with its inputs", VnfRevision)}
    done = {
        200: Answer("Its operation has ended: status says how", dry_runs.VnfOrDryRun, has_etag=True),
        202: Answer("Not finished in time", VnfInstance, has_etag=True),
    }
    yield Route(
        tag, "GET", f"{_ONE}/revisions", list_all, "List its revisions", page_of(VnfRevisionEntry), query=PARAMETERS
    )
    yield Route(tag, "GET", f"{_ONE}/revisions/{{revision}}", show, "Show a revision", one)
    refused = {
        422: "There is no such revision, or its inputs do not fit any more",
        409: "It is the newest revision, its package is gone, or another operation runs",
    }
    yield Route(
        tag, "POST", f"{_ONE}/rollback", roll_back, "Return to an earlier revision", done, RollbackRequest,
        query=(dry_runs.PARAMETER,), conditions=True, refusals=refused,
    )  # fmt: skip
