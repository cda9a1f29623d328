"""The delivery of notifications: each is stored first, then sent to its subscriber, in order, until it is accepted.

Each subscription has its own queue in the store. A new notification wakes the queue with a DeliverNotification command.
One run then works on the queue until the queue is empty or the subscriber does not accept a notification. While
notifications are pending, there is always one command that the bus delivers again: the command that started the run. So
other commands for the same subscription only make the run check its queue once more.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import structlog
from cachetools import LRUCache
from kubevnfm_bus.port import Ack, Again, Delivery, Verdict
from kubevnfm_events import Envelope, Message
from kubevnfm_events.lcm import DeliverNotification, InstanceDeleted, NotificationDropped, NotificationsDelivered
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_kit.metrics import Metrics
from kubevnfm_kit.outages import say_outage, say_outage_ended
from kubevnfm_kit.owners import Owners
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import AllOf, AnyOf, Compare, Exists, Op, Query, Sort, Stored, by
from kubevnfm_worker.outbox import Outbox

from kubevnfm_lcm_api.event_chain import SOURCE
from kubevnfm_lcm_api.notifications.counts import DeliveryMetrics
from kubevnfm_lcm_api.notifications.delivery_record import DeliveryRecord
from kubevnfm_lcm_api.notifications.domain.callback import Subscriber, Taken, Untaken
from kubevnfm_lcm_api.notifications.domain.changes import CHANGE_ANNOUNCEMENTS, Post, interval_s, posts
from kubevnfm_lcm_api.notifications.domain.faults import FAULT_ANNOUNCEMENTS, about_vnf
from kubevnfm_lcm_api.notifications.domain.lifecycle import LIFECYCLE_ANNOUNCEMENTS
from kubevnfm_lcm_api.notifications.domain.packages import PACKAGE_ANNOUNCEMENTS
from kubevnfm_lcm_api.notifications.domain.performance import PERFORMANCE_ANNOUNCEMENTS
from kubevnfm_lcm_api.notifications.domain.subscription import (
    APIS,
    COLLECTION,
    ONAP_INSTANCE,
    Announcement,
    callback_of,
    matching,
    notification,
)
from kubevnfm_lcm_api.notifications.turns import Turns

log = structlog.get_logger()

NOTIFICATIONS: Final = "notifications"
ANNOUNCED: Final = "told_events"  # a stored name: it stays
"""Marks of the events that are in all queues. They have their own collection: there are many more of them."""
_OF_SOL: Final = {
    **LIFECYCLE_ANNOUNCEMENTS,
    **PACKAGE_ANNOUNCEMENTS,
    **FAULT_ANNOUNCEMENTS,
    **PERFORMANCE_ANNOUNCEMENTS,
}
_AT_ONCE: Final = 20
_TOGETHER_AT_ONCE: Final = 200
"""For subscriptions that get changes together."""
_HOLD_S: Final = 1.0
"""How long a command waits for its run. Then the bus keeps it, so that a slow subscriber does not block commands."""
_REDELIVER_S: Final = 5.0
"""When the bus delivers a command again whose run still works."""
_BUSY_S: Final = 1.0
"""When a command is delivered again that has found another process at work."""
_STORE_PAUSE_S: Final = 2.0
_BACK_OFF: Final = BackOff(1.0, 300.0)
_MAX_RETRY_AFTER_S: Final = 3600.0
"""The longest Retry-After that is obeyed."""
_GIVE_UP_AFTER: Final = timedelta(hours=1)
_REMEMBERED: Final = timedelta(days=1)
"""How long a notification is known as delivered: an event that is redelivered in this time is not notified twice."""
_CACHED_MARKS: Final = 10_000
_EARLIER_EVENT_S: Final = 60.0
"""How long an event waits for the event before it, which a crash may have delayed."""
_SHORT_WAITS_S: Final = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064)
"""Waits before the bus is asked to redeliver: in most cases two events are only handled at the same time."""
_CHECK_AGAIN_S: Final = 0.2


def _announcements(event: Message) -> list[Announcement]:
    """Return an event as subscribers of SOL's APIs, and those to changes, are notified of it."""
    ways = [each[type(event)] for each in (_OF_SOL, CHANGE_ANNOUNCEMENTS) if type(event) in each]
    return [found for way in ways if (found := way(event)) is not None]


@dataclass(eq=False)
class _Run:
    """Work on one subscription's queue."""

    command_id: str
    task: asyncio.Task[Verdict] = field(init=False)
    queued: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the notification is stored, and the command with it."""
    is_void: bool = False
    """Its command was never stored."""
    is_asked_again: bool = False


class Notifications:
    """Queues notifications for the subscriptions that match an event, and delivers them."""

    def __init__(
        self,
        *,
        store: DocumentStore,
        outbox: Outbox,
        subscriber: Subscriber,
        clock: Clock,
        root: str,
        lease_s: float,
        owners: Owners,
        counts: DeliveryMetrics | None = None,
    ) -> None:
        """``root``: the public URL that links in notifications begin with; ``lease_s``, ``owners``: see `Turns`."""
        self._store, self._outbox, self._subscriber = store, outbox, subscriber
        self._clock, self._root = clock, root
        self._counts = counts or DeliveryMetrics(Metrics())
        self._turns = Turns(store, clock, lease_s=lease_s, owners=owners)
        self._runs: dict[str, _Run] = {}
        self._is_closing = False
        self._announced: LRUCache[str, None] = LRUCache(_CACHED_MARKS)
        """The newest events whose marks this process has stored; saves reads of the store."""

    async def aclose(self) -> None:
        """End the runs; the process that gets their commands next delivers the remaining notifications."""
        self._is_closing = True
        tasks = [run.task for run in self._runs.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- queues --------------------------------------------------------------------------------------------------------

    async def announce(self, delivery: Delivery) -> Verdict:
        """Put the event into the queue of every subscription that matches it."""
        envelope = delivery.envelope
        if isinstance(envelope.data, InstanceDeleted):
            # They are of this instance alone. Its last changes are in the queue, whose commands find no subscription then.
            gone = AllOf([Compare(ONAP_INSTANCE, Op.EQ, [envelope.data.vnf_instance_id]), Exists(ONAP_INSTANCE)])
            await self._store.delete_many(COLLECTION, gone)
        announcements = _announcements(envelope.data)
        if not announcements:
            return Ack()
        for each in announcements:
            if not await self._is_in_order(each, envelope):
                return Again(_CHECK_AGAIN_S)
        wanting = await self._store.find(COLLECTION, Query(AnyOf([matching(each) for each in announcements])))
        found = [
            self._queue(envelope, each, subscription)
            for subscription in wanting
            for each in announcements
            if APIS[subscription.body["apiVersion"]].is_for(each)
        ]
        await asyncio.gather(*found)
        # The mark comes after the queues: if this process dies in between, the redelivered event finds its
        # notifications by their ids and adds none. No event follows the last one, so none asks for its mark.
        if not all(each.is_last for each in announcements):
            await self._mark_announced(envelope)
        return Ack()

    async def _is_in_order(self, announcement: Announcement, envelope: Envelope[Message]) -> bool:
        """Return whether the event before this one is in the queues already (API-074)."""
        now = self._clock.now()
        if not announcement.follows or (
            # Marks are deleted after a time, and two events so far apart cannot overtake each other.
            announcement.follows_at is not None and now - announcement.follows_at > _REMEMBERED / 2
        ):
            return True
        for pause_s in _SHORT_WAITS_S:
            if announcement.follows in self._announced:
                return True
            if await self._store.get(ANNOUNCED, announcement.follows) is not None:
                return True
            await asyncio.sleep(pause_s)
        waited_s = (now - envelope.time).total_seconds()
        if waited_s < _EARLIER_EVENT_S:
            return False
        log.warning("earlier_event_missing", message_id=envelope.id, missing=announcement.follows, waited_s=waited_s)
        return True

    async def _mark_announced(self, envelope: Envelope[Message]) -> None:
        self._announced[envelope.id] = None
        try:
            # Events that follow find the mark in memory. Only the removal of this one from its outbox waits for the write.
            await self._store.insert(ANNOUNCED, envelope.id, {"doneAt": rfc3339(self._clock.now())}, may_wait=True)
        except AlreadyExists:
            return

    async def are_delivered(self, event_id: str, occurrence_id: str) -> bool:
        """Return whether the event was announced, and no notification about the operation is pending."""
        if await self._store.get(ANNOUNCED, event_id) is None:
            return False
        pending = Query(Compare("body/vnfLcmOpOccId", Op.EQ, [occurrence_id]), limit=1)
        return not await self._store.find(NOTIFICATIONS, pending)

    async def _queue(self, envelope: Envelope[Message], announcement: Announcement, subscription: Stored) -> None:
        time_stamp = announcement.moment(rfc3339(envelope.time))
        entry = derived_id("notification", envelope.id, subscription.id)
        queued = {
            "pendingFor": subscription.id,
            "order": f"{time_stamp}/{envelope.time.isoformat()}",
            "queuedAt": rfc3339(self._clock.now()),
            "body": notification(
                announcement, subscription.body, notification_id=envelope.id, time_stamp=time_stamp, root=self._root
            ),
        }
        wake_up = Envelope[Message](
            data=DeliverNotification(subscription_id=subscription.id),
            source=SOURCE,
            id=derived_id("deliver", entry),
            subject=subscription.id,
        )
        # The turn is acquired while the notification is stored: one wait for the disk, not two.
        early = None if self._is_busy(subscription) else self._start(subscription.id, wake_up.id)
        try:
            await self._outbox.insert(NOTIFICATIONS, entry, queued, events=[wake_up])
        # An earlier delivery of this event has stored the notification, together with its own command.
        except AlreadyExists:
            return
        else:
            if early is not None:
                early.queued.set()
        finally:
            if early is not None and not early.queued.is_set():
                early.is_void = True
                early.queued.set()

    def _is_busy(self, subscription: Stored) -> bool:
        return self._is_closing or subscription.id in self._runs or self._turns.is_taken(subscription)

    # --- delivery -----------------------------------------------------------------------------------------------------

    async def deliver_notification(self, delivery: Delivery) -> Verdict:
        """Work on one subscription's queue, in order, until it is empty or the subscriber does not accept one."""
        command = delivery.envelope
        assert isinstance(command.data, DeliverNotification)
        subscription_id = command.data.subscription_id
        if self._is_closing:
            return Again(_BUSY_S)
        run = self._runs.get(subscription_id)
        if run is None or run.task.done():
            run = self._start(subscription_id, command.id)
            run.queued.set()
        elif run.command_id != command.id:
            if run.is_void or not run.queued.is_set():  # the bus will not deliver its command again
                return Again(_CHECK_AGAIN_S)
            # This command may end: the run's own command stays with the bus until the queue is empty.
            run.is_asked_again = True
            return Ack()
        done, _ = await asyncio.wait({run.task}, timeout=_HOLD_S)
        if not done or run.task.cancelled():
            return Again(_REDELIVER_S)
        if run.is_void:  # started by a redelivered event, it has delivered nothing
            return Again(_CHECK_AGAIN_S)
        return run.task.result()

    def _start(self, subscription_id: str, command_id: str) -> _Run:
        run = self._runs[subscription_id] = _Run(command_id)
        run.task = asyncio.create_task(self._work(subscription_id, run), name=f"deliver-{subscription_id}")
        run.task.add_done_callback(partial(self._forget, subscription_id, run))
        return run

    def _forget(self, subscription_id: str, run: _Run, _: asyncio.Task[Verdict]) -> None:
        if self._runs.get(subscription_id) is run:
            del self._runs[subscription_id]
        if not run.task.cancelled():
            run.task.exception()  # marks it as retrieved: a command that waited for the run has handled it

    async def _work(self, subscription_id: str, run: _Run) -> Verdict:
        try:
            while True:
                run.is_asked_again = False
                subscription = await self._turns.acquire(subscription_id, run.command_id)
                if subscription is None:
                    return await self._not_our_turn(subscription_id, run.command_id)
                back_off_s = await self._in_turn(subscription, run)
                if back_off_s is not None:
                    return Again(back_off_s)
                if not run.is_asked_again:  # no await from here to the end, so no other command can come in between
                    return Ack()
        except StoreUnavailable as error:
            log.debug("notifications_postponed", subscription_id=subscription_id, reason=str(error))
            return Again(_STORE_PAUSE_S)

    async def _not_our_turn(self, subscription_id: str, command_id: str) -> Verdict:
        """Come again when the subscription is free; during a back-off, leave it to the command of the back-off."""
        stored = await self._store.get(COLLECTION, subscription_id)
        if stored is None:
            # An event that was announced while the subscription was deleted may have queued more.
            await self._store.delete_many(NOTIFICATIONS, by(pendingFor=subscription_id))
            return Ack()
        back_off_s = self._turns.back_off_left_s(stored)
        if back_off_s is None:
            return Again(_BUSY_S)
        return Again(back_off_s) if self._turns.command_of(stored) == command_id else Ack()

    async def _in_turn(self, subscription: Stored, run: _Run) -> float | None:
        """Deliver while this process has the turn; return the subscriber's back-off."""
        record = DeliveryRecord.from_subscription(subscription)
        failures, failing_since = record.failures, record.failing_since
        delivering = asyncio.create_task(self._empty(subscription, record, run), name="deliveries")
        renewal = asyncio.create_task(self._turns.renew(subscription.id), name="turn")
        back_off_s: float | None = _BUSY_S
        is_lost = False
        try:
            await asyncio.wait({delivering, renewal}, return_when=asyncio.FIRST_COMPLETED)
            is_lost = not delivering.done()
            if is_lost:
                return _BUSY_S  # another process may take over; this command checks again later
            back_off_s = delivering.result()
        finally:
            for task in (delivering, renewal):
                task.cancel()
            await asyncio.gather(delivering, renewal, return_exceptions=True)
            # An error or a cancellation here is not the subscriber's answer, so it causes no back-off.
            is_whole = delivering.done() and not delivering.cancelled() and delivering.exception() is None
            is_ours = await self._turns.end(
                subscription.id, run.command_id, record.fields(), back_off_s=back_off_s if is_whole else None
            )
            # The messages being sent may be sent again, perhaps by this process: an operator finds the reason here.
            if is_lost or not is_ours:
                log.info("turn_lost", subscription_id=subscription.id)
        if back_off_s is None and failures and failing_since and not run.is_void:
            lasted_s = (self._clock.now() - datetime.fromisoformat(failing_since)).total_seconds()
            say_outage_ended("subscriber", lasted_s, failures, subscription_id=subscription.id)
        return back_off_s

    async def _empty(self, subscription: Stored, record: DeliveryRecord, run: _Run) -> float | None:
        """Deliver until nothing is pending (returns None) or a delivery fails (returns the back-off)."""
        interval = interval_s(subscription.body)
        at_once = _TOGETHER_AT_ONCE if interval else _AT_ONCE
        wanted = Query(by(pendingFor=subscription.id), sort=Sort("order"), limit=at_once)
        is_rest = False
        await run.queued.wait()
        while not run.is_void:
            run.is_asked_again = False
            pending = await self._store.find(NOTIFICATIONS, wanted)
            # The rest that does not fit into one notification follows at once.
            if pending and not is_rest and (rest_s := record.rest_s(interval, self._clock.now())) > 0:
                return rest_s
            for post in posts(subscription.body, pending):
                back_off_s = await self._post(subscription, record, post)
                if back_off_s is not None:
                    return back_off_s
            is_rest = len(pending) == at_once
            if not is_rest and not run.is_asked_again:
                return None
        return None

    async def _post(self, subscription: Stored, record: DeliveryRecord, post: Post) -> float | None:
        """Send notifications, and remove them from the queue unless the subscriber may accept them later: returns its back-off."""
        if post.notice is None:
            for entry in post.entries:
                await self._settle(entry, [])
            return None
        answer = await self._subscriber.notify(callback_of(subscription.body), post.notice)
        at = rfc3339(self._clock.now())
        was_failing = record.failures > 0
        record.note(answer, at)
        if isinstance(answer, Untaken):
            self._counts.count("failed")
            return await self._untaken(subscription, record, answer)
        for entry in post.entries:
            if isinstance(answer, Taken):
                # The event reports that a failing subscriber accepts again; without failures, there is nothing to report.
                await self._settle(entry, [self._delivered(subscription.id)] if was_failing else [])
                self._counts.count("delivered")
                was_failing = False
                record.delivered(entry.id, at)
            elif not await self._drop(entry, record, answer.reason):
                return _BUSY_S
        return None

    async def _untaken(self, subscription: Stored, record: DeliveryRecord, answer: Untaken) -> float:
        """Drop notifications that are too old; return the subscriber's back-off."""
        if record.failures == 1:
            say_outage("subscriber", answer.reason, subscription_id=subscription.id)
        log.debug(
            "notification_not_taken", subscription_id=subscription.id, reason=answer.reason, tries=record.failures
        )
        # While it waits for the interval, a notification does not grow old.
        longest = _GIVE_UP_AFTER + timedelta(seconds=interval_s(subscription.body))
        too_old = rfc3339(self._clock.now() - longest)
        old = AllOf([by(pendingFor=subscription.id), Compare("queuedAt", Op.LT, [too_old])])
        while entries := await self._store.find(NOTIFICATIONS, Query(old, sort=Sort("order"), limit=_AT_ONCE)):
            for entry in entries:
                if not await self._drop(entry, record, answer.reason):
                    return _BUSY_S
        return max(_BACK_OFF.after(record.failures), min(answer.again_in_s or 0.0, _MAX_RETRY_AFTER_S))

    def _delivered(self, subscription_id: str) -> Envelope[Message]:
        return Envelope(
            data=NotificationsDelivered(subscription_id=subscription_id), source=SOURCE, subject=subscription_id
        )

    async def _drop(self, entry: Stored, record: DeliveryRecord, reason: str) -> bool:
        """Remove an undelivered notification from the queue; an event reports it, and the subscription counts it.

        Returns False without doing so if the turn was lost.
        """
        body: JsonMapping = entry.body["body"]
        record.count(entry.id)
        # Counted first: what has left the queue could not be counted any more after a loss of the turn, or a crash.
        if not await self._turns.record(entry.body["pendingFor"], record.fields()):
            return False
        dropped = NotificationDropped(
            subscription_id=entry.body["pendingFor"],
            notification_id=body["id"],
            notification_type=body["notificationType"],
            vnf_instance_id=body.get("vnfInstanceId") or body.get("objectInstanceId") or about_vnf(body),
            vnf_pkg_id=body.get("vnfPkgId", ""),
            vnf_lcm_op_occ_id=body.get("vnfLcmOpOccId", ""),
            operation_state=body.get("operationState", ""),
            queued_at=datetime.fromisoformat(entry.body["queuedAt"]),
            reason=reason,
        )
        log.warning(
            "notification_dropped",
            subscription_id=dropped.subscription_id,
            notification_id=dropped.notification_id,
            queued_at=entry.body["queuedAt"],
            reason=reason,
        )
        event = Envelope[Message](
            data=dropped,
            source=SOURCE,
            id=derived_id("dropped", entry.id),
            subject=dropped.vnf_instance_id or dropped.vnf_pkg_id or dropped.subscription_id,
        )
        await self._settle(entry, [event])
        self._counts.count("dropped")
        return True

    async def _settle(self, entry: Stored, events: list[Envelope[Message]]) -> None:
        """Remove a notification from its queue. Its record stays for a while, so that a redelivered event finds it."""
        done = {"doneAt": rfc3339(self._clock.now())}
        try:
            await self._outbox.update(NOTIFICATIONS, entry.id, done, unset=["pendingFor", "body"], events=events)
        except RevisionConflict:
            log.debug("notification_gone", notification=entry.id)  # it was deleted with its subscription

    async def remove_old(self) -> None:
        """Remove the records of old deliveries. Raises StoreUnavailable."""
        before = rfc3339(self._clock.now() - _REMEMBERED)
        for collection in (NOTIFICATIONS, ANNOUNCED):
            await self._store.delete_many(collection, Compare("doneAt", Op.LT, [before]))
