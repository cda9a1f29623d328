"""Measures PM jobs, period by period, and makes their reports.

The values of a period are stored first, under ids that follow from job and period; then one write moves the job on, with the reports
that are complete and their events. A process that is killed in between repeats this: no value, report or event is made twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from kubevnfm_events import Envelope, Message
from kubevnfm_events.performance import PerformanceReported
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import AllOf, Compare, Op, Stored, by
from kubevnfm_worker.outbox import Outbox

from kubevnfm_lcm_api.due import CLAIM, DUE, due_fields
from kubevnfm_lcm_api.event_chain import SOURCE
from kubevnfm_lcm_api.performance.domain.measured_objects import Objects
from kubevnfm_lcm_api.performance.domain.ports import MeasurerUnavailable
from kubevnfm_lcm_api.performance.domain.queries import Target
from kubevnfm_lcm_api.performance.domain.tallies import after, counted, values_of
from kubevnfm_lcm_api.performance.job_record import COLLECTION, SAMPLES, JobRecord
from kubevnfm_lcm_api.performance.jobs import PmJobs
from kubevnfm_lcm_api.performance.measuring import Measuring, Values, joined
from kubevnfm_lcm_api.performance.pod_sampling import PodSampling, Sampled, note_outage
from kubevnfm_lcm_api.performance.resources import ERROR, SAMPLED, SHOWN, away_error, with_error

log = structlog.get_logger()

_AT_ONCE: Final = 100
"""Periods that are asked for together, after a pause."""
_MOST_EVENTS: Final = 1000
"""The most events of one write: a document has a largest size."""
_AGAIN: Final = BackOff(first_s=2.0, longest_s=60.0)
_LATE: Final = "not measured in time: Prometheus did not answer"
_NOT_SAMPLED: Final = "not measured: no samples of pods were taken in this time"


@dataclass(frozen=True)
class _Samples:
    """The samples of pods in periods that are not measured yet."""

    sampled: Sampled
    """The newest ones."""
    tallies: Sequence[JsonMapping]

    def values(self, objects: Objects, numbers: Sequence[int]) -> Values:
        """Return the values of these periods."""
        by_time = {
            index: {
                key: value
                for wanted in objects.wanted
                for key, value in joined(wanted, objects, values_of(self.tallies, number, wanted.metric)).items()
            }
            for index, number in enumerate(numbers)
        }
        without = [*self.sampled.without, *(self.sampled.errors if not all(by_time.values()) else ())]
        return Values(by_time, without, exist=self.sampled.exist)


@dataclass(frozen=True)
class JobWork:
    """The work of PM jobs (`due.Work`)."""

    store: DocumentStore
    outbox: Outbox
    clock: Clock
    jobs: PmJobs
    measuring: Measuring
    pods: PodSampling
    catch_up: timedelta
    reports_kept: int

    async def measure(self, stored: Stored, claim: str) -> None:
        """Measure the periods of a job that have ended. Raises StoreUnavailable."""
        job, internal = JobRecord.from_stored(stored), stored.body["internal"]
        objects = Objects(job.object_type, job.instance_ids, job.sub_ids, job.wanted)
        samples = await self._sample(job, objects) if self.measuring.sources.is_sampled(internal) else None
        now = self.clock.now()
        delay = self.jobs.measured_after if samples is None else self.pods.measured_after
        upto = job.periods.ended(now - delay)
        catch_up = self.catch_up if samples is None else self.catch_up + delay
        late = max(job.measured, min(upto, job.periods.ended(now - catch_up)))
        # The reports of a long outage: none that would be removed at once, and no more than fit into one write.
        if late > job.measured:
            job = replace(job, measured=max(job.measured, job.periods.report_after(late, -self.reports_kept)))
        piece = job.periods.report_after(job.measured, max(1, _MOST_EVENTS // len(job.instance_ids)))
        late, upto = min(late, piece), min(upto, piece)
        if late > job.measured:
            await self._store_late(job, late, _LATE if samples is None else _NOT_SAMPLED)
        numbers = range(late + 1, min(upto, late + _AT_ONCE) + 1)
        fields: JsonObject
        if numbers:
            times = [job.periods.end(each) for each in numbers]
            try:
                if samples is None:
                    values = await self.measuring.values(objects, internal, times, job.periods.collection_s)
                else:
                    values = samples.values(objects, numbers)
            except MeasurerUnavailable as away:
                failures = internal.get("failures", 0) + 1
                again = due_fields(self.clock, now + timedelta(seconds=_AGAIN.after(failures)))
                fields = {**again, "internal/failures": failures}
                reason = away_error(internal, away, now)
                await self._move(job, claim, late, fields, is_over=job.periods.is_over(late), error=reason)
                return
            if not values.exist:
                log.info("pm_job_ended", pm_job_id=job.id, reason="its VNF instances do not exist any more")
                await self._move(job, claim, numbers[-1], {}, is_over=True)
                return
            if internal["sources"]:  # otherwise values are sent
                for index, number in enumerate(numbers):
                    await self._store_sample(job, number, values, index)
        last = numbers[-1] if numbers else late
        next_at, error = job.periods.end(last + 1) + delay, ""
        fields = {"internal/failures": 0}
        if samples is not None:
            next_at = min(next_at, now + timedelta(seconds=self.pods.every_s))
            fields[SAMPLED], error = after(samples.tallies, last), samples.sampled.error
        fields |= due_fields(self.clock, next_at)
        await self._move(job, claim, last, fields, is_over=job.periods.is_over(last), error=error)

    async def _sample(self, job: JobRecord, objects: Objects) -> _Samples:
        """Take the newest samples of pods, and count them with those before."""
        sampled = await self.pods.sample(objects)
        note_outage(job.id, job.body["internal"].get("error", ""), sampled.error)

        def period(at: datetime) -> int | None:
            number = job.periods.number_of(at)
            return number if job.measured < number <= (job.periods.last or number) else None

        return _Samples(sampled, counted(job.body["internal"].get("sampled", ()), sampled.samples, period))

    # --- values ---------------------------------------------------------------------------------------------------------

    async def _store_late(self, job: JobRecord, late: int, reason: str) -> None:
        """Store that the periods up to this one are not asked for any more."""
        begin, end = job.periods.end(job.measured), job.periods.end(late)
        gap = {"from": rfc3339(begin), "to": rfc3339(end), "reason": reason}
        # In each report that has a part of it.
        for number in {*job.periods.report_ends(job.measured, late), late}:
            await self._insert(
                job, f"late-{number}", {"at": rfc3339(job.periods.end(number)), "values": [], "gap": gap}
            )

    async def _store_sample(self, job: JobRecord, number: int, values: Values, index: int) -> None:
        found = values.by_time.get(index, {})
        at = job.periods.end(number)
        shown = [
            {"instance": instance_id, **({"part": part} if part is not None else {}), "metric": metric, "value": value}
            for (metric, (instance_id, part)), value in sorted(found.items(), key=_key)[: job.most_values]
        ]
        reasons = list(values.without)
        if len(found) > job.most_values:
            reasons.append(
                f"{len(found) - job.most_values} values beyond the {job.most_values} of a period are left out"
            )
        reasons += _missing(job, found)
        body: JsonObject = {"at": rfc3339(at), "values": shown}
        if reasons:
            begin = rfc3339(job.periods.end(number - 1))
            body["gap"] = {"from": begin, "to": rfc3339(at), "reason": "; ".join(reasons)[:2000]}
        await self._insert(job, str(number), body)

    async def _insert(self, job: JobRecord, name: str, body: JsonObject) -> None:
        try:
            await self.store.insert(SAMPLES, derived_id("pm-sample", job.id, name), {"jobId": job.id, **body})
        except AlreadyExists:
            return  # stored before a crash

    # --- the job --------------------------------------------------------------------------------------------------------

    async def _move(
        self,
        job: JobRecord,
        claim: str,
        last: int,
        fields: JsonObject,
        *,
        is_over: bool = False,
        error: str | None = None,
    ) -> None:
        """Write how far the job is measured, with the reports that are complete by that, and their events.

        ``error``: why the last samples are missing, to show it; None: as before.
        """
        ends = job.periods.report_ends(job.measured, last)[-self.reports_kept :]
        if not ends and not self._new_error(job, error):
            await self._write(job, claim, last, fields, ends, is_over=is_over)
            return
        while True:
            # As it is now: PATCH may have changed address and entity tag since the claim.
            current = await self.jobs.resources.find(job.id)
            if current is None or current.body["internal"].get("claim") != claim:
                return
            job = replace(job, body=current.body)
            shown = {**fields, **self._new_error(job, error)}
            if await self._write(job, claim, last, shown, ends, is_over=is_over):
                return

    def _new_error(self, job: JobRecord, error: str | None) -> JsonObject:
        return {} if error is None else with_error(job.body["internal"], error, self.clock.now())

    async def _write(
        self, job: JobRecord, claim: str, last: int, fields: JsonObject, ends: Sequence[int], *, is_over: bool
    ) -> bool:
        """Return whether the job was as expected; otherwise it was deleted, claimed by another process, or changed."""
        now = self.clock.now()
        expected = [Compare(CLAIM, Op.EQ, [claim])]
        fields = {**fields, "internal/measured": last}
        events: list[Envelope[Message]] = []
        reports: Sequence[JsonMapping] = ()
        shown = job.body["internal"]["shown"]
        if ends or ERROR in fields:
            expected.append(Compare(SHOWN, Op.EQ, [shown]))
        if ends:
            await self.jobs.resources.follow(Stored(job.id, 0, job.body))
            made = [self._report(job, each) for each in ends]
            reports = [*self.jobs.reports(job.body), *made][-self.reports_kept :]
            events = list(self._events(job, made))
            fields |= {
                "reports": list(reports),
                SHOWN: shown + 1,
                "internal/updatedAt": rfc3339(now),
            }
            fields["internal/lastEvent"] = {"id": events[-1].id, "at": rfc3339(now)}
        unset = [DUE] if is_over else []
        try:
            await self.outbox.update(
                COLLECTION,
                job.id,
                {name: value for name, value in fields.items() if name not in unset},
                unset=unset,
                where=AllOf(expected),
                events=events,
            )
        except RevisionConflict:
            return False
        if ends:
            log.info("pm_reported", pm_job_id=job.id, reports=len(ends))
            old = AllOf([by(jobId=job.id), Compare("at", Op.LTE, [reports[0]["begin"]])])
            await self.store.delete_many(SAMPLES, old)
        return True

    def _report(self, job: JobRecord, end: int) -> JsonObject:
        now = self.clock.now()
        return {
            "id": derived_id("pm-report", job.id, str(end)),
            "readyTime": rfc3339(now),
            "expiryTime": rfc3339(now + self.jobs.kept),
            "begin": rfc3339(job.periods.end(job.periods.report_begin(end))),
            "end": rfc3339(job.periods.end(end)),
        }

    def _events(self, job: JobRecord, reports: Sequence[JsonMapping]) -> Iterator[Envelope[Message]]:
        before: JsonMapping | None = job.body["internal"].get("lastEvent")
        at = rfc3339(self.clock.now())
        for report in reports:
            for instance_id in job.instance_ids:
                chained = {} if before is None else {"follows": before["id"], "follows_at": before["at"]}
                reported = PerformanceReported.model_validate(
                    {
                        "pm_job_id": job.id,
                        "report_id": report["id"],
                        "object_type": job.object_type,
                        "vnf_instance_id": instance_id,
                        "sub_object_instance_ids": job.sub_ids,
                        **chained,
                    }
                )
                event_id = derived_id("pm-event", report["id"], instance_id)
                yield Envelope(data=reported, source=SOURCE, id=event_id, subject=instance_id)
                before = {"id": event_id, "at": at}


def _missing(job: JobRecord, found: Mapping[tuple[str, Target], float]) -> Iterator[str]:
    """Yield which metrics have no value, of any VNF instance or of some."""
    having: dict[str, set[str]] = {}
    for metric, (instance_id, _) in found:
        having.setdefault(metric, set()).add(instance_id)
    if without := [each.name for each in job.wanted if each.name not in having]:
        yield f"there is no value of {', '.join(without)}"
    for each in job.wanted:
        if each.name in having and each.instance_id is None:
            lacking = [one for one in job.instance_ids if one not in having[each.name]]
            if lacking:
                yield f"there is no value of {each.name} of the VNF instances {', '.join(lacking)}"


def _key(found: tuple[tuple[str, Any], float]) -> tuple[str, str, str]:
    (metric, (instance_id, part)), _ = found
    return instance_id, part or "", metric
