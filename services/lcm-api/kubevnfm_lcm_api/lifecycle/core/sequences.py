"""The catalogue of sequences: finds the plan of a draft, and the classes for stored names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Never, TypeVar

from kubevnfm_events import Command

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.plan import PlannedStep, StepState
from kubevnfm_lcm_api.lifecycle.core.step import STEP_KINDS, Plan, Step, StepKinds

D = TypeVar("D", bound=Draft)


PlanFunction = Callable[[D], Plan[D]]


class Sequences:
    """All kinds of operations, and all kinds of steps, by the names that they are stored under."""

    def __init__(self, kinds: StepKinds = STEP_KINDS) -> None:
        self._by_draft: dict[type[Draft], Callable[[Any], Plan[Any]]] = {}
        self._by_kind = kinds

    def sequence(self, draft: type[D]) -> Callable[[PlanFunction[D]], PlanFunction[D]]:
        """Return the decorator of the function that makes the plan of the operation with this draft.

        A draft may share the stored name of its base class; `Draft.has_stored` says whose a document is.
        """

        def register(plan: PlanFunction[D]) -> PlanFunction[D]:
            base = next((kind for kind in self._by_draft if kind.plan == draft.plan), None)
            if base is not None and (draft in self._by_draft or not issubclass(draft, base)):
                raise ValueError(f"two sequences are stored as {draft.plan!r}")
            self._by_draft[draft] = plan
            return plan

        return register

    @property
    def plans(self) -> frozenset[str]:
        """The stored names of the plans."""
        return frozenset(kind.plan for kind in self._by_draft)

    @property
    def kinds(self) -> Mapping[str, type[Step[Any, Any]]]:
        """Every kind of step by its stored name."""
        return self._by_kind

    def planned(self, draft: Draft) -> tuple[PlannedStep, ...]:
        """Return the plan that is stored with a new operation. Raises PlanInvalid."""
        steps: tuple[PlannedStep, ...] = self._by_draft[type(draft)](draft).steps
        return steps

    def draft(self, plan: str, document: Mapping[str, Any]) -> Draft:
        """Return the draft of a stored operation."""
        # A base class is registered before those that share its name.
        kinds = (kind for kind in reversed(self._by_draft) if kind.plan == plan)
        return next(kind for kind in kinds if kind.has_stored(document)).from_document(document)

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


SEQUENCES: Final = Sequences()
"""Those of kubevnfm: `kinds` fills it."""
