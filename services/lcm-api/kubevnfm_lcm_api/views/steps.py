"""A plan as the API shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kubevnfm_sol.lcm import TERMINAL

from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.plan import PlannedStep, StepState
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES

_SKIPPED: Final = "skipped"


def step_views(record: OccurrenceRecord) -> Sequence[dict[str, Any]]:
    """Return the steps: name (the step's id), kind, title, state, times, error."""
    return [
        {
            "name": step.id,  # the attribute's name in 0.1.0, which clients read
            "kind": step.kind,
            "title": SEQUENCES.step(step).title,
            "state": _shown_state(step, is_over=record.occ.operation_state in TERMINAL),
            "attempt": step.attempt,
            "after": list(step.after),
            "timeoutS": step.timeout_s,
            **({"startedAt": step.started_at} if step.started_at else {}),
            **({"endedAt": step.ended_at} if step.ended_at else {}),
            **({"error": step.error.model_dump(by_alias=True, exclude_none=True)} if step.error else {}),
        }
        for step in record.steps
    ]


def _shown_state(step: PlannedStep, *, is_over: bool) -> str:
    """Return the step's state; of one for a rollback alone that has not run, ``waiting``, or ``skipped`` at the end."""
    # The plan has it as done or undone, so that the steps beside it go on.
    if step.attempt == 0 and step.state in (StepState.DONE, StepState.UNDONE) and SEQUENCES.step(step).only_undo:
        return _SKIPPED if is_over else StepState.WAITING.value
    return step.state.value
