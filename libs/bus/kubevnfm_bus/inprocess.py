"""The MessageBus inside one process: for a single node, the demo and tests.

Nothing is stored on disk here: ``publish`` returns when every handler has taken the message. A message that was not
taken is still in the outbox of its document, and is published again after a restart. Messages pass through their
JSON form, so that secrets are sealed and the contract holds as on the broker.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Self

import structlog
from kubevnfm_events import Command, Envelope, Message, decode
from kubevnfm_kit.metrics import Metrics
from kubevnfm_kit.traces import TraceContext
from kubevnfm_secrets import KeyRing

from kubevnfm_bus import topology
from kubevnfm_bus.attempt import REDELIVERY, Broken, attempt
from kubevnfm_bus.errors import BusClosed
from kubevnfm_bus.port import Ack, Again, Dead, DeadLetter, Delivery, Handler
from kubevnfm_bus.queue_metrics import QueueMetrics
from kubevnfm_bus.routing import fits, owner_of
from kubevnfm_bus.spans import sending

log = structlog.get_logger()

_SYSTEM: Final = "kubevnfm"
"""The kind of bus, in spans."""
_DEAD_KEPT = 1000
"""Dead messages stored for each service; the oldest are dropped first."""


@dataclass(eq=False)
class _Entry:
    """A message in one queue."""

    envelope: Envelope[Message]
    """In the form that its receivers read."""
    body: bytes
    taken: asyncio.Future[None]
    sent_by: TraceContext | None
    failures: int = 0


@dataclass(eq=False)
class _Consumer:
    handler: Handler
    free: int


@dataclass(eq=False)
class _Queue:
    """Messages for the consumers of one name."""

    name: str
    """As on a broker."""
    service: str
    patterns: set[str] = field(default_factory=set)
    waiting: deque[_Entry] = field(default_factory=deque)
    consumers: deque[_Consumer] = field(default_factory=deque)


@dataclass(eq=False)
class _Watch:
    patterns: Sequence[str]
    pending: asyncio.Queue[Envelope[Message]] = field(default_factory=asyncio.Queue)


class InProcessBus:
    """MessageBus by function calls on one event loop. An async context manager; leaving it lets handlers end."""

    def __init__(
        self, key_ring: KeyRing, *, max_deliveries: int = 10, drain_s: float = 10.0, metrics: Metrics | None = None
    ) -> None:
        """``drain_s``: how long closing waits for running handlers before they are cancelled."""
        self._ring, self._max_deliveries, self._drain_s = key_ring, max_deliveries, drain_s
        self._commands: dict[str, _Queue] = {}
        self._events: dict[str, _Queue] = {}
        self._routes: dict[str, Sequence[_Queue]] = {}
        """The queues of events by routing key, of which each type of event has one."""
        self._watches: list[_Watch] = []
        self._dead: dict[str, deque[DeadLetter]] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._timers: dict[_Entry, asyncio.TimerHandle] = {}
        self._open = asyncio.Event()
        self._open.set()
        self._is_closed = False
        metrics = metrics or Metrics()
        self._counts = QueueMetrics(metrics)
        metrics.before_reading(self._measure)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self._is_closed = True
        self._open.set()
        # Refused rather than handled: their publishers get BusClosed, so the messages stay in their outboxes for the
        # next start.
        left = [entry for queue in self._queues() for entry in queue.waiting] + list(self._timers)
        for timer in self._timers.values():
            timer.cancel()
        for entry in left:
            _refuse(entry)
        if self._running:
            _, unfinished = await asyncio.wait(self._running, timeout=self._drain_s)
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Within the block, published messages wait: for a start, until every service has declared its queues.

        On a broker queues outlive a restart; here an event that is published before its queue is declared would be lost.
        """
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()

    async def publish(self, envelope: Envelope[Message]) -> None:
        """Raises BusClosed when the bus closes before every handler has taken the message."""
        if not self._open.is_set():
            await self._open.wait()
        if self._is_closed:
            raise BusClosed("the message bus is closed")
        # Only until it is queued: below, the publisher waits for its handlers.
        with sending(envelope, _SYSTEM) as span:
            entries = self._queue_up(envelope, span.context)
        for entry in entries:
            # Shielded: cancelling the publisher would cancel the future that the handler settles later.
            await asyncio.shield(entry.taken)

    def _queue_up(self, envelope: Envelope[Message], sent_by: TraceContext | None) -> Sequence[_Entry]:
        body = envelope.encode(self._ring)
        # Decoded from the bytes: a handler gets what it would get from a broker, and cannot change the publisher's
        # objects.
        received = decode(body)
        if isinstance(envelope.data, Command):
            queues: Sequence[_Queue] = [self._command_queue(envelope.data.service)]
        else:
            key = envelope.data.own_key()
            queues = self._queues_of(key)
            for watch in self._watches:
                if any(fits(pattern, key) for pattern in watch.patterns):
                    watch.pending.put_nowait(received)
        loop = asyncio.get_running_loop()
        entries = [_Entry(received, body, loop.create_future(), sent_by) for _ in queues]
        for queue, entry in zip(queues, entries, strict=True):
            queue.waiting.append(entry)
            self._serve(queue)
        return entries

    async def consume_commands(self, service: str, handler: Handler, *, concurrency: int = 64) -> None:
        queue = self._command_queue(service)
        self._counts.consumes(queue.name)
        queue.consumers.append(_Consumer(handler, concurrency))
        self._serve(queue)

    async def consume_events(
        self, queue: str, patterns: Sequence[str], handler: Handler, *, concurrency: int = 64
    ) -> None:
        known = self._events.setdefault(queue, _Queue(topology.event_queue(queue), service=owner_of(queue)))
        self._counts.consumes(known.name)
        known.patterns.update(patterns)
        self._routes.clear()
        known.consumers.append(_Consumer(handler, concurrency))
        self._serve(known)

    @asynccontextmanager
    async def watch_events(
        self, patterns: Sequence[str], handler: Callable[[Envelope[Message]], Awaitable[None]]
    ) -> AsyncIterator[None]:
        watch = _Watch(tuple(patterns))
        self._watches.append(watch)
        task = asyncio.create_task(_show(watch, handler), name="watch-events")
        try:
            yield
        finally:
            self._watches.remove(watch)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def dead_letters(self, service: str, *, limit: int = 100) -> Sequence[DeadLetter]:
        """They are lost when the process ends."""
        return list(islice(self._dead.get(service, ()), limit))

    async def is_ready(self) -> bool:
        return not self._is_closed

    async def quiet(self) -> None:
        """Return when no message is being handled, waits for a free handler, or is delayed: for tests and tools."""
        while (
            waiting := [entry.taken for queue in self._queues() for entry in queue.waiting if queue.consumers]
            + [entry.taken for entry in self._timers]
            + list(self._running)
        ):
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)

    def _command_queue(self, service: str) -> _Queue:
        return self._commands.setdefault(service, _Queue(topology.command_queue(service), service=service))

    def _queues_of(self, key: str) -> Sequence[_Queue]:
        found = self._routes.get(key)
        if found is None:
            found = [queue for queue in self._events.values() if any(fits(p, key) for p in queue.patterns)]
            self._routes[key] = found
        return found

    def _queues(self) -> Iterator[_Queue]:
        yield from self._commands.values()
        yield from self._events.values()

    async def _measure(self) -> None:
        waiting = Counter({queue.name: len(queue.waiting) for queue in self._queues()})
        waiting.update({topology.dead_queue(service): len(dead) for service, dead in self._dead.items()})
        self._counts.show(waiting, {queue.name: len(queue.consumers) for queue in self._queues()})

    def _serve(self, queue: _Queue) -> None:
        """Hand waiting messages to consumers with a free place, in turn."""
        while queue.waiting and not self._is_closed:
            consumer = next((consumer for consumer in queue.consumers if consumer.free), None)
            if consumer is None:
                return
            queue.consumers.rotate(-1)
            consumer.free -= 1
            entry = queue.waiting.popleft()
            task = asyncio.create_task(self._handle(queue, consumer, entry), name=f"handle-{entry.envelope.type}")
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _handle(self, queue: _Queue, consumer: _Consumer, entry: _Entry) -> None:
        try:
            self._counts.delivered(queue.name, entry.failures + 1)
            delivery = Delivery(entry.envelope, entry.failures + 1, entry.sent_by)
            verdict = await attempt(consumer.handler, delivery, system=_SYSTEM, queue=queue.name)
            match verdict:
                case Ack():
                    _settle(entry)
                case Again(in_s=in_s):
                    # The handler did not raise, so earlier failures do not count any more.
                    entry.failures = 0
                    self._rest(queue, entry, in_s)
                case Dead(reason=reason):
                    self._bury(queue, entry, reason)
                case Broken(reason=reason):
                    entry.failures += 1
                    if entry.failures >= self._max_deliveries:
                        self._bury(queue, entry, reason)
                    else:
                        self._rest(queue, entry, REDELIVERY.after(entry.failures))
        except asyncio.CancelledError:
            _refuse(entry)
            raise
        finally:
            consumer.free += 1
            self._serve(queue)

    def _rest(self, queue: _Queue, entry: _Entry, in_s: float) -> None:
        if self._is_closed:
            _refuse(entry)
            return

        def wake() -> None:
            del self._timers[entry]
            queue.waiting.append(entry)
            self._serve(queue)

        self._timers[entry] = asyncio.get_running_loop().call_later(max(in_s, 0.0), wake)

    def _bury(self, queue: _Queue, entry: _Entry, reason: str) -> None:
        envelope = entry.envelope
        self._counts.died(queue.name)
        log.error("message_died", service=queue.service, message_id=envelope.id, type=envelope.type, reason=reason)
        dead = self._dead.setdefault(queue.service, deque(maxlen=_DEAD_KEPT))
        dead.append(DeadLetter(queue.service, envelope.id, envelope.type, reason, entry.body))
        # For the publisher a dead message is taken: left in the outbox, it would be published again and die at every
        # sweep.
        _settle(entry)


async def _show(watch: _Watch, handler: Callable[[Envelope[Message]], Awaitable[None]]) -> None:
    while True:
        envelope = await watch.pending.get()
        try:
            await handler(envelope)
        except Exception:  # the edge: one event that cannot be shown must not end the watch
            log.exception("watcher_broke")


def _settle(entry: _Entry) -> None:
    if not entry.taken.done():
        entry.taken.set_result(None)


def _refuse(entry: _Entry) -> None:
    if not entry.taken.done():
        entry.taken.set_exception(BusClosed("the message bus was closed before the message was taken"))
        # The publisher may have been cancelled. Reading the error here keeps asyncio from logging it as unhandled.
        entry.taken.exception()
