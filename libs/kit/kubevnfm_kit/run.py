"""Runs a service until it is told to end."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AbstractAsyncContextManager
from typing import Any


async def until_signal() -> None:
    """Return when the process gets SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    await told.wait()


def run_until_signal(service: AbstractAsyncContextManager[Any]) -> None:
    """Enter the service, wait for SIGTERM or SIGINT, leave it (which drains and closes it)."""

    async def run() -> None:
        async with service:
            await until_signal()

    asyncio.run(run())
