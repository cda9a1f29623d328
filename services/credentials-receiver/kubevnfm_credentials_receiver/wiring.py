"""Which class stands behind which port; alone in importing adapters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kubevnfm_access.settings import AccessSettings
from kubevnfm_access.wiring import opened_access, proxies, warn_of_clear_text
from kubevnfm_clients.callback import master_keys
from kubevnfm_clients.ports import AwaitedCallbacks
from kubevnfm_kit.run import background, repeat
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.outbox import Outbox

from kubevnfm_credentials_receiver.adapters.failures import Failures
from kubevnfm_credentials_receiver.adapters.http import CallbackApi
from kubevnfm_credentials_receiver.nonces import Nonces
from kubevnfm_credentials_receiver.receiver import COLLECTION, Receiver
from kubevnfm_credentials_receiver.settings import Settings

SERVICE = "credentials-receiver"
_PURGE_EVERY_S = 60.0


@dataclass(frozen=True)
class CredentialsReceiver:
    """The running service."""

    port: int
    """The port for call-backs."""


@asynccontextmanager
async def credentials_receiver(
    settings: Settings, backends: Backends, *, awaiting: AwaitedCallbacks, access: AccessSettings | None = None
) -> AsyncIterator[CredentialsReceiver]:
    """Yield the service, serving; leaving the block closes it.

    ``access``: how operators authenticate, if not as ``settings`` say.
    """
    access = access or settings
    warn_of_clear_text(access, settings.host, is_tls=bool(settings.server_tls))
    store, ring, clock = backends.store, backends.key_ring, backends.clock
    nonces = Nonces(store, clock)
    await nonces.prepare()
    async with (
        opened_access(access, clock) as ways_in,
        backends.relay([COLLECTION]) as relay,
    ):
        receiver = Receiver(
            store=store, outbox=Outbox(store, relay, ring), awaiting=awaiting, key_ring=ring, clock=clock
        )
        await receiver.prepare()
        app = CallbackApi(
            receiver,
            nonces,
            Failures(a_minute=settings.failures_a_minute),
            clock,
            master_keys=master_keys(settings.master_keys.get_secret_value()),
            credentials_token=settings.credentials_token.get_secret_value(),
            gate=ways_in.gate,
            proxies=proxies(access, settings.host),
            metrics=backends.metrics,
        ).app()
        async with (
            background(nonce_purge=repeat(nonces.purge, every_s=_PURGE_EVERY_S)),
            backends.serving(app, SERVICE, host=settings.host, port=settings.port, tls=settings.server_tls) as port,
        ):
            yield CredentialsReceiver(port)
