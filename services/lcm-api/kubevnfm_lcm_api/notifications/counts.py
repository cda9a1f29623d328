"""Counts deliveries to subscribers, and the notifications that wait for them."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from kubevnfm_kit.clock import Clock
from kubevnfm_kit.metrics import Metrics
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Compare, Exists, Op, Query, Sort, by

from kubevnfm_lcm_api.notifications.delivery_record import FAILING_SINCE
from kubevnfm_lcm_api.notifications.domain import subscription

_MOST: Final = 1_000_000
_MOST_FAILING: Final = 100
"""Subscribers that fail of which the oldest notification is searched."""
Outcome = Literal["delivered", "failed", "dropped"]


class DeliveryMetrics:
    """The deliveries of this process."""

    def __init__(self, metrics: Metrics) -> None:
        self._notifications = metrics.counter(
            "kubevnfm_notifications", "Notifications delivered or dropped, and tries that failed.", ["outcome"]
        )
        for outcome in ("delivered", "failed", "dropped"):
            self._notifications.series(outcome)

    def count(self, outcome: Outcome) -> None:
        """Count a delivery."""
        self._notifications.series(outcome).inc()


class NotificationCounts:
    """Gauges of the stored notifications."""

    def __init__(self, metrics: Metrics, store: DocumentStore, clock: Clock, collection: str) -> None:
        self._store, self._clock, self._collection = store, clock, collection
        self._pending = metrics.gauge("kubevnfm_notifications_pending", "Notifications that wait.").series()
        self._oldest = metrics.gauge(
            "kubevnfm_notifications_oldest_seconds", "Age of the oldest one for a subscriber that accepts none."
        ).series()
        self._failing = metrics.gauge(
            "kubevnfm_subscriptions_failing", "Subscriptions whose subscriber accepts none."
        ).series()

    async def count(self) -> None:
        waits = Compare("pendingFor", Op.GT, [""])
        self._pending.set(await self._store.count(self._collection, waits, limit=_MOST))
        fails = Exists(FAILING_SINCE)
        self._failing.set(await self._store.count(subscription.COLLECTION, fails, limit=_MOST))
        query = Query(fails, limit=_MOST_FAILING, exclude=("keys", "filter"))
        ages = [await self._oldest_s(each.id) for each in await self._store.find(subscription.COLLECTION, query)]
        self._oldest.set(max(ages, default=0.0))

    def clear(self) -> None:
        for gauge in (self._pending, self._oldest, self._failing):
            gauge.set(0)

    async def _oldest_s(self, subscription_id: str) -> float:
        first = Query(by(pendingFor=subscription_id), sort=Sort("order"), limit=1, exclude=("body",))
        for each in await self._store.find(self._collection, first):
            return (self._clock.now() - datetime.fromisoformat(each.body["queuedAt"])).total_seconds()
        return 0.0
