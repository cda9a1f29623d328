"""The whole of lcm-api: its subjects' parts, one outbox, one worker and the gateway."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from kubevnfm_access.wiring import opened_gate, proxies, warn_of_clear_text
from kubevnfm_clients.outbound import AddressRules, outbound_session
from kubevnfm_clients.ports import NodeLogs, Vims
from kubevnfm_events.lcm import DeliverNotification
from kubevnfm_kit.connections import DEFAULT_LIMITS, Limits
from kubevnfm_kit.http import serving
from kubevnfm_kit.run import background
from kubevnfm_worker import Outbox, OutboxRelay
from kubevnfm_worker.backends import Backends

from kubevnfm_lcm_api.gateway.app import Services, make_app
from kubevnfm_lcm_api.granting.wiring import external_grants
from kubevnfm_lcm_api.http.context import HttpContext
from kubevnfm_lcm_api.lifecycle import wiring as lifecycle
from kubevnfm_lcm_api.lifecycle.domain import instance, occurrence
from kubevnfm_lcm_api.lifecycle.http.context import LifecycleServices
from kubevnfm_lcm_api.lifecycle.package_users import PackageUsers
from kubevnfm_lcm_api.notifications import wiring as notifications
from kubevnfm_lcm_api.notifications.delivery import NOTIFICATIONS
from kubevnfm_lcm_api.notifications.http.context import NotificationServices
from kubevnfm_lcm_api.notifications.http.events import stream_operation
from kubevnfm_lcm_api.packages import catalogue
from kubevnfm_lcm_api.packages import wiring as packages
from kubevnfm_lcm_api.packages.http.context import PackageServices
from kubevnfm_lcm_api.settings import Settings

SERVICE = "lcm-api"
_DEADLINES_EVERY_S = 30.0
_COLLECTIONS_WITH_OUTBOX = (instance.COLLECTION, occurrence.COLLECTION, catalogue.COLLECTION, NOTIFICATIONS)
_INDEXES = {**lifecycle.INDEXES, **packages.INDEXES, **notifications.INDEXES}


@dataclass(frozen=True)
class LcmApi:
    """The running service."""

    port: int
    """The port on which the gateway listens."""


@asynccontextmanager
async def lcm_api(
    settings: Settings, backends: Backends, *, vims: Vims, node_logs: NodeLogs, limits: Limits = DEFAULT_LIMITS
) -> AsyncIterator[LcmApi]:
    """Yield the service, consuming and serving; leaving the block drains and closes it."""
    warn_of_clear_text(settings, settings.host, is_tls=bool(settings.server_tls))
    rules = AddressRules.from_text(settings.allowed_networks)
    trusted = ssl.create_default_context(cafile=settings.outbound_ca_file)
    await backends.ensure_indexes(_INDEXES)
    bus, store, ring, clock = backends.bus, backends.store, backends.key_ring, backends.clock
    async with (
        opened_gate(settings, clock) as gate,
        outbound_session(rules, tls=trusted) as outbound,
        OutboxRelay(store, bus, collections=_COLLECTIONS_WITH_OUTBOX) as relay,
        backends.worker(SERVICE, lease_s=settings.lease_s) as worker,
        AsyncExitStack() as stack,
    ):
        outbox = Outbox(store, relay, ring)
        package_parts = packages.package_parts(
            settings, backends, users=PackageUsers(store), outbox=outbox, session=outbound
        )
        await package_parts.onboarding.recover()
        events = await stack.enter_async_context(
            notifications.told(settings, backends, outbox=outbox, session=outbound)
        )
        grants = await stack.enter_async_context(
            external_grants(
                settings,
                descriptors=package_parts.catalogue,
                announcements=events.notifications,
                key_ring=ring,
                clock=clock,
            )
        )
        parts = lifecycle.lifecycle_parts(
            backends, outbox=outbox, grants=grants, packages=package_parts.catalogue, vims=vims
        )
        parts.handle(worker)
        package_parts.handle(worker)
        worker.handle_direct(DeliverNotification, events.notifications.deliver_notification)
        await worker.start()
        await parts.start(bus)
        await events.start()
        await package_parts.start(bus)
        services = Services(
            lifecycle=LifecycleServices(
                engine=parts.engine,
                instances=parts.instances,
                instantiate=parts.instantiate,
                terminate=parts.terminate,
                tasks=parts.tasks,
                progress=parts.progress,
                node_logs=node_logs,
                operation_events=stream_operation,
            ),
            packages=PackageServices(
                package_parts.catalogue, package_parts.onboarding, package_parts.files, package_parts.limit_bytes
            ),
            notifications=NotificationServices(events.subscriptions, events.feed),
            vims=vims,
        )
        context = HttpContext(
            store=store,
            ring=ring,
            clock=clock,
            public_url=settings.public_url,
            internal_token=settings.internal_token.get_secret_value(),
            page_size=settings.page_size,
        )
        app = make_app(services, context, backends.is_ready, gate=gate, proxies=proxies(settings))
        async with (
            background(
                deadlines=parts.engine.watch_deadlines(every_s=_DEADLINES_EVERY_S),
                uploads=package_parts.onboarding.watch_uploads(),
            ),
            serving(app, host=settings.host, port=settings.port, tls=settings.server_tls, limits=limits) as port,
        ):
            yield LcmApi(port)
