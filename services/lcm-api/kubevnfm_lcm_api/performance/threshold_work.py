"""Measures thresholds, and hands on their crossings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog
from kubevnfm_bus.port import Ack, Again, Delivery, Verdict
from kubevnfm_events.performance import ThresholdCrossed
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import NotFound, VnfmError
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_kit.outages import unless_said
from kubevnfm_store.query import Stored

from kubevnfm_lcm_api.due import DUE, NEVER, due_fields
from kubevnfm_lcm_api.performance.domain.measured_objects import Objects
from kubevnfm_lcm_api.performance.domain.metrics import Wanted, read_metric
from kubevnfm_lcm_api.performance.domain.ports import Crossing, MeasurerUnavailable, OnCrossing
from kubevnfm_lcm_api.performance.domain.tallies import after, counted, newest, values_of
from kubevnfm_lcm_api.performance.measuring import Measuring, joined
from kubevnfm_lcm_api.performance.pod_sampling import PodSampling, note_outage
from kubevnfm_lcm_api.performance.resources import SAMPLED, away_error
from kubevnfm_lcm_api.performance.thresholds import Part, Thresholds

log = structlog.get_logger()

_AGAIN: Final = BackOff(first_s=5.0, longest_s=120.0)
_HAND_ON_AGAIN_S: Final = 5.0


@dataclass(frozen=True)
class ThresholdWork:
    """The work of thresholds (`due.Work`)."""

    clock: Clock
    thresholds: Thresholds
    measuring: Measuring
    pods: PodSampling
    measured_after: timedelta
    period_s: int

    async def measure(self, stored: Stored, claim: str) -> None:
        """Measure a threshold. Raises StoreUnavailable."""
        body, internal = stored.body, stored.body["internal"]
        instance_id = body["objectInstanceId"]
        wanted = read_metric(body["objectType"], body["criteria"]["performanceMetric"], [instance_id], "")
        objects = Objects(body["objectType"], [instance_id], body.get("subObjectInstanceIds", ()), [wanted])
        if self.measuring.sources.is_sampled(internal):
            await self._sample(stored, objects, wanted, claim)
            return
        now = self.clock.now()
        at = (now - self.measured_after).replace(microsecond=0)
        later = due_fields(self.clock, now + timedelta(seconds=self.period_s))
        fields: JsonMapping = {**later, "internal/failures": 0}
        values: Mapping[Part, float] = {}
        error: str | None = ""
        if not internal["sources"]:
            fields = {DUE: NEVER}  # its values are sent
        else:
            try:
                found = await self.measuring.values(objects, internal, [at], self.period_s)
            except MeasurerUnavailable as away:
                error = away_error(internal, away, now)
                failures = internal.get("failures", 0) + 1
                pause_s = max(self.period_s, _AGAIN.after(failures))
                again = due_fields(self.clock, now + timedelta(seconds=pause_s))
                fields = {**again, "internal/failures": failures}
            else:
                values = {part: value for (_, (_, part)), value in found.by_time.get(0, {}).items()}
                if not found.exist:
                    fields = _ended(stored)
        await self._note(stored.id, claim, values, at, fields, error)

    async def _sample(self, stored: Stored, objects: Objects, wanted: Wanted, claim: str) -> None:
        """Take samples of pods; at the end of a period their values are those of the threshold."""
        now, internal = self.clock.now(), stored.body["internal"]
        found = await self.pods.sample(objects)
        note_outage(stored.id, internal.get("error", ""), found.error)
        tallies = counted(internal.get("sampled", ()), found.samples, lambda _: 1)
        end = datetime.fromisoformat(internal.get("periodEnd") or stored.body["createdAt"])
        values: Mapping[Part, float] = {}
        # The first sample is the first value: what is above the threshold now is not noticed a period later.
        if now >= end:
            of_parts = joined(wanted, objects, values_of(tallies, 1, wanted.metric))
            values = {part: value for (_, (_, part)), value in of_parts.items()}
            tallies, end = after(tallies, 1), now + timedelta(seconds=self.period_s)
        again = due_fields(self.clock, min(end, now + timedelta(seconds=self.pods.every_s)))
        fields = {**again, SAMPLED: tallies, "internal/periodEnd": rfc3339(end)} if found.exist else _ended(stored)
        await self._note(stored.id, claim, values, newest(tallies) or now, fields, found.error)

    async def _note(
        self,
        threshold_id: str,
        claim: str,
        values: Mapping[Part, float],
        at: datetime,
        fields: JsonMapping,
        error: str | None = None,
    ) -> None:
        def is_ours(one: Stored) -> bool:
            return bool(one.body["internal"].get("claim") == claim)

        try:
            await self.thresholds.note(threshold_id, values, at, fields=fields, error=error, is_ours=is_ours)
        except NotFound:
            return  # deleted meanwhile


def _ended(stored: Stored) -> JsonMapping:
    log.info("threshold_ended", threshold_id=stored.id, reason="its VNF instance does not exist any more")
    return {DUE: NEVER}


@dataclass(frozen=True)
class HandedCrossings:
    """Hands each crossing to the one that acts on it, until it is accepted."""

    thresholds: Thresholds
    on_crossing: OnCrossing

    async def hand_on(self, delivery: Delivery) -> Verdict:
        """Hand on the crossing of an event."""
        event = delivery.envelope.data
        assert isinstance(event, ThresholdCrossed)
        try:
            threshold = await self.thresholds.get(event.threshold_id)
            await self.on_crossing(
                Crossing(
                    id=delivery.envelope.id,
                    threshold_id=event.threshold_id,
                    direction=event.direction,
                    metric=event.metric,
                    value=event.value,
                    at=event.measured_at,
                    object_instance_id=event.vnf_instance_id,
                    sub_object_instance_id=event.sub_object_instance_id,
                    metadata=threshold.body.get("metadata", {}),
                )
            )
        except NotFound as error:
            log.info("crossing_not_handed_on", threshold_id=event.threshold_id, reason=str(error))
        except VnfmError as error:
            unless_said(error).warning("crossing_not_handed_on", threshold_id=event.threshold_id, reason=str(error))
            if error.retryable:
                return Again(_HAND_ON_AGAIN_S)
        return Ack()
