"""Operations that the event loop hands to a thread of the store, and their results.

An executor of the standard library does the same with two futures and a lock for each call, which costs more than most
reads.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
Operation = Callable[[sqlite3.Connection], T]


@dataclass(eq=False, slots=True)
class Job:
    """One operation, the future that waits for it, and its result."""

    operation: Operation[Any]
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Any]
    then: Callable[[], None] | None = None
    """Called in the loop when the operation has succeeded, also if its caller was cancelled."""
    result: Any = None
    error: BaseException | None = None


def job_of(operation: Operation[Any], then: Callable[[], None] | None = None) -> Job:
    """Return the operation as a job whose answer the running loop awaits."""
    loop = asyncio.get_running_loop()
    return Job(operation, loop, loop.create_future(), then)


def deliver(jobs: Iterable[Job]) -> None:
    """Set the futures of finished jobs, from any thread."""
    # One wake-up of a loop for the whole batch, not one for each of its jobs.
    by_loop: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, done in by_loop.items():
        with suppress(RuntimeError):  # the loop has ended, and its futures with it
            loop.call_soon_threadsafe(_settle, done)


def _settle(jobs: Iterable[Job]) -> None:
    for job in jobs:
        if job.then is not None and job.error is None:
            job.then()
        # Its caller was cancelled.
        if job.answer.done():
            continue
        if job.error is None:
            job.answer.set_result(job.result)
        else:
            job.answer.set_exception(job.error)
