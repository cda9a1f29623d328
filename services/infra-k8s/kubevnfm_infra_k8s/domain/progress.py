"""Publishes the progress of a task."""

from __future__ import annotations

from kubevnfm_events.mgmt import TaskProgressed

from kubevnfm_infra_k8s.domain.ports import PublishEvent


class Progress:
    """The progress events of one task. An unchanged message is not published again."""

    def __init__(self, task: str, publish: PublishEvent) -> None:
        self._task, self._publish = task, publish
        self._last: dict[str, str] = {}

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
        await self._publish(TaskProgressed(task=self._task, state="progressed", message=text, done=done, total=total))

    async def finished(self, message: str, *, total: int) -> None:
        """Publish that the task is complete."""
        await self._publish(TaskProgressed(task=self._task, state="finished", message=message, done=total, total=total))

    async def failed(self, message: str) -> None:
        """Publish that the task was given up."""
        await self._publish(TaskProgressed(task=self._task, state="failed", message=message))
