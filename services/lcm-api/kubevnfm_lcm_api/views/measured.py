"""``/kubevnfm/v1/pm-jobs`` and ``/kubevnfm/v1/thresholds``: what is measured, for people, the newest first, with the last values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Literal

from aiohttp import web
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_secrets import shown_url
from kubevnfm_sol.performance import ObjectType
from kubevnfm_store.query import AllOf, Compare, Filter, Op, Sort
from pydantic import Field

from kubevnfm_lcm_api.http.context import api_root, context
from kubevnfm_lcm_api.http.models import Linked, Shown
from kubevnfm_lcm_api.http.pages import PARAMETERS, PageRequest, read_page
from kubevnfm_lcm_api.http.routes import Answer, Parameter, Route
from kubevnfm_lcm_api.performance.http.views import JOBS, THRESHOLDS, report_links
from kubevnfm_lcm_api.performance.job_record import COLLECTION as JOB_COLLECTION
from kubevnfm_lcm_api.performance.jobs import PmJobs
from kubevnfm_lcm_api.performance.threshold_record import COLLECTION as THRESHOLD_COLLECTION
from kubevnfm_lcm_api.views.instance_rows import PREFIX
from kubevnfm_lcm_api.views.lists import ID, ListPage, Part, find_named, find_page, list_answer
from kubevnfm_lcm_api.views.services import views

_MANY_JOBS: Final = f"{PREFIX}/pm-jobs"
_MANY_THRESHOLDS: Final = f"{PREFIX}/thresholds"
_INSTANCE: Final = Parameter("vnfInstanceId", "About this VNF instance")
_FILTERS: Final = (_INSTANCE, ID)
_NEWEST: Final = Sort("createdAt", descending=True)
_UNREAD: Final = ("authentication", "internal/lastEvent", "internal/sampled")

State = Literal["MEASURING", "WAITING", "RECEIVING", "ENDED"]
"""WAITING: Prometheus does not answer, or pods cannot be sampled; RECEIVING: a monitoring system sends the values; ENDED: nothing is measured any more."""


class _Row(Linked):
    id: str
    state: State
    text: str | None = None
    """Why it is WAITING."""
    objectType: ObjectType  # noqa: N815  # as it is on the wire
    vnfInstanceName: str | None = None  # noqa: N815  # as it is on the wire
    """The name when it was created; of several VNF instances, that of the first one."""
    subObjectInstanceIds: list[str] | None = None  # noqa: N815  # as it is on the wire
    callbackUri: str  # noqa: N815  # as it is on the wire
    createdAt: str  # noqa: N815  # as it is on the wire


class ShownReport(Shown):
    """A report that is there."""

    href: str
    begin: str
    end: str
    readyTime: str  # noqa: N815  # as it is on the wire
    expiryTime: str  # noqa: N815  # as it is on the wire


class PmJobRow(_Row):
    """A PM job in a list."""

    vnfInstanceIds: list[str]  # noqa: N815  # as it is on the wire
    performanceMetric: list[str]  # noqa: N815  # as it is on the wire
    """The metrics, and the groups of metrics."""
    collectionPeriod: int  # noqa: N815  # as it is on the wire
    reportingPeriod: int  # noqa: N815  # as it is on the wire
    reportingBoundary: str | None = None  # noqa: N815  # as it is on the wire
    reportCount: int  # noqa: N815  # as it is on the wire
    lastReport: ShownReport | None = None  # noqa: N815  # as it is on the wire


class LastValue(Shown):
    """The newest value of a metric of an object."""

    vnfInstanceId: str  # noqa: N815  # as it is on the wire
    subObjectInstanceId: str | None = None  # noqa: N815  # as it is on the wire
    performanceMetric: str  # noqa: N815  # as it is on the wire
    value: float
    at: str


class ValueGap(Shown):
    """A time without values."""

    begin: str = Field(alias="from")
    to: str
    reason: str


class PmJobView(PmJobRow):
    """A PM job with its reports and newest values."""

    sequence: str
    """The place in the event stream."""
    reports: list[ShownReport]
    """The newest last."""
    lastValues: list[LastValue]  # noqa: N815  # as it is on the wire
    """At most 1000, also those that no report has yet."""
    gap: ValueGap | None = None
    """The part of the newest period that was not measured."""


class ThresholdSide(Shown):
    """On which side of a threshold an object is."""

    subObjectInstanceId: str | None = None  # noqa: N815  # as it is on the wire
    side: Literal["UP", "DOWN"]
    since: str


class ThresholdRow(_Row):
    """A threshold in a list."""

    vnfInstanceId: str  # noqa: N815  # as it is on the wire
    performanceMetric: str  # noqa: N815  # as it is on the wire
    thresholdValue: float  # noqa: N815  # as it is on the wire
    hysteresis: float
    side: Literal["UP", "DOWN"] | None = None
    """UP: one of its objects is above at least; absent: there was no value yet."""
    up: int
    """So many of its objects are above."""
    down: int
    crossings: int
    """So often it was crossed."""
    automation: dict[str, str] | None = None
    """The scaling or heal that a crossing asks for."""


class ThresholdView(ThresholdRow):
    """A threshold with the side of each object."""

    sequence: str
    """The place in the event stream."""
    sides: list[ThresholdSide]
    """At most 1000, those above first."""


class PmJobsPage(ListPage):
    """A page of PM jobs."""

    items: list[PmJobRow]


class ThresholdsPage(ListPage):
    """A page of thresholds."""

    items: list[ThresholdRow]


async def list_jobs(request: web.Request) -> web.Response:
    """GET pm-jobs: the newest first."""
    return await _list(request, JOB_COLLECTION, "objectInstanceIds", partial(_job, views(request).jobs))


async def list_thresholds(request: web.Request) -> web.Response:
    """GET thresholds: the newest first."""
    return await _list(request, THRESHOLD_COLLECTION, "objectInstanceId", _threshold)


async def _list(
    request: web.Request, collection: str, path: str, row: Callable[[JsonMapping, str], JsonObject]
) -> web.Response:
    asked = read_page(request, _FILTERS)
    sequence, store, root = views(request).sequence(), context(request).store, api_root(request)
    parts = _parts(asked, path)
    if ID.name in asked.filters:
        found = await find_named(store, collection, parts, asked)
    else:
        found = await find_page(store, collection, parts, asked, exclude=_UNREAD)
    return list_answer(request, asked, sequence, [row(each.body, root) for each in found.items], found.after)


async def show_job(request: web.Request) -> web.Response:
    """GET pm-jobs/{id}: with its reports and newest values."""
    sequence, jobs, root = views(request).sequence(), views(request).jobs, api_root(request)
    body = (await jobs.get(request.match_info["id"])).body
    newest = await jobs.newest(body)
    gap = {} if newest.gap is None else {"gap": newest.gap}
    reports = report_links(body, jobs.reports(body), root)
    return web.json_response(
        {"sequence": sequence, **_job(jobs, body, root), "reports": reports, "lastValues": newest.values, **gap}
    )


async def show_threshold(request: web.Request) -> web.Response:
    """GET thresholds/{id}: with the side of each object."""
    sequence = views(request).sequence()
    body = (await views(request).thresholds.get(request.match_info["id"])).body
    return web.json_response({"sequence": sequence, **_threshold(body, api_root(request)), "sides": list(_sides(body))})


def _job(jobs: PmJobs, body: JsonMapping, root: str) -> JsonObject:
    criteria, reports = body["criteria"], jobs.reports(body)
    boundary, last = criteria.get("reportingBoundary"), report_links(body, reports[-1:], root)
    return {
        **_common(body, {"pmJob": f"{root}{JOBS}/{body['id']}", "self": f"{root}{_MANY_JOBS}/{body['id']}"}),
        "vnfInstanceIds": body["objectInstanceIds"],
        "performanceMetric": [*criteria.get("performanceMetric", ()), *criteria.get("performanceMetricGroup", ())],
        "collectionPeriod": criteria["collectionPeriod"],
        "reportingPeriod": criteria["reportingPeriod"],
        **({"reportingBoundary": boundary} if boundary is not None else {}),
        "reportCount": len(reports),
        **({"lastReport": last[0]} if last else {}),
    }


def _threshold(body: JsonMapping, root: str) -> JsonObject:
    criteria, internal = body["criteria"], body["internal"]
    details = criteria["simpleThresholdDetails"]
    up = sum(each["side"] == "UP" for each in internal["sides"])
    down = len(internal["sides"]) - up
    side = {"side": "UP" if up else "DOWN"} if up or down else {}
    automation = (body.get("metadata") or {}).get("automation")
    links = {"threshold": f"{root}{THRESHOLDS}/{body['id']}", "self": f"{root}{_MANY_THRESHOLDS}/{body['id']}"}
    return {
        **_common(body, links),
        "vnfInstanceId": body["objectInstanceId"],
        "performanceMetric": criteria["performanceMetric"],
        "thresholdValue": details["thresholdValue"],
        "hysteresis": details["hysteresis"],
        **side,
        "up": up,
        "down": down,
        "crossings": internal["events"],
        **({"automation": automation} if isinstance(automation, dict) else {}),
    }


def _sides(body: JsonMapping) -> Iterator[JsonObject]:
    for each in sorted(body["internal"]["sides"], key=lambda one: (one["side"] != "UP", one.get("part") or "")):
        part = {"subObjectInstanceId": each["part"]} if "part" in each else {}
        yield {**part, "side": each["side"], "since": each["at"]}


def _common(body: JsonMapping, links: Mapping[str, str]) -> JsonObject:
    state, text = _state(body["internal"])
    name = body["internal"].get("vnfInstanceName")
    return {
        "id": body["id"],
        "state": state,
        **({"text": text} if text else {}),
        "objectType": body["objectType"],
        **({"vnfInstanceName": name} if name else {}),
        **({"subObjectInstanceIds": body["subObjectInstanceIds"]} if "subObjectInstanceIds" in body else {}),
        "callbackUri": shown_url(body["callbackUri"]),
        "createdAt": body["createdAt"],
        "_links": {name: {"href": href} for name, href in links.items()},
    }


def _state(internal: JsonMapping) -> tuple[State, str]:
    if not internal["sources"]:
        return "RECEIVING", ""
    if not internal.get("dueAt"):
        return "ENDED", ""
    failures = internal.get("failures", 0)
    error = internal.get("error", "")
    if failures:
        # An outage that began with an earlier release has no error.
        return "WAITING", f"{error or 'Prometheus does not answer'} ({failures} times in a row)"
    if error:
        return "WAITING", error
    return "MEASURING", ""


def _parts(asked: PageRequest, path: str) -> Sequence[Part]:
    wanted = asked.filters.get(_INSTANCE.name)
    more: list[Filter] = [] if wanted is None else [Compare(path, Op.EQ, [wanted])]
    return [Part([AllOf(more)], _NEWEST)]


def routes() -> list[Route]:
    """Return the routes of the lists."""
    query = (*_FILTERS, *PARAMETERS)

    def page(model: type[PmJobsPage | ThresholdsPage]) -> dict[int, Answer]:
        return {200: Answer("A page; `next` and Link name the next one", model, is_page=True)}

    return [
        Route("Views", "GET", _MANY_JOBS, list_jobs, "List PM jobs", page(PmJobsPage), query=query),
        Route(
            "Views", "GET", f"{_MANY_JOBS}/{{id}}", show_job, "Show a PM job with its newest values",
            {200: Answer("The job", PmJobView)},
        ),
        Route(
            "Views", "GET", _MANY_THRESHOLDS, list_thresholds, "List thresholds", page(ThresholdsPage), query=query
        ),
        Route(
            "Views", "GET", f"{_MANY_THRESHOLDS}/{{id}}", show_threshold,
            "Show a threshold with the side of each object", {200: Answer("The threshold", ThresholdView)},
        ),
    ]  # fmt: skip
