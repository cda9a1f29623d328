"""kubevnfm in one process, and an address of its own at which the bench has it publish events: run as a program by `page.py`.

The events go over the gateway's own bus to its own consumers, as those of a worker do. ``{now}`` in a message becomes the time in ms.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from unittest.mock import patch

from aiohttp import web
from kubevnfm import cli, single
from kubevnfm.settings import Settings
from kubevnfm.single import SingleNode, single_node
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_events import Envelope, Message
from kubevnfm_events.lcm import StepChanged
from kubevnfm_events.mgmt import TaskProgressed

PORT: Final = "BENCH_CONTROL_PORT"
_KINDS: Final = {"step": StepChanged, "task": TaskProgressed}


class Publisher:
    """Publishes what it is asked for on the bus of this process."""

    def __init__(self, bus: InProcessBus) -> None:
        self._bus = bus

    async def publish(self, request: web.Request) -> web.Response:
        """POST: ``events``, at once, or with ``everyMs`` between them; answers when all consumers have taken them."""
        asked = await request.json()
        if not asked.get("everyMs"):
            await asyncio.gather(*(self._bus.publish(_envelope(each)) for each in asked["events"]))
            return web.Response(status=204)
        async with asyncio.TaskGroup() as group:
            for each in asked["events"]:
                group.create_task(self._bus.publish(_envelope(each)))
                await asyncio.sleep(asked["everyMs"] / 1000)
        return web.Response(status=204)


def _envelope(event: dict[str, Any]) -> Envelope[Message]:
    data = dict(event["data"])
    if "message" in data:
        data["message"] = data["message"].replace("{now}", str(round(time.time() * 1000)))
    return Envelope(
        data=_KINDS[event["kind"]](**data),
        source="/kubevnfm/bench",
        subject=event["instance"],
        operationid=event["operation"],
        stepid=event.get("step", ""),
        attempt=1,
    )


@asynccontextmanager
async def _node(settings: Settings) -> AsyncIterator[SingleNode]:
    buses: list[InProcessBus] = []

    class OpenBus(InProcessBus):
        async def __aenter__(self) -> OpenBus:
            buses.append(self)
            return self

    with patch.object(single, "InProcessBus", OpenBus):
        async with single_node(settings) as node:
            app = web.Application(client_max_size=2**26)
            app.router.add_post("/events", Publisher(buses[0]).publish)
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            try:
                await web.TCPSite(runner, "127.0.0.1", int(os.environ[PORT])).start()
                yield node
            finally:
                await runner.cleanup()


if __name__ == "__main__":
    # As the installed program runs, with all that it sets.
    with patch.object(single, "single_node", _node):
        cli.run()
