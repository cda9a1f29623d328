"""Publishes the progress of commands."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog
from kubevnfm_bus.port import MessageBus
from kubevnfm_events import Envelope, Event, Message

log = structlog.get_logger()

_MOST_NEWS: Final = 1000
"""Progress events that may wait for the broker; more are dropped, because the work must not wait."""


class News:
    """Progress is not stored in an outbox: losing it costs a line on a screen, waiting for it costs the work."""

    def __init__(self, bus: MessageBus, *, source: str) -> None:
        self._bus, self._source = bus, source
        self.tasks: set[asyncio.Task[None]] = set()
        """The events that are being published."""

    def send(self, command: Envelope[Message], event: Event) -> None:
        """Begin to publish what happened while the command was handled."""
        if len(self.tasks) >= _MOST_NEWS:
            log.warning("news_dropped", type=event.type)
            return
        news = command.follow_up(event, source=self._source)
        task = asyncio.create_task(self._bus.publish(news), name=f"news-{event.type}")
        self.tasks.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("news_lost", reason=str(error))
