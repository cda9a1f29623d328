"""How the handler of a command has ended, and when it is tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from kubevnfm_events import Command, Envelope, Message
from kubevnfm_kit.errors import VnfmError

from kubevnfm_worker.inbox import Wait
from kubevnfm_worker.outcome import Outcome, StepContext


@dataclass(frozen=True)
class Broke:
    """The handler raised an error that is not a VnfmError: a bug."""

    error: BaseException


@dataclass(frozen=True)
class DeadlinePassed:
    """The step's time is over."""

    has_begun: bool
    """Whether the handler was running."""


@dataclass(frozen=True)
class Retry:
    """The next try of a command after a retryable error."""

    pause_s: float
    unavailable_since: datetime | None
    waits: Wait


Answer = Outcome | VnfmError | Broke | DeadlinePassed


def made_nothing_of(answer: Answer) -> bool:
    """Return whether the handler ended before it changed anything outside."""
    if isinstance(answer, DeadlinePassed):
        return not answer.has_begun
    return isinstance(answer, VnfmError) and answer.made_nothing


async def called(
    handler: Callable[[Any, StepContext], Awaitable[Outcome]], command: Envelope[Message], context: StepContext
) -> Outcome:
    return await handler(command.data, context)


def answer_of(work: asyncio.Task[Outcome]) -> Answer:
    if work.cancelled():
        return Broke(asyncio.CancelledError("the handler cancelled itself"))
    error = work.exception()
    if error is None:
        return work.result()
    return error if isinstance(error, VnfmError) else Broke(error)


def class_of(command: Envelope[Message]) -> type[Command]:
    return cast("type[Command]", type(command.data))
