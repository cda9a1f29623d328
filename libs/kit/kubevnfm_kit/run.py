"""Runs a service until a signal ends it, and its background tasks while it runs."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import structlog

log = structlog.get_logger()


async def until_signal() -> None:
    """Return when the process gets SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    # Kubernetes and docker stop a container with SIGTERM, a terminal with SIGINT; both must drain.
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    await ended.wait()


def run_until_signal(service: AbstractAsyncContextManager[object]) -> None:
    """Enter the service, wait for SIGTERM or SIGINT, leave it (which drains and closes it).

    No other user of the machine can read the files that it creates meanwhile.
    """
    # Before the first file: packages, databases and what is unpacked from packages may hold secrets of their authors.
    os.umask(0o077)

    async def run() -> None:
        async with service:
            await until_signal()

    asyncio.run(run())


@asynccontextmanager
async def background(**work: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Run each coroutine as a task of that name while the block lasts; leaving cancels them and waits for their end.

    A coroutine is expected to handle its own errors. If one raises, that is logged and the others go on.
    """
    tasks = [asyncio.create_task(one, name=name) for name, one in work.items()]
    for task in tasks:
        task.add_done_callback(_log_failure)
    try:
        yield
    finally:
        # Cancel all before waiting for any: they end side by side.
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("background_task_failed", task=task.get_name(), exc_info=error)
