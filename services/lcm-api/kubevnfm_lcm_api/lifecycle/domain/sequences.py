"""The catalogue of sequences: finds the plan of a draft, and the classes for stored names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Never, TypeVar, cast

from kubevnfm_events import Command

from kubevnfm_lcm_api.lifecycle.domain.draft import Draft
from kubevnfm_lcm_api.lifecycle.domain.plan import Plan, PlannedStep, StepState
from kubevnfm_lcm_api.lifecycle.domain.steps.base import Step

D = TypeVar("D", bound=Draft)


@dataclass(frozen=True)
class Operation(Generic[D]):
    """One kind of operation: its draft, and the function that makes its plan."""

    draft: type[D]
    plan: Callable[[D], Plan[D]]

    def planned(self, draft: Draft) -> tuple[PlannedStep, ...]:
        """Return the plan as it is stored with a new operation."""
        assert isinstance(draft, self.draft)
        return self.plan(draft).steps


class Sequences:
    """All kinds of operations, and all kinds of steps, by the names that they are stored under."""

    def __init__(self, operations: Iterable[Operation[Any]], kinds: Iterable[type[Step[Any, Any]]]) -> None:
        self._by_plan: Mapping[str, Operation[Any]] = {one.draft.plan: one for one in operations}
        self._by_kind: Mapping[str, type[Step[Any, Any]]] = {kind.kind: kind for kind in kinds}

    @property
    def plans(self) -> frozenset[str]:
        """The stored names of the plans."""
        return frozenset(self._by_plan)

    @property
    def kinds(self) -> Mapping[str, type[Step[Any, Any]]]:
        """Every kind of step by its stored name."""
        return self._by_kind

    def planned(self, draft: Draft) -> tuple[PlannedStep, ...]:
        """Return the plan that is stored with a new operation. Raises PlanInvalid."""
        return self._by_plan[draft.plan].planned(draft)

    def draft(self, plan: str, document: Mapping[str, Any]) -> Draft:
        """Return the draft of a stored operation."""
        return cast("Draft", self._by_plan[plan].draft.from_document(document))

    def step(self, planned: PlannedStep) -> Step[Draft, Never]:
        """Return the step of a stored plan.

        mypy checked the step against the draft where the plan was made; a stored plan belongs to a draft of that class.
        """
        # By the stored kind and arguments only: a plan of an earlier version runs as it was made.
        return self._by_kind[planned.kind].from_arguments(planned.arguments)

    def running_command(self, planned: PlannedStep, draft: Draft) -> Command:
        """Return the command to which a running step waits for the reply: its own one, or its compensation."""
        step = self.step(planned)
        command = step.undo(draft) if planned.state is StepState.UNDOING else step.ask(draft)
        assert command is not None, "a step without a compensation is never UNDOING"
        return command
