"""Serving HTTP or HTTPS: one aiohttp application on one address."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from aiohttp import web

from kubevnfm_kit import live_spans
from kubevnfm_kit.connections import DEFAULT_LIMITS, Connection, Limits, bounded_bodies, places_for_health
from kubevnfm_kit.errors import NotFound
from kubevnfm_kit.ids import is_id
from kubevnfm_kit.request_ids import answer_with_id, identified
from kubevnfm_kit.request_spans import measured
from kubevnfm_kit.tls import LOOK_EVERY_S, ServerTls, watching

_CHOSEN_NAMES: Final = frozenset({"path", "vnfdId", "reference"})
"""Variable parts of a path that others choose: the maker of a package, whose names handlers compare with what the packages have; and
users of what is shared, whose references are compared with those that are stored."""


def check_ids(request: web.Request) -> None:
    """Raise NotFound if an id in the path has not the form of one.

    Such a resource cannot exist, and its name must not reach a URL, a file name or a query.
    """
    for name, value in request.match_info.items():
        if name not in _CHOSEN_NAMES and not is_id(value):
            raise NotFound("no such resource: an id has letters, digits, '.', '_' and '-', at most 128 of them")


async def _not_stored(_: web.Request, response: web.StreamResponse) -> None:
    """Forbid caches and browsers to store an answer (RFC 9111 5.2.2.5): almost every one has data of VNFs."""
    response.headers.setdefault("Cache-Control", "no-store")


_HANDSHAKE_S: Final = 10.0


class _Site(web.BaseSite):
    """The sockets of one address; its TLS context can be replaced while callers are connected."""

    def __init__(
        self, runner: web.AppRunner, *, host: str, port: int, bound: socket.socket | None, limits: Limits
    ) -> None:
        super().__init__(runner)
        self._address = (host, port)
        self._bound = bound
        self._limits = limits
        self._others: list[Any] = []
        self._connections: set[Connection] = set()

    @property
    def name(self) -> str:
        return f"{self._address[0]}:{self._address[1]}"

    async def start(self) -> None:
        await self.listen(None)

    async def listen(self, tls: ssl.SSLContext | None) -> None:
        """Listen, for the first time or with a new context.

        Existing connections are kept; connections that are being accepted are not dropped.
        """
        loop = asyncio.get_running_loop()
        how: Any = {"ssl": tls, "ssl_handshake_timeout": _HANDSHAKE_S if tls else None}
        if self._server is None:
            where: Any = dict(zip(("host", "port"), self._address, strict=True))
            if self._bound is not None:
                where = {"sock": self._bound}
            self._server = await loop.create_server(self._connection, **where, **how)
            await super().start()
            return
        old = [self._server, *self._others]
        # The copies share the queue of connections that wait to be accepted.
        copies = [one.dup() for server in old for one in server.sockets]
        self._server, *self._others = [await loop.create_server(self._connection, sock=copy, **how) for copy in copies]
        # From here on only the copies accept, otherwise the old servers would accept callers with the old certificate
        # until they close.
        for server in old:
            for one in server.sockets:
                loop.remove_reader(one.fileno())
        # A connection that was just accepted is attached to its server in the next turn of the loop; a closed server
        # would drop it.
        await asyncio.sleep(0)
        for server in old:
            server.close()

    async def stop(self) -> None:
        for server in self._others:
            server.close()
        await super().stop()

    def _connection(self) -> Connection:
        server = self._runner.server
        assert server is not None
        return Connection(server, limits=self._limits, open_ones=self._connections)


def bound_socket(host: str) -> socket.socket:
    """Return a socket with a free port of the host, which no other process gets before it listens. Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host or None, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


@asynccontextmanager
async def serving(
    app: web.Application,
    *,
    host: str,
    port: int,
    bound: socket.socket | None = None,
    tls: ServerTls | None = None,
    limits: Limits = DEFAULT_LIMITS,
    look_every_s: float = LOOK_EVERY_S,
) -> AsyncIterator[int]:
    """Serve the application; yield the port (the one the system chose when ``port`` is 0); leaving closes it.

    ``bound`` is a socket that has the address already (`bound_socket`); it is closed too. With ``tls`` it is HTTPS; the files are checked every ``look_every_s``, and replaced ones are loaded.
    """
    # Last in the list is innermost: the application's middlewares turn RequestTooSlow into an answer.
    app.middlewares.append(bounded_bodies(limits))
    # A signal and not a middleware: it also sees streams, and the answers of aiohttp itself.
    app.on_response_prepare.extend([_not_stored, answer_with_id])
    spans = [measured] if live_spans.is_on() else []
    app.middlewares[:0] = [identified, *spans, places_for_health(limits)]
    runner = web.AppRunner(app, shutdown_timeout=5.0)
    await runner.setup()
    try:
        async with AsyncExitStack() as stack:
            site = _Site(runner, host=host, port=port, bound=bound, limits=limits)
            # Loading certificates reads files, which may be on a slow volume: not on the event loop.
            await site.listen(await asyncio.to_thread(tls.context) if tls else None)
            if tls is not None:

                async def renew() -> None:
                    await site.listen(await asyncio.to_thread(tls.context))

                await stack.enter_async_context(watching(tls.files(), renew, look_every_s=look_every_s))
            address = runner.addresses[0]
            yield int(address[1])
    finally:
        await runner.cleanup()
