"""Shows in the operation's view what an API server has warned of: the task ``warnings`` of the step."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from cachetools import LRUCache
from kubevnfm_worker.outcome import StepContext

from kubevnfm_infra_k8s.domain.api_warnings import ApiWarnings, listening
from kubevnfm_infra_k8s.domain.progress import Progress


@dataclass(frozen=True)
class HeardWarnings:
    """The warnings of the last attempts of steps in this process, of which each may have several calls."""

    _by_attempt: LRUCache[str, ApiWarnings] = field(default_factory=lambda: LRUCache(1000))

    @asynccontextmanager
    async def publishing(self, context: StepContext) -> AsyncIterator[None]:
        """Publish what API servers warn of in the block, with what they did in earlier calls of the attempt."""
        found = self._by_attempt.setdefault(f"{context.message_id}/{context.attempt}", ApiWarnings())
        before = found.count
        try:
            with listening(found):
                yield
        finally:
            if found.count > before:
                what = f"warning: the API server says: {found}"
                await Progress("warnings", context.publish).finished(what, total=found.count)
