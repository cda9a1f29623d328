"""A broker that does not answer: a proxy that drops chosen answers of RabbitMQ, frame by frame (AMQP 0-9-1, 4.2.3)."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit, urlunsplit

_HEAD: Final = struct.Struct("!BHI")
_METHOD: Final = 1
CONFIRM: Final = 60, 80
"""Class and method of basic.ack."""
DECLARED: Final = 50, 11
"""Class and method of queue.declare-ok."""


@dataclass
class MuteBroker:
    """The proxy: ``drops`` says of an answer, by channel and method, whether it is lost."""

    url: str = ""
    drops: Callable[[int, tuple[int, int]], bool] = lambda channel, method: False
    dropped: list[int] = field(default_factory=list)
    """The channels of the answers that were dropped."""
    connections: int = 0
    _server: str = ""
    _port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect a client to the broker."""
        self.connections += 1
        answers, requests = await asyncio.open_connection(self._server, self._port)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_copy(reader, requests))
                both.create_task(self._answer(answers, writer))
        finally:
            writer.close()
            requests.close()

    async def _answer(self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await answers.readexactly(_HEAD.size)
                kind, channel, size = _HEAD.unpack(head)
                rest = await answers.readexactly(size + 1)
                method = (int.from_bytes(rest[:2]), int.from_bytes(rest[2:4])) if kind == _METHOD else (0, 0)
                if self.drops(channel, method):
                    self.dropped.append(channel)
                    continue
                writer.write(head + rest)
                await writer.drain()
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def mute_broker(broker_url: str) -> AsyncIterator[MuteBroker]:
    """Yield a proxy before the broker at the URL; it drops nothing yet."""
    parts = urlsplit(broker_url)
    proxy = MuteBroker(_server=parts.hostname or "", _port=parts.port or 5672)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    user = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    proxy.url = urlunsplit(parts._replace(netloc=f"{user}127.0.0.1:{port}"))
    async with server:
        yield proxy
