"""``?dry_run=true`` of requests for VNF instances and their operations: answers the plan, and begins nothing (api.md 2.5)."""

from __future__ import annotations

from typing import Final

from aiohttp import web
from kubevnfm_access.caller import DRY_RUN
from kubevnfm_kit.request_warnings import RequestWarning

from kubevnfm_lcm_api.http.bodies import check_accept
from kubevnfm_lcm_api.http.context import context
from kubevnfm_lcm_api.http.dry_run import dry_run_mode
from kubevnfm_lcm_api.http.models import Shown
from kubevnfm_lcm_api.http.routes import Answer, Parameter
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES

_MODES: Final = ("true",)
PARAMETER: Final = Parameter(
    DRY_RUN, "Check the request as any other, answer 200 with the plan, and store and begin nothing", values=_MODES
)


class ForeseenStep(Shown):
    """One step of the plan."""

    name: str
    kind: str
    title: str
    after: list[str]
    """The steps that must have ended first."""


class ForeseenOperation(Shown):
    """The operation that a request would begin."""

    sequence: str
    """The place in the event stream when the request was checked."""
    operation: str | None = None
    """Absent for the creation of an instance, which is no operation."""
    plan: list[ForeseenStep]
    """The steps that are known before the operation begins; replies of services may add others, such as one for each machine."""
    warnings: list[RequestWarning]
    """Parts of the request that would not be used."""


ANSWER: Final = Answer("With dry_run: what would be begun", ForeseenOperation)


def is_dry_run(request: web.Request) -> bool:
    """Return whether nothing is to be begun. Raises InvalidInput for another value than ``true``, NotAcceptable."""
    if dry_run_mode(request, _MODES) is None:
        return False
    check_accept(request, "application/json")
    return True


def foreseen(request: web.Request, record: OccurrenceRecord | None = None) -> web.Response:
    """Return 200 with what would be begun; ``record``: None for the creation of an instance."""
    found = ForeseenOperation(
        sequence=context(request).sequence(),
        operation=record.occ.operation if record is not None else None,
        plan=[
            ForeseenStep(name=step.id, kind=step.kind, title=SEQUENCES.step(step).title, after=list(step.after))
            for step in (record.steps if record is not None else ())
        ],
        warnings=list(record.warnings) if record is not None else [],
    )
    return web.json_response(text=found.model_dump_json(exclude_none=True))
