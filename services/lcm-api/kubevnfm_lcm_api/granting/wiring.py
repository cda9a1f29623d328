"""The authority that grants operations: an NFVO if one is configured."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubevnfm_kit.client_session import client_session
from kubevnfm_kit.http_client import HttpConnector
from kubevnfm_kit.tls import client_context
from kubevnfm_worker.backends import Backends

from kubevnfm_lcm_api.granting.adapters.nfvo import HttpNfvo, NfvoCredentials
from kubevnfm_lcm_api.granting.external import Announcements, Descriptors, ExternalGrants
from kubevnfm_lcm_api.granting.settings import GrantSettings


@asynccontextmanager
async def external_grants(
    settings: GrantSettings, backends: Backends, *, descriptors: Descriptors, announcements: Announcements, root: str
) -> AsyncIterator[ExternalGrants | None]:
    """Yield the grants of an NFVO; None: the local policy grants everything. ``root``: of links to this VNFM."""
    if settings.nfvo_url is None:
        yield None
        return
    credentials = NfvoCredentials()
    if settings.nfvo_auth != "none":
        token_url = settings.nfvo_token_url if settings.nfvo_auth == "oauth2" else None
        credentials = NfvoCredentials(settings.nfvo_user, settings.nfvo_password.get_secret_value(), token_url)
    async with (
        client_context(settings.nfvo_tls) as context,
        client_session(connector=HttpConnector(ssl=context)) as session,
    ):
        yield ExternalGrants(
            nfvo=HttpNfvo(
                session,
                url=settings.nfvo_url,
                credentials=credentials,
                call_timeout_s=settings.nfvo_call_timeout_s,
            ),
            descriptors=descriptors,
            announcements=announcements,
            ring=backends.key_ring,
            clock=backends.clock,
            root=root,
            poll_s=settings.nfvo_poll_s,
            timeout_s=settings.nfvo_timeout_s,
            call_timeout_s=settings.nfvo_call_timeout_s,
        )
