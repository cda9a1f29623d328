"""TCP relays: a socket on one address whose connections go to the first of several targets that answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

Target = tuple[str, int]

CHUNK = 64 * 1024
CONNECT_TIMEOUT_S = 30.0  # as client-go; loopback refuses at once, so only a loaded machine takes any time


class Relay:
    """One listening socket. Targets are computed per connection; if none answers, it is closed."""

    def __init__(self, address: str, port: int, targets: Callable[[], Sequence[Target]]) -> None:
        self.address, self.port = address, port
        self._targets = targets
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        """Listen; raise OSError if the address is taken or not one of this host."""
        self._server = await asyncio.start_server(self._relay, self.address, self.port, start_serving=False)
        try:
            await self._server.start_serving()
        except asyncio.CancelledError:
            # The program that wanted the port was killed, so it does not call close().
            self.close()
            raise

    def close(self) -> None:
        """Stop listening and close all connections."""
        if self._server:
            self._server.close()
            self._server = None
        self.cut()

    def cut(self) -> None:
        """Close all connections; new ones are still accepted."""
        for task in list(self._connections):
            task.cancel()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            onward = await self._connect()
            if onward is None:
                return
            far_reader, far_writer = onward
            try:
                await _both_ways((reader, far_writer), (far_reader, writer))
            finally:
                far_writer.close()
        except asyncio.CancelledError:
            # A reset rather than a proper end: the peer must notice that the connection was lost.
            writer.transport.abort()
        finally:
            self._connections.discard(task)
            writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for host, port in self._targets():
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    return await asyncio.open_connection(host, port)
        return None


def in_turn(targets: Sequence[Target], turns: Iterator[int]) -> Sequence[Target]:
    """Return the targets, beginning with the next one in turn; the others follow in case it refuses."""
    turn = next(turns) % len(targets) if targets else 0
    return [*targets[turn:], *targets[:turn]]


async def close_all(tasks: Iterable[asyncio.Task[None]], relays: dict[Any, Relay]) -> None:
    """Cancel the tasks and close the relays."""
    running = list(tasks)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    for relay in relays.values():
        relay.close()
    relays.clear()


async def _both_ways(*pairs: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    tasks = [asyncio.ensure_future(_one_way(reader, writer)) for reader, writer in pairs]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def _one_way(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        # One direction may end before the other: a client that has sent its request still reads the answer.
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.close()
