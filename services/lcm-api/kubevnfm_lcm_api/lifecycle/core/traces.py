"""The spans of an operation: each has ids derived from facts that are stored, so every process computes the same ones.

A trace thus survives each crash: a step that is sent twice is one span, and none has a parent that was lost.
"""

from __future__ import annotations

from kubevnfm_kit.traces import TraceContext, derived_span_id, operation_trace_id, read_traceparent

from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.plan import PlannedStep


def operation_span(record: OccurrenceRecord) -> TraceContext:
    """Return the span of the operation: in the trace of its caller, else in one of its own."""
    caller = read_traceparent(record.traceparent)
    trace_id = operation_trace_id(record.occ.id) if caller is None else caller.trace_id
    is_sampled = caller is None or caller.is_sampled
    return TraceContext(trace_id, derived_span_id("operation", record.occ.id), is_sampled)


def step_span(record: OccurrenceRecord, step: PlannedStep) -> TraceContext:
    """Return the span of the present attempt of a step; its parent is that of the operation."""
    operation = operation_span(record)
    return TraceContext(operation.trace_id, attempt_id(record, step.id, step.attempt), operation.is_sampled)


def attempt_id(record: OccurrenceRecord, step: str, attempt: int) -> str:
    """Return the id of the span of one attempt of a step."""
    return derived_span_id("step", record.occ.id, step, str(attempt))


def task_id(record: OccurrenceRecord, step: str, attempt: int, node: str, task: str) -> str:
    """Return the id of the span of a task of a step, on a machine or of the step as a whole (node ``""``)."""
    return derived_span_id("task", record.occ.id, step, str(attempt), node, task)
