"""A subscriber to notifications: a small HTTP server that records notifications, and fails on request."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web
from patience import until

CLIENT_ID: Final = "vnfm:1"
CLIENT_PASSWORD: Final = "pw-of the/client"


@dataclass(frozen=True)
class Notification:
    """One notification as received."""

    body: dict[str, Any]
    version: str
    authorization: str
    peer: str
    """The common name in the client certificate; empty without one."""
    media_type: str

    @property
    def user(self) -> str:
        return self._basic[0]

    @property
    def password(self) -> str:
        return self._basic[1]

    @property
    def _basic(self) -> tuple[str, str]:
        scheme, _, credentials = self.authorization.partition(" ")
        if scheme != "Basic":
            return "", ""
        user, _, password = base64.b64decode(credentials).decode().partition(":")
        return user, password


@dataclass
class Subscriber:
    """Records notifications in the order in which they came; also has a token endpoint."""

    uri: str = ""
    received: list[Notification] = field(default_factory=list)
    tried: list[dict[str, Any]] = field(default_factory=list)
    """Every body that came, accepted or not."""
    refuses: int = 0
    """The number of requests that are answered with 503 first."""
    retry_after: str | None = None
    """The `Retry-After` header of each 503."""
    answers: int = 204
    """The status of the answer to every other notification."""
    tests: int = 204
    """The status of the callback test."""
    tested: list[str] = field(default_factory=list)
    """The Authorization headers of the callback tests."""
    queries: list[str] = field(default_factory=list)
    """The query of each callback test and notification."""
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)
    """Requests are answered only while this is set."""
    tokens: list[str] = field(default_factory=list)
    """The tokens issued so far; only the last one is valid."""
    token_life_s: float | None = 3600.0
    token_forms: list[dict[str, str]] = field(default_factory=list)
    wants_token: bool = False
    _port: int = 0

    @classmethod
    @asynccontextmanager
    async def listening(cls, tls: ssl.SSLContext | None = None) -> AsyncIterator[Subscriber]:
        """Yield a subscriber that answers."""
        subscriber = cls()
        subscriber.goes_on.set()
        async with subscriber.up(tls):
            yield subscriber

    @asynccontextmanager
    async def up(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[None]:
        """Listen within the block; a second call listens at the same address."""
        app = web.Application()
        app.add_routes(
            [
                web.get("/callback", self._test),
                web.post("/callback", self._accept),
                web.post("/token", self._give_token),
            ]
        )
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            # Our address as the installation reaches it.
            host = os.environ.get("KUBEVNFM_E2E_CALLBACK_HOST", "127.0.0.1")
            await web.TCPSite(runner, host, self._port, ssl_context=tls).start()
            self._port = runner.addresses[0][1]
            self.uri = f"{'https' if tls else 'http'}://{host}:{self._port}/callback"
            yield
        finally:
            await runner.cleanup()

    @property
    def token_endpoint(self) -> str:
        return self.uri.removesuffix("callback") + "token"

    def about(self, id: str) -> list[dict[str, Any]]:
        """Return the bodies about one VNF instance, or one VNF package."""
        return [
            each.body for each in self.received if id in (each.body.get("vnfInstanceId"), each.body.get("vnfPkgId"))
        ]

    async def has_heard(self, id: str, count: int) -> list[dict[str, Any]]:
        """Wait for ``count`` notifications about an instance or a package; return their bodies."""

        async def enough() -> list[dict[str, Any]] | None:
            bodies = self.about(id)
            return bodies if len(bodies) >= count else None

        return await until(enough, timeout_s=300)

    async def was_tried(self, count: int) -> list[dict[str, Any]]:
        """Wait until ``count`` notifications came, accepted or not; return their bodies."""

        async def enough() -> list[dict[str, Any]] | None:
            return self.tried if len(self.tried) >= count else None

        return await until(enough, timeout_s=300)

    async def _test(self, request: web.Request) -> web.Response:
        authorization = request.headers.get("Authorization", "")
        self.tested.append(authorization)
        self.queries.append(request.query_string)
        return web.Response(status=self.tests if self._may(authorization) else 401)

    async def _accept(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.tried.append(body)
        self.queries.append(request.query_string)
        await self.goes_on.wait()
        authorization = request.headers.get("Authorization", "")
        if not self._may(authorization):
            return web.Response(status=401)
        if self.refuses:
            self.refuses -= 1
            return web.Response(status=503, headers={"Retry-After": self.retry_after} if self.retry_after else None)
        if self.answers >= 300:
            return web.Response(status=self.answers, headers={"Location": self.uri})
        version, media_type = request.headers.get("Version", ""), request.headers["Content-Type"]
        self.received.append(Notification(body, version, authorization, _peer(request), media_type))
        return web.Response(status=self.answers)

    def _may(self, authorization: str) -> bool:
        return not self.wants_token or (bool(self.tokens) and authorization == f"Bearer {self.tokens[-1]}")

    async def _give_token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.token_forms.append(
            {**form, "authorization": request.headers.get("Authorization", ""), "peer": _peer(request)}
        )
        self.tokens.append(f"token-{len(self.tokens) + 1}")
        life = {} if self.token_life_s is None else {"expires_in": self.token_life_s}
        return web.json_response({"access_token": self.tokens[-1], "token_type": "Bearer", **life})


def _peer(request: web.Request) -> str:
    connection = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
    shown = connection.getpeercert() if isinstance(connection, ssl.SSLObject) else None
    subject: Any = (shown or {}).get("subject", ())
    names = {name: value for part in subject for name, value in part}
    return str(names.get("commonName", ""))
