"""Runs lcm-api alone: settings from the environment, RabbitMQ and MongoDB behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubevnfm_bus import RabbitBus
from kubevnfm_clients import HttpNodeLogs, HttpVims, internal_session
from kubevnfm_kit.logging import configure_logging
from kubevnfm_kit.run import run_until_signal
from kubevnfm_secrets import KeyRing
from kubevnfm_store import MongoStore

from kubevnfm_lcm_api.settings import Settings
from kubevnfm_lcm_api.wiring import SERVICE, LcmApi, lcm_api


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[LcmApi]:
    """Yield the service on its servers."""
    ring = KeyRing.from_text(settings.keys.get_secret_value())
    token = settings.internal_token.get_secret_value()
    async with (
        internal_session(settings.internal_tls) as session,
        MongoStore.connect(settings.mongo_url, settings.mongo_database) as store,
        RabbitBus.connect(settings.amqp_url, service=SERVICE, key_ring=ring) as bus,
        lcm_api(
            settings,
            bus=bus,
            store=store,
            key_ring=ring,
            vims=HttpVims(settings.vim_registry_url, token, session),
            node_logs=HttpNodeLogs(settings.mgmt_executor_url, token, session),
        ) as running,
    ):
        yield running


if __name__ == "__main__":
    configured = Settings.read_or_exit()
    configure_logging(SERVICE, level=configured.log_level)
    run_until_signal(service(configured))
