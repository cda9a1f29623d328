"""The measured calls to a running gateway, over HTTP as a user makes them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp

SAMPLES = Path(__file__).parents[2] / "deploy" / "samples"
V2 = {"Version": "2.0.0"}
INSTANCES = "/vnflcm/v2/vnf_instances"


def body(sample: str, name: str) -> dict[str, Any]:
    """Return a request body of a sample package."""
    return dict(json.loads((SAMPLES / sample / "requests" / f"{name}.json").read_text()))


_BAD_ENDS = frozenset({"FAILED_TEMP", "FAILED", "ROLLED_BACK"})


class Load:
    """One client session against one gateway."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def __aenter__(self) -> Load:
        connector = aiohttp.TCPConnector(limit=200)
        self._session = aiohttp.ClientSession(self._url, connector=connector, headers=V2)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def call(
        self, method: str, path: str, sent: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[Any, Mapping[str, str]]:
        """Return the body and the headers of the response; any error ends the bench with its text."""
        async with self._session.request(method, path, json=sent, headers=headers) as response:
            text = await response.text()
            if response.status >= 400:
                raise RuntimeError(f"{method} {path}: {response.status} {text[:500]}")
            return (json.loads(text) if text else None), response.headers

    async def await_gone(self, path: str) -> None:
        """Return when a resource that is being deleted answers 404."""
        while True:
            async with self._session.get(path) as response:
                if response.status == 404:
                    return
            await asyncio.sleep(1)

    async def create(self, vnfd_id: str, name: str = "bench") -> str:
        created, _ = await self.call("POST", INSTANCES, {"vnfdId": vnfd_id, "vnfInstanceName": name})
        return str(created["id"])

    async def operate(self, instance_ids: Sequence[str], task: str, request: Mapping[str, Any]) -> float:
        """Run an operation with one request on all instances at once; see `operate_each`."""
        return await self.operate_each(dict.fromkeys(instance_ids, request), task)

    async def operate_each(self, request_by_instance: Mapping[str, Mapping[str, Any]], task: str) -> float:
        """Run an operation on all instances at once; return the seconds until the last one is COMPLETED.

        One event stream reports the ends: polling would be late, or would be most of the measured load.
        """
        ended: set[str] = set()
        forever = aiohttp.ClientTimeout(total=None)
        async with self._session.get("/kubevnfm/v1/events?type=lcm.operation.changed", timeout=forever) as stream:
            await stream.content.readline()  # ": connected": from here on nothing is missed
            started = time.perf_counter()
            begun = asyncio.gather(*(self._begin(one, task, request) for one, request in request_by_instance.items()))
            while not begun.done() or not ended.issuperset(begun.result()):
                line = await stream.content.readline()
                if not line.startswith(b"data: "):
                    continue
                event = json.loads(line.removeprefix(b"data: "))
                state = event["data"]["state"]
                if state in _BAD_ENDS:
                    raise RuntimeError(f"{task} ended {state}: {event}")
                if state == "COMPLETED":
                    ended.add(event["operationid"])
            return time.perf_counter() - started

    async def _begin(self, instance_id: str, task: str, request: Mapping[str, Any]) -> str:
        _, headers = await self.call("POST", f"{INSTANCES}/{instance_id}/{task}", dict(request))
        return headers["Location"].rsplit("/", 1)[-1]


async def rate(clients: int, seconds: float, one: Callable[[], Awaitable[Any]]) -> tuple[float, list[float]]:
    """Have ``clients`` repeat ``one`` for ``seconds``; return the calls per second and the milliseconds of each call."""
    taken: list[float] = []
    end = time.perf_counter() + seconds

    async def repeat() -> None:
        while (begun := time.perf_counter()) < end:
            await one()
            taken.append((time.perf_counter() - begun) * 1000)

    started = time.perf_counter()
    await asyncio.gather(*(repeat() for _ in range(clients)))
    return len(taken) / (time.perf_counter() - started), taken
