"""PM jobs and their reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.errors import InvalidInput, NotFound
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_store.query import AllOf, Compare, Op, Query, Sort, Stored, by

from kubevnfm_lcm_api.due import due_fields
from kubevnfm_lcm_api.performance.domain.metrics import wanted_metrics
from kubevnfm_lcm_api.performance.domain.requests import MOST_PERIODS, CallbackPatch, CreatePmJobRequest
from kubevnfm_lcm_api.performance.job_record import COLLECTION, SAMPLES
from kubevnfm_lcm_api.performance.resources import Resources, Shared

_MOST_SAMPLES: Final = 10 * MOST_PERIODS
"""Documents of one report: those of its periods, and those that were sent."""
_NEWEST_MEASURED: Final = 2
"""Documents in which the newest values of a job are looked for: the newest one may be of a period that was not measured."""
_NEWEST_SENT: Final = 200
"""Each that was sent has one value."""
_MOST_NEWEST: Final = 1000
_LONGEST_REPORT: Final = timedelta(days=7)


class Newest(NamedTuple):
    """The newest values of a job."""

    values: Sequence[JsonObject]
    gap: JsonMapping | None
    """The part of the newest period that was not measured."""


@dataclass(frozen=True)
class PmJobs:
    """Creates, shows, changes and deletes PM jobs."""

    on: Shared
    measured_after: timedelta
    """How long after the end of a period it is measured."""
    kept: timedelta
    """How long a report is kept."""
    wake: Callable[[], None]
    """Called when a job was made."""

    @property
    def resources(self) -> Resources:
        """The common part of jobs and thresholds."""
        return Resources(self.on, COLLECTION, "PM job")

    async def create(self, request: CreatePmJobRequest) -> Stored:
        """Check a request, test its callback, and store the job. Raises InvalidInput, Unprocessable, CallbackRefused."""
        request.check()
        criteria = request.criteria
        ids = request.object_instance_ids
        names = criteria.performance_metric
        wanted = wanted_metrics(request.object_type, names, criteria.performance_metric_group, ids)
        self._check_boundary(request)
        places = {name: f"criteria/performanceMetric[{index}]" for index, name in enumerate(names)}
        body = await self.resources.drafted(request, ids, places, wanted)
        # Whole seconds: a Prometheus is asked for moments of the job's own, which no rounding moves.
        begin = self.on.clock.now().replace(microsecond=0)
        body["criteria"] = {name: value for name, value in body["criteria"].items() if value != []}
        end = begin + timedelta(seconds=criteria.collection_period) + self.measured_after
        due = due_fields(self.on.clock, begin if self.on.sources.is_sampled(body["internal"]) else end)
        body["internal"] |= {"begin": rfc3339(begin), "measured": 0, "dueAt": due["internal/dueAt"]}
        stored = await self.on.store.insert(COLLECTION, body["id"], body)
        await self.resources.follow(stored)
        self.wake()
        return stored

    def _check_boundary(self, request: CreatePmJobRequest) -> None:
        boundary = request.criteria.reporting_boundary
        if boundary is None:
            return
        first = self.on.clock.now() + timedelta(seconds=request.criteria.collection_period)
        if datetime.fromisoformat(boundary) < first:
            reason = "a time after the end of the first collectionPeriod expected: nothing would be reported"
            raise InvalidInput("criteria/reportingBoundary", reason)

    async def get(self, job_id: str) -> Stored:
        """Return a job. Raises NotFound."""
        return await self.resources.get(job_id)

    async def modify(self, job_id: str, patch: CallbackPatch, *, check: Callable[[Stored], None]) -> Stored:
        """Change where notifications go. Raises as `Resources.modify` does."""
        return await self.resources.modify(job_id, patch, check=check)

    async def delete(self, job_id: str) -> None:
        """Delete a job with its reports. Raises NotFound."""
        await self.resources.delete(job_id)
        await self.on.store.delete_many(SAMPLES, by(jobId=job_id))

    # --- reports ------------------------------------------------------------------------------------------------------

    async def report(self, job_id: str, report_id: str) -> JsonObject:
        """Return a PerformanceReport. Raises NotFound."""
        stored = await self.get(job_id)
        report = next((each for each in self.reports(stored.body) if each["id"] == report_id), None)
        if report is None:
            raise NotFound(f"report {report_id} of PM job {job_id} does not exist")
        times = [Compare("at", Op.GT, [report["begin"]]), Compare("at", Op.LTE, [report["end"]])]
        query = Query(AllOf([by(jobId=job_id), *times]), sort=Sort("at"), limit=_MOST_SAMPLES + 1)
        found = [each.body for each in await self.on.store.find(SAMPLES, query)]
        samples = found[:_MOST_SAMPLES]
        shown: JsonObject = {"entries": list(_entries(stored.body["objectType"], samples))}
        gaps = [each["gap"] for each in samples if "gap" in each]
        if len(found) > len(samples):
            reason = f"a report has at most {_MOST_SAMPLES} periods and values that were sent; later ones are left out"
            gaps.append({"from": samples[-1]["at"], "to": report["end"], "reason": reason})
        if gaps:
            shown["metadata"] = {"gaps": gaps}
        return shown

    def reports(self, job: JsonMapping) -> Sequence[JsonMapping]:
        """Return the reports of a job that have not expired."""
        now = rfc3339(self.on.clock.now())
        return [each for each in job.get("reports", ()) if each["expiryTime"] > now]

    async def newest(self, job: JsonMapping) -> Newest:
        """Return the newest value of each metric and object, also those that no report has yet. Raises StoreUnavailable."""
        limit = _NEWEST_MEASURED if job["internal"]["sources"] else _NEWEST_SENT
        query = Query(by(jobId=job["id"]), sort=Sort("at", descending=True), limit=limit)
        samples = [each.body for each in await self.on.store.find(SAMPLES, query)]
        values = []
        for entry in _entries(job["objectType"], samples):
            last = entry["performanceValues"][-1]
            part = entry.get("subObjectInstanceId")
            values.append(
                {
                    "vnfInstanceId": entry["objectInstanceId"],
                    **({"subObjectInstanceId": part} if part is not None else {}),
                    "performanceMetric": entry["performanceMetric"],
                    "value": last["value"],
                    "at": last["timeStamp"],
                }
            )
        return Newest(values[:_MOST_NEWEST], samples[0].get("gap") if samples else None)

    async def remove_old(self) -> None:
        """Remove the values of reports that have expired, and callbacks without their job. Raises StoreUnavailable."""
        before = rfc3339(self.on.clock.now() - self.kept - _LONGEST_REPORT)
        await self.on.store.delete_many(SAMPLES, Compare("at", Op.LT, [before]))


def _entries(object_type: str, samples: Sequence[JsonMapping]) -> Iterator[JsonObject]:
    """Yield the entries of a report: the values of each metric and object, in the order of their times."""
    found: dict[tuple[str, str | None, str], list[JsonObject]] = {}
    for sample in samples:
        for each in sample["values"]:
            key = (each["instance"], each.get("part"), each["metric"])
            found.setdefault(key, []).append({"timeStamp": each.get("at", sample["at"]), "value": each["value"]})
    for (instance_id, part, metric), values in sorted(found.items(), key=lambda each: (each[0][0], each[0][1] or "")):
        yield {
            "objectType": object_type,
            "objectInstanceId": instance_id,
            **({"subObjectInstanceId": part} if part is not None else {}),
            "performanceMetric": metric,
            "performanceValues": sorted(values, key=lambda each: str(each["timeStamp"])),
        }
