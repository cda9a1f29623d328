"""A port on which a killed program of the lab had begun to listen is free for the next one, whenever the kill came."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Final

import pytest
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes import LabClusters
from kubevnfm_lab.machines.registry import RegistryPort
from kubevnfm_lab.machines.relay import Relay
from servers.ports import free_port

ADDRESS: Final = "127.0.0.1"

Close = Callable[[], Awaitable[None]]
"""Ends what a start made."""


async def _api_server(port: int) -> Close:
    clusters = LabClusters(faults=FaultBook(), ledger=CallLedger())
    await clusters.create(
        address=ADDRESS, port=port, version="v1.31.4", pod_cidr="10.244.0.0/16", service_cidr="10.96.0.0/12"
    )
    return clusters.close


async def _relay(port: int) -> Close:
    relay = Relay(ADDRESS, port, list)
    await relay.open()
    return lambda: _at_once(relay.close)


async def _registry(port: int) -> Close:
    registry = RegistryPort([ADDRESS], port)
    await registry.open()
    return lambda: _at_once(registry.close)


async def _at_once(close: Callable[[], None]) -> None:
    close()


@pytest.mark.parametrize("start", [_api_server, _relay, _registry])
async def test_a_kill_at_any_moment_of_the_start_leaves_the_port_free(start: Callable[[int], Awaitable[Close]]) -> None:
    """Cancelled after one turn of the event loop, after two, ... until the start is complete."""
    port = free_port()
    for turns in count():
        starting = asyncio.ensure_future(start(port))
        for _ in range(turns):
            await asyncio.sleep(0)
        if starting.done():
            break
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
    assert turns > 1
    close = await starting
    await close()
