"""The MessageBus on RabbitMQ.

One connection for each process, opened again after a loss. With publisher confirms a message is published until the
broker has confirmed it. The connections are the plain ones of aio-pika, not its "robust" ones: this module knows what
is declared and consumed, and the same code does it at the start and after a loss.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Self

import structlog
from aio_pika.exceptions import QueueEmpty
from kubevnfm_events import Command, Envelope, Message
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_kit.metrics import Metrics
from kubevnfm_secrets import KeyRing

from kubevnfm_bus import topology
from kubevnfm_bus.declarations import Declarations, Declared, Provided, declare_watch_queue
from kubevnfm_bus.errors import BrokerLost
from kubevnfm_bus.headers import SYSTEM, reason_of, sent_headers
from kubevnfm_bus.port import DeadLetter, Handler
from kubevnfm_bus.queue_metrics import EVERY_S, QueueMetrics
from kubevnfm_bus.rabbit_consumer import Consumer, Watcher
from kubevnfm_bus.rabbit_link import RECONNECT, LinkKeeper, broker_errors, ending_with_its_caller, message_of
from kubevnfm_bus.routing import owner_of
from kubevnfm_bus.spans import sending

log = structlog.get_logger()


class RabbitBus:
    """MessageBus over AMQP 0-9-1. Made by ``connect``."""

    def __init__(
        self,
        keeper: LinkKeeper,
        key_ring: KeyRing,
        declarations: Declarations,
        *,
        max_deliveries: int,
        metrics: Metrics | None = None,
    ) -> None:
        self._keeper, self._ring, self._max_deliveries = keeper, key_ring, max_deliveries
        self._declarations = declarations
        self._consumers: list[Consumer] = []
        metrics = metrics or Metrics()
        self._counts = QueueMetrics(metrics)
        metrics.before_reading(self._measure, every_s=EVERY_S)

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        url: str,
        *,
        service: str,
        key_ring: KeyRing,
        declares: bool = True,
        max_deliveries: int = 10,
        drain_s: float = 10.0,
        metrics: Metrics | None = None,
    ) -> AsyncIterator[Self]:
        """Yield the bus; it connects, and connects again after a loss, in the background.

        ``service`` names the connection on the broker; ``declares``: whether it declares its exchanges and queues, or
        an administrator has loaded them (`definitions`); ``max_deliveries``: how often a handler may raise on a message;
        ``drain_s``: how long leaving waits for running handlers before it cancels them (their messages are delivered again).
        """
        declarations = Declared() if declares else Provided()
        keeper = LinkKeeper(url, name=service, declarations=declarations)
        bus = cls(keeper, key_ring, declarations, max_deliveries=max_deliveries, metrics=metrics)
        async with keeper.running():
            try:
                yield bus
            finally:
                # Before the connection closes: on it the running handlers still acknowledge their messages.
                await asyncio.gather(*(consumer.close(drain_s) for consumer in bus._consumers))

    async def publish(self, envelope: Envelope[Message]) -> None:
        with sending(envelope, SYSTEM) as span:
            await self._publish(envelope, sent_headers(span.context))

    async def _publish(self, envelope: Envelope[Message], headers: JsonObject) -> None:
        body = envelope.encode(self._ring)
        message = message_of(body, message_id=envelope.id, type=envelope.type, headers=headers)
        failures = 0
        while True:
            link = await self._keeper.link()
            try:
                if isinstance(envelope.data, Command):
                    await ending_with_its_caller(link.publish_command(message, envelope.data.service))
                else:  # no queue is bound to this event, so it has no receiver
                    key = envelope.data.own_key()
                    await ending_with_its_caller(link.publish(message, exchange=topology.EVENTS, routing_key=key))
            # The broker may have stored the message and only its confirm was lost. The copy has the same id, by which
            # consumers recognise it.
            except BrokerLost as error:
                failures += 1
                log.debug("publish_repeated", message_id=envelope.id, type=envelope.type, reason=str(error))
                await asyncio.sleep(RECONNECT.after(failures))
            else:
                return

    async def consume_commands(self, service: str, handler: Handler, *, concurrency: int = 64) -> None:
        """Returns when the broker has accepted the consumer."""
        await self._consume(
            Consumer(
                self._keeper,
                partial(self._declarations.command_queue, service=service),
                queue=topology.command_queue(service),
                service=service,
                handler=handler,
                concurrency=concurrency,
                max_deliveries=self._max_deliveries,
                counts=self._counts,
            )
        )

    async def consume_events(
        self, queue: str, patterns: Sequence[str], handler: Handler, *, concurrency: int = 64
    ) -> None:
        """Returns when the broker has accepted the consumer."""
        await self._consume(
            Consumer(
                self._keeper,
                partial(self._declarations.event_queue, name=queue, patterns=patterns),
                queue=topology.event_queue(queue),
                service=owner_of(queue),
                handler=handler,
                concurrency=concurrency,
                max_deliveries=self._max_deliveries,
                counts=self._counts,
            )
        )

    @asynccontextmanager
    async def watch_events(
        self, patterns: Sequence[str], handler: Callable[[Envelope[Message]], Awaitable[None]]
    ) -> AsyncIterator[None]:
        """Events that are published while the broker is away are missed."""
        watcher = Watcher(self._keeper, partial(declare_watch_queue, patterns=patterns), handler)
        showing = asyncio.create_task(watcher.show(), name="watch-events")
        try:
            await watcher.start()
            yield
        finally:
            await watcher.stop()
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)

    async def dead_letters(self, service: str, *, limit: int = 100) -> Sequence[DeadLetter]:
        """Raises BrokerLost."""
        link = await self._keeper.link()
        channel = await link.new_channel()
        dead: list[DeadLetter] = []
        with broker_errors():
            async with channel:  # closing the channel returns the messages to the queue
                queue = await self._declarations.dead_queue(channel, service)
                while len(dead) < limit:
                    try:
                        message = await queue.get(no_ack=False, timeout=30.0)
                    except QueueEmpty:
                        break
                    dead.append(
                        DeadLetter(
                            service=service,
                            message_id=message.message_id or "",
                            type=message.type or "",
                            reason=reason_of(message.headers),
                            body=message.body,
                        )
                    )
        return dead

    async def is_ready(self) -> bool:
        return self._keeper.is_linked

    async def _measure(self) -> None:
        """Have the metrics show the queues that are consumed here, and those of dead messages. Raises BrokerLost."""
        if not self._keeper.is_linked:
            self._counts.show({}, {})
            return
        dead = {topology.dead_queue(consumer.service) for consumer in self._consumers}
        channel = await (await self._keeper.link()).new_channel()
        waiting: dict[str, int] = {}
        consumers: dict[str, int] = {}
        with broker_errors():
            async with channel:
                for name in sorted({consumer.queue for consumer in self._consumers} | dead):
                    # Passive: it declares nothing, and needs no right to do so.
                    found = (await channel.get_queue(name)).declaration_result
                    waiting[name] = found.message_count or 0
                    if name not in dead:
                        consumers[name] = found.consumer_count or 0
        self._counts.show(waiting, consumers)

    async def _consume(self, consumer: Consumer) -> None:
        self._consumers.append(consumer)
        await consumer.start()
