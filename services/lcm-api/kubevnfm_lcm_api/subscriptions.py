"""Subscriptions and the delivery of their notifications: stored first, in order for each subscriber, until taken.

A slow or dead subscriber delays nobody else: each has a queue of its own in the store, and one DeliverNotification at a
time works on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

import structlog
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events import Envelope, Message
from kubevnfm_events.lcm import (
    DeliverNotification,
    InstanceCreated,
    InstanceDeleted,
    NotificationsDelivered,
    OperationChanged,
)
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import NotFound, VnfmError
from kubevnfm_kit.ids import derived_id, new_id
from kubevnfm_secrets import KeyRing, Secret, opened
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import AnyOf, Compare, Exists, Op, Query, Sort, Stored, by
from kubevnfm_worker import Done, NotYet, Outbox, Outcome, StepContext

from kubevnfm_lcm_api.domain.saga import SOURCE
from kubevnfm_lcm_api.domain.subscription import (
    COLLECTION,
    SubscriptionRequest,
    match_keys,
    matching,
    moment,
    notification,
)

log = structlog.get_logger()

NOTIFICATIONS: Final = "notifications"
_TURN_S: Final = 120.0
"""How long one delivery may work on a subscription before another takes over: above the longest POST."""
_BUSY_PAUSE_S: Final = 0.2
"""How soon a delivery that found another at work looks again."""
_NOBODY: Final = "-"
"""Has the turn while a subscription rests."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 300.0
_GIVE_UP_AFTER: Final = timedelta(hours=1)
_REMEMBERED: Final = timedelta(days=1)
"""How long a notification is known as delivered: an event that comes once more in this time is not told twice."""
_FORGET_EVERY_S: Final = 3600.0


class CallbackRefused(VnfmError):
    """The callback URI did not answer its test as SOL003 asks (5.4.18.3.1: 422)."""

    code = "callback-test-failed"
    title = "Callback test failed"
    status = 422


class Subscriber(Protocol):
    """The other end of a subscription."""

    async def test(self, uri: str, basic: tuple[str, str] | None) -> str | None:
        """GET the callback URI; return None when it answers 204, else what it did."""
        ...

    async def notify(
        self, uri: str, body: Mapping[str, Any], version: str, basic: tuple[str, str] | None
    ) -> str | None:
        """POST a notification; return None when it was taken, else why not.

        Raises: NotificationRefused when a repeat is useless (3xx and 4xx other than 408 and 429).
        """
        ...


class NotificationRefused(Exception):
    """The subscriber will never take this notification."""


class Subscriptions:
    """Creates, finds and serves subscriptions."""

    def __init__(
        self,
        *,
        store: DocumentStore,
        outbox: Outbox,
        subscriber: Subscriber,
        ring: KeyRing,
        clock: Clock,
        root: str,
        tests_callbacks: bool,
    ) -> None:
        """``root``: the public URL that links in notifications begin with."""
        self._store, self._outbox, self._subscriber = store, outbox, subscriber
        self._ring, self._clock, self._root, self._tests_callbacks = ring, clock, root, tests_callbacks

    async def create(self, request: SubscriptionRequest, version: str) -> Mapping[str, Any]:
        """Store a subscription, its callback tested; return the document. Raises CallbackRefused."""
        basic = None
        if request.authentication is not None and request.authentication.params_basic is not None:
            params = request.authentication.params_basic
            basic = (params.user_name, params.password.reveal(self._ring))
        if self._tests_callbacks and (trouble := await self._subscriber.test(request.callback_uri, basic)) is not None:
            raise CallbackRefused(f"callbackUri: GET should answer 204, {trouble}")
        body = {
            **request.document(self._ring),
            "id": new_id(),
            "apiVersion": version,
            "createdAt": rfc3339(self._clock.now()),
            "keys": match_keys(request.filter),
        }
        await self._store.insert(COLLECTION, body["id"], body)
        return body

    async def get(self, subscription_id: str, version: str) -> Stored:
        """Return the subscription. Raises NotFound, also for one of the other API version."""
        stored = await self._store.get(COLLECTION, subscription_id)
        if stored is None or stored.body["apiVersion"] != version:
            raise NotFound(f"subscription {subscription_id} does not exist")
        return stored

    async def delete(self, subscription_id: str, version: str) -> None:
        """Remove it; what was not delivered is dropped. Raises NotFound."""
        await self.get(subscription_id, version)
        await self._store.delete(COLLECTION, subscription_id)
        await self._drop_queue(subscription_id)

    async def announce(self, delivery: Delivery) -> Verdict:
        """Put the news into the queue of every subscription that wants them."""
        envelope = delivery.envelope
        news = envelope.data
        if not isinstance(news, OperationChanged | InstanceCreated | InstanceDeleted):
            return Ack()
        time_stamp = moment(news, rfc3339(envelope.time))
        for subscription in await self._store.find(COLLECTION, Query(matching(news))):
            entry = derived_id("notification", envelope.id, subscription.id)
            body = notification(
                news, subscription.body, notification_id=envelope.id, time_stamp=time_stamp, root=self._root
            )
            queued = {
                "pendingFor": subscription.id,
                "order": f"{time_stamp}/{envelope.time.isoformat()}",
                "queuedAt": rfc3339(self._clock.now()),
                "attempts": 0,
                "body": body,
            }
            wake_up = Envelope[Message](
                data=DeliverNotification(subscription_id=subscription.id),
                source=SOURCE,
                id=derived_id("deliver", entry),
                subject=subscription.id,
            )
            try:
                await self._outbox.insert(NOTIFICATIONS, entry, queued, events=[wake_up])
            except AlreadyExists:
                continue
        return Ack()

    async def deliver_notification(self, command: DeliverNotification, context: StepContext) -> Outcome:
        """Work on one subscription's queue, in order, until it is empty or the subscriber does not take one."""
        subscription = await self._take_turn(command.subscription_id, context.message_id)
        if subscription is None:
            return await self._not_our_turn(command.subscription_id)
        pause_s: float | None = None
        try:
            while pause_s is None:
                pending = await self._store.find(
                    NOTIFICATIONS, Query(by(pendingFor=subscription.id), sort=Sort("order"), limit=1)
                )
                if not pending:
                    return Done(NotificationsDelivered(subscription_id=subscription.id))
                pause_s = await self._deliver(subscription, pending[0])
        finally:
            await self._end_turn(command.subscription_id, context.message_id, rest_s=pause_s)
        return NotYet(again_in_s=pause_s)

    async def _not_our_turn(self, subscription_id: str) -> Outcome:
        """Come again when the subscription's rest is over, or soon while another delivers; done when it is deleted."""
        stored = await self._store.get(COLLECTION, subscription_id)
        if stored is None:
            await self._drop_queue(subscription_id)
            return Done(NotificationsDelivered(subscription_id=subscription_id))
        turn = stored.body.get("turn", {})
        if turn.get("owner") != _NOBODY:
            return NotYet(again_in_s=_BUSY_PAUSE_S)
        left = datetime.fromisoformat(turn["until"]) - self._clock.now()
        return NotYet(again_in_s=max(left.total_seconds(), 0.0) + _BUSY_PAUSE_S)

    async def _deliver(self, subscription: Stored, entry: Stored) -> float | None:
        """POST one notification; return None when it is off the queue, else how long to wait."""
        body, version = entry.body, "1.3.0" if subscription.body["apiVersion"] == "v1" else "2.0.0"
        uri = subscription.body["callbackUri"]
        try:
            trouble = await self._subscriber.notify(uri, body["body"], version, self._basic(subscription))
        except NotificationRefused as refusal:
            log.warning("notification_dropped", subscription_id=subscription.id, reason=str(refusal))
            trouble = None
        if trouble is None:
            await self._settle(entry)
            return None
        age = self._clock.now() - datetime.fromisoformat(body["queuedAt"])
        if age > _GIVE_UP_AFTER:
            log.warning(
                "notification_dropped", subscription_id=subscription.id, reason=trouble, age_s=age.total_seconds()
            )
            await self._settle(entry)
            return None
        attempts = int(body["attempts"]) + 1
        await self._store.update(NOTIFICATIONS, entry.id, {"attempts": attempts})
        return float(min(_FIRST_PAUSE_S * 2 ** (attempts - 1), _LONGEST_PAUSE_S))

    async def _settle(self, entry: Stored) -> None:
        """Take a notification off its queue. Its record stays for a while, so that a repeat of the event finds it."""
        done = {"doneAt": rfc3339(self._clock.now())}
        await self._store.update(NOTIFICATIONS, entry.id, done, unset=["pendingFor", "body"])

    async def forget_delivered(self) -> None:
        """Remove, again and again, the records of what was delivered long ago. Runs until cancelled."""
        while True:
            before = rfc3339(self._clock.now() - _REMEMBERED)
            try:
                await self._store.delete_many(NOTIFICATIONS, Compare("doneAt", Op.LT, [before]))
            except StoreUnavailable as error:
                log.warning("delivered_not_forgotten", reason=str(error))
            await asyncio.sleep(_FORGET_EVERY_S)

    def _basic(self, subscription: Stored) -> tuple[str, str] | None:
        authentication = opened(subscription.body.get("authentication"))
        if authentication is None:
            return None
        params = authentication["paramsBasic"]
        password: Secret = params["password"]
        return params["userName"], password.reveal(self._ring)

    async def _take_turn(self, subscription_id: str, owner: str) -> Stored | None:
        now = self._clock.now()
        is_free = AnyOf(
            [
                Exists("turn/owner", exists=False),
                Compare("turn/owner", Op.EQ, [owner]),
                Compare("turn/until", Op.LT, [rfc3339(now)]),
            ]
        )
        turn = {"owner": owner, "until": rfc3339(now + timedelta(seconds=_TURN_S))}
        try:
            return await self._store.update(COLLECTION, subscription_id, {"turn": turn}, where=is_free)
        except RevisionConflict:
            return None

    async def _end_turn(self, subscription_id: str, owner: str, *, rest_s: float | None) -> None:
        """Let others deliver, ``rest_s`` from now: a subscriber that does not answer is left alone by all of them."""
        rest: dict[str, Any] = {}
        if rest_s is not None:
            until = self._clock.now() + timedelta(seconds=rest_s)
            rest = {"turn": {"owner": _NOBODY, "until": rfc3339(until)}}
        try:
            await self._store.update(
                COLLECTION,
                subscription_id,
                rest,
                unset=[] if rest else ["turn"],
                where=Compare("turn/owner", Op.EQ, [owner]),
            )
        except RevisionConflict:
            return  # deleted meanwhile, or the turn ran out

    async def _drop_queue(self, subscription_id: str) -> None:
        await self._store.delete_many(NOTIFICATIONS, by(pendingFor=subscription_id))
