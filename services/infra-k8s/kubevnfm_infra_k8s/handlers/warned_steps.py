"""Shows the warnings of a step in the operation's view: the task ``warnings``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from cachetools import LRUCache
from kubevnfm_worker.outcome import StepContext

from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.step_warnings import StepWarnings, listening


@dataclass(frozen=True)
class WarnedSteps:
    """The warnings of the last attempts of steps in this process, of which each may have several calls."""

    _by_attempt: LRUCache[str, StepWarnings] = field(default_factory=lambda: LRUCache(1000))

    @asynccontextmanager
    async def publishing(self, context: StepContext) -> AsyncIterator[None]:
        """Publish the warnings of the block, with those of earlier calls of the attempt."""
        found = self._by_attempt.setdefault(f"{context.message_id}/{context.attempt}", StepWarnings())
        before = found.count
        try:
            with listening(found):
                yield
        finally:
            if found.count > before:
                await Progress("warnings", context.publish).finished(f"warning: {found}", total=found.count)
