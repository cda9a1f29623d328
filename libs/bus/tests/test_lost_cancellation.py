"""A bus that is left in the moment in which its connection fails, or a publish on it."""

from __future__ import annotations

import asyncio
from typing import Any

import aio_pika
import pytest
from contracts.bus_suite import RING, new_words
from kubevnfm_bus.errors import BusClosed
from kubevnfm_bus.rabbit import RabbitBus
from patience import until_true


class Connection:
    """One that was made as the bus was left."""

    def __init__(self) -> None:
        self.is_closed = False
        self.close_callbacks = set[object]()

    async def close(self) -> None:
        self.is_closed = True


class Channel:
    """All that a publish needs; the test gives the confirms."""

    is_closed = False

    def __init__(self, confirms: list[asyncio.Future[Any]]) -> None:
        self.close_callbacks = set[object]()
        self._confirms = confirms

    async def __aenter__(self) -> Channel:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def initialize(self) -> None:
        pass

    async def get_exchange(self, *_: object, **__: object) -> Channel:
        return self

    async def publish(self, *_: object, **__: object) -> Any:
        self._confirms.append(asyncio.get_running_loop().create_future())
        return await asyncio.wait_for(self._confirms[-1], 60.0)


class OnceLinked(Connection):
    """A connection with such channels."""

    def __init__(self, confirms: list[asyncio.Future[Any]]) -> None:
        super().__init__()
        self._confirms = confirms

    def channel(self, **_: object) -> Channel:
        return Channel(self._confirms)

    def lose(self) -> None:
        for each in self.close_callbacks:
            each()  # type: ignore[operator]  # the bus has added it


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


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_publish_under_way_ends_with_its_caller_or_with_its_bus(
    monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    """Also if its cancellation comes in the moment in which its connection fails, and no other connection comes."""
    confirms: list[asyncio.Future[Any]] = []
    connections: list[OnceLinked] = []

    async def connect(*_: object, **__: object) -> Any:
        if connections:
            raise ConnectionError("refused")
        connections.append(OnceLinked(confirms))
        return connections[0]

    async def is_under_way() -> bool:
        return len(confirms) == 1

    monkeypatch.setattr(aio_pika, "connect", connect)
    async with asyncio.timeout(30.0):
        async with RabbitBus.connect("amqp://127.0.0.1:9/", service="test", key_ring=RING, declares=False) as bus:
            publishing = asyncio.create_task(bus.publish(new_words().event(1)))
            await until_true(is_under_way)
            connections[0].lose()
            confirms[0].set_exception(ConnectionError("lost"))
            if is_cancelled:
                publishing.cancel()
                await asyncio.wait({publishing})
        await asyncio.wait({publishing})
    assert publishing.cancelled() == is_cancelled
    if not is_cancelled:
        assert isinstance(publishing.exception(), BusClosed)
