"""What a command handler is given, and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from kubevnfm_events import Command, Event, Facts


@dataclass(frozen=True)
class Done:
    """The work is done; the event says so. It is stored with the inbox record, published, then the command is acked."""

    event: Event


@dataclass(frozen=True)
class NotYet:
    """Nothing failed, but it takes longer: hold no worker, call the handler again in ``again_in_s`` seconds."""

    again_in_s: float


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
    """Grows with every claim of this command: what is written under a smaller number is of a worker that lost it."""
    publish: Callable[[Event], Awaitable[None]] = field(repr=False)
    """Publish news (progress) about the command; best effort, never waited for by the work."""


C = TypeVar("C", bound=Command)
CommandHandler = Callable[[C, StepContext], Awaitable[Outcome]]
"""Looks first, then makes what is missing: it runs twice some day, and in the middle of itself.

It is cancelled when the lease is lost or the service ends. What it raises decides what happens next:

- A ``retryable`` VnfmError: the handler is called again with growing pauses until the command's deadline. If the error
  is OutsideUnavailable and so were all others for the worker's ``unavailable_limit_s``, the command fails with it before.
- Any other VnfmError: the command has failed; CommandFailed is published.
- Anything else is a bug: CommandFailed(code="internal-error") is published, the traceback is logged, and the message is
  dead-lettered."""

AbortHandler = Callable[[C, StepContext], Awaitable[Facts | None]]
"""Has the outside stop what it does for a command that is cancelled; returns what there is then, if that can be told.

It is called once the handler has ended, runs twice some day as that does, and raises as that does.
"""
