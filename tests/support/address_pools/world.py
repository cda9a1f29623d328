"""The owner of address pools and a gateway with their API, both serving HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import aiohttp
from callers.documented import Documented, an_app
from healthy import healthy
from kubevnfm_access.gate import Gate
from kubevnfm_access.middleware import Proxies
from kubevnfm_kit.http import serving
from kubevnfm_lcm_api.gateway.app import make_app
from kubevnfm_lcm_api.gateway.openapi.document import make_document
from kubevnfm_lcm_api.http.context import HttpContext
from kubevnfm_secrets import KeyRing
from kubevnfm_store.sqlite.store import SqliteStore
from worlds.lcm_world import Answer
from worlds.set_clock import SetClock

from address_pools import api
from address_pools.client import HttpAddressPools
from address_pools.owner import AddressPools, Router, internal_api

TOKEN: Final = "internal-token-of-the-tests"


@dataclass(frozen=True)
class PoolWorld:
    """The running services."""

    url: str
    session: aiohttp.ClientSession
    pools: AddressPools
    router: Router
    clock: SetClock
    document: Documented

    async def call(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Call the gateway; the answer is checked against the OpenAPI document of address pools."""
        async with self.session.request(method, f"{self.url}{path}", json=body, headers=headers) as response:
            raw = await response.read()
            if path.startswith(api.DOCUMENT.prefix):
                self.document.check(method, path, response.status, response.headers, raw)
            return Answer(response.status, response.headers, raw)


@cache
def _document() -> Documented:
    nothing: Any = None
    app = an_app(partial(api.add_to, pools=nothing))
    return Documented(make_document(app, api.DOCUMENT, version="tested"))


@asynccontextmanager
async def pool_world(folder: Path) -> AsyncIterator[PoolWorld]:
    """Yield the services, each with its own place for what it stores."""
    clock, router, ring = SetClock(datetime(2026, 1, 1, tzinfo=UTC)), Router(), KeyRing.from_text(KeyRing.new_key())

    async with SqliteStore.open(folder / "store.db") as store, aiohttp.ClientSession() as session:
        pools = AddressPools(store, router, clock)
        async with serving(internal_api(pools, token=TOKEN), host="127.0.0.1", port=0) as owner_port:
            client = HttpAddressPools(f"http://127.0.0.1:{owner_port}", TOKEN, session)
            context = HttpContext(
                store=store, ring=ring, clock=clock, public_url=None, internal_token=TOKEN, page_size=100
            )
            subjects = [partial(api.add_to, pools=client)]
            app = make_app(subjects, context, healthy, {}, gate=Gate([]), proxies=Proxies())
            async with serving(app, host="127.0.0.1", port=0) as port:
                yield PoolWorld(f"http://127.0.0.1:{port}", session, pools, router, clock, _document())
