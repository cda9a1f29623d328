"""The HTTP session for calls of the other services."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from kubevnfm_kit import live_spans
from kubevnfm_kit.http_client import HttpConnector
from kubevnfm_kit.request_ids import send_request_id
from kubevnfm_kit.tls import LOOK_EVERY_S, ClientTls, client_context


@dataclass(frozen=True)
class Peers:
    """Tokens and session for calls of other services: ``HttpVims(url, *peers.credentials("vim-registry"))``."""

    token_for: Callable[[str], str]
    """Returns the token of a service."""
    session: aiohttp.ClientSession

    def credentials(self, service: str) -> tuple[str, aiohttp.ClientSession]:
        """Return token and session for calls of a service."""
        return self.token_for(service), self.session


@asynccontextmanager
async def internal_session(
    tls: ClientTls, *, look_every_s: float = LOOK_EVERY_S
) -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a session, whose calls name the request that they follow from; for ``https`` addresses it trusts the CAs and presents the certificate of ``tls``. Plain ``http`` works as well."""
    middlewares = [send_request_id, *([live_spans.send_parent] if live_spans.is_on() else [])]
    async with (
        client_context(tls, look_every_s=look_every_s) as context,
        aiohttp.ClientSession(connector=HttpConnector(ssl=context), middlewares=middlewares) as session,
    ):
        yield session
