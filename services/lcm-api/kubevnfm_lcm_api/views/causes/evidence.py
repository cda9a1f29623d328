"""Reads the reports about the state of an operation, in the order in which they explain it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kubevnfm_sol.lcm import OperationState

from kubevnfm_lcm_api.lifecycle.core.plan import PlannedStep, StepState
from kubevnfm_lcm_api.views.causes.situation import Situation

_WAIT_TASK: Final = "wait"
_OPEN: Final = frozenset({"started", "progressed"})
_WAIT: Final = re.compile(r"wait(?:ing|ed) since (\S{1,40}?): (.*)", re.DOTALL)
"""The message of a worker whose command waits for something outside (`kubevnfm_worker`)."""


@dataclass(frozen=True)
class Evidence:
    """One report."""

    code: str
    """The code of the error; empty: a report that has none."""
    text: str
    """The reported text, without the id of the step."""
    step: PlannedStep | None = None
    node: str | None = None
    since: str | None = None
    is_wait: bool = False


def reports(situation: Situation) -> Iterator[Evidence]:
    """Yield the reports about the present state, the one that decides it first; none if all goes well."""
    occ = situation.record.occ
    if occ.operation_state is OperationState.COMPLETED:
        return
    yield from _errors(situation)
    yield from _waits(situation)


def _errors(situation: Situation) -> Iterator[Evidence]:
    occ = situation.record.occ
    failed = [step for step in situation.record.steps if step.error is not None and step.state is StepState.FAILED]
    for step in failed:
        assert step.error is not None
        yield Evidence(step.error.type, _without_step(step.error.detail, step), step, since=step.ended_at)
    # An operation that was refused or cancelled has an error without a failed step.
    is_over = occ.operation_state in (OperationState.FAILED_TEMP, OperationState.FAILED, OperationState.ROLLED_BACK)
    if not failed and is_over and occ.error is not None:
        named = next((step for step in situation.record.steps if occ.error.detail.startswith(f"{step.id}: ")), None)
        text = _without_step(occ.error.detail, named)
        yield Evidence(occ.error.type, text, named, since=occ.state_entered_time)


def _waits(situation: Situation) -> Iterator[Evidence]:
    """Yield why running steps make no progress, and what steps that failed had waited for; the newest first."""
    by_id = {step.id: step for step in situation.record.steps}
    for task in reversed(situation.tasks):
        step = by_id.get(str(task.get("step")))
        match = _WAIT.fullmatch(str(task.get("message", "")))
        if step is None or match is None or task.get("task") != _WAIT_TASK:
            continue
        is_open = step.is_running and task.get("state") in _OPEN and task.get("attempt", 0) == step.attempt
        if is_open or step.state is StepState.FAILED:
            yield Evidence("", match[2], step, node=task.get("node") or None, since=match[1], is_wait=is_open)


def _without_step(detail: str, step: PlannedStep | None) -> str:
    return detail.removeprefix(f"{step.id}: ") if step is not None else detail
