"""A step of a sequence, one command and the event that answers it, as pure functions; and the plan that is made of steps.

A plan function adds steps and reads as its sequence's table of contents. A step is stored as a `PlannedStep`: its id, kind and
arguments, the steps that it comes after, and its state. The engine does all I/O.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Any, ClassVar, Final, Generic, Never, TypeVar, cast

from kubevnfm_events import Command, Event
from pydantic import TypeAdapter

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.plan import PlanInvalid, PlannedStep, StepState, added_by

N = TypeVar("N", contravariant=True)
"""The protocol that the step needs its draft to have."""
R = TypeVar("R", bound=Event, contravariant=True)
"""The event that answers the step's command."""
D = TypeVar("D", covariant=True)
"""The draft of the plan's operation: it has what each of the steps needs."""
StepKinds = dict[str, "type[Step[Any, Any]]"]
STEP_KINDS: Final[StepKinds] = {}
"""Every kind of step by its stored name; a class enters itself."""


@dataclass(frozen=True)
class Step(ABC, Generic[N, R]):
    """One step. Its fields are its arguments: what the plan decides, stored with the operation, without secrets.

    The docstring of a subclass says what it adds to the draft, why a repeat is safe, and how it fails.
    """

    kind: ClassVar[str]
    """Stored with operations: rename the class, never the kind."""
    label: ClassVar[str]
    """Shown to people; ``{name}`` stands for the argument of that name."""
    base_timeout_s: ClassVar[float]
    """How long the step may take after its command was sent, without the waits that a request asks for."""
    command: ClassVar[type[Command]]
    """The class of what `ask` returns; the contract names the event that answers it."""

    only_undo: ClassVar[bool] = False
    """Whether it has a compensation alone: forwards no command is sent, and the step is done at once."""

    def __init_subclass__(cls, *, registry: StepKinds = STEP_KINDS, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in cls.__dict__ and registry.setdefault(cls.kind, cls) is not cls:
            raise TypeError(f"two kinds of steps are stored as {cls.kind!r}")

    @property
    def begins_rollback(self) -> bool:
        """Whether its compensation is the first of every rollback, however far the operation came."""
        return False

    @property
    def title(self) -> str:
        """Return the label with the arguments filled in: "Create the virtual resources"."""
        return self.label.format(**asdict(self)) if "{" in self.label else self.label

    @property
    def timeout_s(self) -> float:
        """Return how long the step may take; a subclass adds the waits among its arguments."""
        return self.base_timeout_s

    def arguments(self) -> dict[str, Any]:
        """Return the arguments as JSON."""
        arguments: dict[str, Any] = _adapter(type(self)).dump_python(self, mode="json") if fields(self) else {}
        return arguments

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> Step[Any, Any]:
        """Return the step with what ``arguments`` wrote."""
        # Through pydantic: stored JSON has lists and numbers where the fields have tuples and floats.
        step: Step[Any, Any] = _adapter(cls).validate_python(arguments) if arguments else cls()
        return step

    @abstractmethod
    def ask(self, draft: N) -> Command | None:
        """Return the command that does it; None if `only_undo`."""

    def fold(self, draft: N, reply: R) -> Draft | None:
        """Return the draft with the facts of the reply; None: there is nothing to keep."""
        return None

    @classmethod
    def is_answered_by(cls, event: Event) -> bool:
        """Return whether the event is the one with which the service reports the step's success."""
        return cls.command.reply is not None and isinstance(event, cls.command.reply)

    def fold_reply(self, draft: N, reply: Event) -> Draft | None:
        """As `fold`, for a reply of which `is_answered_by` is true."""
        # The type parameter exists for mypy only, so the cast checks nothing.
        return self.fold(draft, cast("R", reply))

    def extend(self, draft: N, plan: Plan[N]) -> None:
        """Add the steps that the reply makes necessary; ``draft`` has the facts of the reply.

        The engine stores them together with the reply. They come after this step. None unless a subclass says so.
        """
        return

    def fold_remains(self, draft: N, remains: Mapping[str, object]) -> Draft | None:
        """Return the draft with what the failed command left behind (``CommandFailed.remains``), as `fold` does."""
        return None

    def forget(self, draft: N) -> Draft | None:
        """Return the draft after the compensation: without what no longer exists, as `fold` does."""
        return None

    def undone(self, draft: N, reply: Event) -> Draft | None:
        """Return the draft with the facts of the answer to the compensation, as `fold` does."""
        return self.forget(draft)

    def fold_undo_remains(self, draft: N, remains: Mapping[str, object]) -> Draft | None:
        """Return the draft with what the failed compensation left behind (``CommandFailed.remains``), as `fold` does."""
        return None

    @abstractmethod
    def undo(self, draft: N) -> Command | None:
        """Return the command that compensates the step, also if it was half done; None with the reason in a comment."""


class KeepsRemains(Step[N, R]):
    """The common part of steps whose command, also if it fails, leaves behind what its reply would say."""

    def fold_remains(self, draft: N, remains: Mapping[str, object]) -> Draft | None:
        assert self.command.reply is not None
        return self.fold_reply(draft, self.command.reply.model_validate(remains))


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
            earlier=earlier.kept_attempts if earlier is not None else (),
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
        return self.add(step, id=id, after=self.ends())

    def ends(self) -> Sequence[str]:
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


def extended(steps: Sequence[PlannedStep], adding: PlannedStep, gone: Sequence[PlannedStep] = ()) -> Plan[Any]:
    """Return a plan to which the reply to step ``adding`` may add steps.

    If the step was done before, undone and done again, the steps that its earlier reply added are left out. The new
    reply may list other nodes, and it adds the steps for those. ``gone``: the steps that were left out so before, and not
    added again.
    """
    stale = added_by(steps, adding.id)
    plan: Plan[Any] = Plan()
    for step in steps:
        if step.id not in stale:
            after = tuple(name for name in step.after if name not in stale)
            plan._steps[step.id] = step if after == step.after else step.model_copy(update={"after": after})
    plan._fixed = frozenset(step.id for step in steps if step.state is not StepState.WAITING)
    plan._added_by = adding
    plan._earlier = {step.id: step for step in (*gone, *(each for each in steps if each.id in stale))}
    return plan


@cache
def _adapter(kind: type[Step[Any, Any]]) -> TypeAdapter[Step[Any, Any]]:
    return TypeAdapter(kind)
