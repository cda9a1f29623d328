"""A bus that is left in the moment in which its connection fails."""

from __future__ import annotations

import asyncio
from typing import Any

import aio_pika
import pytest
from contracts.bus_suite import RING
from kubevnfm_bus.rabbit import RabbitBus
from patience import until_true


class Connection:
    """One that was made as the bus was left."""

    is_closed = False

    async def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("is_made", [False, True])
async def test_leaving_ends_as_the_connection_is_refused_or_made(
    monkeypatch: pytest.MonkeyPatch, is_made: bool
) -> None:
    """The client library waits with `asyncio.wait_for`, which loses a cancellation then."""
    asked: list[asyncio.Future[Any]] = []
    made = Connection()

    async def connect(*_: object, **__: object) -> Any:
        asked.append(asyncio.get_running_loop().create_future())
        return await asyncio.wait_for(asked[-1], 60.0)

    async def is_asked() -> bool:
        return len(asked) == 1

    monkeypatch.setattr(aio_pika, "connect", connect)
    async with asyncio.timeout(30.0):
        async with RabbitBus.connect("amqp://127.0.0.1:9/", service="test", key_ring=RING):
            await until_true(is_asked)
            if is_made:
                asked[0].set_result(made)
            else:
                asked[0].set_exception(ConnectionError("refused"))
    assert len(asked) == 1
    assert made.is_closed == is_made
