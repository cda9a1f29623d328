"""How long operations took before: for the time that one still needs, and for how long each of its steps usually takes.

The records of the operations that have ended say it all, so nothing is stored for it: one read for each plan, of its last runs, and
none for a minute after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Final, Self

from cachetools import TTLCache
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_sol.lcm import OperationState
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import AllOf, Compare, Op, Query, Sort, by

from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.plan import StepState
from kubevnfm_lcm_api.lifecycle.core.released import UNREAD_DRAFT

PLAN: Final = "internal/plan"
LARGE: Final = (
    "internal/draft",
    "internal/granting/request",
    "internal/revision",
    "operationParams",
    "resourceChanges",
    "changedInfo",
    "changedExtConnectivity",
    "modificationsTriggeredByVnfPkgChange",
)
"""Attributes of an operation's document that its summary and its times need not."""
_RUNS: Final = 10
_KNOWN_S: Final = 60.0
_PLANS: Final = 64


@dataclass(frozen=True)
class Run:
    """An operation that has completed without a retry."""

    vnfd_id: str
    lasted_s: float
    took_s: Mapping[str, float]
    """By kind of step: how long one of the kind took."""
    ended_s: Mapping[str, float]
    """By kind of step: from the operation's start to the end of the last one of the kind."""

    @classmethod
    def from_document(cls, body: JsonMapping) -> Self | None:
        """Return the run of a completed operation; None if it was retried: people waited in it, not steps."""
        record = without_draft(body)
        start = datetime.fromisoformat(record.occ.start_time)
        took: dict[str, list[float]] = {}
        ended: dict[str, float] = {}
        for step in record.steps:
            if step.attempt > 1:
                return None
            if step.started_at is None or step.ended_at is None:
                continue
            end = datetime.fromisoformat(step.ended_at)
            took.setdefault(step.kind, []).append(_seconds(datetime.fromisoformat(step.started_at), end))
            ended[step.kind] = max(ended.get(step.kind, 0.0), _seconds(start, end))
        return cls(
            vnfd_id=record.facts.vnfd_id,
            lasted_s=_seconds(start, datetime.fromisoformat(record.occ.state_entered_time)),
            took_s={kind: median(each) for kind, each in took.items()},
            ended_s=ended,
        )


@dataclass(frozen=True)
class Estimate:
    """How long an operation will still take."""

    remaining_s: float
    runs: int
    """The earlier runs that it is made from."""


def without_draft(body: JsonMapping) -> OccurrenceRecord:
    """Return an operation that was read without its draft (`LARGE`), in whatever form it is stored."""
    return OccurrenceRecord.from_document({**body, "internal": {**body["internal"], "draft": UNREAD_DRAFT}})


class EarlierRuns:
    """Finds the earlier runs of operations."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._known: TTLCache[str, Sequence[Run]] = TTLCache(_PLANS, ttl=_KNOWN_S)

    async def by_plan(self, records: Iterable[OccurrenceRecord]) -> Mapping[str, Sequence[Run]]:
        """Return the last runs of the plans of these operations, by plan."""
        return {plan: await self._runs(plan) for plan in sorted({each.plan for each in records})}

    async def _runs(self, plan: str) -> Sequence[Run]:
        if (known := self._known.get(plan)) is not None:
            return known
        completed = by(operationState=OperationState.COMPLETED.value)
        wanted = AllOf([Compare(PLAN, Op.EQ, [plan]), completed])
        newest = Query(wanted, sort=Sort("startTime", descending=True), limit=_RUNS, exclude=LARGE)
        found = [Run.from_document(each.body) for each in await self._store.find(occurrences.COLLECTION, newest)]
        self._known[plan] = runs = [each for each in found if each is not None]
        return runs


def fitting(runs: Sequence[Run], record: OccurrenceRecord) -> Sequence[Run]:
    """Return the runs to compare an operation with: those of the same VNFD if there are any, as sizes differ between VNFDs."""
    same = [each for each in runs if each.vnfd_id == record.facts.vnfd_id]
    return same or runs


def usual_s(runs: Sequence[Run], record: OccurrenceRecord) -> Mapping[str, float]:
    """Return how long each step usually takes, by its id; steps without an earlier run are left out."""
    by_kind: dict[str, list[float]] = {}
    for run in fitting(runs, record):
        for kind, seconds in run.took_s.items():
            by_kind.setdefault(kind, []).append(seconds)
    return {step.id: median(by_kind[step.kind]) for step in record.steps if step.kind in by_kind}


def estimated(runs: Sequence[Run], record: OccurrenceRecord, now: datetime) -> Estimate | None:
    """Return how long a running operation will still take; None if it is not known.

    It is what earlier runs needed from the point at which this one is. That includes steps which a reply is yet to add, and steps side by side.
    """
    compared = fitting(runs, record)
    if record.occ.operation_state not in (OperationState.STARTING, OperationState.PROCESSING) or not compared:
        return None
    open_kinds = {step.kind for step in record.steps if step.state is not StepState.DONE}
    done = [step for step in record.steps if step.kind not in open_kinds]
    ends = (datetime.fromisoformat(step.ended_at) for step in done if step.ended_at is not None)
    reached = max(ends, default=datetime.fromisoformat(record.occ.start_time))
    if any(step.attempt > 1 for step in record.steps):
        # It has rested until the retry.
        reached = max(reached, datetime.fromisoformat(record.occ.state_entered_time))
    since = _seconds(reached, now)
    left = _after(compared, {step.kind for step in done}) - since
    # A step that takes longer than before does not make those behind it shorter.
    behind = _after(compared, {step.kind for step in (*done, *record.running)})
    remaining = max(left, behind)
    return Estimate(remaining, len(compared)) if remaining > 0 else None


def _after(runs: Sequence[Run], kinds: Collection[str]) -> float:
    """Return how long the runs went on after the last step of these kinds had ended."""
    return median(run.lasted_s - max((run.ended_s.get(kind, 0.0) for kind in kinds), default=0.0) for run in runs)


def _seconds(start: datetime, end: datetime) -> float:
    return max(0.0, (end - start).total_seconds())
