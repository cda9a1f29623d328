"""Runs one task on one node and writes down what became of it: in the journal, and for people who watch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kubevnfm_events.mgmt import TaskProgressed
from kubevnfm_kit.errors import VnfmError

from kubevnfm_mgmt_executor.domain.errors import ConnectionLost, NodeFailure
from kubevnfm_mgmt_executor.domain.ports import Claim, Earlier, Journal, TaskKey

Tell = Callable[[TaskProgressed], Awaitable[None]]
ProgressState = Literal["started", "finished", "failed", "skipped", "cancelled"]


@dataclass(frozen=True)
class TaskResult:
    """How a task ended well."""

    changed: bool = True
    """False: the probe found everything done, nothing was touched."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """For the journal: no secrets, nothing that expires."""


@dataclass(frozen=True)
class NodeId:
    """A machine of the VNF."""

    vnfc_id: str
    name: str


Work = Callable[[Earlier | None], Awaitable[TaskResult]]


class Recorder:
    """One phase's tasks, in one worker's name."""

    def __init__(self, journal: Journal, claim: Claim, *, vnf_instance_id: str, tell: Tell) -> None:
        self._journal, self._claim, self._tell = journal, claim, tell
        self._vnf_instance_id = vnf_instance_id
        self._done = 0
        self._cancelled: list[tuple[NodeId, str, float]] = []
        """Node, task and how long it ran."""
        self.total: int | None = None
        """How many tasks the phase has, once its plan is known."""

    async def perform(self, node: NodeId, task: str, work: Work, *, counted: bool = True) -> TaskResult:
        """Do the work between ``running`` and ``done``; the work looks first, whatever the journal says.

        A cancelled task stays ``running``, which whoever comes next reads as "unknown", and is told by
        `tell_cancelled`.
        """
        key = TaskKey(self._vnf_instance_id, node.vnfc_id, node.name, task)
        earlier = await self._journal.begin(key, self._claim)
        await self._say(node, task, "started")
        began = time.monotonic()
        try:
            result = await work(earlier)
        except VnfmError as error:
            if isinstance(error, NodeFailure | ConnectionLost):
                error.task = error.task or task
            duration_s = time.monotonic() - began
            await self._journal.failed(key, self._claim, error=str(error), duration_s=duration_s)
            await self._say(node, task, "failed", message=str(error), duration_s=duration_s)
            raise
        except asyncio.CancelledError:
            self._cancelled.append((node, task, time.monotonic() - began))
            raise
        duration_s = time.monotonic() - began
        await self._journal.done(key, self._claim, facts=result.facts, duration_s=duration_s)
        self._done += counted
        await self._say(node, task, "finished" if result.changed else "skipped", duration_s=duration_s)
        return result

    async def tell_cancelled(self) -> None:
        """Tell which tasks were cut off. Not for a worker that is cut off itself: another may be at them already."""
        for node, task, duration_s in self._cancelled:
            await self._say(node, task, "cancelled", duration_s=duration_s)
        self._cancelled.clear()

    async def _say(
        self, node: NodeId, task: str, state: ProgressState, *, message: str = "", duration_s: float | None = None
    ) -> None:
        await self._tell(
            TaskProgressed(
                node=node.name,
                task=task,
                state=state,
                message=message,
                done=self._done,
                total=self.total,
                duration_s=None if duration_s is None else round(duration_s, 3),
            )
        )
