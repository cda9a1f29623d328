"""The lines about a command: one at its begin, one when it waits for something else than before, one at its end."""

from __future__ import annotations

from datetime import datetime

import structlog
from kubevnfm_events import CommandFailed, Envelope, Event, Message

from kubevnfm_worker.answers import Answer, Broke, DeadlinePassed
from kubevnfm_worker.failure import StepCancelled
from kubevnfm_worker.inbox import Claim, Wait

log = structlog.get_logger()


def say_begun(command: Envelope[Message], claim: Claim) -> None:
    """Say that the work begins; later claims continue it."""
    if claim.fencing == 1:
        log.info("command_begun", type=command.type, message_id=command.id)


def say_waits(command: Envelope[Message], before: Wait | None, waits: Wait, *, tries: int) -> None:
    """Say what the command waits for, unless it is the same as before: of errors the code counts, as texts have ports and times."""
    if before is not None and before.code == waits.code and (waits.code or before.reason == waits.reason):
        log.debug("command_tried_again", type=command.type, tries=tries, reason=waits.reason)
        return
    say = log.warning if waits.code else log.info
    say("command_waits", type=command.type, reason=waits.reason, code=waits.code or None, tries=tries or None)


def say_ended(command: Envelope[Message], claim: Claim, event: Event, answer: Answer | None, now: datetime) -> None:
    """Say how the work has ended; ``answer``: of the handler, None for a command that was parked."""
    failure = event if isinstance(event, CommandFailed) else None
    outcome, say = ("done" if failure is None else "failed"), log.info
    more: dict[str, object] = {}
    match answer:
        case None:
            outcome, say, more = "parked", log.error, {"ends": claim.ends}
        case DeadlinePassed():
            outcome, say, more = "timed_out", log.error, {"deadline": str(command.deadline)}
        case Broke(error=error):
            say, more = log.error, {"exc_info": error}
        case StepCancelled():
            outcome = "cancelled"
    if failure is not None:
        more |= {"code": failure.code, "reason": failure.detail, "node": failure.node or None}
    say(
        "command_ended",
        type=command.type,
        message_id=command.id,
        outcome=outcome,
        duration_s=round((now - claim.begun_at).total_seconds(), 3),
        **more,
    )
