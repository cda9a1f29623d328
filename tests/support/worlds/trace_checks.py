"""Whether the spans of an operation are one complete trace."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from kubevnfm_kit.traces import derived_span_id, read_traceparent
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.spans import Span, spans_of

NOW = datetime(2100, 1, 1, tzinfo=UTC)


def whole_trace(record: OccurrenceRecord, tasks: Sequence[Any] = ()) -> list[Span]:
    """Return the spans of an operation. Raises AssertionError unless they are one tree without doubles that has each step."""
    spans = spans_of(record, tasks, NOW)
    root, by_id = spans[0], {span.span_id: span for span in spans}
    assert len(by_id) == len(spans), "each span once"
    assert {span.trace_id for span in spans} == {root.trace_id}
    caller = read_traceparent(record.traceparent)
    assert root.parent_id == ("" if caller is None else caller.span_id)
    for span in spans[1:]:
        parent = by_id[span.parent_id]
        assert parent.began <= span.began <= span.ended <= parent.ended, (parent, span)
        assert set(span.links) <= set(by_id), "what it came after is in the trace"
    began = {each.attributes["kubevnfm.step.id"] for each in spans if each.parent_id == root.span_id}
    known = {step.id for step in record.steps}
    assert began <= known
    # Each attempt up to the last one of each step of the operation's own.
    for step in record.steps:
        for number in range(step.foreign_attempts + 1, step.attempt + 1):
            assert derived_span_id("step", record.occ.id, step.id, str(number)) in by_id, (step.id, number)
    return spans
