"""How many connections to an API server the life of a CNF takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from urllib.parse import urlsplit
from uuid import uuid4

from callers.user import User
from clusters.own_cluster import a_cluster, live
from patience import until_true

_ATTEMPTS = 5
_REST_S = 1.0


class Relay:
    """Passes connections on to a server, and counts them."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self.connections, self._last_at = 0, 0.0
        self._open: set[asyncio.StreamWriter] = set()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Yield the URL, at the address of the server, which its certificate names."""
        server = await asyncio.start_server(self._pass_on, self._host, 0)
        try:
            yield f"https://{self._host}:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for writer in self._open:
                writer.close()

    async def is_at_rest(self) -> bool:
        """Whether the inventory has opened its watches: one connection a kind, which comes soon after the one before."""
        return self.connections > 0 and asyncio.get_running_loop().time() - self._last_at > _REST_S

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections, self._last_at = self.connections + 1, asyncio.get_running_loop().time()
        there, back = await asyncio.open_connection(self._host, self._port)
        self._open |= {writer, back}
        # The end of one direction ends the other.
        await asyncio.gather(_copy(reader, back), _copy(there, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError), closing(writer):
        while read := await reader.read(2**16):
            writer.write(read)
            await writer.drain()


async def test_the_calls_of_a_cnf_use_the_connection_that_is_open(user: User) -> None:
    """One more at most is opened, for the watch of the Deployment, which ends with it."""
    async with a_cluster() as cluster:
        where = urlsplit(cluster.endpoint)
        assert where.hostname is not None
        assert where.port is not None
        relay = Relay(where.hostname, where.port)
        async with relay.serving() as url:
            login = {"bearer_token": cluster.admin_token, "ssl_ca_cert": cluster.ca_pem}
            vim = {"name": f"relayed-{uuid4()}", "type": "kubernetes", "auth_url": url, "auth_cred": login}
            body = {"vim": {**vim, "vim_project": {"name": "default"}}}
            vim_id = (await user.call("POST", "/v1.0/vims", body)).must(201).json["vim"]["id"]
            vnfd_id = await user.sample("cnf")
            counted: list[int] = []
            await live(user, vnfd_id, vim_id)
            # The VIM's status and its drift are checked now and then, over connections of their own.
            while len(counted) < _ATTEMPTS and min(counted, default=2) > 1:
                await until_true(relay.is_at_rest)
                before = relay.connections
                await live(user, vnfd_id, vim_id)
                counted.append(relay.connections - before)
            (await user.call("DELETE", f"/v1.0/vims/{vim_id}")).must(204)
    assert min(counted) <= 1, counted
