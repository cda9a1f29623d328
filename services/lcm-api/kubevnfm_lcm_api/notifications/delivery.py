"""The delivery of notifications: stored first, then told to each subscriber in order, until it has taken them.

Each subscription has a queue of its own in the store. What announces news wakes it by a DeliverNotification; one run
then works on the queue until it is empty or the subscriber does not take one. There is always a command that the bus
will bring (again) while something is pending: the one that the run was started by. So others that come meanwhile only
tell the run to look again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import structlog
from kubevnfm_bus.port import Ack, Again, Delivery, Verdict
from kubevnfm_events import Envelope, Message
from kubevnfm_events.lcm import DeliverNotification, NotificationDropped, NotificationsDelivered
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.ids import derived_id
from kubevnfm_secrets import opened
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import AllOf, Compare, Op, Query, Sort, Stored, by
from kubevnfm_worker import Outbox

from kubevnfm_lcm_api.event_chain import SOURCE
from kubevnfm_lcm_api.notifications.domain.callback import Callback, Refused, Subscriber, Taken, Untaken
from kubevnfm_lcm_api.notifications.domain.lifecycle import LIFECYCLE_NEWS
from kubevnfm_lcm_api.notifications.domain.packages import PACKAGE_NEWS
from kubevnfm_lcm_api.notifications.domain.subscription import APIS, COLLECTION, News, matching, notification
from kubevnfm_lcm_api.notifications.turns import Turns

log = structlog.get_logger()

NOTIFICATIONS: Final = "notifications"
ANNOUNCED: Final = "told_events"
"""Marks of the events that are in all queues; apart from these, for there are many more of them."""
_NEWS: Final = {**LIFECYCLE_NEWS, **PACKAGE_NEWS}
_AT_ONCE: Final = 20
_HOLD_S: Final = 1.0
"""How long a command waits for its run; then the bus keeps it, so that subscribers that hang hold up no command."""
_BACK_S: Final = 5.0
"""When the bus brings a command back whose run goes on."""
_BUSY_S: Final = 1.0
"""How soon a command that found another process at work looks again."""
_STORE_PAUSE_S: Final = 2.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 300.0
_LONGEST_WISH_S: Final = 3600.0
"""The longest Retry-After that is honoured."""
_GIVE_UP_AFTER: Final = timedelta(hours=1)
_REMEMBERED: Final = timedelta(days=1)
"""How long a notification is known as delivered: an event that comes once more in this time is not told twice."""
_FORGET_EVERY_S: Final = 3600.0
_TOLD_KNOWN: Final = 10_000
_EARLIER_NEWS_S: Final = 60.0
"""How long news wait for those of the state before, which a crash may have delayed."""
_SHORT_WAITS_S: Final = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064)
"""Before the bus is asked to bring them again: most often two events were only taken side by side."""
_LOOK_AGAIN_S: Final = 0.2


@dataclass(eq=False)
class _Run:
    """Work on one subscription's queue."""

    command_id: str
    task: asyncio.Task[Verdict] = field(init=False)
    queued: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once what the command is about is stored, and the command with it."""
    is_void: bool = False
    """Its command was never stored."""
    is_asked_again: bool = False


@dataclass
class _Record:
    """How deliveries to a subscriber went; the subscription's ``delivery``."""

    failures: int = 0
    """In a row."""
    dropped: int = 0
    last_success_at: str | None = None
    last_failure_at: str | None = None
    last_failure: str | None = None

    @classmethod
    def of(cls, subscription: Stored) -> _Record:
        return cls(**subscription.body.get("delivery", {}))

    def fields(self) -> dict[str, Any]:
        return {"delivery": {name: value for name, value in vars(self).items() if value is not None}}


class Notifications:
    """Announces news to the subscriptions that want them, and delivers them."""

    def __init__(
        self,
        *,
        store: DocumentStore,
        outbox: Outbox,
        subscriber: Subscriber,
        clock: Clock,
        root: str,
        lease_s: float,
    ) -> None:
        """``root``: the public URL that links in notifications begin with; ``lease_s``: see `Turns`."""
        self._store, self._outbox, self._subscriber = store, outbox, subscriber
        self._clock, self._root = clock, root
        self._turns = Turns(store, clock, lease_s=lease_s)
        self._runs: dict[str, _Run] = {}
        self._is_closing = False
        self._told: OrderedDict[str, None] = OrderedDict()
        """The newest events whose marks were stored here: saves looking them up."""

    async def close(self) -> None:
        """End the runs; what they had not delivered is delivered by the next process that takes the command."""
        self._is_closing = True
        tasks = [run.task for run in self._runs.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- news ---------------------------------------------------------------------------------------------------------

    async def announce(self, delivery: Delivery) -> Verdict:
        """Put the news into the queue of every subscription that wants them."""
        envelope = delivery.envelope
        news_of = _NEWS.get(type(envelope.data))
        news = news_of(envelope.data) if news_of is not None else None
        if news is None:
            return Ack()
        if not await self._is_next(news, envelope):
            return Again(_LOOK_AGAIN_S)
        wanting = await self._store.find(COLLECTION, Query(matching(news)))
        await asyncio.gather(*(self._queue(envelope, news, subscription) for subscription in wanting))
        if not news.is_last:
            await self._note_told(envelope)
        return Ack()

    async def _is_next(self, news: News, envelope: Envelope[Message]) -> bool:
        """Tell whether what became true before is in the queues already (API-074)."""
        now = self._clock.now()
        if not news.follows or (news.follows_at is not None and now - news.follows_at > _REMEMBERED / 2):
            return True
        for pause_s in _SHORT_WAITS_S:
            if news.follows in self._told:
                return True
            if await self._store.get(ANNOUNCED, news.follows) is not None:
                return True
            await asyncio.sleep(pause_s)
        waited_s = (now - envelope.time).total_seconds()
        if waited_s < _EARLIER_NEWS_S:
            return False
        log.warning("earlier_news_missing", message_id=envelope.id, missing=news.follows, waited_s=waited_s)
        return True

    async def _note_told(self, envelope: Envelope[Message]) -> None:
        self._told[envelope.id] = None
        while len(self._told) > _TOLD_KNOWN:
            self._told.popitem(last=False)
        try:
            await self._store.insert(ANNOUNCED, envelope.id, {"doneAt": rfc3339(self._clock.now())})
        except AlreadyExists:
            return

    async def are_delivered(self, event_id: str, occurrence_id: str) -> bool:
        """Tell whether the event was announced, and nobody is left to be told about the operation."""
        if await self._store.get(ANNOUNCED, event_id) is None:
            return False
        pending = Query(Compare("body/vnfLcmOpOccId", Op.EQ, [occurrence_id]), limit=1)
        return not await self._store.find(NOTIFICATIONS, pending)

    async def _queue(self, envelope: Envelope[Message], news: News, subscription: Stored) -> None:
        time_stamp = news.moment(rfc3339(envelope.time))
        entry = derived_id("notification", envelope.id, subscription.id)
        queued = {
            "pendingFor": subscription.id,
            "order": f"{time_stamp}/{envelope.time.isoformat()}",
            "queuedAt": rfc3339(self._clock.now()),
            "body": notification(
                news, subscription.body, notification_id=envelope.id, time_stamp=time_stamp, root=self._root
            ),
        }
        wake_up = Envelope[Message](
            data=DeliverNotification(subscription_id=subscription.id),
            source=SOURCE,
            id=derived_id("deliver", entry),
            subject=subscription.id,
        )
        # The turn is taken while the notification is stored: one wait for the disk, not two.
        early = None if self._is_busy(subscription) else self._start(subscription.id, wake_up.id)
        try:
            await self._outbox.insert(NOTIFICATIONS, entry, queued, events=[wake_up])
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
        """Work on one subscription's queue, in order, until it is empty or the subscriber does not take one."""
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
            if run.is_void or not run.queued.is_set():  # nothing will bring its command again
                return Again(_LOOK_AGAIN_S)
            run.is_asked_again = True
            return Ack()
        done, _ = await asyncio.wait({run.task}, timeout=_HOLD_S)
        if not done or run.task.cancelled():
            return Again(_BACK_S)
        if run.is_void:  # begun by news that came once more, it has delivered nothing
            return Again(_LOOK_AGAIN_S)
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
            run.task.exception()  # whoever waited for it has it; nobody else asks

    async def _work(self, subscription_id: str, run: _Run) -> Verdict:
        try:
            while True:
                run.is_asked_again = False
                subscription = await self._turns.take(subscription_id, run.command_id)
                if subscription is None:
                    return await self._not_our_turn(subscription_id, run.command_id)
                rest_s = await self._in_turn(subscription, run)
                if rest_s is not None:
                    return Again(rest_s)
                if not run.is_asked_again:  # and from here to the end nobody else comes in between
                    return Ack()
        except StoreUnavailable as error:
            log.warning("notifications_postponed", subscription_id=subscription_id, reason=str(error))
            return Again(_STORE_PAUSE_S)

    async def _not_our_turn(self, subscription_id: str, command_id: str) -> Verdict:
        """Come again when the subscription is free; leave it to the command that rests, where there is one."""
        stored = await self._store.get(COLLECTION, subscription_id)
        if stored is None:
            await self._store.delete_many(NOTIFICATIONS, by(pendingFor=subscription_id))
            return Ack()
        rest_s = self._turns.rest_left_s(stored)
        if rest_s is None:
            return Again(_BUSY_S)
        return Again(rest_s) if self._turns.command_of(stored) == command_id else Ack()

    async def _in_turn(self, subscription: Stored, run: _Run) -> float | None:
        """Deliver while the turn is ours; return how long the subscriber rests."""
        record = _Record.of(subscription)
        was_failing = record.failures > 0
        delivering = asyncio.create_task(self._empty(subscription, record, run), name="deliveries")
        keeping = asyncio.create_task(self._turns.keep(subscription.id), name="turn")
        rest_s: float | None = _BUSY_S
        try:
            await asyncio.wait({delivering, keeping}, return_when=asyncio.FIRST_COMPLETED)
            if not delivering.done():
                return _BUSY_S  # another has taken over, and this command looks at it again
            rest_s = delivering.result()
        finally:
            for task in (delivering, keeping):
                task.cancel()
            await asyncio.gather(delivering, keeping, return_exceptions=True)
            is_whole = delivering.done() and not delivering.cancelled() and delivering.exception() is None
            await self._turns.end(subscription.id, run.command_id, record.fields(), rest_s=rest_s if is_whole else None)
        if rest_s is None and was_failing and not run.is_void:
            log.info("subscriber_has_caught_up", subscription_id=subscription.id)
        return rest_s

    async def _empty(self, subscription: Stored, record: _Record, run: _Run) -> float | None:
        """Deliver until nothing is pending (None), or the subscriber has to rest (for how long)."""
        asked = subscription.body
        callback = Callback(asked["callbackUri"], opened(asked.get("authentication")))
        await run.queued.wait()
        while not run.is_void:
            run.is_asked_again = False
            pending = await self._store.find(
                NOTIFICATIONS, Query(by(pendingFor=subscription.id), sort=Sort("order"), limit=_AT_ONCE)
            )
            for entry in pending:
                version = APIS[asked["apiVersion"]].version
                answer = await self._subscriber.notify(callback, entry.body["body"], version)
                if isinstance(answer, Untaken):
                    return await self._untaken(subscription, record, answer)
                if isinstance(answer, Taken):
                    await self._settle(entry, [self._delivered(subscription.id)] if record.failures else [])
                    record.failures, record.last_success_at = 0, rfc3339(self._clock.now())
                else:
                    self._note_failure(record, answer)
                    await self._drop(entry, record, answer.reason)
            if len(pending) < _AT_ONCE and not run.is_asked_again:
                return None
        return None

    async def _untaken(self, subscription: Stored, record: _Record, answer: Untaken) -> float:
        """Drop what is too old by now; return the subscriber's rest."""
        self._note_failure(record, answer)
        record.failures += 1
        log.info("notification_not_taken", subscription_id=subscription.id, reason=answer.reason, tries=record.failures)
        too_old = rfc3339(self._clock.now() - _GIVE_UP_AFTER)
        old = AllOf([by(pendingFor=subscription.id), Compare("queuedAt", Op.LT, [too_old])])
        while entries := await self._store.find(NOTIFICATIONS, Query(old, sort=Sort("order"), limit=_AT_ONCE)):
            for entry in entries:
                await self._drop(entry, record, answer.reason)
        # 2^9 s is above the longest pause already; without end, a float has no room for it
        pause_s = min(_FIRST_PAUSE_S * 2.0 ** min(record.failures - 1, 9), _LONGEST_PAUSE_S)
        return max(pause_s, min(answer.again_in_s or 0.0, _LONGEST_WISH_S))

    def _note_failure(self, record: _Record, answer: Untaken | Refused) -> None:
        record.last_failure_at, record.last_failure = rfc3339(self._clock.now()), answer.reason

    def _delivered(self, subscription_id: str) -> Envelope[Message]:
        return Envelope(
            data=NotificationsDelivered(subscription_id=subscription_id), source=SOURCE, subject=subscription_id
        )

    async def _drop(self, entry: Stored, record: _Record, reason: str) -> None:
        """Take a notification off the queue that was not delivered; an event tells, and the subscription counts it."""
        body: Mapping[str, Any] = entry.body["body"]
        record.dropped += 1
        dropped = NotificationDropped(
            subscription_id=entry.body["pendingFor"],
            notification_id=body["id"],
            notification_type=body["notificationType"],
            vnf_instance_id=body.get("vnfInstanceId", ""),
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
        news = Envelope[Message](
            data=dropped,
            source=SOURCE,
            id=derived_id("dropped", entry.id),
            subject=dropped.vnf_instance_id or dropped.vnf_pkg_id,
        )
        await self._settle(entry, [news])

    async def _settle(self, entry: Stored, events: list[Envelope[Message]]) -> None:
        """Take a notification off its queue. Its record stays for a while, so that a repeat of the event finds it."""
        done = {"doneAt": rfc3339(self._clock.now())}
        try:
            await self._outbox.update(NOTIFICATIONS, entry.id, done, unset=["pendingFor", "body"], events=events)
        except RevisionConflict:
            log.debug("notification_gone", notification=entry.id)  # with its subscription

    async def forget_delivered(self) -> None:
        """Remove, again and again, the records of what was delivered long ago. Runs until cancelled."""
        while True:
            before = rfc3339(self._clock.now() - _REMEMBERED)
            try:
                for collection in (NOTIFICATIONS, ANNOUNCED):
                    await self._store.delete_many(collection, Compare("doneAt", Op.LT, [before]))
            except StoreUnavailable as error:
                log.warning("delivered_not_forgotten", reason=str(error))
            await asyncio.sleep(_FORGET_EVERY_S)
