"""Runs calls concurrently and fails like a single call."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import TypeVar

T = TypeVar("T")


async def together(works: Iterable[Coroutine[object, None, T]]) -> list[T]:
    """Return the results in order. The first failure cancels the others and is raised itself, not as a group."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
