"""Publishes the progress of a task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubevnfm_events.mgmt import TaskProgressed
from kubevnfm_kit.error_text import bounded

from kubevnfm_infra_k8s.domain.ports import PublishEvent

_MOST_OBSTACLES: Final = 10
_OBSTACLE_BYTES: Final = 1000


class Progress:
    """The progress events of one task. An unchanged message is not published again."""

    def __init__(self, task: str, publish: PublishEvent) -> None:
        self._task, self._publish = task, publish
        self._last: dict[str, str] = {}
        self._obstacles: tuple[str, ...] = ()

    async def started(self, message: str, *, total: int | None = None) -> None:
        """Publish that the task has begun."""
        done = None if total is None else 0
        await self._publish(TaskProgressed(task=self._task, state="started", message=message, done=done, total=total))

    async def on(self, subject: str, message: str, *, done: int, total: int) -> None:
        """Publish the state of an object: ``Deployment default/web: 1 of 2 ready``."""
        if self._last.get(subject) == message:
            return
        self._last[subject] = message
        text = f"{subject}: {message}"
        await self._publish(
            TaskProgressed(
                task=self._task,
                state="progressed",
                message=text,
                done=done,
                total=total,
                obstacles=self._obstacles,
            )
        )

    async def on_all(self, waiting: Mapping[str, str], *, done: int, total: int) -> None:
        """Publish the states of all objects that are not ready; each event names those that the task waits for now."""
        # Messages that say a reason are the longer ones.
        texts = sorted((f"{subject}: {message}" for subject, message in waiting.items()), key=len, reverse=True)
        before = self._obstacles
        self._obstacles = tuple(bounded(each, _OBSTACLE_BYTES) for each in texts[:_MOST_OBSTACLES])
        changed = [subject for subject, message in waiting.items() if self._last.get(subject) != message]
        # One that is ready now has no message of its own.
        if waiting and not changed and not set(before) <= set(self._obstacles):
            changed = [next(iter(waiting))]
            self._last.pop(changed[0])
        for subject in changed:
            await self.on(subject, waiting[subject], done=done, total=total)

    async def finished(self, message: str, *, total: int) -> None:
        """Publish that the task is complete."""
        await self._publish(TaskProgressed(task=self._task, state="finished", message=message, done=total, total=total))

    async def failed(self, message: str) -> None:
        """Publish that the task was given up."""
        await self._publish(TaskProgressed(task=self._task, state="failed", message=message))
