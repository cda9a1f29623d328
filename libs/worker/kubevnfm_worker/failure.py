"""Turns an error of a handler into the event that reports it."""

from __future__ import annotations

from typing import Final

from kubevnfm_bus.port import Ack, Dead, Verdict
from kubevnfm_events import CommandFailed, Event
from kubevnfm_events.base import Facts
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.errors import VnfmError

from kubevnfm_worker.answers import Answer, Broke
from kubevnfm_worker.inbox import Wait

CANCELLED: Final = "cancelled"
TIMED_OUT: Final = "step-timed-out"
NO_DEADLINE_TRIES: Final = 10
"""How often a command without a deadline is tried while its error is retryable."""


def failed(command: str, error: VnfmError, *, made_nothing: bool) -> CommandFailed:
    """Return the event for an error that names its cause; ``node``, ``task`` and ``remains`` are copied from it if it
    has them; ``remains`` as a part of a message.

    ``made_nothing``: of all deliveries of the command.
    """
    remains: Facts | None = getattr(error, "remains", None)
    return CommandFailed(
        command=command,
        code=error.code,
        title=error.title,
        detail=str(error),
        status=error.status,
        node=str(getattr(error, "node", "") or ""),
        task=str(getattr(error, "task", "") or ""),
        remains=remains.model_dump(mode="json", exclude_none=True) if remains is not None else None,
        made_nothing=made_nothing,
    )


class StepCancelled(VnfmError, code=CANCELLED, title="Operation cancelled", status=409):
    """The command was cancelled while its handler was running (CancelMode FORCEFUL)."""

    def __init__(self, remains: Facts | None) -> None:
        """``remains``: the resources that exist now, as far as they are known."""
        super().__init__("cancelled before it was done")
        self.remains = remains


def timed_out(command: str, layer: str, *, waits: Wait | None, made_nothing: bool) -> CommandFailed:
    """Return the event for a step whose deadline passed; ``waits``: the end of the last try, if it was an error or a wait."""
    why = ""
    if waits is not None:
        why = f"; {'last error' if waits.code else 'it waited'}: {waits.reason}"
    return CommandFailed(
        command=command,
        code=TIMED_OUT,
        title=f"{layer}: deadline passed",
        detail=f"{command} was not done when its deadline passed{why}",
        status=504,
        made_nothing=made_nothing,
    )


def broken(command: str, service: str) -> CommandFailed:
    """Return the event for a bug: the event holds no detail, the log holds the traceback."""
    return CommandFailed(
        command=command,
        code="internal-error",
        title="Internal error",
        detail=f"unexpected error in {service}",
        status=500,
    )


def verdict_of(answer: Answer | None, event: Event, service: str) -> Verdict:
    """Return what becomes of the message: of a bug, and of a command that was parked (None), it is kept to find the reason with."""
    if isinstance(answer, Broke):
        return Dead(f"unexpected {type(answer.error).__name__} in {service}")
    if answer is None and isinstance(event, CommandFailed):
        return Dead(event.detail)
    return Ack()


RETRY: Final = BackOff(0.5, 30.0)
"""The pauses after a command's retryable errors in a row."""
