"""An API server that has nothing but pods, for the bench of the inventory: lists them, then changes some a second.

python tests/bench/pod_server.py PODS CHANGES PER_SECOND: prints its port. The phase of a changed pod is the time of its change.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from aiohttp import web

PODS, CHANGES, PER_SECOND = (int(each) for each in sys.argv[1:4])
OF_ONE = 100
"""Pods of an instance."""


def pod(number: int, phase: str = "Running") -> dict[str, Any]:
    """Return a pod of the size that real ones have."""
    instance = f"instance-{number // OF_ONE}"
    containers = [
        {"name": "main", "image": "nginx:1.27", "env": [{"name": f"V{n}", "value": "x" * 60} for n in range(30)]}
    ]
    address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"web-5d9-{number}",
            "namespace": instance,
            "uid": f"00000000-0000-4000-8000-{number:012}",
            "resourceVersion": "1",
            "creationTimestamp": "2030-01-01T00:00:00Z",
            "labels": {"kubevnfm.io/vnf-instance-id": instance, "pod-template-hash": "5d9"},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d9", "uid": "r", "controller": True}
            ],
        },
        "spec": {"nodeName": f"worker-{number % 200}", "containers": containers},
        "status": {"phase": phase, "podIP": address, "podIPs": [{"ip": address}]},
    }


async def kinds(_: web.Request) -> web.Response:
    """Answer discovery."""
    verbs = ["get", "list", "watch"]
    listed = [{"name": "pods", "kind": "Pod", "namespaced": True, "verbs": verbs}]
    return web.json_response({"kind": "APIResourceList", "resources": listed})


async def pods(request: web.Request) -> web.StreamResponse:
    """Answer a list, page by page, or a watch."""
    if "watch" in request.query:
        return await watch(request)
    first, limit = int(request.query.get("continue", 0)), int(request.query["limit"])
    last = min(first + limit, PODS)
    metadata = {"resourceVersion": "1", **({"continue": str(last)} if last < PODS else {})}
    return web.json_response({"metadata": metadata, "items": [pod(number) for number in range(first, last)]})


async def watch(request: web.Request) -> web.StreamResponse:
    """Send the changes, evenly in time, once SIGUSR1 has come."""
    answer = web.StreamResponse(headers={"Content-Type": "application/json"})
    await answer.prepare(request)
    await request.app[BEGIN].wait()
    begun = time.monotonic()
    for number in range(CHANGES):
        await asyncio.sleep(max(0.0, begun + number / PER_SECOND - time.monotonic()))
        changed = pod(number * 37 % PODS, phase=repr(time.time()))
        try:
            await answer.write(json.dumps({"type": "MODIFIED", "object": changed}).encode() + b"\n")
        except ConnectionError:  # of a process that does not watch any more
            break
    await asyncio.Event().wait()
    return answer


BEGIN = web.AppKey("begin", asyncio.Event)


async def begin(request: web.Request) -> web.Response:
    """Have the changes begin."""
    request.app[BEGIN].set()
    return web.Response()


async def serve() -> None:
    app = web.Application()
    app[BEGIN] = asyncio.Event()
    app.add_routes([web.get("/api/v1", kinds), web.get("/api/v1/pods", pods), web.post("/begin", begin)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    sys.stdout.write(f"{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


asyncio.run(serve())
