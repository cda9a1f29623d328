"""Publishes the progress of commands."""

from __future__ import annotations

import asyncio
from typing import Final, Literal

import structlog
from kubevnfm_bus.port import MessageBus
from kubevnfm_events import Envelope, Event, Message
from kubevnfm_events.mgmt import TaskProgressed
from kubevnfm_kit.clock import rfc3339

from kubevnfm_worker.inbox import Wait

log = structlog.get_logger()

_MOST_NEWS: Final = 1000
"""Progress events that may wait for the broker; more are dropped, because the work must not wait."""

_WAIT_TASK: Final = "wait"
"""The task by which the progress of an operation shows that a command waits for something outside."""


def news_of_wait(
    waits: Wait, state: Literal["started", "progressed", "finished", "failed"], *, tries: int | None = None
) -> TaskProgressed:
    """Return what is published about a command that is tried again; ``tries``: in a row, until now."""
    began = "waiting" if tries is not None else "waited"
    message = f"{began} since {rfc3339(waits.since)}: {waits.reason}"
    return TaskProgressed(
        task=_WAIT_TASK, state=state, message=message, code=waits.code, since=waits.since, tries=tries
    )


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
