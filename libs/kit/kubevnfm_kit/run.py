"""Runs a service until a signal ends it, and its background tasks while it runs."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import resource
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

import structlog

from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.logging import switch_debug
from kubevnfm_kit.outages import Outage

log = structlog.get_logger()

_MOST_DESCRIPTORS: Final = 2**16


async def until_signal() -> None:
    """Return when the process gets SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    # Kubernetes and docker stop a container with SIGTERM, a terminal with SIGINT; both must drain.
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    await ended.wait()


def run_until_signal(service: AbstractAsyncContextManager[object]) -> None:
    """Enter the service, wait for SIGTERM or SIGINT, leave it (which drains and closes it). SIGUSR1 switches debug lines.

    No other user of the machine can read the files that it creates meanwhile.
    """
    # Before the first file: packages, databases and what is unpacked from packages may hold secrets of their authors.
    os.umask(0o077)
    _allow_descriptors()
    # It ends a process that does not expect it, which this one is until its event loop runs.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)

    async def run() -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, switch_debug)
        async with service:
            # The 200,000 objects of the start stay until the end. A full collection that looks at all of them holds
            # every request up for a tenth of a second.
            gc.freeze()
            gc.enable()
            _return_freed_memory()
            await until_signal()

    asyncio.run(run())


def _allow_descriptors() -> None:
    """Open as many files and connections as the process may: 1024, which is usual, are those of the watches of 200 regions."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _return_freed_memory() -> None:
    """Return the C library's free memory to the system: of the work of imports, that is up to 10 MiB."""
    # The GNU C library alone has the function, and no other keeps as much.
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


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


async def repeat(
    work: Callable[[], Awaitable[object]], *, every_s: float, after_s: float = 0.0, most_share: float = 1.0
) -> None:
    """Do the work in rounds until cancelled. An error of the database or of another service ends its round only.

    ``every_s``: from the start of a round to the start of the next; ``after_s``: before the first; ``most_share``: the
    largest part of the time that rounds may take: the pause after a longer one is longer.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    outage = Outage("round", name=task and task.get_name())
    await asyncio.sleep(after_s)
    while True:
        begun_at = loop.time()
        try:
            await work()
            outage.answered()
        # The database and other services come back by themselves; rounds that ended would not.
        except VnfmError as error:
            if error.is_said:
                log.debug("round_postponed", name=task and task.get_name(), reason=str(error))
            else:
                outage.failed(error)
        took_s = loop.time() - begun_at
        await asyncio.sleep(max(every_s - took_s, took_s / most_share - took_s))


async def look_when_due(look: Callable[[], Awaitable[float]], woken: asyncio.Event) -> None:
    """Call ``look``, and again after the seconds that it returns or once ``woken`` is set, until cancelled."""
    while True:
        # Before the look: what is set during it may have come too late for it.
        woken.clear()
        pause_s = await look()
        try:
            async with asyncio.timeout(pause_s):
                await woken.wait()
        except TimeoutError:
            pass


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("background_task_failed", task=task.get_name(), exc_info=error)
