"""The steps of a stored plan: the graph that is walked forwards and backwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any, Final

from kubevnfm_kit.errors import VnfmError
from kubevnfm_sol.base import SolType
from kubevnfm_sol.problem import ProblemDetails
from pydantic import Field


class StepState(StrEnum):
    """How far a step of a plan is."""

    WAITING = "waiting"
    """Not sent; waits for the steps it comes after."""
    ASKED = "asked"
    """Its command was sent; waits for the reply."""
    DONE = "done"
    FAILED = "failed"
    UNDOING = "undoing"
    """Its compensation was sent; waits for the reply."""
    UNDONE = "undone"


class Attempt(SolType):
    """One try of a step, or of its compensation."""

    number: int
    """From 1; compensations count too."""
    is_undo: bool = False
    state: StepState
    """How it ended; ASKED or UNDOING while it runs."""
    started_at: str
    """When its command was stored, to be sent."""
    ended_at: str | None = None
    code: str = ""
    """The code of the error with which it failed."""


class PlannedStep(SolType):
    """One step of a stored plan."""

    id: str
    """Unique in the plan: ``join/worker-3``. Command ids and `stepid` are made from it."""
    kind: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    after: tuple[str, ...] = ()
    """The ids of the steps that must be done before."""
    timeout_s: float
    added_by: str | None = None
    """The step whose reply added this one; None if it was planned from the start."""
    state: StepState = StepState.WAITING
    attempt: int = 0
    """How often it (or its compensation) was sent; replies to older attempts are ignored."""
    started_at: str | None = None
    ended_at: str | None = None
    deadline: str | None = None
    """While it waits for a reply: when its time is over."""
    error: ProblemDetails | None = None
    undo_failed: bool = False
    """FAILED: whether its compensation failed, in the rollback that runs or ran last."""
    made_nothing: bool = False
    """FAILED, and until the end of the next attempt: whether it is known that none of the attempts so far has changed
    anything, so that there is nothing to undo."""
    is_undo: bool = False
    """Whether its present attempt is one of its compensation."""
    earlier: tuple[Attempt, ...] = ()
    """The attempts before the present one: the newest `MOST_EARLIER` of them."""
    foreign_attempts: int = 0
    """How many of its attempts were made by the operation that a clean-up follows."""

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The attempts that its own operation has made, as far as they are kept; the present one last."""
        is_kept = bool(self.earlier) and self.earlier[-1].number == self.attempt
        if is_kept or self.started_at is None or self.attempt <= self.foreign_attempts:
            return self.earlier
        code = self.error.type if self.error is not None and self.state is StepState.FAILED else ""
        present = Attempt(
            number=self.attempt,
            is_undo=self.is_undo,
            state=self.state,
            started_at=self.started_at,
            ended_at=self.ended_at,
            code=code or "",
        )
        return (*self.earlier, present)

    @property
    def kept_attempts(self) -> tuple[Attempt, ...]:
        """The value of `earlier` before the next attempt, or before a change without one."""
        return self.attempts[-MOST_EARLIER:]

    @property
    def is_running(self) -> bool:
        """Whether it waits for the reply to its command or its compensation."""
        return self.state in _RUNNING


MOST_EARLIER: Final = 20
"""A clean-up is repeated without a limit, and its record stays small."""
_RUNNING: Final = frozenset({StepState.ASKED, StepState.UNDOING})
_UNTOUCHED: Final = frozenset({StepState.WAITING, StepState.UNDONE})
"""States in which a rollback finds nothing of the step. FAILED is not one: a failed step may be half done."""


class PlanInvalid(VnfmError, code="plan-invalid", title="Invalid plan", status=500):
    """A plan function, or a reply, made a plan that cannot be carried out: a programming error of the VNFM."""


def added_by(steps: Sequence[PlannedStep], step_id: str) -> set[str]:
    """Return the ids of the steps that the reply to this one added, directly or through the replies to those."""
    found: set[str] = set()
    # A step is stored after the one that added it, so one pass finds the added steps of added steps.
    for step in steps:
        if step.added_by == step_id or step.added_by in found:
            found.add(step.id)
    return found


def ready(steps: Sequence[PlannedStep]) -> Iterator[PlannedStep]:
    """Yield the waiting steps whose predecessors are all done."""
    done = {step.id for step in steps if step.state is StepState.DONE}
    return (step for step in steps if step.state is StepState.WAITING and done.issuperset(step.after))


def undoable(steps: Sequence[PlannedStep]) -> Iterator[PlannedStep]:
    """Yield, last first, the steps that were sent, done or not, and that no touched step depends on any more."""
    # A resource is removed only after those that were built on it, such as a stack after the cluster in it.
    needed = {name for step in steps if step.state not in _UNTOUCHED for name in step.after}
    return (
        step
        for step in reversed(steps)
        if step.state not in _UNTOUCHED and not step.is_running and not step.undo_failed and step.id not in needed
    )
