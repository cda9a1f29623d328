"""A service ends with a signal; its background tasks end with it."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from kubevnfm_kit.run import background, run_until_signal
from structlog.testing import capture_logs


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_service_in_good_order(number: signal.Signals) -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def service() -> AsyncIterator[None]:
        seen.append("entered")
        # The handler of the signal is installed after the service was entered.
        asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), number)
        yield
        seen.append("left")

    run_until_signal(service())
    assert seen == ["entered", "left"]


def test_a_service_may_open_as_much_as_the_system_allows() -> None:
    """MC-142: each watch of a region has a connection, and most systems begin with 1024 descriptors for a process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    seen: list[int] = []

    @asynccontextmanager
    async def service() -> AsyncIterator[None]:
        seen.append(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGTERM)
        yield

    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    try:
        run_until_signal(service())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert seen == [2**16 if hard == resource.RLIM_INFINITY else min(hard, 2**16)]


_START = """
import asyncio, os, signal
from contextlib import asynccontextmanager
from pathlib import Path
from kubevnfm_kit.run import run_until_signal

def resident_mib():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

@asynccontextmanager
async def service():
    blocks = [bytes(4000) for _ in range(10_000)]
    last = bytes(4000)  # the C library returns by itself only what is free above the last block
    before = resident_mib()
    del blocks
    asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGTERM)
    yield
    print(before - resident_mib(), len(last))

run_until_signal(service())
"""


def test_what_the_start_has_freed_is_returned_to_the_system() -> None:
    ran = subprocess.run([sys.executable, "-c", _START], capture_output=True, check=True, timeout=120)
    assert int(ran.stdout.split()[0]) > 30


async def test_background_tasks_are_cancelled_and_awaited_on_leaving() -> None:
    seen: list[str] = []

    async def forever() -> None:
        try:
            task = asyncio.current_task()
            seen.append(task.get_name() if task else "")
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            seen.append("ended")

    async with background(sweeper=forever()):
        await asyncio.sleep(0)
    assert seen == ["sweeper", "ended"]


async def test_a_background_task_that_fails_is_logged_and_leaves_the_others_running() -> None:
    goes_on, is_other_done = asyncio.Event(), asyncio.Event()

    async def fails() -> None:
        goes_on.set()
        raise LookupError("no such key")

    async def other() -> None:
        await goes_on.wait()
        await asyncio.sleep(0)
        is_other_done.set()

    with capture_logs() as logged:
        async with background(broken=fails(), other=other()):
            await asyncio.wait_for(is_other_done.wait(), 300)
    assert [(line["event"], line["task"]) for line in logged] == [("background_task_failed", "broken")]
