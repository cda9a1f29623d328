"""An operator's notifier of faults of servers, over HTTP, with the two calls that Tacker's management driver makes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Self

from aiohttp import web
from aiohttp.test_utils import TestServer
from patience import until

_ALARMS: Final = "/notifier/v2/{tenant}/servers/{server}/alarms"


@dataclass
class ServerNotifier:
    """Registers servers; a test can have it answer otherwise, or not at all."""

    url: str = ""
    alarms: dict[str, tuple[str, str, Any]] = field(default_factory=dict)
    """Tenant, server and body by the id of the alarm."""
    posts: list[str] = field(default_factory=list)
    """The servers of all registrations that were received, in order."""
    answer: Callable[[], Awaitable[web.StreamResponse | None]] | None = None
    """Answers a registration after it was carried out; None: as usual."""
    refusal: int | None = None
    """The status of every answer; nothing is carried out then."""
    knows_keys: bool = False
    """Whether a registration with the key of an earlier one is that one."""
    keys: dict[str, str] = field(default_factory=dict)

    @classmethod
    @asynccontextmanager
    async def listening(cls) -> AsyncIterator[Self]:
        """Yield one on a free port."""
        notifier = cls()
        app = web.Application()
        app.router.add_post(_ALARMS, notifier._register)
        app.router.add_delete(f"{_ALARMS}/{{alarm}}", notifier._remove)
        async with TestServer(app) as server:
            notifier.url = str(server.make_url("/notifier"))
            yield notifier

    @property
    def servers(self) -> list[str]:
        """The servers that are registered, sorted."""
        return sorted(server for _, server, _ in self.alarms.values())

    async def has(self, *servers: str) -> None:
        """Return once exactly these servers are registered, each once."""

        async def found() -> bool | None:
            return True if self.servers == sorted(servers) else None

        await until(found, timeout_s=60)

    async def _register(self, request: web.Request) -> web.StreamResponse:
        tenant, server = request.match_info["tenant"], request.match_info["server"]
        self.posts.append(server)
        if self.refusal is not None:
            return web.json_response({}, status=self.refusal)
        key = request.headers["Idempotency-Key"]
        alarm_id = self.keys.get(key) if self.knows_keys else None
        if alarm_id is None:
            alarm_id = f"alarm-{len(self.posts)}"
            self.alarms[alarm_id] = (tenant, server, await request.json())
            self.keys[key] = alarm_id
        other = None if self.answer is None else await self.answer()
        return other if other is not None else web.json_response({"alarm_id": alarm_id}, status=201)

    async def _remove(self, request: web.Request) -> web.Response:
        if self.refusal is not None:
            return web.Response(status=self.refusal)
        asked = (request.match_info["tenant"], request.match_info["server"])
        found = self.alarms.get(request.match_info["alarm"])
        if found is None or found[:2] != asked:
            return web.Response(status=404)
        del self.alarms[request.match_info["alarm"]]
        return web.Response(status=204)
