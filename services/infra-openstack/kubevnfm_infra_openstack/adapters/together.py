"""Runs calls side by side and fails as one call would."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def together(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results in order. The first failure ends the others and is raised itself, in no exception group."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
