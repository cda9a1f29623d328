"""The HTTP sessions for calls of the other services, and of servers that the settings name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from kubevnfm_kit import live_spans
from kubevnfm_kit.client_session import client_session
from kubevnfm_kit.http_client import HttpConnector
from kubevnfm_kit.proxies import DIRECT
from kubevnfm_kit.request_ids import send_request_id
from kubevnfm_kit.tls import LOOK_EVERY_S, ClientTls, client_context
from kubevnfm_proxies.rule import Proxies


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
    """Yield a session, whose calls name the request that they follow from, and pass no proxy; for ``https`` addresses it trusts the CAs and presents the certificate of ``tls``. Plain ``http`` works as well."""
    async with traced_session(tls, proxies=DIRECT, look_every_s=look_every_s) as session:
        yield session


@asynccontextmanager
async def traced_session(
    tls: ClientTls, *, proxies: Proxies | None = None, look_every_s: float = LOOK_EVERY_S
) -> AsyncIterator[aiohttp.ClientSession]:
    """Yield such a session for servers that are not ours. ``proxies``: None: those of the environment."""
    middlewares = [send_request_id, *([live_spans.send_parent] if live_spans.is_on() else [])]
    async with (
        client_context(tls, look_every_s=look_every_s) as context,
        client_session(connector=HttpConnector(ssl=context), proxies=proxies, middlewares=middlewares) as session,
    ):
        yield session
