"""The MessageBus port: publish, consume commands, subscribe to events. At least once, everywhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from kubevnfm_events import Envelope, Message
from kubevnfm_kit.traces import TraceContext


@dataclass(frozen=True)
class Delivery:
    """One arrival of a message."""

    envelope: Envelope[Message]
    deliveries: int
    """How often it was delivered, this time included; ``Again`` answers do not count."""
    sent_by: TraceContext | None = None
    """The live span of its sending, if there is one."""


@dataclass(frozen=True)
class Ack:
    """The outcome is stored; the message is done."""


@dataclass(frozen=True)
class Again:
    """Not yet: deliver it again after ``in_s`` seconds; no fault, so it does not count towards dead-lettering."""

    in_s: float


@dataclass(frozen=True)
class Dead:
    """It can never be handled: move it to the dead-letter queue with the reason."""

    reason: str


Verdict = Ack | Again | Dead
Handler = Callable[[Delivery], Awaitable[Verdict]]
"""A handler that raises is a bug or a lost database: the message is delivered again after growing pauses (1, 2, 4 ... 60 s),
and moves to the dead-letter queue with the error's text after the bus's ``max_deliveries``."""


@dataclass(frozen=True)
class DeadLetter:
    """A message in the dead-letter queue."""

    service: str
    """The service whose queue it died in."""
    message_id: str
    type: str
    reason: str
    body: bytes
    """As it was published; secrets are sealed."""


class MessageBus(Protocol):
    """The broker as services use it. An adapter is an async context manager; leaving it drains and closes it."""

    async def publish(self, envelope: Envelope[Message]) -> None:
        """Return once the message is safe: the broker has confirmed it, or (in process) every handler has taken it.

        Commands go to the queue of their service, events to every queue that is bound to their routing key. Messages published one
        after the other by one caller arrive in that order. Retries through broker outages until cancelled.
        Because it may take as long as the broker is away, callers keep the message in an outbox and do not await it
        inside a request.
        """
        ...

    async def consume_commands(self, service: str, handler: Handler, *, concurrency: int = 64) -> None:
        """Handle the commands of ``service``; up to ``concurrency`` at a time, in no promised order."""
        ...

    async def consume_events(
        self, queue: str, patterns: Sequence[str], handler: Handler, *, concurrency: int = 64
    ) -> None:
        """Handle events whose routing key fits a pattern (AMQP topic: ``*`` one word, ``#`` any number).

        The durable queue ``queue`` is shared by all consumers of that name: each event is handled once among them,
        also those published while none was running (once the queue was declared for the first time).
        """
        ...

    def watch_events(
        self, patterns: Sequence[str], handler: Callable[[Envelope[Message]], Awaitable[None]]
    ) -> AbstractAsyncContextManager[None]:
        """Within the block, hand every fitting event to ``handler``, in order; for this process only, without redelivery."""
        ...

    async def dead_letters(self, service: str, *, limit: int = 100) -> Sequence[DeadLetter]:
        """Return the dead messages of a service's queue, oldest first, and leave them there."""
        ...

    async def is_ready(self) -> bool:
        """Return whether the broker is connected."""
        ...
