"""Telling people how far it is, each thing once."""

from __future__ import annotations

from kubevnfm_events.mgmt import TaskProgressed

from kubevnfm_infra_k8s.domain.ports import Tell


class Progress:
    """The news of one task; what was told last is not told again."""

    def __init__(self, task: str, tell: Tell) -> None:
        self._task, self._tell = task, tell
        self._last: dict[str, str] = {}

    async def started(self, message: str, *, total: int | None = None) -> None:
        """Say that the task begins."""
        done = None if total is None else 0
        await self._tell(TaskProgressed(task=self._task, state="started", message=message, done=done, total=total))

    async def on(self, subject: str, message: str, *, done: int, total: int) -> None:
        """Say how a subject (an object) is doing: ``Deployment default/web: 1 of 2 ready``."""
        if self._last.get(subject) == message:
            return
        self._last[subject] = message
        text = f"{subject}: {message}"
        await self._tell(TaskProgressed(task=self._task, state="progressed", message=text, done=done, total=total))

    async def finished(self, message: str, *, total: int) -> None:
        """Say that the task is done."""
        await self._tell(TaskProgressed(task=self._task, state="finished", message=message, done=total, total=total))
