"""Counts operations and their steps, and what is stored of instances."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from kubevnfm_kit.clock import Clock
from kubevnfm_kit.metrics import SLOW_S, Exemplar, Metrics, traced
from kubevnfm_sol.lcm import InstantiationState, OperationType
from kubevnfm_sol.lcm import OperationState as S
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import AllOf, Compare, Exists, Op, Query, Sort

from kubevnfm_lcm_api.lifecycle.core import drift, instance, occurrence
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.plan import PlannedStep, StepState
from kubevnfm_lcm_api.lifecycle.core.traces import operation_span

CauseOf = Callable[[OccurrenceRecord, datetime], str]
"""Returns the code of the cause why an operation has failed, as the table of causes has it."""
_NO_CAUSE: Final = "none"
_RUNNING: Final = (S.STARTING, S.PROCESSING, S.ROLLING_BACK)
_STOPPED: Final = frozenset({S.COMPLETED, S.FAILED_TEMP, S.FAILED, S.ROLLED_BACK})
_FAILED: Final = frozenset({S.FAILED_TEMP, S.FAILED})
_MOST: Final = 1_000_000
_OLDEST_OF: Final = 50
"""Operations, those whose deadlines come first, of which the oldest unfinished step is shown."""


class OperationMetrics:
    """The operations that this process moves."""

    def __init__(self, metrics: Metrics, cause_of: CauseOf) -> None:
        self._cause_of = cause_of
        self._operations = metrics.counter(
            "kubevnfm_operations", "Operations that stopped.", ["operation", "outcome", "cause"]
        )
        self._operation_seconds = metrics.histogram(
            "kubevnfm_operation_seconds", "From the request to the end of an operation.", ["operation"], buckets=SLOW_S
        )
        self._steps = metrics.counter("kubevnfm_steps", "Steps that ended.", ["kind", "outcome"])
        self._step_seconds = metrics.histogram(
            "kubevnfm_step_seconds", "From the command of a step to its reply.", ["kind"], buckets=SLOW_S
        )

    def moved(self, before: OccurrenceRecord, after: OccurrenceRecord, now: datetime) -> None:
        """Count what a move that was stored has ended."""
        # Steps keep their places, but for those behind the ones that a repeated reply leaves out: none of them ends by that move.
        for earlier, step in zip(before.steps, after.steps, strict=False):
            if step is not earlier and step.id == earlier.id:
                self._step(earlier, step, after)
        occ = after.occ
        if after.is_internal or occ.operation_state is before.occ.operation_state:
            return
        if occ.operation_state in _STOPPED:
            cause = self._cause_of(after, now) if occ.operation_state in _FAILED else _NO_CAUSE
            self._operations.series(occ.operation, occ.operation_state, cause).inc()
        if occ.operation_state in _STOPPED - {S.FAILED_TEMP}:
            took_s = _seconds(occ.start_time, occ.state_entered_time)
            self._operation_seconds.series(occ.operation).observe(took_s, _trace_of(after))

    def _step(self, before: PlannedStep, after: PlannedStep, record: OccurrenceRecord) -> None:
        # One that needs no command, or whose command cannot be made, has not run.
        if not before.is_running or after.is_running or before.started_at is None or after.ended_at is None:
            return
        outcome = "undo_failed" if after.undo_failed and before.state is StepState.UNDOING else after.state.value
        self._steps.series(after.kind, outcome).inc()
        took_s = _seconds(before.started_at, after.ended_at)
        self._step_seconds.series(after.kind).observe(took_s, _trace_of(record))


class LifecycleCounts:
    """Gauges of stored operations and instances."""

    def __init__(self, metrics: Metrics, store: DocumentStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._running = metrics.gauge("kubevnfm_operations_running", "Operations under way.", ["operation"])
        self._waiting = metrics.gauge("kubevnfm_operations_failed_temp", "Operations that wait for a person.").series()
        self._oldest = metrics.gauge("kubevnfm_step_oldest_seconds", "Age of the oldest unfinished step.").series()
        self._instances = metrics.gauge("kubevnfm_vnf_instances", "VNF instances by state.", ["state"])
        self._drifted = metrics.gauge(
            "kubevnfm_vnf_instances_drifted", "Instances that differ from their VIM."
        ).series()
        self._gauges = (self._running, self._instances)
        self._numbers = (self._waiting, self._oldest, self._drifted)

    async def count(self) -> None:
        running: dict[tuple[str, ...], float] = {(operation.value,): 0.0 for operation in OperationType}
        for state in _RUNNING:
            if not await self._in_state(state, limit=1):
                continue
            for operation in OperationType:
                running[(operation.value,)] += await self._in_state(state, operation)
        self._running.show(running)
        self._waiting.set(await self._in_state(S.FAILED_TEMP))
        self._oldest.set(await self._oldest_s())
        self._instances.show(
            {
                (state.value,): await self._store.count(
                    instance.COLLECTION, Compare("instantiationState", Op.EQ, [state]), limit=_MOST
                )
                for state in InstantiationState
            }
        )
        self._drifted.set(await self._store.count(instance.COLLECTION, Exists(drift.PATH), limit=_MOST))

    def clear(self) -> None:
        for gauge in self._gauges:
            gauge.clear()
        for number in self._numbers:
            number.set(0)

    async def _in_state(self, state: S, operation: OperationType | None = None, *, limit: int = _MOST) -> int:
        of_state = Compare("operationState", Op.EQ, [state])
        which = of_state if operation is None else AllOf([Compare("operation", Op.EQ, [operation]), of_state])
        return await self._store.count(occurrence.COLLECTION, which, limit=limit)

    async def _oldest_s(self) -> float:
        first = Query(
            Compare("internal/deadline", Op.GT, [""]),
            sort=Sort("internal/deadline"),
            limit=_OLDEST_OF,
            exclude=("internal/draft", "operationParams", "resourceChanges"),
        )
        now = self._clock.now()
        ages = [
            (now - datetime.fromisoformat(step["startedAt"])).total_seconds()
            for stored in await self._store.find(occurrence.COLLECTION, first)
            for step in stored.body["internal"]["steps"]
            if step["state"] in {StepState.ASKED, StepState.UNDOING} and step.get("startedAt")
        ]
        return max(ages, default=0.0)


def _trace_of(record: OccurrenceRecord) -> Exemplar:
    return traced(operation_span(record).trace_id)


def _seconds(begin: str, end: str) -> float:
    return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds())
