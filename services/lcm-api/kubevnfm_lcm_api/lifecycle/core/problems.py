"""The ProblemDetails of operations and their steps (SOL013 6.3)."""

from __future__ import annotations

from typing import Final

from kubevnfm_events import CommandFailed
from kubevnfm_kit.errors import VnfmError
from kubevnfm_sol.lcm import OperationState
from kubevnfm_sol.problem import ProblemDetails

from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.plan import PlannedStep, StepState

CANCELLED: Final = "cancelled"
"""The code with which a service ends a command that was cancelled."""


def failure(failed: CommandFailed, planned: PlannedStep, record: OccurrenceRecord) -> ProblemDetails:
    """Return a service's failure with its step, and with node and task unless the detail names the node already."""
    # Not twice: the service's text may name the node already.
    place = " on node ".join(part for part in (failed.task, failed.node) if part)
    detail = f"{place}: {failed.detail}" if place and failed.node not in failed.detail else failed.detail
    return ProblemDetails(
        type=failed.code,
        title=failed.title,
        status=failed.status,
        detail=f"{planned.id}: {detail}",
        instance=record.occ.id,
    )


def error_of_step(error: VnfmError, planned: PlannedStep, record: OccurrenceRecord) -> ProblemDetails:
    """Return an error of the step itself: its command could not be made, or its reply could not be used."""
    return ProblemDetails(
        type=error.code, title=error.title, status=error.status, detail=f"{planned.id}: {error}", instance=record.occ.id
    )


def refusal(error: VnfmError, record: OccurrenceRecord) -> ProblemDetails:
    """Return the problem of an operation that is refused before it begins."""
    return ProblemDetails.from_error(error, instance=record.occ.id)


def unanswered(planned: PlannedStep, record: OccurrenceRecord) -> ProblemDetails:
    """Return the problem of a step whose service sent no reply in time."""
    return ProblemDetails(
        type="step-unanswered",
        title="Step not answered",
        status=504,
        detail=f"{planned.id}: no answer within {planned.timeout_s:g} s; is its service running?",
        instance=record.occ.id,
    )


def cancellation(record: OccurrenceRecord) -> ProblemDetails:
    """Return the problem of an operation that a caller cancelled (api.md 4.4)."""
    occ = record.occ
    waiting = [step.id for step in record.steps if step.state is not StepState.DONE]
    place = f" before {waiting[0]} was done" if waiting and occ.operation_state is OperationState.PROCESSING else ""
    return ProblemDetails(
        type=CANCELLED,
        title="Operation cancelled",
        status=409,
        detail=f"cancelled ({occ.cancel_mode or 'FORCEFUL'}) while {occ.operation_state}{place}",
        instance=occ.id,
    )
