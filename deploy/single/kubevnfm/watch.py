"""Follows an operation and prints one line for each event, for people."""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime
from typing import Any

from kubevnfm_kit.json_types import JsonObject

from kubevnfm.client import TERMINAL, GatewayClient

_MARK = {
    "finished": "done",
    "failed": "FAILED",
    "started": "...",
    "undone": "undone",
    "undoing": "undoing",
    "skipped": "as is",
    "cancelled": "cancelled",
}


def say(line: str) -> None:
    """Print a line at once: this is the command line's output, not a log."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def line_of(event: JsonObject) -> str | None:
    """Return the line for an event, None for an event without interest for people."""
    data, kind = event["data"], event["type"].removeprefix("kubevnfm.").removesuffix(".v1")
    at = datetime.fromisoformat(event["time"]).strftime("%H:%M:%S")
    if kind == "lcm.operation.changed":
        reason = f": {data['error']['detail']}" if "error" in data else ""
        return f"{at}  {data['operation']} {data['state']}{reason}"
    if kind == "lcm.step.changed":
        took = f" ({data['duration_s']:.1f} s)" if data.get("duration_s") is not None else ""
        detail = f": {data['detail']}" if data.get("detail") else ""
        return f"{at}    step {data['number']}/{data['of']} {data['title']}: {_MARK[data['state']]}{took}{detail}"
    if kind == "mgmt.task.progressed":
        took = f" ({data['duration_s']:.1f} s)" if data.get("duration_s") is not None else ""
        count = f" {data['done']}/{data['total']}" if data.get("total") is not None else ""
        where = f"{data['node']:<12} " if data.get("node") else ""
        what = f" {data['message']}" if data.get("message") else ""
        return f"{at}      {where}{data['task']}{count}: {_MARK.get(data['state'], data['state'])}{took}{what}"
    return None


async def follow(client: GatewayClient, instance_id: str, start: Any, *, timeout_s: float = 7200.0) -> JsonObject:
    """Open the instance's event stream, await ``start()`` (an operation id), print until the operation waits or has ended; return its view.

    Raises: Refused, ClientError, TimeoutError; ConnectionError when the gateway ends the stream.
    """
    rests = asyncio.Event()
    is_open = asyncio.Event()
    operation_id: str | None = None

    async def listen() -> None:
        async for event in client.events(instance=instance_id):
            is_open.set()
            if event is None:
                continue
            line = line_of(event)
            if line is not None:
                say(line)
            data = event["data"]
            if data.get("state") in TERMINAL and data.get("vnf_lcm_op_occ_id") == operation_id:
                rests.set()

    listening = asyncio.create_task(listen())
    try:
        async with asyncio.timeout(timeout_s):
            await _unless_ended(is_open, listening)
            # Only once the stream is open: events before that would be missed.
            operation_id = str(await start())
            # The operation may have ended before its id was known here, and then `listen` has compared the last event
            # with None.
            view = await client.operation(operation_id)
            if view["state"] not in TERMINAL:
                await _unless_ended(rests, listening)
            return await client.operation(operation_id)
    finally:
        listening.cancel()
        # `_unless_ended` has raised the stream's error already, or it no longer matters.
        await asyncio.gather(listening, return_exceptions=True)


async def _unless_ended(wanted: asyncio.Event, listening: asyncio.Task[None]) -> None:
    """Wait until ``wanted`` is set. If the stream ends earlier, raise its error instead of waiting without end."""
    waiting = asyncio.create_task(wanted.wait())
    try:
        await asyncio.wait({waiting, listening}, return_when=asyncio.FIRST_COMPLETED)
        if not wanted.is_set():
            listening.result()
            raise ConnectionError("the gateway ended the event stream; the operation may still be running")
    finally:
        waiting.cancel()
