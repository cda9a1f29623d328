"""A proxy of HTTP: CONNECT (RFC 9110 9.3.6), and requests in absolute form (RFC 9112 3.2.2)."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from kubevnfm_kit.proxies import environment_proxies


@dataclass
class ConnectProxy:
    """The running proxy. It resolves no name: every host is at 127.0.0.1, or at its place."""

    wanted: str | None = None
    """The login that it wants: ``user:password``."""
    refuses: str | None = None
    """Status and reason of its answers to CONNECT."""
    places: dict[str, str] = field(default_factory=dict)
    """The addresses of hosts that are at others."""
    port: int = 0
    requests: list[tuple[str, str]] = field(default_factory=list)
    """The target and the login of each."""
    heads: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """As it is in HTTP_PROXY, with its login."""
        return f"http://{self.wanted + '@' if self.wanted else ''}127.0.0.1:{self.port}"

    @property
    def hosts(self) -> set[str]:
        """The hosts that it was asked for."""
        return {target.rpartition(":")[0] for target, _ in self.requests}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client."""
        with suppress(OSError, asyncio.IncompleteReadError):
            while await self._served(reader, writer):
                pass
        writer.close()

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
        is_tunnel = method == "CONNECT"
        parts = urlsplit(f"//{target}" if is_tunnel else target)
        host, port = parts.hostname or "", parts.port or 80
        self.heads.append(head)
        self.requests.append((f"{host}:{port}", headers.get("proxy-authorization", "")))
        status = self._refusal(headers, is_tunnel=is_tunnel)
        if status is not None:
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
            return True
        try:
            upstream, downstream = await asyncio.open_connection(self._place(host), port)
        except OSError:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            return True
        if is_tunnel:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(_copied(reader, downstream), _copied(upstream, writer))
            return False
        path = parts._replace(scheme="", netloc="").geturl() or "/"
        passed_on = [line for line in lines if not line.lower().startswith(("proxy-", "connection:"))]
        downstream.write("\r\n".join([f"{method} {path} HTTP/1.1", "Connection: close", *passed_on]).encode())
        downstream.write(await reader.readexactly(int(headers.get("content-length", "0"))))
        answer = await upstream.read(-1)
        downstream.close()
        writer.write(answer)
        # The connection stays open where the answer says where it ends.
        return b"content-length:" in answer.partition(b"\r\n\r\n")[0].lower()

    def _refusal(self, headers: dict[str, str], *, is_tunnel: bool) -> str | None:
        if self.wanted is not None:
            login = f"Basic {base64.b64encode(self.wanted.encode()).decode()}".lower()
            if headers.get("proxy-authorization") != login:
                return "407 Proxy Authentication Required"
        return self.refuses if is_tunnel else None

    def _place(self, host: str) -> str:
        return self.places.get(host, host if host.startswith("127.") else "127.0.0.1")


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    writer.close()


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Have this process use the proxies of these variables alone."""
    names = [each for name in ("http_proxy", "https_proxy", "no_proxy") for each in (name, name.upper())]
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    os.environ.update(variables)
    environment_proxies.cache_clear()
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]
        os.environ.update(before)
        environment_proxies.cache_clear()


@asynccontextmanager
async def connect_proxy(wanted: str | None = None, *, refuses: str | None = None) -> AsyncIterator[ConnectProxy]:
    """Yield a running proxy on loopback."""
    proxy = ConnectProxy(wanted, refuses)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()


@asynccontextmanager
async def silent_server() -> AsyncIterator[int]:
    """Yield the port of a server that takes connections and says nothing."""
    open_ones: list[asyncio.StreamWriter] = []

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_ones.append(writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in open_ones:
            writer.close()
