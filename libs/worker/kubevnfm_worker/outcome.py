"""The parameters of a command handler and its possible answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from kubevnfm_events import Command, Event, Facts
from kubevnfm_kit.errors import VnfmError


@dataclass(frozen=True)
class Done:
    """The work is done. Its event is stored with the inbox record and published, then the command is acknowledged."""

    event: Event


@dataclass(frozen=True)
class NotYet:
    """Nothing failed, but the work takes longer: call the handler again in ``again_in_s`` seconds, hold no worker."""

    again_in_s: float
    waits_for: str = ""
    """The thing that it waits for, as a clause, for people who watch the operation; empty: the handler shows its progress by itself."""


Outcome = Done | NotYet


@dataclass(frozen=True)
class StepContext:
    """The facts of the delivery that a handler works for."""

    message_id: str
    operation_id: str
    step_id: str
    attempt: int
    subject: str
    deadline: datetime | None
    fencing: int
    """Grows with every claim of this command: writes with a smaller number come from a worker that lost its lease."""
    publish: Callable[[Event], Awaitable[None]] = field(repr=False)
    """Publish an event about the command's progress; best effort, the work never waits for it."""


@contextmanager
def nothing_made() -> Iterator[None]:
    """Mark the errors of the block: a handler runs it before its first change outside (`VnfmError.made_nothing`)."""
    try:
        yield
    except VnfmError as error:
        error.made_nothing = True
        raise


C = TypeVar("C", bound=Command)
CommandHandler = Callable[[C, StepContext], Awaitable[Outcome]]
"""Checks first, then creates what is missing: it must be idempotent, even if an earlier run stopped half way.

It is cancelled when the lease is lost or the service ends. The error that it raises decides how the command continues:

- A ``retryable`` VnfmError: the handler is called again with growing pauses until the command's deadline. If the error
  is OutsideUnavailable and so were all others for the worker's ``unavailable_limit_s``, the command fails with it earlier.
- Any other VnfmError: the command has failed; CommandFailed is published.
- Anything else is a bug: CommandFailed(code="internal-error") is published, the traceback is logged, and the message is
  dead-lettered."""

AbortHandler = Callable[[C, StepContext], Awaitable[Facts | None]]
"""Stops the outside system's work for a cancelled command; returns the resources that exist then, if it knows them.

It is called after the handler has ended. It must be idempotent and raises as a handler does.
"""
