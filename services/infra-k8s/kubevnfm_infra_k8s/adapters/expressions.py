"""Evaluates the expressions of all waits in one process, which exists while one of them needs it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from kubevnfm_csar.cel.process import CelProcess
from kubevnfm_csar.waits import WantedResult

from kubevnfm_infra_k8s.domain.objects import Body
from kubevnfm_infra_k8s.domain.verdicts import Evaluation


@dataclass
class _Running:
    process: CelProcess = field(default_factory=CelProcess)
    thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "expressions"))
    """One, because the process answers one question at a time; also one whose asker was cancelled."""
    users: int = 0


class CelExpressions:
    """`ports.Expressions`."""

    def __init__(self) -> None:
        self._running: _Running | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        running = self._running = self._running or _Running()
        running.users += 1
        try:
            yield
        finally:
            running.users -= 1
            if running.users == 0:
                self._running = None
                running.thread.submit(running.process.__exit__)
                running.thread.shutdown(wait=False)

    async def evaluate(self, wanted: WantedResult, body: Body) -> Evaluation:
        running = self._running
        assert running is not None
        return await asyncio.get_running_loop().run_in_executor(
            running.thread, _evaluated, running.process, wanted, body
        )


def _evaluated(process: CelProcess, wanted: WantedResult, body: Body) -> Evaluation:
    has_failed = wanted.failed is not None and process.evaluate(wanted.failed, body).holds
    found = process.evaluate(wanted.expression, body)
    return Evaluation(found.holds, has_failed, found.error)
