"""Runs credentials-receiver alone: settings from the environment, RabbitMQ and MongoDB behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubevnfm_bus import RabbitBus
from kubevnfm_clients import HttpInstances, internal_session
from kubevnfm_kit.logging import configure_logging
from kubevnfm_kit.run import run_until_signal
from kubevnfm_secrets import KeyRing
from kubevnfm_store import MongoStore

from kubevnfm_credentials_receiver.settings import Settings
from kubevnfm_credentials_receiver.wiring import SERVICE, CredentialsReceiver, credentials_receiver


@asynccontextmanager
async def standalone(settings: Settings) -> AsyncIterator[CredentialsReceiver]:
    """Yield the service on its servers."""
    ring = KeyRing.from_text(settings.keys.get_secret_value())
    token = settings.internal_token.get_secret_value()
    async with (
        internal_session(settings.internal_tls) as session,
        MongoStore.connect(settings.mongo_url.get_secret_value(), settings.mongo_database) as store,
        RabbitBus.connect(settings.amqp_url.get_secret_value(), service=SERVICE, key_ring=ring) as bus,
        credentials_receiver(
            settings,
            bus=bus,
            store=store,
            key_ring=ring,
            instances=HttpInstances(settings.lcm_api_url, token, session),
        ) as running,
    ):
        yield running


if __name__ == "__main__":
    configured = Settings.read_or_exit()
    configure_logging(SERVICE, level=configured.log_level, form=configured.log_form)
    run_until_signal(standalone(configured))
