"""A proxy for HTTPS (CONNECT, RFC 9110 9.3.6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class ConnectProxy:
    """The running proxy."""

    port: int = 0
    requests: list[tuple[str, str]] = field(default_factory=list)
    """The target and the login of each."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect one client to its target."""
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        target = first.split()[1]
        headers = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
        self.requests.append((target, headers.get("proxy-authorization", "")))
        host, _, port = target.rpartition(":")
        upstream, downstream = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_copied(reader, downstream), _copied(upstream, writer))


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def connect_proxy() -> AsyncIterator[ConnectProxy]:
    """Yield a running proxy on loopback."""
    proxy = ConnectProxy()
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
