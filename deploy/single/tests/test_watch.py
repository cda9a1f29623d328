"""Following an operation: until it waits or has ended, and never without end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from kubevnfm.client import GatewayClient, Refused
from kubevnfm.watch import follow

_RESTS = {
    "type": "kubevnfm.lcm.operation.changed.v1",
    "time": "2026-01-01T00:00:00Z",
    "data": {"operation": "INSTANTIATE", "state": "COMPLETED", "vnf_lcm_op_occ_id": "op"},
}


@pytest.fixture
async def gateway() -> AsyncIterator[str]:
    """A gateway whose instances are named after what their event stream does."""
    state = {"op": "PROCESSING"}

    async def events(request: web.Request) -> web.StreamResponse:
        does = request.query["instance"]
        if does == "refuses":
            return web.json_response({"detail": "not today"}, status=503)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b": connected\n\n")
        if does == "reports":
            state["op"] = "COMPLETED"
            await response.write(f"data: {json.dumps(_RESTS)}\n\n".encode())
        return response

    async def operation(_: web.Request) -> web.Response:
        return web.json_response({"operation": "INSTANTIATE", "state": state["op"]})

    app = web.Application()
    app.add_routes([web.get("/kubevnfm/v1/events", events), web.get("/kubevnfm/v1/operations/op", operation)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def _begun() -> str:
    return "op"


async def test_it_is_followed_until_it_rests(gateway: str) -> None:
    async with GatewayClient(gateway) as client:
        view = await follow(client, "reports", _begun)
    assert view["state"] == "COMPLETED"


async def test_a_stream_that_ends_too_early_is_an_error(gateway: str) -> None:
    async with GatewayClient(gateway) as client:
        with pytest.raises(ConnectionError, match="ended the event stream"):
            await follow(client, "ends", _begun)


async def test_a_refused_stream_is_an_error(gateway: str) -> None:
    async with GatewayClient(gateway) as client:
        with pytest.raises(Refused, match="not today"):
            await follow(client, "refuses", _begun)


async def test_a_gateway_that_is_not_there_is_an_error() -> None:
    async with GatewayClient("http://127.0.0.1:1") as client:
        with pytest.raises(aiohttp.ClientError):
            await follow(client, "any", _begun)
