"""Who grants operations: an NFVO, where one is set."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.tls import client_context
from kubevnfm_secrets import KeyRing

from kubevnfm_lcm_api.granting.adapters.nfvo import HttpNfvo, NfvoCredentials
from kubevnfm_lcm_api.granting.external import Announcements, Descriptors, ExternalGrants
from kubevnfm_lcm_api.settings import Settings


@asynccontextmanager
async def external_grants(
    settings: Settings, *, descriptors: Descriptors, announcements: Announcements, key_ring: KeyRing, clock: Clock
) -> AsyncIterator[ExternalGrants | None]:
    """Yield who asks the NFVO; None: the local policy grants everything."""
    if settings.nfvo_url is None:
        yield None
        return
    shown = NfvoCredentials()
    if settings.nfvo_auth != "none":
        token_url = settings.nfvo_token_url if settings.nfvo_auth == "oauth2" else None
        shown = NfvoCredentials(settings.nfvo_user, settings.nfvo_password.get_secret_value(), token_url)
    scheme = "https" if settings.server_tls else "http"
    async with (
        client_context(settings.nfvo_tls) as context,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context), trust_env=False) as session,
    ):
        nfvo = HttpNfvo(session, url=settings.nfvo_url, shown=shown, call_timeout_s=settings.nfvo_call_timeout_s)
        yield ExternalGrants(
            nfvo=nfvo,
            descriptors=descriptors,
            announcements=announcements,
            ring=key_ring,
            clock=clock,
            root=settings.public_url or f"{scheme}://{settings.host}:{settings.port}",
            poll_s=settings.nfvo_poll_s,
            timeout_s=settings.nfvo_timeout_s,
            call_timeout_s=settings.nfvo_call_timeout_s,
        )
