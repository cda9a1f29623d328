"""Which class stands behind which port; alone in importing adapters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kubevnfm_bus.port import MessageBus
from kubevnfm_clients.ports import Instances
from kubevnfm_kit.clock import Clock, SystemClock
from kubevnfm_kit.http import add_health, serving
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import DocumentStore
from kubevnfm_worker import Outbox, OutboxRelay

from kubevnfm_credentials_receiver.adapters.failures import Failures
from kubevnfm_credentials_receiver.adapters.http import CallbackApi
from kubevnfm_credentials_receiver.domain.proof import master_keys
from kubevnfm_credentials_receiver.nonces import Nonces
from kubevnfm_credentials_receiver.receiver import COLLECTION, Receiver
from kubevnfm_credentials_receiver.settings import Settings

SERVICE = "credentials-receiver"


@dataclass(frozen=True)
class CredentialsReceiver:
    """The running service."""

    port: int
    """Where call-backs are taken."""


@asynccontextmanager
async def credentials_receiver(
    settings: Settings,
    *,
    bus: MessageBus,
    store: DocumentStore,
    key_ring: KeyRing,
    instances: Instances,
    clock: Clock | None = None,
) -> AsyncIterator[CredentialsReceiver]:
    """Yield the service, serving; leaving the block closes it."""
    clock = clock or SystemClock()
    nonces = Nonces(store, clock)
    await nonces.prepare()
    async with OutboxRelay(store, bus, collections=[COLLECTION]) as relay:
        receiver = Receiver(
            store=store,
            outbox=Outbox(store, relay, key_ring),
            instances=instances,
            key_ring=key_ring,
            clock=clock,
        )
        await receiver.prepare()
        app = CallbackApi(
            receiver,
            nonces,
            Failures(a_minute=settings.failures_a_minute),
            clock,
            master_keys=master_keys(settings.master_keys.get_secret_value()),
            token=settings.internal_token.get_secret_value(),
        ).app()

        async def ready() -> bool:
            return await store.is_ready() and await bus.is_ready()

        add_health(app, ready)
        purging = asyncio.create_task(nonces.purge_forever(), name="nonce-purge")
        try:
            async with serving(app, host=settings.host, port=settings.port, tls=settings.server_tls) as port:
                yield CredentialsReceiver(port)
        finally:
            purging.cancel()
            await asyncio.gather(purging, return_exceptions=True)
