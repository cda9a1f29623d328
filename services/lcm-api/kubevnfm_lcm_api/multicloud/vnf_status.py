"""``/multicloud/v1/vnf_instances/{id}/status``: each object of a VNF as its region has it now, and whether it works (MC-049)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from aiohttp import web
from kubevnfm_clients.multicloud.types import MultiCloudType
from kubevnfm_clients.multicloud.verdicts import Judgement, SeenObject
from kubevnfm_kit.error_text import ErrorText
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.http.routes import Answer, Route
from kubevnfm_lcm_api.multicloud.services import PREFIX, MultiCloudServices, services
from kubevnfm_lcm_api.multicloud.vnf_live import looked_at
from kubevnfm_lcm_api.multicloud.vnf_reading import vnf_in_path
from kubevnfm_lcm_api.multicloud.vnf_types import VnfResource, VnfStatus
from kubevnfm_lcm_api.multicloud.vnf_views import Vnf

_STATUS_BYTES: Final = 64 * 1024
"""JSON of the status of one object."""
_ALL_BYTES: Final = 8 * 2**20
"""JSON of the status of all objects together."""


class VnfResourceStatus(VnfResource):
    """One object of a VNF, as its region has it now. ``ready``: it exists and works."""

    judgement: Judgement
    message: ErrorText
    """The thing that it waits for, or the reason why it has failed."""
    status: Any = None
    """The last one that its controller has written; absent if there is none, or with ``truncated``."""
    truncated: bool | None = None
    """Whether ``status`` is left out, because it is too large."""


class VnfStatusReport(MultiCloudType):
    """The state of the objects of a VNF in its region."""

    vnf_id: str
    status: VnfStatus
    status_detail: str
    ready: bool
    """Whether the VNF has objects, and all of them work; those of hooks do not count."""
    resourceCount: int  # noqa: N815  # as ONAP has it
    resources: tuple[VnfResourceStatus, ...]


async def report_on(on: MultiCloudServices, vnf: Vnf, *, whole: bool = False) -> VnfStatusReport:
    """Read and judge the objects of a VNF; ``whole``: their ``status`` is the whole object, as ONAP has it. Raises Unprocessable, RegionUnavailable, OutsideUnavailable."""
    left_bytes = _ALL_BYTES

    async def judged(resource: VnfResource, body: JsonObject | None) -> VnfResourceStatus:
        nonlocal left_bytes
        verdict = await on.verdicts.judge(
            SeenObject(
                vnf_instance_id=vnf.record.vnf.id,
                api_version=resource.api_version,
                kind=resource.kind,
                namespace=resource.namespace,
                name=resource.name,
                body=body,
            )
        )
        shown = VnfResourceStatus(
            **{
                **resource.model_dump(),
                "ready": verdict.judgement == "Current",
                "restart_required": verdict.restart_required or None,
            },
            judgement=verdict.judgement,
            message="another object has its name" if _is_replaced(resource, verdict.judgement) else verdict.message,
        )
        status = body if body is None or whole else body.get("status")
        if status is None:
            return shown
        size = len(json.dumps(status))
        if size > min(_STATUS_BYTES, left_bytes):
            return shown.model_copy(update={"truncated": True})
        left_bytes -= size
        return shown.model_copy(update={"status": status})

    place = vnf.record.internals.multicloud
    assert place is not None
    found = await looked_at(on.regions, place, vnf.resources, judged)
    return VnfStatusReport(
        vnf_id=vnf.record.vnf.id,
        status=vnf.status,
        status_detail=vnf.detail,
        ready=_are_ready(found),
        resourceCount=len(found),
        resources=found,
    )


def _is_replaced(resource: VnfResource, judgement: Judgement) -> bool:
    return resource.live == "replaced" and judgement == "NotFound"


def _are_ready(found: Sequence[VnfResourceStatus]) -> bool:
    counted = [each.ready for each in found if each.hook is None]
    return bool(counted) and all(counted)


async def show(request: web.Request) -> web.Response:
    """GET vnf_instances/{id}/status: 200 without ETag, as the region has its objects now."""
    report = await report_on(services(request), await vnf_in_path(request))
    shown = report.model_dump(mode="json", exclude={"resources"})
    return web.json_response({**shown, "resources": [_shown(each) for each in report.resources]})


def _shown(each: VnfResourceStatus) -> JsonObject:
    """Return an object without the members that it lacks; a null inside its status stays."""
    return {name: value for name, value in each.model_dump(mode="json").items() if value is not None}


def routes() -> Iterator[Route]:
    """Yield the route of the status."""
    refusals = {422: "The region refuses the access data", 503: "The region does not answer"}
    shown = {200: Answer("Its objects, as the region has them now", VnfStatusReport)}
    path, summary = f"{PREFIX}/vnf_instances/{{id}}/status", "Read and judge its objects in the region"
    yield Route("VNF instances", "GET", path, show, summary, shown, refusals=refusals)
