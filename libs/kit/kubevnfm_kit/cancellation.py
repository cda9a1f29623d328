"""Cancellations that a library has lost."""

from __future__ import annotations

import asyncio


def raise_lost_cancellation() -> None:
    """Raise CancelledError if the running task was asked to end and has not ended.

    `asyncio.wait_for` of Python 3.11, which libraries call, loses a cancellation that comes in the moment in which what it
    awaits ends (https://github.com/python/cpython/issues/86296). A loop that repeats what has failed would go on for ever.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
