"""Which class stands behind which port; alone in importing adapters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from kubevnfm_bus.port import MessageBus
from kubevnfm_clients.ports import CredentialsStore, VimUsers
from kubevnfm_events.vim import DeregisterVim, RegisterVim
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.http import add_health, serving
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import DocumentStore
from kubevnfm_worker import CommandWorker, Outbox, OutboxRelay

from kubevnfm_vim_registry.adapters.kubernetes import KubernetesProbe
from kubevnfm_vim_registry.adapters.openstack import OpenstackProbe
from kubevnfm_vim_registry.api import make_app
from kubevnfm_vim_registry.domain.vim import COLLECTION
from kubevnfm_vim_registry.registry import INDEXES, NEWS, Registry
from kubevnfm_vim_registry.settings import Settings

SERVICE = "vim-registry"


@dataclass(frozen=True)
class VimRegistry:
    """The running service."""

    port: int
    """Where the internal API listens."""


@asynccontextmanager
async def vim_registry(
    settings: Settings,
    *,
    bus: MessageBus,
    store: DocumentStore,
    key_ring: KeyRing,
    users: VimUsers,
    credentials: CredentialsStore,
) -> AsyncIterator[VimRegistry]:
    """Yield the service, consuming, serving and watching; leaving the block drains and closes it."""
    clock = SystemClock()
    await store.ensure_indexes(COLLECTION, INDEXES)
    with ThreadPoolExecutor(settings.monitor_parallel, thread_name_prefix="keystone") as threads:
        async with (
            aiohttp.ClientSession() as session,
            OutboxRelay(store, bus, collections=[COLLECTION, NEWS]) as relay,
            CommandWorker(service=SERVICE, bus=bus, store=store, key_ring=key_ring, lease_s=settings.lease_s) as worker,
        ):
            registry = Registry(
                store=store,
                outbox=Outbox(store, relay, key_ring),
                probes={
                    "kubernetes": KubernetesProbe(session, key_ring, timeout_s=settings.probe_timeout_s),
                    "openstack": OpenstackProbe(key_ring, threads, timeout_s=settings.probe_timeout_s),
                },
                users=users,
                credentials=credentials,
                ring=key_ring,
                clock=clock,
                probe_timeout_s=settings.probe_timeout_s,
            )
            worker.handle(RegisterVim, registry.register_vim)
            worker.handle(DeregisterVim, registry.deregister_vim)
            await worker.start()
            await bus.consume_events("vim-registry.credentials", ["credentials.*"], registry.take_credentials)

            async def ready() -> bool:
                return await store.is_ready() and await bus.is_ready()

            app = make_app(registry, key_ring, token=settings.internal_token.get_secret_value())
            add_health(app, ready)
            watching = asyncio.create_task(
                registry.watch(every_s=settings.monitor_every_s, parallel=settings.monitor_parallel), name="vim-watch"
            )
            try:
                async with serving(app, host=settings.host, port=settings.port) as port:
                    yield VimRegistry(port)
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
