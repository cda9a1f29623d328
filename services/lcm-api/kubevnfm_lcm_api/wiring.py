"""The whole of lcm-api: its subjects' parts, one outbox, one worker and the gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

import aiohttp
from kubevnfm_access.openid import OpenId
from kubevnfm_access.wiring import opened_access, proxies, warn_of_clear_text
from kubevnfm_clients.outbound import outbound_session
from kubevnfm_clients.playbooks import PlaybookPrograms
from kubevnfm_clients.pod_usages import PodUsages
from kubevnfm_clients.ports import NodeLogs, Vims
from kubevnfm_events.lcm import AwaitPackage
from kubevnfm_kit.connections import DEFAULT_LIMITS, Limits
from kubevnfm_kit.http import serving
from kubevnfm_kit.request_metrics import RequestMetrics
from kubevnfm_kit.run import background, repeat
from kubevnfm_kit.tls import ClientTls, client_context
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.part_metrics import show_parts
from kubevnfm_worker.relay import OutboxRelay
from kubevnfm_worker.round_metrics import StoredCounts

from kubevnfm_lcm_api.automation import wiring as automation
from kubevnfm_lcm_api.automation.http.actions import ActionSearch
from kubevnfm_lcm_api.faults import wiring as faults
from kubevnfm_lcm_api.faults.counts import AlarmCounts
from kubevnfm_lcm_api.faults.healing import HealedAlarms
from kubevnfm_lcm_api.faults.http.view import AlarmSearch
from kubevnfm_lcm_api.gateway.app import Subject, make_app
from kubevnfm_lcm_api.gateway.metrics import add_to as add_metrics
from kubevnfm_lcm_api.gateway.vims import add_to as add_vims
from kubevnfm_lcm_api.granting.wiring import external_grants
from kubevnfm_lcm_api.http.context import HttpContext
from kubevnfm_lcm_api.lifecycle import wiring as lifecycle
from kubevnfm_lcm_api.lifecycle.core.package_users import PackageUsers
from kubevnfm_lcm_api.lifecycle.foreseen import foreseen
from kubevnfm_lcm_api.measurement_sources import SourceCounts
from kubevnfm_lcm_api.multicloud import group_operations, group_record, idempotency
from kubevnfm_lcm_api.multicloud.artifacts import add_to as add_artifacts
from kubevnfm_lcm_api.multicloud.awaited_packages import AwaitedPackages
from kubevnfm_lcm_api.multicloud.group_work import GroupWork
from kubevnfm_lcm_api.multicloud.routes import add_to as add_multicloud
from kubevnfm_lcm_api.multicloud.services import MultiCloudServices
from kubevnfm_lcm_api.multicloud.subscriptions import add_to as add_change_subscriptions
from kubevnfm_lcm_api.multicloud.taken_places import place_check
from kubevnfm_lcm_api.multicloud.vnf_events import add_to as add_vnf_events
from kubevnfm_lcm_api.multicloud.waiting import OperationEnds
from kubevnfm_lcm_api.notifications import wiring as notifications
from kubevnfm_lcm_api.notifications.counts import NotificationCounts
from kubevnfm_lcm_api.notifications.delivery import NOTIFICATIONS
from kubevnfm_lcm_api.notifications.http.events import stream_instance, stream_operation
from kubevnfm_lcm_api.onap import bundle_store, networks
from kubevnfm_lcm_api.onap.bundle_store import BundlePackages, Bundles
from kubevnfm_lcm_api.onap.routes import add_to as add_onap
from kubevnfm_lcm_api.packages import wiring as packages
from kubevnfm_lcm_api.packages.counts import PackageCounts
from kubevnfm_lcm_api.page import sessions as page_sessions
from kubevnfm_lcm_api.page.openid import OpenIdLogins
from kubevnfm_lcm_api.page.routes import add_to as add_page
from kubevnfm_lcm_api.page.sessions import StoredSessions
from kubevnfm_lcm_api.performance import wiring as performance
from kubevnfm_lcm_api.server_alarms import wiring as server_alarms
from kubevnfm_lcm_api.settings import Settings
from kubevnfm_lcm_api.siblings import Siblings
from kubevnfm_lcm_api.tracing.wiring import trace_export
from kubevnfm_lcm_api.views.causes.classes import cause_class
from kubevnfm_lcm_api.views.earlier_runs import EarlierRuns
from kubevnfm_lcm_api.views.followers import Followers
from kubevnfm_lcm_api.views.routes import add_to as add_views
from kubevnfm_lcm_api.views.services import ViewServices
from kubevnfm_lcm_api.views.shown_settings import shown_settings
from kubevnfm_lcm_api.views.vim_names import VimNames
from kubevnfm_lcm_api.webhooks.wiring import WebhookParts, webhook_parts

SERVICE = "lcm-api"
_SUBJECTS = (lifecycle, packages, notifications, faults, performance, automation)
_OUTBOXES = tuple(collection for subject in _SUBJECTS for collection in subject.OUTBOXES)
INDEXES: Final = {
    **lifecycle.INDEXES,
    **packages.INDEXES,
    **notifications.INDEXES,
    **faults.INDEXES,
    **performance.INDEXES,
    **automation.INDEXES,
    **server_alarms.INDEXES,
    **idempotency.INDEXES,
    **group_record.INDEXES,
    **bundle_store.INDEXES,
    **networks.INDEXES,
    **page_sessions.INDEXES,
}
_FORGET_KEYS_EVERY_S = 3600.0


@dataclass(frozen=True)
class LcmApi:
    """The running service."""

    port: int
    """The port on which the gateway listens."""
    automation: automation.AutomationParts
    """Takes what asks for automatic operations."""


_Subjects = tuple[
    lifecycle.LifecycleParts,
    packages.PackageParts,
    notifications.NotificationParts,
    faults.FaultParts,
    performance.PerformanceParts,
    automation.AutomationParts,
]


@asynccontextmanager
async def lcm_api(
    settings: Settings,
    backends: Backends,
    *,
    vims: Vims,
    node_logs: NodeLogs,
    playbooks: PlaybookPrograms,
    multicloud: MultiCloudServices,
    limits: Limits = DEFAULT_LIMITS,
) -> AsyncIterator[LcmApi]:
    """Yield the service, consuming and serving; leaving the block drains and closes it."""
    warn_of_clear_text(settings, settings.host, is_tls=bool(settings.server_tls))
    await backends.ensure_indexes(INDEXES)
    siblings = Siblings(backends.clock, backends.report)
    async with (
        opened_access(settings, backends.clock, settings.login_client) as access,
        backends.relay(_OUTBOXES) as relay,
        _connected(
            settings, backends, relay, multicloud, siblings, vims=vims, node_logs=node_logs, playbooks=playbooks
        ) as subjects,
        # After the subjects and their HTTP sessions, since closing the worker lets its handlers end: a call that loses
        # its session in the middle would count as a bug, and its command as dead.
        backends.worker(SERVICE, lease_s=settings.lease_s) as worker,
        # Deliveries may wait for slow subscribers, so they end before the worker waits for its handlers.
        aclosing(subjects[2].notifications),
        background(**_removals(backends, sessions := _sessions(settings, backends, access.login))),
    ):
        for commanded in subjects[:3]:  # the others have no command
            commanded.handle(worker)
        requests = subjects[0].services.requests
        worker.handle(AwaitPackage, AwaitedPackages(requests, multicloud.regions, backends).await_package)
        # The worker starts before the events: their handlers send commands that it takes.
        await worker.start()
        for subject in subjects:
            await subject.start(backends.bus)
        groups = GroupWork(
            requests, multicloud.regions, place_check(multicloud.dry_runs),
            backends.store, backends.key_ring, backends.clock, backends.owners,
        )  # fmt: skip
        ends = OperationEnds(backends.store)
        way = proxies(
            settings, settings.host, public_url=settings.public_url, monitoring=settings.webhook_open_networks
        )
        openid = None if access.login is None else OpenIdLogins(access.login, access.gate, sessions)
        apis: list[Subject] = [
            *(subject.add_to for subject in subjects),
            partial(add_vims, vims=vims, links=multicloud.links, volumes=multicloud.volumes),
            partial(
                add_multicloud,
                services=multicloud,
                vnfs=requests,
                groups=groups,
                ends=ends,
                group_parallel=settings.multicloud_group_parallel,
            ),
            partial(add_artifacts, variables=subjects[0].package_variables, copies=subjects[1].services.on_demand),
            partial(add_change_subscriptions, subscriptions=subjects[2].services.subscriptions),
            partial(add_vnf_events, instance_events=stream_instance),
            partial(add_views, services=_views(settings, backends, subjects, vims, ends, siblings)),
            partial(add_page, sessions=sessions, ways=settings.auth_modes, openid=openid),
            partial(add_metrics, metrics=backends.metrics),
            _webhooks(backends, subjects).add_to,
        ]
        rest = _onap(apis, backends, multicloud, subjects[1].bundles) if settings.onap_compat else {}
        asked = _context(settings, backends, subjects[2])
        backends.count_stored("metric_counts", _counts(backends, subjects[0]))
        show_parts(backends.metrics, parts := siblings.beside(backends.health.parts))
        app = make_app(apis, asked, parts, backends.states, gate=access.gate, proxies=way, sessions=sessions)
        RequestMetrics(backends.metrics, SERVICE).add_to(app)
        # The gateway opens last and closes first: every request finds its services running.
        bound = backends.sockets.get((settings.host, settings.port))
        async with (
            ends.watching(backends.bus),
            siblings.watching(backends.bus),
            background(groups=groups.run(), **rest),
            serving(
                app, host=settings.host, port=settings.port, bound=bound, tls=settings.server_tls, limits=limits
            ) as port,
        ):
            yield LcmApi(port, subjects[5])


def _webhooks(backends: Backends, subjects: _Subjects) -> WebhookParts:
    alarms, measured, automatic = subjects[3].external, subjects[4].measured, subjects[5].automatic
    return webhook_parts(backends, alarms=alarms, measured=measured, automatic=automatic)


def _sessions(settings: Settings, backends: Backends, openid: OpenId | None) -> StoredSessions:
    lasts_s = settings.page_session_s
    return StoredSessions(backends.store, backends.key_ring, backends.clock, lasts_s=lasts_s, openid=openid)


def _removals(backends: Backends, sessions: StoredSessions) -> Mapping[str, Coroutine[Any, Any, None]]:
    """Return the work that removes what has expired."""
    old_groups = partial(group_operations.remove_old, backends.store, backends.clock)
    removals: Mapping[str, Callable[[], Awaitable[object]]] = {
        "keys": _keys(backends).remove_old,
        "old_groups": old_groups,
        "sessions": sessions.remove_old,
    }
    return {name: repeat(remove, every_s=_FORGET_KEYS_EVERY_S) for name, remove in removals.items()}


def _views(
    settings: Settings,
    backends: Backends,
    subjects: _Subjects,
    vims: Vims,
    ends: OperationEnds,
    siblings: Siblings,
) -> ViewServices:
    events, measured = subjects[2], subjects[4]
    return ViewServices(
        sequence=events.services.feed.position,
        operation_events=stream_operation,
        vims=vims,
        vim_names=VimNames(vims),
        earlier_runs=EarlierRuns(backends.store),
        is_broker_ready=backends.bus.is_ready,
        ends=ends,
        followers=Followers(),
        siblings=siblings,
        alarms=AlarmSearch(backends.store),
        actions=ActionSearch(backends.store),
        jobs=measured.jobs,
        thresholds=measured.thresholds,
        settings=cache(partial(shown_settings, settings)),
    )


def _counts(backends: Backends, of_lifecycle: lifecycle.LifecycleParts) -> Sequence[StoredCounts]:
    """Return the gauges of what is stored."""
    metrics, store = backends.metrics, backends.store
    return (
        of_lifecycle.counts,
        PackageCounts(metrics, store),
        AlarmCounts(metrics, store),
        SourceCounts(metrics, store, backends.clock),
        NotificationCounts(metrics, store, backends.clock, NOTIFICATIONS),
    )


def _context(settings: Settings, backends: Backends, events: notifications.NotificationParts) -> HttpContext:
    return HttpContext(
        store=backends.store,
        ring=backends.key_ring,
        clock=backends.clock,
        owners=backends.owners,
        sequence=events.services.feed.position,
        public_url=settings.public_url,
        internal_token=settings.internal_token.get_secret_value(),
        page_size=settings.page_size,
    )


def _onap(
    apis: list[Subject], backends: Backends, multicloud: MultiCloudServices, packages: BundlePackages
) -> Mapping[str, Coroutine[Any, Any, None]]:
    """Add the paths of ONAP; return the work that cleans up behind them."""
    stored_bundles = Bundles(backends.store, backends.clock, packages)
    of_regions = partial(networks.remove_without_region, backends.store, multicloud.regions)
    apis.append(partial(add_onap, stored_bundles=stored_bundles))
    return {
        "onap_networks": repeat(of_regions, every_s=_FORGET_KEYS_EVERY_S),
        "onap_profiles": repeat(stored_bundles.remove_orphans, every_s=_FORGET_KEYS_EVERY_S),
    }


def _keys(backends: Backends) -> idempotency.IdempotencyKeys:
    return idempotency.IdempotencyKeys(backends.store, backends.key_ring, backends.clock, backends.owners)


@asynccontextmanager
async def _connected(
    settings: Settings,
    backends: Backends,
    relay: OutboxRelay,
    multicloud: MultiCloudServices,
    siblings: Siblings,
    *,
    vims: Vims,
    node_logs: NodeLogs,
    playbooks: PlaybookPrograms,
) -> AsyncIterator[_Subjects]:
    """Yield the subjects, each with the others behind its ports."""
    outbox = Outbox(backends.store, relay, backends.key_ring)
    async with AsyncExitStack() as stack:
        trusted = await stack.enter_async_context(client_context(ClientTls(settings.outbound_ca_file)))
        session = await stack.enter_async_context(outbound_session(settings.address_rules, tls=trusted))
        package_parts = await stack.enter_async_context(
            packages.package_parts(
                settings,
                settings,
                backends,
                users=PackageUsers(backends.store),
                outbox=outbox,
                session=session,
                data_dir=settings.data_dir,
                limit_bytes=settings.package_limit_bytes,
                foresee=foreseen,
            )
        )
        notification_parts = await stack.enter_async_context(
            notifications.notification_parts(
                settings,
                settings,
                backends,
                outbox=outbox,
                session=session,
                root=settings.link_root,
                lease_s=settings.lease_s,
            )
        )
        grants = await stack.enter_async_context(
            external_grants(
                settings,
                backends,
                descriptors=package_parts.services.catalogue,
                announcements=notification_parts.notifications,
                root=settings.link_root,
            )
        )
        lifecycle_parts = await stack.enter_async_context(
            lifecycle.lifecycle_parts(
                backends,
                outbox=outbox,
                grants=grants,
                packages=package_parts.services.catalogue,
                fetches=package_parts.services.on_demand,
                vims=vims,
                links=multicloud.links,
                volumes=multicloud.volumes,
                inventory=multicloud.inventory,
                charts=multicloud.charts,
                repositories=package_parts.services.repositories,
                regions=multicloud.regions,
                node_logs=node_logs,
                playbooks=playbooks,
                drift_every_s=settings.drift_every_s,
                most_revisions=settings.multicloud_revisions,
                has_vnf_networks=bool(settings.named_networks),
                cause_of=cause_class,
            )
        )
        await stack.enter_async_context(_outbound(settings, backends, vims, session))
        fault_parts = await stack.enter_async_context(faults.fault_parts(
            settings, backends, outbox=outbox, vims=vims, inventory=multicloud.inventory, services=siblings.services
        ))  # fmt: skip
        enter = stack.enter_async_context
        automatic = await enter(_automation(settings, backends, outbox, lifecycle_parts, multicloud))
        usages = multicloud.usages
        measured = await enter(_measuring(settings, backends, outbox, notification_parts, session, automatic, usages))
        yield lifecycle_parts, package_parts, notification_parts, fault_parts, measured, automatic


@asynccontextmanager
async def _outbound(
    settings: Settings, backends: Backends, vims: Vims, session: aiohttp.ClientSession
) -> AsyncIterator[None]:
    """Have ended operations followed by calls to other systems, which no request needs."""
    async with (
        trace_export(settings, backends),
        server_alarms.server_alarm_parts(backends, vims=vims, session=session, root=settings.link_root) as servers,
    ):
        await servers.start(backends.bus)
        yield


def _measuring(
    settings: Settings,
    backends: Backends,
    outbox: Outbox,
    callbacks: notifications.NotificationParts,
    session: aiohttp.ClientSession,
    automatic: automation.AutomationParts,
    usages: PodUsages,
) -> AbstractAsyncContextManager[performance.PerformanceParts]:
    return performance.performance_parts(
        settings,
        backends,
        outbox=outbox,
        callbacks=callbacks.own_callbacks,
        session=session,
        rules=settings.address_rules,
        on_crossing=automatic.crossings.act,
        check_automation=automatic.crossings.check,
        usages=usages,
    )


def _automation(
    settings: Settings,
    backends: Backends,
    outbox: Outbox,
    lifecycle_parts: lifecycle.LifecycleParts,
    multicloud: MultiCloudServices,
) -> AbstractAsyncContextManager[automation.AutomationParts]:
    return automation.automation_parts(
        settings,
        backends,
        outbox=outbox,
        on=lifecycle_parts.services.requests,
        alarms=HealedAlarms(backends.store),
        inventory=multicloud.inventory,
    )
