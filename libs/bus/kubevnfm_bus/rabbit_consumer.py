"""Consumers on RabbitMQ: each subscribes again after a loss, and turns verdicts into broker actions."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import structlog
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue
from kubevnfm_events import Envelope, InvalidMessage, Message, decode
from kubevnfm_kit import live_spans
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_kit.outages import Outage
from kubevnfm_kit.traces import TraceContext

from kubevnfm_bus import topology
from kubevnfm_bus.attempt import REDELIVERY, Broken, attempt
from kubevnfm_bus.errors import BrokerLost
from kubevnfm_bus.headers import SYSTEM, Past, dead_headers, first_delay, returns, sent_by
from kubevnfm_bus.port import Ack, Again, Dead, Delivery, Handler
from kubevnfm_bus.provenance import wrong_way
from kubevnfm_bus.queue_metrics import QueueMetrics
from kubevnfm_bus.rabbit_link import RECONNECT, Link, LinkKeeper, broker_errors, message_of

log = structlog.get_logger()

Declare = Callable[[AbstractChannel], Awaitable[AbstractQueue]]

_SUBSCRIBE_TIMEOUT_S: Final = 30.0
_HOLD_S: Final = 60.0
"""For pauses below a second the message is held. After this total it goes back to the broker, whose acknowledgement
timeout is 30 minutes."""


class Subscription(ABC):
    """A subscription to a queue, renewed whenever connection, channel or queue is lost."""

    def __init__(self, keeper: LinkKeeper, declare: Declare, *, name: str, prefetch: int) -> None:
        self._outage = Outage("queue", queue=name)
        self._keeper, self._declare, self._prefetch = keeper, declare, prefetch
        self._subscribed = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._channel: AbstractChannel | None = None
        self._is_ending = False

    async def start(self) -> None:
        """Return once the broker has accepted the consumer."""
        self._running = asyncio.create_task(self._stay_subscribed(), name="amqp-subscription")
        await self._subscribed.wait()

    async def stop(self) -> None:
        """Accept no more messages; those being handled can be answered until the connection closes."""
        self._is_ending = True
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    @abstractmethod
    async def receive(self, link: Link, channel: AbstractChannel, message: AbstractIncomingMessage) -> None:
        """Accept one message; must return quickly."""

    async def _stay_subscribed(self) -> None:
        failures = 0
        # As the link's keeper: the client library may lose the cancellation.
        while not self._is_ending:
            link = await self._keeper.link()
            try:
                await self._subscribe_until_lost(link)
                failures = 0
            except BrokerLost as error:
                failures += 1
                # Without a link it is the broker that is away.
                if link.is_open:
                    self._outage.failed(error)
                await asyncio.sleep(RECONNECT.after(failures))

    async def _subscribe_until_lost(self, link: Link) -> None:
        self._channel = channel = await link.new_channel()
        cancelled = asyncio.Event()
        subscribed: tuple[AbstractQueue, str] | None = None

        async def deliver(message: AbstractIncomingMessage) -> None:
            await self.receive(link, channel, message)

        async def note_cancel(_: Any) -> None:
            cancelled.set()

        try:
            with broker_errors():
                async with asyncio.timeout(_SUBSCRIBE_TIMEOUT_S):
                    # RabbitMQ applies the prefetch to consumers that subscribe after it, so it comes first.
                    await channel.set_qos(prefetch_count=self._prefetch)
                    queue = await self._declare(channel)
                    # When a queue is deleted or its leader is lost, RabbitMQ cancels the consumer and leaves the
                    # channel open: without this notice the subscription would wait for ever.
                    underlay = await channel.get_underlay_channel()
                    underlay.on_consumer_cancel_callbacks.add(note_cancel)
                    subscribed = queue, await queue.consume(deliver)
            if self._is_ending:
                raise asyncio.CancelledError
            self._subscribed.set()
            self._outage.answered()
            await _first_of(channel.closed(), cancelled.wait())
        except asyncio.CancelledError:
            # Stopped: no new messages, but the channel stays open to answer those being handled.
            if subscribed is not None and not channel.is_closed:
                queue, tag = subscribed
                with suppress(BrokerLost), broker_errors():
                    await queue.cancel(tag, timeout=5.0)
            raise
        except BrokerLost:
            await _close(channel)
            raise
        await _close(channel)


class Consumer(Subscription):
    """Handles the messages of a durable queue; several at a time, each answered when its handler has ended."""

    def __init__(
        self,
        keeper: LinkKeeper,
        declare: Declare,
        *,
        queue: str,
        service: str,
        handler: Handler,
        concurrency: int,
        max_deliveries: int,
        counts: QueueMetrics,
    ) -> None:
        super().__init__(keeper, declare, name=queue, prefetch=concurrency)
        self.queue, self.service, self._counts = queue, service, counts
        counts.consumes(queue)
        self._handler, self._max_deliveries = handler, max_deliveries
        # Handlers outlive a lost channel, so prefetch alone would let their number exceed the limit.
        self._places = asyncio.Semaphore(concurrency)
        self._handling: set[asyncio.Task[None]] = set()

    async def close(self, drain_s: float) -> None:
        """Accept no more messages and wait for the handlers; cancel those that take longer."""
        await self.stop()
        if self._handling:
            _, unfinished = await asyncio.wait(self._handling, timeout=drain_s)
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)

    async def receive(self, link: Link, channel: AbstractChannel, message: AbstractIncomingMessage) -> None:
        """Start handling the message."""
        in_hand = _InHand(link, channel, message, queue=self.queue, service=self.service, counts=self._counts)
        task = asyncio.create_task(self._answer(in_hand), name="amqp-message")
        self._handling.add(task)
        task.add_done_callback(self._handling.discard)

    async def _answer(self, message: _InHand) -> None:
        try:
            async with self._places:
                await self._handle(message)
        except BrokerLost as error:
            # The answer did not reach the broker, so the message is delivered again; handlers are idempotent.
            log.debug("answer_lost", message_id=message.id, reason=str(error))
            await message.give_back()

    async def _handle(self, message: _InHand) -> None:
        past = message.past
        # The message has left one delay queue and has more time to wait: on to the next one, without the handler.
        if past.rest_s >= 1.0:
            await message.delay(past.rest_s, past)
            return
        if past.rest_s > 0:
            await asyncio.sleep(past.rest_s)
        try:
            envelope = decode(message.body)
        # No redelivery makes it valid, so it is dead-lettered at once with the reason.
        except InvalidMessage as error:
            await message.bury(f"invalid message: {error}")
            return
        if (reason := message.wrong_way(envelope)) is not None:
            await message.bury(reason)
            return
        self._counts.delivered(self.queue, past.failures + message.returns + 1)
        give_back_at = asyncio.get_running_loop().time() + _HOLD_S
        failures = past.failures
        while True:
            delivery = Delivery(envelope, failures + message.returns + 1, message.sent_by)
            match await attempt(self._handler, delivery, system=SYSTEM, queue=self.queue):
                case Ack():
                    await message.acknowledge()
                    return
                case Again(in_s=in_s):
                    # The handler did not raise, so earlier failures do not count any more.
                    failures = 0
                    if in_s >= 1.0 or asyncio.get_running_loop().time() > give_back_at:
                        await message.delay(max(in_s, 1.0), Past())
                        return
                    await asyncio.sleep(in_s)
                case Dead(reason=reason):
                    await message.bury(reason)
                    return
                case Broken(reason=reason):
                    failures += 1
                    if failures >= self._max_deliveries:
                        await message.bury(reason)
                    else:
                        await message.delay(REDELIVERY.after(failures), Past(failures=failures))
                    return


async def _first_of(*events: Awaitable[object]) -> None:
    tasks = [asyncio.ensure_future(event) for event in events]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


async def _close(channel: AbstractChannel) -> None:
    with suppress(BrokerLost), broker_errors():
        if not channel.is_closed:
            await channel.close()


class Watcher(Subscription):
    """Shows events to one process, in order, without acknowledging or repeating."""

    def __init__(
        self, keeper: LinkKeeper, declare: Declare, handler: Callable[[Envelope[Message]], Awaitable[None]]
    ) -> None:
        super().__init__(keeper, declare, name="events of this process", prefetch=256)
        self._handler = handler
        self._arrived: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()

    async def receive(self, link: Link, channel: AbstractChannel, message: AbstractIncomingMessage) -> None:
        """Queue the message up for ``show``."""
        self._arrived.put_nowait(message)

    async def stop(self) -> None:
        """End the subscription and its channel."""
        await super().stop()
        if self._channel is not None:
            await _close(self._channel)

    async def show(self) -> None:
        """Show the queued events one after the other, until cancelled."""
        while True:
            message = await self._arrived.get()
            try:
                envelope = decode(message.body)
                reason = wrong_way(
                    envelope, exchange=message.exchange or "", routing_key=message.routing_key or "", queue=""
                )
                if reason is None:
                    await self._handler(envelope)
                else:
                    log.warning("watched_event_refused", reason=reason)
            except InvalidMessage as error:
                log.warning("watched_event_unreadable", reason=str(error))
            except Exception:  # the edge: one event that cannot be shown must not end the watch
                log.exception("watcher_broke")
            try:
                # Acknowledged although nothing is repeated: the prefetch then bounds what a slow reader holds in
                # memory.
                with broker_errors():
                    await message.ack()
            except BrokerLost:
                log.debug("watch_interrupted")


class _InHand:
    """A delivered message and its possible answers. Each may raise BrokerLost: then it is delivered again."""

    def __init__(
        self,
        link: Link,
        channel: AbstractChannel,
        message: AbstractIncomingMessage,
        *,
        queue: str,
        service: str,
        counts: QueueMetrics,
    ) -> None:
        self._counts = counts
        self._link, self._channel, self._message = link, channel, message
        self._queue, self._service = queue, service

    @property
    def id(self) -> str:
        return self._message.message_id or ""

    @property
    def body(self) -> bytes:
        return self._message.body

    @property
    def past(self) -> Past:
        return Past.from_headers(self._message.headers)

    @property
    def returns(self) -> int:
        return returns(self._message.headers)

    @property
    def sent_by(self) -> TraceContext | None:
        return sent_by(self._message.headers) if live_spans.is_on() else None

    def wrong_way(self, envelope: Envelope[Message]) -> str | None:
        """Return why the message did not come from a user who may send it; None if it did."""
        way = self._message.exchange or "", self._message.routing_key or ""
        return wrong_way(envelope, exchange=way[0], routing_key=way[1], queue=self._queue)

    async def acknowledge(self) -> None:
        with broker_errors():
            await self._message.ack()

    async def give_back(self) -> None:
        """Let the broker deliver it again, unless the loss of the channel has returned it already."""
        if not self._channel.is_closed:
            with suppress(BrokerLost), broker_errors():
                await self._message.nack(requeue=True)

    async def delay(self, delay_s: float, past: Past) -> None:
        """Have it delivered again after ``delay_s`` (>= 1), with this past."""
        step_s, rest_s = first_delay(delay_s)
        await self._move(
            Past(failures=past.failures, rest_s=rest_s).headers(),
            exchange=topology.delay_exchange(step_s),
            routing_key=self._queue,
        )

    async def bury(self, reason: str) -> None:
        """Move it to the dead-letter queue."""
        log.error("message_died", service=self._service, message_id=self.id, type=self._message.type, reason=reason)
        await self._move(dead_headers(reason), exchange=topology.BURIED, routing_key=self._service)
        self._counts.died(self._queue)

    async def _move(self, headers: JsonObject, *, exchange: str, routing_key: str) -> None:
        if self._channel.is_closed:
            # The broker has requeued it already: publishing a copy would double it.
            raise BrokerLost("the channel of the delivery is closed")
        # The copy is confirmed before the original is acknowledged: a crash between the two doubles the message, the
        # other order would lose it.
        message = message_of(self.body, message_id=self._message.message_id, type=self._message.type, headers=headers)
        if not await self._link.publish(message, exchange=exchange, routing_key=routing_key):
            raise BrokerLost(f"no queue behind {exchange}")
        await self.acknowledge()
