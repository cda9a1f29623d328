"""Runs one task on one node, and records its outcome in the journal and as progress for people who watch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

import structlog
from kubevnfm_events.mgmt import TaskProgressed
from kubevnfm_kit.errors import VnfmError

from kubevnfm_mgmt_executor.domain.errors import ConnectionLost, NodeFailure
from kubevnfm_mgmt_executor.domain.ports import Claim, Earlier, Journal, TaskKey

log = structlog.get_logger()

Publish = Callable[[TaskProgressed], Awaitable[None]]
ProgressState = Literal["started", "progressed", "finished", "failed", "skipped", "cancelled"]


@dataclass(frozen=True)
class TaskResult:
    """The outcome of a task that succeeded."""

    changed: bool = True
    """False: the task found everything done and changed nothing."""
    facts: Mapping[str, object] = field(default_factory=dict)
    """For the journal: no secrets, and nothing that expires."""
    remark: str = ""
    """A fact about the outcome for people who watch the operation."""


@dataclass(frozen=True)
class NodeId:
    """A machine of the VNF."""

    vnfc_id: str
    name: str


Work = Callable[[Earlier | None], Awaitable[TaskResult]]


class Recorder:
    """Records one phase's tasks under one worker's claim."""

    def __init__(self, journal: Journal, claim: Claim, *, vnf_instance_id: str, publish: Publish) -> None:
        self._journal, self._claim, self._publish = journal, claim, publish
        self._vnf_instance_id = vnf_instance_id
        self._done = 0
        self._cancelled: list[tuple[NodeId, str, float]] = []
        """Node, task and how long it ran."""
        self._current: ContextVar[tuple[NodeId, str] | None] = ContextVar("current", default=None)
        """Node and task that the caller works for."""
        self.total: int | None = None
        """How many tasks the phase has, once its plan is known."""

    async def perform(self, node: NodeId, task: str, work: Work, *, counted: bool = True) -> TaskResult:
        """Do the work between the journal's ``running`` and ``done``.

        The work itself finds out what is left to do, whatever the journal says. A cancelled task stays ``running``,
        which the next worker reads as "unknown"; `report_cancelled` publishes it.
        """
        key = TaskKey(self._vnf_instance_id, node.vnfc_id, node.name, task)
        # The journal first: it rejects a worker that has lost its claim before people see the task started a second
        # time.
        earlier = await self._journal.begin(key, self._claim)
        log.info("task_begun", node=node.name, task=task)
        await self._report(node, task, "started")
        began = time.monotonic()
        current = self._current.set((node, task))
        try:
            result = await work(earlier)
        except VnfmError as error:
            if isinstance(error, NodeFailure | ConnectionLost):
                error.task = error.task or task
            duration_s = time.monotonic() - began
            _say_ended(node, task, duration_s, "failed", code=error.code, reason=str(error))
            await self._journal.failed(key, self._claim, error=str(error), duration_s=duration_s)
            await self._report(node, task, "failed", message=str(error), duration_s=duration_s, code=error.code)
            raise
        except asyncio.CancelledError:
            # Nothing is written here: a cancelled worker may have lost its claim to another.
            duration_s = time.monotonic() - began
            _say_ended(node, task, duration_s, "cancelled")
            self._cancelled.append((node, task, duration_s))
            raise
        except Exception:  # ours: the command ends with it, and its line has the traceback
            _say_ended(node, task, time.monotonic() - began, "failed", code="internal-error")
            raise
        finally:
            self._current.reset(current)
        duration_s = time.monotonic() - began
        _say_ended(node, task, duration_s, "done" if result.changed else "skipped")
        await self._journal.done(key, self._claim, facts=result.facts, duration_s=duration_s)
        self._done += counted
        state: ProgressState = "finished" if result.changed else "skipped"
        await self._report(node, task, state, message=result.remark, duration_s=duration_s)
        return result

    async def last(self, node: NodeId, task: str) -> Earlier | None:
        """Return the journal's record of the task, as another command has left it."""
        return await self._journal.last(TaskKey(self._vnf_instance_id, node.vnfc_id, node.name, task))

    async def progress(self, node: NodeId, task: str, message: str) -> None:
        """Publish how far a running task is, or what it waits for."""
        await self._report(node, task, "progressed", message=message)

    async def waits(self, message: str) -> None:
        """Publish what the task that calls it waits for; empty: it goes on."""
        current = self._current.get()
        if current is not None:
            await self._report(*current, "progressed", message=message)

    async def remark(self, task: str, message: str) -> None:
        """Publish a fact about the phase as a whole, under the stable name ``task``."""
        await self._publish(TaskProgressed(task=task, state="finished", message=message))

    async def report_cancelled(self) -> None:
        """Publish which tasks were cancelled because another one failed.

        A worker that is cancelled itself must not call it: another worker may be running the same tasks already.
        """
        for node, task, duration_s in self._cancelled:
            await self._report(node, task, "cancelled", duration_s=duration_s)
        self._cancelled.clear()

    async def _report(
        self,
        node: NodeId,
        task: str,
        state: ProgressState,
        *,
        message: str = "",
        duration_s: float | None = None,
        code: str = "",
    ) -> None:
        await self._publish(
            TaskProgressed(
                node=node.name,
                task=task,
                state=state,
                message=message,
                done=self._done,
                total=self.total,
                duration_s=None if duration_s is None else round(duration_s, 3),
                code=code,
            )
        )


def _say_ended(node: NodeId, task: str, duration_s: float, outcome: str, **why: str) -> None:
    log.info("task_ended", node=node.name, task=task, duration_s=round(duration_s, 3), outcome=outcome, **why)
