"""The HTTP session for calls of the other services."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import aiohttp
from kubevnfm_kit.tls import LOOK_EVERY_S, ClientTls, client_context


class Peers(NamedTuple):
    """Session and token for calls of other services: ``HttpVims(url, *peers)``."""

    token: str
    """The internal token, the same in every service."""
    session: aiohttp.ClientSession


@asynccontextmanager
async def internal_session(
    tls: ClientTls, *, look_every_s: float = LOOK_EVERY_S
) -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a session; for ``https`` addresses it trusts the CAs and presents the certificate of ``tls``. Plain ``http`` works as well."""
    async with (
        client_context(tls, look_every_s=look_every_s) as context,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
    ):
        yield session
