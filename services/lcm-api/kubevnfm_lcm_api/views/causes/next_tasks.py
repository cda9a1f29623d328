"""The tasks that are possible with an operation now, and their effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from kubevnfm_sol.lcm import TERMINAL, OperationState, OperationType

from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.plan import StepState
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.core.states import allowed_tasks
from kubevnfm_lcm_api.views.causes.finding import best_task
from kubevnfm_lcm_api.views.causes.models import Cause, Next
from kubevnfm_lcm_api.views.causes.situation import Situation
from kubevnfm_lcm_api.views.causes.wording import line

_ORDER: Final = ("retry", "rollback", "fail", "cancel")
_NAMED: Final = 3
"""Steps that a text names; of more it has the number."""


def next_of(situation: Situation, cause: Cause | None, root: str) -> Sequence[Next]:
    """Return what the state allows, the most sensible first; ``root``: that of every link."""
    record = situation.record
    occ = record.occ
    if occ.operation_state in TERMINAL or record.ending is not None:
        return ()
    allowed = allowed_tasks(
        occ.operation_state,
        occ.operation,
        is_reversible=record.is_reversible,
        cancel_mode=occ.cancel_mode if occ.is_cancel_pending else None,
    )
    has_undone = any(step.undo_failed for step in record.steps)
    best = "rollback" if has_undone else best_task(cause)
    order = sorted((each for each in _ORDER if each in allowed), key=lambda each: each != best)
    found = [_task(name, situation, root) for name in order]
    if occ.operation_state is not OperationState.FAILED_TEMP:
        return (_wait(situation, cause), *found)
    # The work outside comes first; a rollback needs none, unless it has failed.
    needing = {"retry", "rollback"} if has_undone else {"retry"}
    return tuple(_after(each, cause) if each.task in needing else each for each in found)


def _after(task: Next, cause: Cause | None) -> Next:
    if cause is None or cause.remedy is None:
        return task
    return task.model_copy(update={"text": f"{cause.remedy} Then: {task.text}"})


def _wait(situation: Situation, cause: Cause | None) -> Next:
    text = "The operation goes on by itself."
    if cause is not None and cause.isWait:
        text = f"{(cause.remedy or 'Remove the cause.')[:-1]}: the operation then goes on by itself."
    elif cause is not None:
        text = "Other steps still run; the operation then rests in FAILED_TEMP, to be retried, rolled back or failed."
    return Next(task="wait", text=text, command=f"kubevnfm wait {situation.record.occ.id}")


def _task(name: str, situation: Situation, root: str) -> Next:
    record = situation.record
    href = f"{root}/vnflcm/v2/vnf_lcm_op_occs/{record.occ.id}/{name}"
    command = f"kubevnfm {name} {record.occ.id}"
    if name == "retry":
        return Next(task="retry", text=_retry(record), method="POST", href=href, command=command)
    if name == "rollback":
        return Next(task="rollback", text=_rollback(record), method="POST", href=href, command=command)
    if name == "fail":
        return Next(task="fail", text=_fail(record), method="POST", href=href, command=command)
    mode = _cancel_mode(record)
    return Next(
        task="cancel",
        text=_cancel(record, mode),
        method="POST",
        href=href,
        body={"cancelMode": mode},
        command=f"{command} --mode {mode.lower()}",
    )


def _retry(record: OccurrenceRecord) -> str:
    again = [step.id for step in record.steps if step.state in (StepState.FAILED, StepState.UNDONE)]
    done = sum(step.state is StepState.DONE and step.attempt > 0 for step in record.steps)
    rest = f"; the {done} steps that are done are not repeated" if done > 1 else ""
    return f"Continue at {_titles(record, again) or 'the step that stopped'}{rest}."


def _rollback(record: OccurrenceRecord) -> str:
    touched = [
        step.id
        for step in record.steps
        if step.state not in (StepState.WAITING, StepState.UNDONE) and step.attempt > 0 and not step.made_nothing
    ]
    if not touched:
        return "End the operation as ROLLED_BACK: it has changed nothing."
    end = ": the instance is NOT_INSTANTIATED again" if record.occ.operation is OperationType.INSTANTIATE else ""
    return f"Undo {_titles(record, touched)}, and end the operation as ROLLED_BACK{end}."


def _fail(record: OccurrenceRecord) -> str:
    if record.occ.operation is OperationType.INSTANTIATE:
        return (
            "End the operation as FAILED: the instance stays NOT_INSTANTIATED, and what was made is removed when the instance "
            "is deleted or instantiated again."
        )
    return "End the operation as FAILED: what it has changed stays as it is."


def _cancel_mode(record: OccurrenceRecord) -> Literal["GRACEFUL", "FORCEFUL"]:
    return "FORCEFUL" if record.occ.is_cancel_pending else "GRACEFUL"


def _cancel(record: OccurrenceRecord, mode: str) -> str:
    if record.occ.operation_state is OperationState.STARTING:
        return "Cancel the operation: nothing was changed yet, and it ends as ROLLED_BACK."
    running = _titles(record, [step.id for step in record.running])
    if mode == "FORCEFUL":
        return f"Stop {running or 'the operation'} now; the operation rests in FAILED_TEMP, to be retried, rolled back or failed."
    ended = f"when {running} has ended" if running else "at once"
    return f"Send no further step; the operation rests in FAILED_TEMP {ended}, to be retried, rolled back or failed."


def _titles(record: OccurrenceRecord, ids: Sequence[str]) -> str:
    by_id = {step.id: step for step in record.steps}
    titles = [f'"{line(SEQUENCES.step(by_id[one]).title, 80)}"' for one in ids[:_NAMED]]
    more = len(ids) - len(titles)
    return ", ".join(titles) + (f" and {more} more" if more else "")
