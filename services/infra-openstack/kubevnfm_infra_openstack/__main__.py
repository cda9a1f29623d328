"""Runs infra-openstack alone: settings from the environment, RabbitMQ and MongoDB behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from kubevnfm_bus import RabbitBus
from kubevnfm_clients import HttpPackages, HttpVimDirectory, internal_session
from kubevnfm_kit.http import add_health, serving
from kubevnfm_kit.logging import configure_logging
from kubevnfm_kit.run import run_until_signal
from kubevnfm_secrets import KeyRing
from kubevnfm_store import MongoStore

from kubevnfm_infra_openstack.settings import Settings
from kubevnfm_infra_openstack.wiring import SERVICE, infra_openstack


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[int]:
    """Yield the port of the health endpoints, with the service running on its servers."""
    ring = KeyRing.from_text(settings.keys.get_secret_value())
    token = settings.internal_token.get_secret_value()
    async with (
        internal_session(settings.internal_tls) as session,
        MongoStore.connect(settings.mongo_url.get_secret_value(), settings.mongo_database) as store,
        RabbitBus.connect(settings.amqp_url.get_secret_value(), service=SERVICE, key_ring=ring) as bus,
        infra_openstack(
            settings,
            bus=bus,
            store=store,
            key_ring=ring,
            packages=HttpPackages(settings.lcm_api_url, token, session, cache_dir=settings.cache_dir),
            vims=HttpVimDirectory(settings.vim_registry_url, token, session),
        ),
    ):

        async def ready() -> bool:
            return await bus.is_ready() and await store.is_ready()

        app = web.Application()
        add_health(app, ready)
        async with serving(app, host=settings.health_host, port=settings.health_port, tls=settings.server_tls) as port:
            yield port


if __name__ == "__main__":
    configured = Settings.read_or_exit()
    configure_logging(SERVICE, level=configured.log_level, form=configured.log_form)
    run_until_signal(service(configured))
