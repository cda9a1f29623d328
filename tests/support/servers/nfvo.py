"""An NFVO's granting interface (SOL003 clause 9): a small HTTP server that records requests; tests set its decision."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web

PROBLEM: Final = {
    "type": "urn:no-room",
    "title": "No room",
    "status": 403,
    "detail": "the quota of the site is used up",
}


@dataclass
class StubNfvo:
    """Records the requests, and answers as its attributes say."""

    url: str = ""
    is_refusing: bool = False
    undecided: int = 0
    """The number of polls that are answered with 202 before the decision."""
    faults: int = 0
    """The number of requests that are answered with 503 first."""
    status: int | None = None
    """If set, the status of every response."""
    location: str | None = None
    """The ``Location`` of a 202, in place of the grant's URI."""
    more: dict[str, Any] = field(default_factory=dict)
    """Additional attributes of the grants."""
    wants: str | None = None
    """The required Authorization header; None accepts every request."""
    asked: Callable[[], None] = lambda: None
    """Called for each request for a grant."""
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)
    """Requests are answered only while this is set."""

    requests: list[dict[str, Any]] = field(default_factory=list)
    polls: list[str] = field(default_factory=list)
    versions: set[str] = field(default_factory=set)
    token_forms: list[dict[str, str]] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a request has arrived."""

    @classmethod
    @asynccontextmanager
    async def listening(cls) -> AsyncIterator[StubNfvo]:
        """Yield an NFVO that grants at once."""
        nfvo = cls()
        nfvo.goes_on.set()
        app = web.Application()
        app.add_routes(
            [
                web.post("/nfvo/grant/v1/grants", nfvo._ask),
                web.get("/nfvo/grant/v1/grants/{id}", nfvo._look),
                web.post("/token", nfvo._give_token),
            ]
        )
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            nfvo.url = f"http://127.0.0.1:{runner.addresses[0][1]}/nfvo"
            yield nfvo
        finally:
            await runner.cleanup()

    @property
    def token_url(self) -> str:
        return self.url.removesuffix("/nfvo") + "/token"

    async def _ask(self, request: web.Request) -> web.Response:
        self.asked()
        body = await request.json()
        self.requests.append(body)
        self.versions.add(request.headers.get("Version", ""))
        self.came.set()
        await self.goes_on.wait()
        if (obstacle := self._obstacle(request)) is not None:
            return obstacle
        grant_id = f"grant-{len(self.requests)}"
        uri = f"{self.url}/grant/v1/grants/{grant_id}"
        if self.undecided:
            return web.Response(status=202, headers={"Location": self.location or uri})
        return self._decision(grant_id, body, 201)

    async def _look(self, request: web.Request) -> web.Response:
        grant_id = request.match_info["id"]
        self.polls.append(grant_id)
        if (obstacle := self._obstacle(request)) is not None:
            return obstacle
        if self.undecided:
            self.undecided -= 1
            return web.Response(status=202)
        return self._decision(grant_id, self.requests[-1], 200)

    def _obstacle(self, request: web.Request) -> web.Response | None:
        if self.wants is not None and request.headers.get("Authorization") != self.wants:
            return web.Response(status=401)
        if self.faults:
            self.faults -= 1
            return web.Response(status=503)
        if self.status is not None:
            return web.Response(status=self.status, headers={"Location": f"{self.url}/grant/v1/grants/grant-1"})
        return None

    def _decision(self, grant_id: str, request: dict[str, Any], success: int) -> web.Response:
        if self.is_refusing:
            return web.json_response(PROBLEM, status=403, content_type="application/problem+json")
        uri = f"{self.url}/grant/v1/grants/{grant_id}"
        grant = {
            "id": grant_id,
            "vnfInstanceId": request["vnfInstanceId"],
            "vnfLcmOpOccId": request["vnfLcmOpOccId"],
            "_links": {**request["_links"], "self": {"href": uri}},
            **self.more,
        }
        return web.json_response(grant, status=success, headers={"Location": uri})

    async def _give_token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.token_forms.append({**form, "authorization": request.headers.get("Authorization", "")})
        return web.json_response({"access_token": "token-1", "token_type": "Bearer", "expires_in": 3600})
