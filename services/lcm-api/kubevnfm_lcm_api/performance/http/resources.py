"""``/vnfpm/v2/pm_jobs``, their reports, and ``/vnfpm/v2/thresholds`` (SOL003 clauses 6.4.2 to 6.4.7)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from aiohttp import web
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_secrets import shown_url
from kubevnfm_sol.performance import CallbackModifications, PerformanceReport, PmJob, Threshold
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.http.bodies import PATCH, parse_body, read_json
from kubevnfm_lcm_api.http.conditions import answer, check_unchanged, entity_tag
from kubevnfm_lcm_api.http.context import api_root
from kubevnfm_lcm_api.http.listing import PARAMETERS, Listed, list_page
from kubevnfm_lcm_api.http.routes import DELETED, Answer, Route, add_routes, page_of
from kubevnfm_lcm_api.http.sol013.shapes import Attribute, Shape, attributes_of
from kubevnfm_lcm_api.notifications.own_callbacks import ADDRESS
from kubevnfm_lcm_api.performance.domain.requests import CallbackPatch, CreatePmJobRequest, CreateThresholdRequest
from kubevnfm_lcm_api.performance.http.views import (
    JOBS,
    THRESHOLDS,
    ShownJob,
    ShownRevision,
    ShownThreshold,
    job_view,
    threshold_view,
)
from kubevnfm_lcm_api.performance.job_record import COLLECTION as JOB_COLLECTION
from kubevnfm_lcm_api.performance.jobs import PmJobs
from kubevnfm_lcm_api.performance.resources import SAMPLED
from kubevnfm_lcm_api.performance.threshold_record import COLLECTION as THRESHOLD_COLLECTION
from kubevnfm_lcm_api.performance.threshold_record import SIDES
from kubevnfm_lcm_api.performance.thresholds import Thresholds

_HIDDEN: Final = (SAMPLED, SIDES, *ADDRESS[1:])
"""Not read for a list."""
_REPORTS: Final = Attribute("array", element="object", no_filter="a link, a time; read the job")
LISTED_JOBS: Final = Listed(
    "pm-jobs",
    Shape({**attributes_of(PmJob), "reports": _REPORTS}, frozenset({"reports"})),
    "createdAt",
    hidden=_HIDDEN,
)
LISTED_THRESHOLDS: Final = Listed("thresholds", Shape(attributes_of(Threshold)), "createdAt", hidden=_HIDDEN)
_MODIFY = Callable[..., Awaitable[Stored]]


@dataclass(frozen=True)
class _Jobs:
    """The handlers of PM jobs and reports."""

    jobs: PmJobs

    async def create(self, request: web.Request) -> web.Response:
        wanted = await parse_body(request, CreatePmJobRequest, await read_json(request))
        stored = await self.jobs.create(wanted)
        return _made(self._view(stored, request), _tag("pm-jobs", stored))

    async def list_all(self, request: web.Request) -> web.StreamResponse:
        root = api_root(request)
        return await list_page(
            request,
            JOB_COLLECTION,
            LISTED_JOBS,
            lambda document: job_view(document, self.jobs.reports(document), root),
        )

    async def show(self, request: web.Request) -> web.Response:
        stored = await self.jobs.get(request.match_info["id"])
        return answer(request, self._view(stored, request), _tag("pm-jobs", stored), _changed_at(stored))

    async def modify(self, request: web.Request) -> web.Response:
        return await _modify(request, "pm-jobs", self.jobs.modify)

    async def delete(self, request: web.Request) -> web.Response:
        await self.jobs.delete(request.match_info["id"])
        return web.Response(status=204)

    async def report(self, request: web.Request) -> web.Response:
        return web.json_response(await self.jobs.report(request.match_info["id"], request.match_info["reportId"]))

    def _view(self, stored: Stored, request: web.Request) -> JsonObject:
        return job_view(stored.body, self.jobs.reports(stored.body), api_root(request))


@dataclass(frozen=True)
class _Thresholds:
    """The handlers of thresholds."""

    thresholds: Thresholds

    async def create(self, request: web.Request) -> web.Response:
        wanted = await parse_body(request, CreateThresholdRequest, await read_json(request))
        stored = await self.thresholds.create(wanted)
        return _made(threshold_view(stored.body, api_root(request)), _tag("thresholds", stored))

    async def list_all(self, request: web.Request) -> web.StreamResponse:
        root = api_root(request)
        return await list_page(
            request, THRESHOLD_COLLECTION, LISTED_THRESHOLDS, lambda document: threshold_view(document, root)
        )

    async def show(self, request: web.Request) -> web.Response:
        stored = await self.thresholds.get(request.match_info["id"])
        shown = threshold_view(stored.body, api_root(request))
        return answer(request, shown, _tag("thresholds", stored), _changed_at(stored))

    async def modify(self, request: web.Request) -> web.Response:
        return await _modify(request, "thresholds", self.thresholds.modify)

    async def delete(self, request: web.Request) -> web.Response:
        await self.thresholds.delete(request.match_info["id"])
        return web.Response(status=204)


def _made(shown: JsonObject, tag: str) -> web.Response:
    headers = {"Location": shown["_links"]["self"]["href"], "ETag": tag}
    return web.json_response(shown, status=201, headers=headers)


async def _modify(request: web.Request, variant: str, modify: _MODIFY) -> web.Response:
    patch = await parse_body(request, CallbackPatch, await read_json(request, PATCH))

    def as_seen(stored: Stored) -> None:
        check_unchanged(request, _tag(variant, stored), _changed_at(stored))

    changed = await modify(request.match_info["id"], patch, check=as_seen)
    shown = {"callbackUri": shown_url(changed.body["callbackUri"])}
    return web.json_response(shown, headers={"ETag": _tag(variant, changed)})


def _tag(variant: str, stored: Stored) -> str:
    return entity_tag(variant, ShownRevision.from_stored(stored))


def _changed_at(stored: Stored) -> str:
    return str(stored.body["internal"]["updatedAt"])


def add_to(app: web.Application, jobs: PmJobs, thresholds: Thresholds) -> None:
    """Add the resources of performance management to an application."""
    of_jobs, of_thresholds = _Jobs(jobs), _Thresholds(thresholds)
    refused = {422: "The test of the callback failed, or it cannot be measured"}
    changed = {200: Answer("What was changed", CallbackModifications, has_etag=True)}
    one_job, one_threshold = f"{JOBS}/{{id}}", f"{THRESHOLDS}/{{id}}"

    def created(model: type[ShownJob | ShownThreshold]) -> dict[int, Answer]:
        return {201: Answer("It is measured from now on", model, has_location=True, has_etag=True)}

    def shown(model: type[ShownJob | ShownThreshold]) -> dict[int, Answer]:
        return {200: Answer("As it is", model, has_etag=True)}

    patch_job = Route(
        "PM jobs", "PATCH", one_job, of_jobs.modify, "Change where notifications of a PM job go", changed, CallbackPatch,
        PATCH, conditions=True, refusals=refused,
    )  # fmt: skip
    job = Route(
        "PM jobs", "POST", JOBS, of_jobs.create, "Create a PM job", created(ShownJob), CreatePmJobRequest, refusals=refused
    )  # fmt: skip
    threshold = Route(
        "Thresholds", "POST", THRESHOLDS, of_thresholds.create, "Create a threshold", created(ShownThreshold),
        CreateThresholdRequest, refusals=refused,
    )  # fmt: skip
    report = {200: Answer("The values of its periods", PerformanceReport)}
    add_routes(
        app,
        [
            job,
            Route("PM jobs", "GET", JOBS, of_jobs.list_all, "List PM jobs", page_of(ShownJob), query=PARAMETERS),
            Route("PM jobs", "GET", one_job, of_jobs.show, "Show a PM job", shown(ShownJob)),
            patch_job,
            Route("PM jobs", "DELETE", one_job, of_jobs.delete, "Delete a PM job with its reports", DELETED),
            Route("PM jobs", "GET", f"{one_job}/reports/{{reportId}}", of_jobs.report, "Show a report", report),
            threshold,
            Route(
                "Thresholds", "GET", THRESHOLDS, of_thresholds.list_all, "List thresholds", page_of(ShownThreshold),
                query=PARAMETERS,
            ),
            Route("Thresholds", "GET", one_threshold, of_thresholds.show, "Show a threshold", shown(ShownThreshold)),
            replace(
                patch_job, tag="Thresholds", path=one_threshold, handler=of_thresholds.modify,
                summary="Change where notifications of a threshold go",
            ),
            Route("Thresholds", "DELETE", one_threshold, of_thresholds.delete, "Delete a threshold", DELETED),
        ],
    )  # fmt: skip
