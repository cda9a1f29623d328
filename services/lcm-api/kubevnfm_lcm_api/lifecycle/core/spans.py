"""The spans of an operation as one pure function of what is stored: its record, and the tasks of its steps.

The same record gives the same spans, with the same ids, in every process; a crash loses none and doubles none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_kit.traces import read_traceparent
from kubevnfm_sol.lcm import TERMINAL, OperationState

from kubevnfm_lcm_api.event_chain import SOURCE
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.plan import Attempt, PlannedStep, StepState
from kubevnfm_lcm_api.lifecycle.core.progress import BEGUN, OPEN, WAIT
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.core.traces import attempt_id, operation_span, task_id

Value = str | int | bool | tuple[str, ...]
_US: Final = SOURCE.rpartition("/")[2]
NAMESPACE: Final = "kubevnfm"
"""The ``service.namespace`` of each span."""
SCOPE: Final = "kubevnfm.operations"
"""The instrumentation scope of an operation's spans."""
_MOST_LINKS: Final = 100
"""A step may come after one of each of very many machines."""
_LONGEST_CODE: Final = 128
_UNHAPPY: Final = frozenset({OperationState.FAILED_TEMP, OperationState.FAILED, OperationState.ROLLED_BACK})


class Outcome(Enum):
    """How a span has ended; the numbers are those of OTLP."""

    UNSET = 0
    """Not ended, or cancelled."""
    DONE = 1
    FAILED = 2


@dataclass(frozen=True)
class Happening:
    """A moment in a span."""

    name: str
    at: datetime
    attributes: Mapping[str, Value]


@dataclass(frozen=True)
class Span:
    """A part of an operation's trace. Its attributes are ids, kinds, states and codes: no parameters, no texts of machines."""

    trace_id: str
    span_id: str
    parent_id: str
    """Empty: it has none."""
    name: str
    """Few different ones: the kind of operation or step, or the task."""
    service: str
    """The service that did it."""
    began: datetime
    ended: datetime
    """If it has not ended: the moment at which the spans were made."""
    outcome: Outcome
    attributes: Mapping[str, Value]
    happenings: tuple[Happening, ...] = ()
    links: tuple[str, ...] = ()
    """The ids of spans of the same trace that it came after."""
    more_links: int = 0
    """How many further ones are left out."""


def spans_of(record: OccurrenceRecord, tasks: Sequence[JsonMapping], now: datetime) -> list[Span]:
    """Return the spans of an operation: it, each attempt of its steps, each task of an attempt; each after its parent.

    ``tasks``: what `Progress.trace_of` returns. A span that has not ended ends at ``now``, with the attribute ``kubevnfm.unfinished``.
    """
    root = _operation(record, now)
    steps = {(step, attempt): span for step, attempt, span in _steps(record, root)}
    spans = [root]
    by_attempt: dict[tuple[str, int], list[JsonMapping]] = {}
    for task in tasks:
        by_attempt.setdefault((task["step"], task.get("attempt", 0)), []).append(task)
    for key, step in steps.items():
        happenings, of_tasks = list[Happening](), list[Span]()
        for task in by_attempt.get(key, ()):
            if _is_moment(task):
                happenings.append(_happening(task))
            else:
                of_tasks.append(_task(record, step, task))
        spans += [replace(step, happenings=tuple(sorted(happenings, key=lambda one: one.at))), *of_tasks]
    return spans


def _operation(record: OccurrenceRecord, now: datetime) -> Span:
    occ, context, caller = record.occ, operation_span(record), read_traceparent(record.traceparent)
    has_ended = occ.operation_state in TERMINAL
    has_failed = occ.operation_state in _UNHAPPY
    entered = [*((each.state, each.at) for each in record.states), (occ.operation_state, occ.state_entered_time)]
    code = occ.error.type if occ.error is not None and has_failed else None
    began = _moment(occ.start_time)
    return Span(
        trace_id=context.trace_id,
        span_id=context.span_id,
        parent_id=caller.span_id if caller is not None else "",
        name=f"clean up {occ.operation.value}" if record.is_internal else occ.operation.value,
        service=_US,
        began=began,
        ended=_moment(occ.state_entered_time) if has_ended else max(began, now),
        outcome=Outcome.FAILED if has_failed else Outcome.DONE if has_ended else Outcome.UNSET,
        attributes={
            "kubevnfm.operation.id": occ.id,
            "kubevnfm.operation.state": occ.operation_state.value,
            "kubevnfm.vnf_instance.id": occ.vnf_instance_id,
            "kubevnfm.vnfd.id": record.facts.vnfd_id,
            "kubevnfm.plan": record.plan,
            **({"kubevnfm.vim_ids": tuple(record.facts.vim_ids)} if record.facts.vim_ids else {}),
            **_error(code),
            **_unfinished(is_it=not has_ended),
        },
        happenings=tuple(
            Happening("state", _moment(at), {"kubevnfm.operation.state": state.value}) for state, at in entered
        ),
    )


def _steps(record: OccurrenceRecord, root: Span) -> Iterator[tuple[str, int, Span]]:
    """Yield each attempt of each step, in the order of the plan."""
    steps = (*record.steps, *record.gone_steps)
    last = {step.id: found[-1].number for step in steps if (found := _attempts(record, step))}
    for step in steps:
        service = SEQUENCES.kinds[step.kind].command.service or _US
        found = _attempts(record, step)
        for attempt in found:
            before = [(step.id, each.number) for each in found if each.number == attempt.number - 1]
            after = [(name, last[name]) for name in step.after if name in last and not attempt.is_undo]
            links = [attempt_id(record, *each) for each in (*before, *after)]
            code = attempt.code if attempt.state is StepState.FAILED else None
            span = Span(
                trace_id=root.trace_id,
                span_id=attempt_id(record, step.id, attempt.number),
                parent_id=root.span_id,
                name=f"undo {step.kind}" if attempt.is_undo else step.kind,
                service=_US,
                began=_moment(attempt.started_at),
                ended=_moment(attempt.ended_at) if attempt.ended_at else max(root.ended, _moment(attempt.started_at)),
                outcome=_OUTCOMES.get(attempt.state, Outcome.UNSET),
                attributes={
                    "kubevnfm.operation.id": record.occ.id,
                    "kubevnfm.step.id": step.id,
                    "kubevnfm.step.kind": step.kind,
                    "kubevnfm.step.attempt": attempt.number,
                    "kubevnfm.step.state": attempt.state.value,
                    "kubevnfm.step.undo": attempt.is_undo,
                    "kubevnfm.service": service,
                    **_error(code),
                    **_unfinished(is_it=attempt.ended_at is None),
                },
                links=tuple(links[:_MOST_LINKS]),
                more_links=max(0, len(links) - _MOST_LINKS),
            )
            yield step.id, attempt.number, span


_OUTCOMES: Final = {
    StepState.DONE: Outcome.DONE,
    StepState.UNDONE: Outcome.DONE,
    StepState.FAILED: Outcome.FAILED,
}


def _attempts(record: OccurrenceRecord, step: PlannedStep) -> Sequence[Attempt]:
    """Return the attempts of a step; one that was done without a command has an attempt 0 without a length."""
    if step.attempt or step.ended_at is None or step.state is not StepState.DONE or record.is_internal:
        return step.attempts
    if SEQUENCES.kinds[step.kind].only_undo:
        return ()
    return [Attempt(number=0, state=step.state, started_at=step.ended_at, ended_at=step.ended_at)]


def _task(record: OccurrenceRecord, step: Span, task: JsonMapping) -> Span:
    state, name, node = str(task["state"]), str(task["task"]), str(task["node"])
    attempt = int(task.get("attempt", 0))
    changed = _moment(task["updatedAt"])
    is_step_over = "kubevnfm.unfinished" not in step.attributes
    # The worker was killed or stopped, and will not report its end.
    if state in OPEN and is_step_over:
        state, changed = "cancelled", max(step.ended, changed)
    is_open = state in OPEN
    began = _moment(task.get(BEGUN, task["updatedAt"]))
    return Span(
        trace_id=step.trace_id,
        span_id=task_id(record, str(task["step"]), attempt, node, name),
        parent_id=step.span_id,
        name=name,
        service=str(step.attributes["kubevnfm.service"]),
        began=began,
        ended=max(began, step.ended if is_open else changed),
        outcome=_TASK_OUTCOMES.get(state, Outcome.UNSET),
        attributes={
            "kubevnfm.operation.id": record.occ.id,
            "kubevnfm.step.id": str(task["step"]),
            "kubevnfm.step.attempt": attempt,
            **({"kubevnfm.node": node} if node else {}),
            "kubevnfm.task": name,
            "kubevnfm.task.state": state,
            **_error(task.get("code")),
            **_unfinished(is_it=is_open),
        },
    )


_TASK_OUTCOMES: Final = {"finished": Outcome.DONE, "skipped": Outcome.DONE, "failed": Outcome.FAILED}


def _is_moment(task: JsonMapping) -> bool:
    """Return whether it is a wait of the step, or a fact about it that was reported once."""
    is_remark = not task["node"] and task["state"] not in OPEN and task.get(BEGUN) == task["updatedAt"]
    return task["task"] == WAIT or is_remark


def _happening(task: JsonMapping) -> Happening:
    at = str(task.get("since") or task.get(BEGUN) or task["updatedAt"])
    return Happening(
        str(task["task"]),
        _moment(at),
        {
            "kubevnfm.task.state": str(task["state"]),
            "kubevnfm.task.changed": str(task["updatedAt"]),
            **({"kubevnfm.wait.tries": int(task["tries"])} if task.get("tries") is not None else {}),
            **_error(task.get("code")),
        },
    )


def _error(code: str | None) -> Mapping[str, Value]:
    return {"error.type": code[:_LONGEST_CODE]} if code else {}


def _unfinished(*, is_it: bool) -> Mapping[str, Value]:
    return {"kubevnfm.unfinished": True} if is_it else {}


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def nanoseconds(moment: datetime) -> int:
    """Return a moment as OTLP has it."""
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
