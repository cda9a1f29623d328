"""The classes behind subscriptions, their notifications, and the stream of events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import aiohttp
from aiohttp import web
from kubevnfm_bus.port import MessageBus
from kubevnfm_clients.outbound import outbound_session
from kubevnfm_clients.outbound_settings import OutboundSettings
from kubevnfm_events import queues
from kubevnfm_events.lcm import DeliverNotification
from kubevnfm_kit.run import background, repeat
from kubevnfm_kit.tls import client_context
from kubevnfm_sol.access import SITE_MARK
from kubevnfm_store.query import Index
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.worker import CommandWorker

from kubevnfm_lcm_api import site_entries
from kubevnfm_lcm_api.notifications import event_log
from kubevnfm_lcm_api.notifications.adapters.callbacks import Certified, HttpSubscriber
from kubevnfm_lcm_api.notifications.checked_callbacks import CheckedCallbacks
from kubevnfm_lcm_api.notifications.counts import DeliveryMetrics
from kubevnfm_lcm_api.notifications.delivery import ANNOUNCED, NOTIFICATIONS, Notifications
from kubevnfm_lcm_api.notifications.delivery_record import FAILING_SINCE
from kubevnfm_lcm_api.notifications.domain import subscription
from kubevnfm_lcm_api.notifications.event_feed import EventFeed
from kubevnfm_lcm_api.notifications.event_log import EventLog
from kubevnfm_lcm_api.notifications.http import routes
from kubevnfm_lcm_api.notifications.http.context import NotificationServices
from kubevnfm_lcm_api.notifications.own_callbacks import OwnCallbacks
from kubevnfm_lcm_api.notifications.settings import CallbackSettings
from kubevnfm_lcm_api.notifications.subscriptions import Subscriptions

OUTBOXES = (NOTIFICATIONS,)
"""Collections whose documents carry messages to send."""
INDEXES = {
    subscription.COLLECTION: [
        Index(["createdAt"]),
        Index(["apiVersion", "createdAt"]),
        Index([FAILING_SINCE], sparse=True),
        Index(["keys/types"]),
        Index(["callbackUri"]),
        Index([subscription.ONAP_INSTANCE], sparse=True),
        Index([f"metadata/{SITE_MARK}", "metadata/name", "createdAt"]),
        site_entries.INDEX,
    ],
    ANNOUNCED: [Index(["doneAt"])],
    NOTIFICATIONS: [Index(["pendingFor", "order"]), Index(["doneAt"]), Index(["body/vnfLcmOpOccId"])],
    event_log.COLLECTION: [Index(["order"]), Index(["at"]), Index(["ids"])],
}
# Each delivery waits until its batch is written, so with fewer of them the batches would be smaller.
_LOGGED_AT_ONCE = 500
_FORGET_DELIVERIES_EVERY_S, _FORGET_EVENTS_EVERY_S = 3600.0, 300.0


@dataclass(frozen=True)
class NotificationParts:
    """The part of lcm-api that notifies subscribers and watchers."""

    services: NotificationServices
    notifications: Notifications
    log: EventLog
    own_callbacks: OwnCallbacks
    """Those of resources that are no subscriptions."""

    def add_to(self, app: web.Application) -> None:
        """Add the resources to the gateway."""
        routes.add_to(app, self.services)

    def handle(self, worker: CommandWorker) -> None:
        """Register the handler of deliveries; before the worker starts."""
        worker.handle_direct(DeliverNotification, self.notifications.deliver_notification)

    async def start(self, bus: MessageBus) -> None:
        """Consume the events that subscribers and watchers are notified of."""
        await bus.consume_events(queues.NOTIFICATIONS.name, queues.NOTIFICATIONS.patterns, self.notifications.announce)
        await bus.consume_events(
            queues.EVENT_LOG.name, queues.EVENT_LOG.patterns, self.log.store_event, concurrency=_LOGGED_AT_ONCE
        )


@asynccontextmanager
async def notification_parts(
    settings: CallbackSettings,
    outbound: OutboundSettings,
    backends: Backends,
    *,
    outbox: Outbox,
    session: aiohttp.ClientSession,
    root: str,
    lease_s: float,
) -> AsyncIterator[NotificationParts]:
    """Yield the parts; leaving the block ends background work. Deliveries end with `Notifications.aclose`.

    ``session``: for calls to addresses that requests name; ``root``: the root of links in notifications; ``lease_s``:
    how long a process that has died keeps its turn to deliver.
    """
    store, ring, clock = backends.store, backends.key_ring, backends.clock
    rules = outbound.address_rules
    async with AsyncExitStack() as stack:
        certified = None
        tls = settings.callback_tls(outbound.outbound_ca_file)
        if tls is not None and tls.certificate is not None:
            context = await stack.enter_async_context(client_context(tls))
            with_certificate = await stack.enter_async_context(outbound_session(rules, tls=context))
            certified = Certified(with_certificate, tls.certificate)
        subscriber = HttpSubscriber(session, certified=certified, rules=rules, ring=ring)
        notifications = Notifications(
            store=store,
            outbox=outbox,
            subscriber=subscriber,
            clock=clock,
            root=root,
            lease_s=lease_s,
            owners=backends.owners,
            counts=DeliveryMetrics(backends.metrics),
        )
        log = EventLog(store, clock)
        feed = EventFeed(log, clock)
        await stack.enter_async_context(feed.watching(backends.bus))
        checked = CheckedCallbacks(subscriber, ring, tests=settings.test_callbacks)
        subscriptions = Subscriptions(store=store, subscriber=subscriber, ring=ring, clock=clock, callbacks=checked)
        await subscriptions.seal_addresses()
        await subscriptions.widen_types()
        async with background(
            delivered=repeat(notifications.remove_old, every_s=_FORGET_DELIVERIES_EVERY_S),
            events=repeat(log.remove_old, every_s=_FORGET_EVENTS_EVERY_S),
        ):
            own = OwnCallbacks(store, clock, checked)
            yield NotificationParts(NotificationServices(subscriptions, feed), notifications, log, own)
