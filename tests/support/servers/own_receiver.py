"""A receiver of credentials as an operator may have one."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

from aiohttp import web
from kubevnfm_clients import callback
from kubevnfm_kit.clock import SystemClock

MASTER = bytes(range(32))
INSTANCE = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"


@dataclass
class Receiver:
    """A web server of an operator: it verifies signatures, and answers as the test says, then 201."""

    url: str = ""
    instance: str = INSTANCE
    keys: tuple[bytes, ...] = (MASTER,)
    answers: list[tuple[int, dict[str, str], Any]] = field(default_factory=list)
    """Status, headers and JSON of the next answers."""
    skew_s: float = 0.0
    """How much later its clock is; beyond 300 s it refuses."""
    hangs: bool = False
    """Whether it stores a request and does not answer."""
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    requests: list[tuple[Mapping[str, str], bytes]] = field(default_factory=list)
    by_key: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    @asynccontextmanager
    async def start(cls, *, name: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
        """Yield the receiver, listening on loopback. ``name``: the host in its URL; ``tls``: it listens with TLS."""
        receiver = cls()
        app = web.Application()
        app.router.add_post("/{tail:.*}", receiver.receive)
        runner = web.AppRunner(app, shutdown_timeout=1.0)  # a request that hangs is not awaited
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        scheme = "http" if tls is None else "https"
        receiver.url = f"{scheme}://{name}:{runner.addresses[0][1]}/hooks/a%20b?tenant=1"
        try:
            yield receiver
        finally:
            await runner.cleanup()

    async def receive(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = request.headers
        self.requests.append((headers, body))
        now = SystemClock().now().timestamp() + self.skew_s
        key_id = headers[callback.KEY_ID]
        number = 2 if key_id.endswith(".k2") else 1
        expected = callback.signature(
            callback.instance_key(self.keys[number - 1], self.instance),
            method="POST",
            target=request.raw_path,
            timestamp=headers[callback.TIMESTAMP],
            nonce=headers[callback.NONCE],
            content_sha256=callback.sha256_hex(body),
        )
        assert headers[callback.SIGNATURE] == expected
        assert headers[callback.CONTENT_SHA256] == callback.sha256_hex(body)
        if abs(int(headers[callback.TIMESTAMP]) - now) > 300:
            date = formatdate(now, usegmt=True)
            return web.json_response({"detail": "not signed"}, status=401, headers={"Date": date})
        if self.answers:
            status, more, answer = self.answers.pop(0)
            return web.json_response(answer, status=status, headers=more)
        key = headers[callback.IDEMPOTENCY_KEY]
        known = self.by_key.setdefault(key, body)
        if self.hangs:
            self.hanging.set()
            await asyncio.Event().wait()
        if known != body:
            return web.json_response({"type": "idempotency-key-reused"}, status=409)
        is_new = sum(headers[callback.IDEMPOTENCY_KEY] == key for headers, _ in self.requests) == 1
        return web.json_response({"id": "1", "vimId": None, "status": "STORED"}, status=201 if is_new else 200)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.requests]

    def kubeconfig(self, number: int = -1) -> str:
        return base64.b64decode(self.bodies[number]["credentials"]["kubeconfig"]).decode()
