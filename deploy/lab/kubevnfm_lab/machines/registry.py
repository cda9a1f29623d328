"""The registry container's port: enough of the distribution API for a health check."""

from __future__ import annotations

import asyncio
import contextlib

REGISTRY_IMAGE = "registry"
_END_OF_HEAD = b"\r\n\r\n"
_HEAD_LIMIT = 16 * 1024


class RegistryPort:
    """A listening socket that answers ``GET /v2/`` with 200 and ``{}``, other paths with 404."""

    def __init__(self, addresses: list[str], port: int) -> None:
        self._addresses, self._port = addresses, port
        self._servers: list[asyncio.Server] = []

    async def open(self) -> None:
        """Listen on every address of the machine; raise OSError when the port is taken."""
        try:
            for address in self._addresses:
                server = await asyncio.start_server(
                    self._answer, address, self._port, limit=_HEAD_LIMIT, start_serving=False
                )
                self._servers.append(server)
                await server.start_serving()
        except (OSError, asyncio.CancelledError):
            self.close()
            raise

    def close(self) -> None:
        """Stop listening."""
        for server in self._servers:
            server.close()
        self._servers.clear()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            head = await reader.readuntil(_END_OF_HEAD)
            path = head.split(b" ", 2)[1] if head.count(b" ") > 1 else b""
            body, status = (b"{}", b"200 OK") if path in (b"/v2/", b"/v2") else (b'{"errors":[]}', b"404 Not Found")
            writer.write(
                b"HTTP/1.1 " + status + b"\r\nContent-Type: application/json\r\nDocker-Distribution-Api-Version: "
                b"registry/2.0\r\nConnection: close\r\nContent-Length: " + str(len(body)).encode() + _END_OF_HEAD + body
            )
            await writer.drain()
        writer.close()
