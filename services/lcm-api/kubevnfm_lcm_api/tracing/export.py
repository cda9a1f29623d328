"""Sends the trace of each operation that has ended, once it is stored that it has ended.

The mark in the record (``internal/traceDue``) is removed after the collector has acknowledged the spans. A process that dies in between
leaves it, and the trace is sent again with the same ids: a store that merges spans by id has each once. A trace that is given up has a
line and is counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal, Protocol, get_args

import structlog
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import OutsideUnavailable, VnfmError
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_kit.metrics import Metrics
from kubevnfm_kit.traces import is_in_ratio, read_traceparent
from kubevnfm_sol.lcm import OperationState
from kubevnfm_store.port import DocumentStore, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import AllOf, Compare, Op, Query, Sort, Stored

from kubevnfm_lcm_api.lifecycle.core.occurrence import COLLECTION, OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.otlp import otlp
from kubevnfm_lcm_api.lifecycle.core.spans import Span, spans_of
from kubevnfm_lcm_api.lifecycle.core.traces import operation_span

log = structlog.get_logger()

DUE: Final = "internal/traceDue"
_SENT: Final = "internal/traceSentAt"
_BATCH: Final = 50
_MOST_SPANS: Final = 512
"""The spans of one request: less than a collector's limit on its size."""
_CLAIM: Final = timedelta(seconds=120)
"""How long the other gateways leave a trace to the one that sends it."""
_PAUSES: Final = BackOff(1.0, 60.0)

Outcome = Literal["sent", "refused", "too_old", "broken"]


class CollectorAway(OutsideUnavailable, code="collector-away", title="Collector of traces unavailable"):
    """The collector does not take spans now."""

    def __init__(self, reason: str, pause_s: float = 0.0) -> None:
        super().__init__(reason)
        self.pause_s = pause_s
        """For how long it wants no further request."""


class TraceRefused(VnfmError, code="trace-refused", title="Trace refused", status=422):
    """The collector does not take these spans."""


class Collector(Protocol):
    """Takes spans."""

    async def send(self, request: JsonObject) -> None:
        """Send an ExportTraceServiceRequest. Raises CollectorAway, TraceRefused."""
        ...


class StoredTasks(Protocol):
    """The progress of operations' tasks."""

    async def trace_of(self, record: OccurrenceRecord) -> Sequence[JsonMapping]:
        """Return each try of each task that is kept."""
        ...


def is_wanted(record: OccurrenceRecord, ratio: float) -> bool:
    """Return whether the trace of an operation is sent: by the caller's flag, else by the trace's id; of a failure always."""
    # A clean-up belongs to the trace of a failure.
    if record.is_internal or record.occ.operation_state is OperationState.FAILED:
        return True
    if read_traceparent(record.traceparent) is not None:
        return operation_span(record).is_sampled
    return is_in_ratio(operation_span(record).trace_id, ratio)


class TraceMetrics:
    """The traces that this process has done with."""

    def __init__(self, metrics: Metrics) -> None:
        self._traces = metrics.counter("kubevnfm_traces", "Traces of operations by what became of them.", ["outcome"])
        for outcome in get_args(Outcome):
            self._traces.series(outcome)

    def count(self, outcome: Outcome) -> None:
        """Count a trace."""
        self._traces.series(outcome).inc()


@dataclass
class TraceExport:
    """Sends traces in rounds. Several gateways may do so: a conditional write decides which one sends a trace."""

    store: DocumentStore
    tasks: StoredTasks
    collector: Collector
    clock: Clock
    counts: TraceMetrics
    ratio: float
    longest: timedelta
    """How long after its end a trace is tried to be sent."""
    settles: timedelta
    """How long after its end it is sent at the earliest."""
    _first: str = field(default="", init=False)
    """The earliest end of an operation whose trace this process cares for."""
    _failures: int = field(default=0, init=False)
    _paused_until: datetime | None = field(default=None, init=False)

    async def send_due(self) -> None:
        """Send the traces that are due, the oldest first; stop at the first that the collector does not take now."""
        now = self.clock.now()
        # Traces of an earlier time, when no collector was configured, are left alone. From here on none becomes too old without a line.
        self._first = self._first or rfc3339(now - self.longest)
        if self._paused_until is not None and now < self._paused_until:
            return
        last = rfc3339(now - self.settles)
        window = AllOf([Compare(DUE, Op.GTE, [self._first]), Compare(DUE, Op.LTE, [last])])
        due = Query(window, sort=Sort(DUE), limit=_BATCH, exclude=("internal/draft", "internal/steps"))
        for found in await self.store.find(COLLECTION, due):
            claimed = await self._claimed(found)
            if claimed is None:
                continue
            try:
                await self._handle(claimed)
            except CollectorAway as away:
                self._pause(away)
                # Due at once when the collector is there again, and behind the others: it may be this trace that ends its request.
                await self._write(claimed, {DUE: last})
                return
            except TraceRefused as refused:
                await self._give_up(claimed, "refused", str(refused))
            except StoreUnavailable:
                raise
            except Exception:  # one record that cannot be read must not end the export of all others
                log.exception("trace_not_made", operation_id=claimed.id)
                self.counts.count("broken")
                await self._write(claimed, {}, unset=[DUE])

    async def _claimed(self, found: Stored) -> Stored | None:
        due = {DUE: rfc3339(self.clock.now() + _CLAIM)}
        try:
            return await self.store.update(COLLECTION, found.id, due, where=_due_at(found.body))
        except RevisionConflict:  # another gateway sends it
            return None

    async def _handle(self, claimed: Stored) -> None:
        """Send the trace, if it is wanted, and remove its mark. Raises CollectorAway, TraceRefused."""
        record = OccurrenceRecord.from_document(claimed.body)
        now = self.clock.now()
        if not is_wanted(record, self.ratio):
            await self._write(claimed, {}, unset=[DUE])
            return
        if now - datetime.fromisoformat(record.occ.state_entered_time) > self.longest:
            await self._give_up(claimed, "too_old", "it ended too long ago")
            return
        spans = await asyncio.to_thread(spans_of, record, await self.tasks.trace_of(record), now)
        for start in range(0, len(spans), _MOST_SPANS):
            await self._send(spans[start : start + _MOST_SPANS])
        if self._failures:
            log.info("traces_sent_again", failures=self._failures)
        self._failures, self._paused_until = 0, None
        await self._write(claimed, {_SENT: rfc3339(now)}, unset=[DUE])
        self.counts.count("sent")

    async def _give_up(self, claimed: Stored, outcome: Outcome, reason: str) -> None:
        log.error("trace_not_sent", operation_id=claimed.id, reason=reason)
        self.counts.count(outcome)
        await self._write(claimed, {}, unset=[DUE])

    async def _send(self, spans: Sequence[Span]) -> None:
        await self.collector.send(await asyncio.to_thread(otlp, spans))

    def _pause(self, away: CollectorAway) -> None:
        self._failures += 1
        # Once for each outage, not for each try.
        if self._failures == 1:
            log.warning("traces_not_sent", reason=str(away))
        pause_s = max(_PAUSES.after(self._failures), away.pause_s)
        self._paused_until = self.clock.now() + timedelta(seconds=pause_s)

    async def _write(self, claimed: Stored, fields: Mapping[str, str], *, unset: Sequence[str] = ()) -> None:
        try:
            await self.store.update(COLLECTION, claimed.id, fields, unset=unset, where=_due_at(claimed.body))
        except RevisionConflict:
            # It took longer than the claim: another gateway sends it, with the same ids.
            return


def _due_at(body: JsonMapping) -> Compare:
    return Compare(DUE, Op.EQ, [body["internal"]["traceDue"]])
