"""Which class stands behind which port; alone in importing adapters."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from kubevnfm_access.wiring import opened_gate, proxies, warn_of_clear_text
from kubevnfm_bus.port import MessageBus
from kubevnfm_clients.outbound import AddressRules, outbound_session
from kubevnfm_clients.ports import NodeLogs, Vims
from kubevnfm_events.lcm import AdvanceOperation, DeliverNotification, FetchPackage, OnboardPackage, RemoveRemains
from kubevnfm_kit.clock import Clock, SystemClock
from kubevnfm_kit.connections import DEFAULT_LIMITS, Limits
from kubevnfm_kit.http import serving
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Index
from kubevnfm_worker import CommandWorker, Outbox, OutboxRelay

from kubevnfm_lcm_api.gateway.app import make_app
from kubevnfm_lcm_api.gateway.context import Gateway
from kubevnfm_lcm_api.granting.wiring import external_grants
from kubevnfm_lcm_api.lifecycle import progress
from kubevnfm_lcm_api.lifecycle.domain import instance, occurrence
from kubevnfm_lcm_api.lifecycle.engine import Engine
from kubevnfm_lcm_api.lifecycle.instances import Instances
from kubevnfm_lcm_api.lifecycle.package_users import PackageUsers
from kubevnfm_lcm_api.lifecycle.progress import Progress
from kubevnfm_lcm_api.lifecycle.requests.acceptance import Acceptance
from kubevnfm_lcm_api.lifecycle.requests.instantiate import Instantiate
from kubevnfm_lcm_api.lifecycle.requests.tasks import Tasks
from kubevnfm_lcm_api.lifecycle.requests.terminate import Terminate
from kubevnfm_lcm_api.notifications import delivery as notifications
from kubevnfm_lcm_api.notifications.wiring import INDEXES, told
from kubevnfm_lcm_api.packages import catalogue as packages
from kubevnfm_lcm_api.packages.adapters.files import DiskPackageFiles
from kubevnfm_lcm_api.packages.adapters.signatures import PackageSignatures
from kubevnfm_lcm_api.packages.adapters.sources import HttpPackageSources
from kubevnfm_lcm_api.packages.catalogue import Packages
from kubevnfm_lcm_api.packages.onboarding import Onboarding
from kubevnfm_lcm_api.settings import Settings

SERVICE = "lcm-api"
_DEADLINES_EVERY_S = 30.0
REPLIES = (
    "infra.resources.*",
    "mgmt.phase.done",
    "mgmt.instance.forgotten",
    "vim.registered",
    "vim.deregistered",
    "service.command.failed",
    "lcm.remains.removed",
)
"""The events that answer steps."""
_COLLECTIONS = (
    instance.COLLECTION,
    occurrence.COLLECTION,
    packages.COLLECTION,
    notifications.NOTIFICATIONS,
)
_INDEXES = {
    instance.COLLECTION: [
        Index(["createdAt"]),
        Index(["vnfdId"]),
        Index(["vnfInstanceName"]),
        Index(["internal/vimIds"]),
        Index(["internal/dstVnfdId"]),
    ],
    occurrence.COLLECTION: [
        Index(["startTime"]),
        Index(["vnfInstanceId"]),
        Index(["operationState"]),
        Index(["internal/deadline"]),
    ],
    packages.COLLECTION: [
        Index(["createdAt"]),
        Index(["vnfdId"], unique=True),
        Index(["onboardingState"]),
        Index(["usageState"]),
    ],
    **INDEXES,
    progress.COLLECTION: [Index(["operationId"])],
}


@dataclass(frozen=True)
class LcmApi:
    """The running service."""

    port: int
    """Where the gateway listens."""


@asynccontextmanager
async def lcm_api(
    settings: Settings,
    *,
    bus: MessageBus,
    store: DocumentStore,
    key_ring: KeyRing,
    vims: Vims,
    node_logs: NodeLogs,
    limits: Limits = DEFAULT_LIMITS,
    clock: Clock | None = None,
) -> AsyncIterator[LcmApi]:
    """Yield the service, consuming and serving; leaving the block drains and closes it."""
    clock = clock or SystemClock()
    warn_of_clear_text(settings, settings.host, is_tls=bool(settings.server_tls))
    rules = AddressRules.from_text(settings.allowed_networks)
    signatures = PackageSignatures(anchors=settings.package_trust_anchors, is_required=settings.require_signed_packages)
    trusted = ssl.create_default_context(cafile=settings.outbound_ca_file)
    for collection, indexes in _INDEXES.items():
        await store.ensure_indexes(collection, indexes)
    async with (
        opened_gate(settings, clock) as gate,
        outbound_session(rules, tls=trusted) as outbound,
        OutboxRelay(store, bus, collections=_COLLECTIONS) as relay,
        CommandWorker(service=SERVICE, bus=bus, store=store, key_ring=key_ring, lease_s=settings.lease_s) as worker,
        AsyncExitStack() as ending,
    ):
        outbox = Outbox(store, relay, key_ring)
        files = DiskPackageFiles(settings.data_dir, signatures)
        package_service = Packages(
            store=store,
            outbox=outbox,
            files=files,
            users=PackageUsers(store),
            ring=key_ring,
            clock=clock,
        )
        package_limit_bytes = int(settings.package_limit_gib * 2**30)
        onboarding = Onboarding(
            packages=package_service,
            store=store,
            outbox=outbox,
            files=files,
            sources=HttpPackageSources(outbound, ring=key_ring, longest_s=settings.fetch_timeout_s),
            ring=key_ring,
            clock=clock,
            limit_bytes=package_limit_bytes,
        )
        await onboarding.recover()
        events = await ending.enter_async_context(
            told(settings, bus=bus, store=store, outbox=outbox, session=outbound, key_ring=key_ring, clock=clock)
        )
        grants = await ending.enter_async_context(
            external_grants(
                settings,
                descriptors=package_service,
                announcements=events.notifications,
                key_ring=key_ring,
                clock=clock,
            )
        )
        engine = Engine(store=store, outbox=outbox, ring=key_ring, clock=clock, grants=grants)
        all_instances = Instances(
            store=store, outbox=outbox, engine=engine, packages=package_service, ring=key_ring, clock=clock
        )
        acceptance = Acceptance(engine=engine, ring=key_ring, clock=clock)
        kept = Progress(store)
        services = Gateway(
            store=store,
            engine=engine,
            instances=all_instances,
            instantiate=Instantiate(
                instances=all_instances,
                engine=engine,
                packages=package_service,
                vims=vims,
                acceptance=acceptance,
            ),
            terminate=Terminate(
                instances=all_instances, engine=engine, packages=package_service, acceptance=acceptance
            ),
            tasks=Tasks.over(instances=all_instances, engine=engine, packages=package_service, acceptance=acceptance),
            packages=package_service,
            onboarding=onboarding,
            files=files,
            subscriptions=events.subscriptions,
            events=events.feed,
            progress=kept,
            vims=vims,
            node_logs=node_logs,
            ring=key_ring,
            clock=clock,
            public_url=settings.public_url,
            internal_token=settings.internal_token.get_secret_value(),
            page_size=settings.page_size,
            package_limit_bytes=package_limit_bytes,
        )

        async def ready() -> bool:
            return await store.is_ready() and await bus.is_ready()

        worker.handle_direct(AdvanceOperation, engine.advance_operation)
        worker.handle(RemoveRemains, engine.remove_remains)
        worker.handle(FetchPackage, onboarding.fetch_package)
        worker.handle(OnboardPackage, onboarding.onboard_package)
        worker.handle_direct(DeliverNotification, events.notifications.deliver_notification)
        await worker.start()
        await bus.consume_events("lcm-api.replies", REPLIES, engine.resume_operation)
        await bus.consume_events("lcm-api.progress", ["mgmt.task.progressed"], kept.keep)
        await events.start()
        await bus.consume_events(
            "lcm-api.usage", ["lcm.instance.*", "lcm.operation.changed"], package_service.follow_instances
        )
        housekeeping = [
            asyncio.create_task(engine.watch_deadlines(every_s=_DEADLINES_EVERY_S), name="deadlines"),
            asyncio.create_task(onboarding.watch_uploads(), name="uploads"),
        ]
        try:
            app = make_app(services, ready, gate=gate, proxies=proxies(settings))
            async with serving(
                app, host=settings.host, port=settings.port, tls=settings.server_tls, limits=limits
            ) as port:
                yield LcmApi(port)
        finally:
            for task in housekeeping:
                task.cancel()
            await asyncio.gather(*housekeeping, return_exceptions=True)
