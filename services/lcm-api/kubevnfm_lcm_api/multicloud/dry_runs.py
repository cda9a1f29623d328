"""``?dry_run=``: answers what a request would make of a VNF's objects, and makes nothing (multicloud.md MC-033)."""

from __future__ import annotations

import asyncio
from typing import Final, get_args

from aiohttp import web
from kubevnfm_access.caller import DRY_RUN
from kubevnfm_clients.multicloud.dry_runs import DryRunMode, DryRunOccasion, DryRunOrder, DryRunReport
from kubevnfm_events.objects import ObjectsOrder
from pydantic import RootModel

from kubevnfm_lcm_api.http.dry_run import dry_run_mode
from kubevnfm_lcm_api.http.routes import Answer, Parameter
from kubevnfm_lcm_api.multicloud.services import services
from kubevnfm_lcm_api.multicloud.vnf_types import VnfInstance

_MODES: Final[tuple[DryRunMode, ...]] = get_args(DryRunMode)
PARAMETER: Final = Parameter(
    DRY_RUN, "Make nothing: answer 200 with the objects, with those that the API server would store, or with what differs",
    values=_MODES,
)  # fmt: skip


class VnfOrDryRun(RootModel[VnfInstance | DryRunReport]):
    """The VNF, or with ``dry_run`` what would become of its objects."""


ANSWER: Final = Answer("With dry_run: the objects", DryRunReport)


def mode_of(request: web.Request) -> DryRunMode | None:
    """Return the mode of a dry run; None if the request is to be carried out. Raises InvalidInput."""
    return dry_run_mode(request, _MODES)


async def report(
    request: web.Request, mode: DryRunMode, order: ObjectsOrder | None, vnf_id: str, occasion: DryRunOccasion
) -> web.Response:
    """Return the answer of a dry run; ``order``: None if the request changes no object.

    Raises: InvalidInput, Unprocessable, Conflict; OutsideUnavailable if the region does not answer.
    """
    found = DryRunReport()
    if order is not None:
        facts = {name: getattr(order, name) for name in ObjectsOrder.model_fields}
        wanted = DryRunOrder(**facts, vnf_instance_id=vnf_id, mode=mode, occasion=occasion)
        found = await services(request).dry_runs.run(wanted)
    text = await asyncio.to_thread(found.model_dump_json, by_alias=True, exclude_unset=True, exclude_none=True)
    return web.Response(text=text, content_type="application/json")
