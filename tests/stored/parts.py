"""The parts of stories of stored operations: an instance, the operation, and how its steps end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from answers import VM_ANSWERS
from instances import Setup
from kubevnfm_events import Event
from script import Script

Play = Callable[[Script], Awaitable[None]]
"""A whole story, or a part of one."""


@dataclass(frozen=True)
class Story:
    """How one operation came about and what happened to it."""

    play: Play
    answers: Mapping[str, Event] = field(default_factory=lambda: dict(VM_ANSWERS))
    remains: dict[str, object] | None = None
    asks_nfvo: bool = False


GRACEFUL: Final = {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 30}
FORCEFUL: Final = {"terminationType": "FORCEFUL"}
OUT: Final = {"type": "SCALE_OUT", "aspectId": "VDU1_scale", "numberOfSteps": "1"}
IN: Final = {"type": "SCALE_IN", "aspectId": "VDU1_scale", "numberOfSteps": "1"}


def play(setup: Setup, *parts: Play, ends: str = "COMPLETED") -> Play:
    """Return the story of an instance: its parts one after the other, and the state in which the operation ends."""

    async def played(script: Script) -> None:
        await script.begin_record(await setup(script))
        for part in parts:
            await part(script)
        await script.reaches(ends)

    return played


def ask(task: str, body: object, *, version: str = "v2") -> Play:
    """Ask for the operation that the story is about."""

    async def part(script: Script) -> None:
        await script.ask(task, body, version=version)

    return part


def succeed(*steps: str) -> Play:
    """Have the steps succeed, one after the other."""

    async def part(script: Script) -> None:
        await script.succeed(*steps)

    return part


def fail(step: str, task: str) -> Play:
    """Have the step fail, and ask for the task: retry, rollback or fail."""

    async def part(script: Script) -> None:
        await script.answer(step, fails=True)
        await script.reaches("FAILED_TEMP")
        await script.task(task)

    return part


def retry(*steps: str) -> Play:
    """Have each step fail once and succeed after a retry."""

    async def part(script: Script) -> None:
        for step in steps:
            await fail(step, "retry")(script)
            await script.answer(step)

    return part


def begin_again(asked: Play) -> Play:
    """Leave out the failed operation, and ask for another one."""

    async def part(script: Script) -> None:
        await script.reaches("FAILED")
        script.forget()
        await asked(script)

    return part
