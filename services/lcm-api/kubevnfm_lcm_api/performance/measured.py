"""Values that a monitoring system sends, beside those that are asked for."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import Conflict, InvalidInput
from kubevnfm_kit.ids import derived_id
from kubevnfm_store.port import AlreadyExists, DocumentStore

from kubevnfm_lcm_api.performance.domain.metrics import Wanted, read_metric
from kubevnfm_lcm_api.performance.job_record import SAMPLES, JobRecord
from kubevnfm_lcm_api.performance.jobs import PmJobs
from kubevnfm_lcm_api.performance.thresholds import Thresholds


@dataclass(frozen=True)
class Measured:
    """Takes values for PM jobs and thresholds."""

    store: DocumentStore
    clock: Clock
    jobs: PmJobs
    thresholds: Thresholds

    async def report(
        self,
        *,
        job_id: str,
        metric: str,
        object_instance_id: str,
        sub_object_instance_id: str | None,
        value: float | str,
        at: datetime,
    ) -> None:
        """Store a value for the present reporting period of a PM job; the same one twice is one.

        Raises NotFound; InvalidInput for a metric or object that the job does not measure, and for a value that is no number;
        Conflict after the reportingBoundary; StoreUnavailable.
        """
        stored = await self.jobs.get(job_id)
        job = JobRecord.from_stored(stored)
        if object_instance_id not in job.instance_ids:
            raise InvalidInput("object_instance_id", f"PM job {job_id} does not measure this VNF instance")
        _check_part(sub_object_instance_id, job.sub_ids, f"PM job {job_id}")
        name = next((each.name for each in job.wanted if metric in _names(each, object_instance_id)), None)
        if name is None:
            raise InvalidInput("metric", f"PM job {job_id} does not measure it")
        number = _number(value)
        now = self.clock.now()
        if job.periods.is_over(job.measured) or (job.periods.boundary is not None and now > job.periods.boundary):
            raise Conflict(f"PM job {job_id} has ended: its reportingBoundary has passed")
        part = {} if sub_object_instance_id is None else {"part": sub_object_instance_id}
        found = {"instance": object_instance_id, **part, "metric": name, "value": number, "at": rfc3339(at)}
        key = derived_id("pm-sent", job_id, metric, object_instance_id, sub_object_instance_id or "", rfc3339(at))
        try:
            # By the time at which it came: it belongs to the present period, however old it is.
            await self.store.insert(SAMPLES, key, {"jobId": job_id, "at": rfc3339(now), "values": [found]})
        except AlreadyExists:
            return

    async def crossing(
        self,
        *,
        threshold_id: str,
        metric: str,
        object_instance_id: str,
        sub_object_instance_id: str | None,
        value: float | str,
        at: datetime,
    ) -> None:
        """Note a value of a threshold's metric: hysteresis decides whether the threshold is crossed.

        Raises NotFound; InvalidInput for another metric or object, and for a value that is no number; StoreUnavailable.
        """
        body = (await self.thresholds.get(threshold_id)).body
        if object_instance_id != body["objectInstanceId"]:
            raise InvalidInput("object_instance_id", f"threshold {threshold_id} is not of this VNF instance")
        _check_part(sub_object_instance_id, body.get("subObjectInstanceIds", ()), f"threshold {threshold_id}")
        own = body["criteria"]["performanceMetric"]
        if metric not in _names(read_metric(body["objectType"], own, [object_instance_id], ""), object_instance_id):
            raise InvalidInput("metric", f"threshold {threshold_id} is of {own}")
        await self.thresholds.note(threshold_id, {sub_object_instance_id: _number(value)}, at)


def _names(wanted: Wanted, instance_id: str) -> Collection[str]:
    """Return the names under which a metric of an instance is sent: with and without the instance as sub-counter."""
    if wanted.instance_id not in {None, instance_id}:
        return ()
    return {wanted.metric.name, f"{wanted.metric.name}.{instance_id}"}


def _check_part(part: str | None, known: Sequence[str], what: str) -> None:
    if part is not None and known and part not in known:
        raise InvalidInput("sub_object_instance_id", f"{what} does not measure this part")


def _number(value: float | str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInput("value", "a finite number expected")
    return number
