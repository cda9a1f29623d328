"""A plan: the graph of an operation's steps, as it is made, stored, extended by replies and walked backwards.

A plan function adds steps and reads as its sequence's table of contents. A step is stored as a `PlannedStep`: its id,
kind and arguments, the steps that it comes after, and its state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, Generic, Never, TypeVar

from kubevnfm_kit.errors import VnfmError
from kubevnfm_sol.base import SolType
from kubevnfm_sol.problem import ProblemDetails
from pydantic import Field

from kubevnfm_lcm_api.lifecycle.core.step import Step

D = TypeVar("D", covariant=True)
"""The draft of the plan's operation: it has what each of the steps needs."""


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

    @property
    def is_running(self) -> bool:
        """Whether it waits for the reply to its command or its compensation."""
        return self.state in _RUNNING


_RUNNING: Final = frozenset({StepState.ASKED, StepState.UNDOING})
_UNTOUCHED: Final = frozenset({StepState.WAITING, StepState.UNDONE})
"""States in which a rollback finds nothing of the step. FAILED is not one: a failed step may be half done."""


class PlanInvalid(VnfmError, code="plan-invalid", title="Invalid plan", status=500):
    """A plan function, or a reply, made a plan that cannot be carried out: a programming error of the VNFM."""


class Plan(Generic[D]):
    """The steps of one operation, in an order in which each comes after those it names.

    mypy checks that the operation's draft ``D`` has what each step needs.
    """

    def __init__(self) -> None:
        self._steps: dict[str, PlannedStep] = {}
        self._fixed: frozenset[str] = frozenset()
        """Steps that were sent already: no new step can come before them."""
        self._added_by: PlannedStep | None = None
        self._earlier: Mapping[str, PlannedStep] = {}

    @property
    def steps(self) -> tuple[PlannedStep, ...]:
        """The plan as it is stored."""
        return tuple(self._steps.values())

    def add(
        self, step: Step[D, Never], *, id: str | None = None, after: Iterable[str] = (), before: Iterable[str] = ()
    ) -> str:
        """Add a step; return its id, by default its kind.

        ``after``: ids of steps that must be done before it, which the plan must have already. ``before``: ids of steps
        that come after it: a reply that fans out names the step that joins.
        Raises: PlanInvalid for an id that the plan has already, for unknown ids, for a cycle, and if a step of
        ``before`` was sent already.
        """
        step_id = id or step.kind
        if step_id in self._steps:
            raise PlanInvalid(f"step {step_id}: the plan has a step of this id already")
        adding = self._added_by
        names = dict.fromkeys([*((adding.id,) if adding is not None else ()), *after])
        earlier = self._earlier.get(step_id)
        planned = PlannedStep(
            id=step_id,
            kind=step.kind,
            arguments=step.arguments(),
            after=self._known(step_id, names),
            timeout_s=step.timeout_s,
            added_by=adding.id if adding is not None else None,
            # The same step of an earlier try keeps its count: its commands must not repeat the ids of that try.
            attempt=earlier.attempt if earlier is not None else 0,
        )
        joining = self._known(step_id, before)
        # A step that was sent cannot wait any more; the new one would run at the same time as its successor.
        if self._fixed.intersection(joining):
            raise PlanInvalid(f"step {step_id}: cannot come before {', '.join(joining)}, which was sent already")
        # The only way to a cycle: `after` names steps that are there already, and those do not know the new one.
        if set(joining) & {*planned.after, *self._ancestors(planned.after)}:
            raise PlanInvalid(f"step {step_id}: comes both before and after {', '.join(joining)}")
        self._steps[step_id] = planned
        # The edges are stored with the later step only, so `before` becomes an `after` of the step that joins.
        for name in joining:
            joined = self._steps[name]
            self._steps[name] = joined.model_copy(update={"after": (*joined.after, step_id)})
        return step_id

    def then(self, step: Step[D, Never], *, id: str | None = None) -> str:
        """Add a step that comes after all steps so far; return its id."""
        return self.add(step, id=id, after=self._ends())

    def _ends(self) -> Sequence[str]:
        """Return the steps without a successor."""
        named = {name for step in self._steps.values() for name in step.after}
        return [name for name in self._steps if name not in named]

    def _known(self, step_id: str, names: Iterable[str]) -> tuple[str, ...]:
        found = tuple(names)
        for name in found:
            if name not in self._steps:
                raise PlanInvalid(f"step {step_id}: the plan has no step {name}")
        return found

    def _ancestors(self, names: Iterable[str]) -> set[str]:
        found: set[str] = set()
        left = list(names)
        while left:
            for name in self._steps[left.pop()].after:
                if name not in found:
                    found.add(name)
                    left.append(name)
        return found


def extended(steps: Sequence[PlannedStep], adding: PlannedStep) -> Plan[Any]:
    """Return a plan to which the reply to step ``adding`` may add steps.

    If the step was done before, undone and done again, the steps that its earlier reply added are left out. The new
    reply may list other nodes, and it adds the steps for those.
    """
    stale = added_by(steps, adding.id)
    plan: Plan[Any] = Plan()
    for step in steps:
        if step.id not in stale:
            after = tuple(name for name in step.after if name not in stale)
            plan._steps[step.id] = step if after == step.after else step.model_copy(update={"after": after})
    plan._fixed = frozenset(step.id for step in steps if step.state is not StepState.WAITING)
    plan._added_by = adding
    plan._earlier = {step.id: step for step in steps if step.id in stale}
    return plan


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
