"""Reads the reports about the state of an operation, in the order in which they explain it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from kubevnfm_kit.json_types import JsonObject
from kubevnfm_sol.lcm import OperationState as S

from kubevnfm_lcm_api.lifecycle.core.plan import PlannedStep, StepState
from kubevnfm_lcm_api.lifecycle.core.progress import OPEN, WAIT, obstacles_of
from kubevnfm_lcm_api.views.causes.situation import Situation
from kubevnfm_lcm_api.views.causes.wording import duration

_ENDED_WELL: Final = frozenset({"finished", "skipped"})
_SLOW_FACTOR: Final = 2.0
_SLOW_S: Final = 20.0
"""A step is slow if it runs for more than twice its usual time, and for so much longer."""
_UNGRANTED: Final = frozenset({"grant-timeout", "grant-unusable", "cancelled"})
"""Errors of a grant that the NFVO has not refused."""


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
    is_sign: bool = True
    """Whether it shows by itself that something is wrong. Otherwise it counts only if a rule knows it."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Further facts for the sentence."""


def reports(situation: Situation) -> Iterator[Evidence]:
    """Yield the reports about the present state, the one that decides it first; none if all goes well."""
    state = situation.record.occ.operation_state
    if state is S.COMPLETED:
        return
    yield from _errors(situation)
    yield from _tasks(situation)
    if state is S.STARTING:
        yield from _grant(situation)
    if situation.is_broker_away and state in (
        S.STARTING,
        S.PROCESSING,
        S.ROLLING_BACK,
    ):
        yield Evidence("broker-away", "", is_wait=True)
    yield from _slow(situation)


def _errors(situation: Situation) -> Iterator[Evidence]:
    record, occ = situation.record, situation.record.occ
    failed = [step for step in record.steps if step.error is not None and step.state is StepState.FAILED]
    # A compensation that has failed is what stops a rollback, which was begun because of the others.
    if (undo_failed := [step for step in failed if step.undo_failed]) or occ.operation_state is S.ROLLING_BACK:
        failed = undo_failed
    for step in failed:
        assert step.error is not None
        yield Evidence(step.error.type, _without_step(step.error.detail, step), step, since=step.ended_at)
    # An operation that was refused or cancelled has an error without a failed step.
    is_over = occ.operation_state in (S.FAILED_TEMP, S.FAILED, S.ROLLED_BACK)
    if failed or not is_over or occ.error is None:
        return
    named = next((step for step in record.steps if occ.error.detail.startswith(f"{step.id}: ")), None)
    code = occ.error.type
    # The type of a refusal is the NFVO's own.
    if record.granting is not None and not record.granting.grant and code not in _UNGRANTED:
        code = "grant-refused"
    yield Evidence(code, _without_step(occ.error.detail, named), named, since=occ.state_entered_time)


def _tasks(situation: Situation) -> Iterator[Evidence]:
    """Yield why running steps make no progress, and what steps that failed had waited for; waits first, then the newest."""
    by_id = {step.id: step for step in situation.record.steps}
    newest = [(task, by_id[name]) for task in reversed(situation.tasks) if (name := str(task.get("step"))) in by_id]
    for task, step in newest:
        if task.get("task") == WAIT and (is_open := _is_open(task, step)) is not None:
            for text, since in obstacles_of(task):
                code, node = str(task.get("code", "")), task.get("node") or None
                yield Evidence(code, text, step, node, since or None, is_wait=is_open)
    for task, step in newest:
        if task.get("task") == WAIT or (is_open := _is_open(task, step)) is None:
            continue
        said = (str(task.get("message", "")), str(task.get("saidAt") or ""))
        for text, since in dict.fromkeys([*obstacles_of(task), said]):
            if text:
                yield Evidence("", text, step, task.get("node") or None, since or None, is_wait=is_open, is_sign=False)


def _is_open(task: JsonObject, step: PlannedStep) -> bool | None:
    """Return whether the task stands still now; None if it says nothing about the present state of its step."""
    if task.get("attempt", 0) != step.attempt or task.get("state") in _ENDED_WELL:
        return None
    if step.is_running:
        return True if task.get("state") in OPEN else None
    return False if step.state is StepState.FAILED else None


def _grant(situation: Situation) -> Iterator[Evidence]:
    granting = situation.record.granting
    if granting is None:
        return
    if granting.faults:
        yield Evidence("nfvo-away", granting.last_fault, since=granting.asked_at, is_wait=True)
    else:
        yield Evidence("nfvo-undecided", "", since=granting.asked_at, is_wait=True)


def _slow(situation: Situation) -> Iterator[Evidence]:
    said: dict[str, str] | None = None
    for step in situation.record.running:
        usual_s = situation.usual_s.get(step.id)
        if usual_s is None or step.started_at is None:
            continue
        spent_s = (situation.now - datetime.fromisoformat(step.started_at)).total_seconds()
        if spent_s <= max(usual_s * _SLOW_FACTOR, usual_s + _SLOW_S):
            continue
        if said is None:  # the newest message of each step: looked for once, as steps and tasks may be thousands
            said = {
                str(task.get("step")): text
                for task in situation.tasks
                if (text := str(task.get("message") or ""))
                # A wait that has ended is no news.
                and (task.get("task") != WAIT or task.get("state") in OPEN)
            }
        facts = {"elapsed": duration(spent_s), "usual": duration(usual_s)}
        yield Evidence("slow", said.get(step.id, ""), step, since=step.started_at, is_wait=True, facts=facts)


def _without_step(detail: str, step: PlannedStep | None) -> str:
    return detail.removeprefix(f"{step.id}: ") if step is not None else detail
