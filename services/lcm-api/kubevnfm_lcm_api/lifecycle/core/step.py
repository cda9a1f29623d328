"""A step of a sequence: one command and the event that answers it, as pure functions. The engine does all I/O."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, cast

from kubevnfm_events import Command, Event
from pydantic import TypeAdapter

from kubevnfm_lcm_api.lifecycle.core.draft import Draft

if TYPE_CHECKING:
    from kubevnfm_lcm_api.lifecycle.core.plan import Plan

N = TypeVar("N", contravariant=True)
"""The protocol that the step needs its draft to have."""
R = TypeVar("R", bound=Event, contravariant=True)
"""The event that answers the step's command."""
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


@cache
def _adapter(kind: type[Step[Any, Any]]) -> TypeAdapter[Step[Any, Any]]:
    return TypeAdapter(kind)
