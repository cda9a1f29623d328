"""Thresholds, and how they are crossed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog
from kubevnfm_events import Envelope, Message
from kubevnfm_events.performance import ThresholdCrossed
from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.errors import NotFound, Unprocessable
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_store.port import RevisionConflict
from kubevnfm_store.query import Stored
from kubevnfm_worker.outbox import Outbox

from kubevnfm_lcm_api.due import due_fields
from kubevnfm_lcm_api.event_chain import SOURCE
from kubevnfm_lcm_api.performance.domain.crossing import crossing, side
from kubevnfm_lcm_api.performance.domain.metrics import read_metric
from kubevnfm_lcm_api.performance.domain.ports import CheckAutomation
from kubevnfm_lcm_api.performance.domain.requests import CallbackPatch, CreateThresholdRequest
from kubevnfm_lcm_api.performance.resources import Resources, Shared, with_error
from kubevnfm_lcm_api.performance.threshold_record import COLLECTION, SIDES

log = structlog.get_logger()

_MOST_SIDES: Final = 1000
Part = str | None
"""The id of a part of the VNF instance; None: the instance."""


@dataclass(frozen=True)
class Thresholds:
    """Creates, shows, changes and deletes thresholds, and notes on which side of them values are."""

    on: Shared
    outbox: Outbox
    wake: Callable[[], None]
    """Called when a threshold was made."""
    check_automation: CheckAutomation

    @property
    def resources(self) -> Resources:
        """The common part of jobs and thresholds."""
        return Resources(self.on, COLLECTION, "threshold")

    async def create(self, request: CreateThresholdRequest) -> Stored:
        """Check a request, test its callback, and store the threshold. Raises InvalidInput, Unprocessable, CallbackRefused."""
        instance_id = request.object_instance_id
        place = "criteria/performanceMetric"
        name = request.criteria.performance_metric
        wanted = read_metric(request.object_type, name, [instance_id], place)
        await self._check(request)
        body = await self.resources.drafted(request, [instance_id], {name: place}, [wanted])
        due = due_fields(self.on.clock, self.on.clock.now())
        body["internal"] |= {"sides": [], "events": 0, "dueAt": due["internal/dueAt"]}
        stored = await self.on.store.insert(COLLECTION, body["id"], body)
        await self.resources.follow(stored)
        self.wake()
        return stored

    async def _check(self, request: CreateThresholdRequest) -> None:
        is_of_vnfcs = request.object_type == "Vnfc" or (
            request.object_type == "Vnf" and bool(request.sub_object_instance_ids)
        )
        try:
            await self.check_automation(request.object_instance_id, request.metadata or {}, is_of_vnfcs=is_of_vnfcs)
        except NotFound as error:
            raise Unprocessable("objectInstanceId", str(error)) from error

    async def get(self, threshold_id: str) -> Stored:
        """Return a threshold. Raises NotFound."""
        return await self.resources.get(threshold_id)

    async def modify(self, threshold_id: str, patch: CallbackPatch, *, check: Callable[[Stored], None]) -> Stored:
        """Change where notifications go. Raises as `Resources.modify` does."""
        return await self.resources.modify(threshold_id, patch, check=check)

    async def delete(self, threshold_id: str) -> None:
        """Delete a threshold. Raises NotFound."""
        await self.resources.delete(threshold_id)

    async def note(
        self,
        threshold_id: str,
        values: Mapping[Part, float],
        at: datetime,
        *,
        fields: JsonMapping | None = None,
        error: str | None = None,
        is_ours: Callable[[Stored], bool] = lambda _: True,
    ) -> None:
        """Note the values of a moment; those that cross the threshold are published, in the same write.

        ``fields``: written too; ``error``: why there are no values, or not all, to show it; None: as before. ``is_ours``: whether to write at all. Raises NotFound, StoreUnavailable.
        """
        while True:
            stored = await self.get(threshold_id)
            if not is_ours(stored):
                return
            changes, events = self._moved(stored, values, at)
            if error is not None:
                changes |= with_error(stored.body["internal"], error, self.on.clock.now())
            if not changes and not fields:
                return
            if events:
                await self.resources.follow(stored)
            try:
                await self.outbox.update(
                    COLLECTION, threshold_id, {**changes, **(fields or {})}, if_revision=stored.revision, events=events
                )
            except RevisionConflict:
                continue
            for each in events:
                assert isinstance(each.data, ThresholdCrossed)
                log.info("threshold_crossed", threshold_id=threshold_id, direction=each.data.direction)
            return

    def _moved(
        self, stored: Stored, values: Mapping[Part, float], at: datetime
    ) -> tuple[JsonObject, list[Envelope[Message]]]:
        """Return what changes by the values of a moment, and the events about it."""
        details = stored.body["criteria"]["simpleThresholdDetails"]
        internal = stored.body["internal"]
        sides = {each.get("part"): each for each in internal["sides"]}
        number, before = internal["events"], internal.get("lastEvent")
        events: list[Envelope[Message]] = []
        is_changed = False
        for part, value in values.items():
            known = sides.get(part)
            if known is not None and datetime.fromisoformat(known["at"]) >= at:
                continue  # an older value, or the same one once more
            reached = side(value, threshold=details["thresholdValue"], hysteresis=details["hysteresis"])
            direction = crossing(None if known is None else known["side"], reached)
            if reached is None or (known is not None and known["side"] == reached):
                continue
            sides[part] = {**({"part": part} if part is not None else {}), "side": reached, "at": rfc3339(at)}
            is_changed = True
            if direction is not None:
                number += 1
                events.append(self._event(stored, part, value, at, direction, number, before))
                before = {"id": events[-1].id, "at": rfc3339(self.on.clock.now())}
        if not is_changed:
            return {}, []
        # Parts that still have values last: without its side, one that stays UP would cross the threshold again.
        newest = sorted(sides.values(), key=lambda each: (each.get("part") in values, str(each["at"])))[-_MOST_SIDES:]
        changes: JsonObject = {SIDES: newest, "internal/events": number}
        if events:
            changes["internal/lastEvent"] = before
        return changes, events

    def _event(
        self,
        stored: Stored,
        part: Part,
        value: float,
        at: datetime,
        direction: str,
        number: int,
        before: JsonMapping | None,
    ) -> Envelope[Message]:
        chained = {} if before is None else {"follows": before["id"], "follows_at": before["at"]}
        crossed = ThresholdCrossed.model_validate(
            {
                "threshold_id": stored.id,
                "direction": direction,
                "object_type": stored.body["objectType"],
                "vnf_instance_id": stored.body["objectInstanceId"],
                "sub_object_instance_id": part,
                "metric": stored.body["criteria"]["performanceMetric"],
                "value": value,
                "measured_at": at,
                **chained,
            }
        )
        event_id = derived_id("threshold-event", stored.id, str(number))
        return Envelope(data=crossed, source=SOURCE, id=event_id, subject=stored.body["objectInstanceId"])
