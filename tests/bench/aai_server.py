"""The small A&AI of the tests in a process of its own: prints its port, and serves until it is killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from urllib.parse import urlsplit

sys.path[:0] = [str(Path(__file__).parent.parent / "support")]

from servers.aai import aai  # noqa: E402


async def serve() -> None:
    """Serve."""
    async with aai() as server:
        print(urlsplit(server.url).port, flush=True)  # noqa: T201
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve())
