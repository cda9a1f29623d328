"""What lcm-api tells others: subscriptions and their notifications, and the stream of events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import aiohttp
from kubevnfm_bus.port import MessageBus
from kubevnfm_clients.outbound import AddressRules, outbound_session
from kubevnfm_kit.run import background
from kubevnfm_kit.tls import client_context
from kubevnfm_store.query import Index
from kubevnfm_worker import Outbox
from kubevnfm_worker.backends import Backends

from kubevnfm_lcm_api.notifications import event_log
from kubevnfm_lcm_api.notifications.adapters.callbacks import Certified, HttpSubscriber
from kubevnfm_lcm_api.notifications.delivery import NOTIFICATIONS, TOLD, Notifications
from kubevnfm_lcm_api.notifications.domain import subscription
from kubevnfm_lcm_api.notifications.event_feed import EventFeed
from kubevnfm_lcm_api.notifications.event_log import EventLog
from kubevnfm_lcm_api.notifications.subscriptions import Subscriptions
from kubevnfm_lcm_api.settings import Settings

INDEXES = {
    subscription.COLLECTION: [Index(["createdAt"]), Index(["keys/types"])],
    TOLD: [Index(["doneAt"])],
    NOTIFICATIONS: [Index(["pendingFor", "order"]), Index(["doneAt"]), Index(["body/vnfLcmOpOccId"])],
    event_log.COLLECTION: [Index(["order"]), Index(["at"])],
}
_LOGGED_AT_ONCE = 500


@dataclass(frozen=True)
class ToldOthers:
    """The parts, running."""

    subscriptions: Subscriptions
    notifications: Notifications
    feed: EventFeed
    log: EventLog
    bus: MessageBus

    async def start(self) -> None:
        """Begin to listen to the events."""
        await self.bus.consume_events(
            "lcm-api.notifications",
            ["lcm.operation.changed", "lcm.instance.*", "lcm.package.changed"],
            self.notifications.announce,
        )
        await self.bus.consume_events("lcm-api.events", event_log.PATTERNS, self.log.keep, concurrency=_LOGGED_AT_ONCE)


@asynccontextmanager
async def told(
    settings: Settings, backends: Backends, *, outbox: Outbox, session: aiohttp.ClientSession
) -> AsyncIterator[ToldOthers]:
    """Yield the parts; leaving the block ends them. ``session``: for calls to addresses that callers name."""
    bus, store, key_ring, clock = backends.bus, backends.store, backends.key_ring, backends.clock
    rules = AddressRules.from_text(settings.allowed_networks)
    scheme = "https" if settings.server_tls else "http"
    async with AsyncExitStack() as stack:
        certified = None
        tls = settings.callback_tls(settings.outbound_ca_file)
        if tls is not None and tls.certificate is not None:
            context = await stack.enter_async_context(client_context(tls))
            showing = await stack.enter_async_context(outbound_session(rules, tls=context))
            certified = Certified(showing, tls.certificate)
        subscriber = HttpSubscriber(session, certified=certified, rules=rules, ring=key_ring)
        notifications = Notifications(
            store=store,
            outbox=outbox,
            subscriber=subscriber,
            clock=clock,
            root=settings.public_url or f"{scheme}://{settings.host}:{settings.port}",
            lease_s=settings.lease_s,
        )
        stack.push_async_callback(notifications.close)
        log = EventLog(store, clock)
        stack.push_async_callback(log.close)
        feed = EventFeed(log)
        await stack.enter_async_context(feed.watching(bus))
        subscriptions = Subscriptions(
            store=store, subscriber=subscriber, ring=key_ring, clock=clock, tests_callbacks=settings.test_callbacks
        )
        async with background(delivered=notifications.forget_delivered(), events=log.forget()):
            yield ToldOthers(subscriptions, notifications, feed, log, bus)
