"""Counts call-backs by the status of their answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.metrics import Metrics

_INTERNAL_ERROR: Final = 500


class CallbackMetrics:
    """The call-backs of this process."""

    def __init__(self, metrics: Metrics) -> None:
        text = "Call-backs by the status of their answer."
        self._by_status = metrics.counter("kubevnfm_callbacks", text, ["status"])

    @asynccontextmanager
    async def counted(self) -> AsyncIterator[Callable[[int], None]]:
        """Count one call-back: the block calls what is yielded with the status of its answer, an error of the block has its own."""
        try:
            yield self._count
        except VnfmError as error:
            self._count(error.status)
            raise
        except Exception:  # counted here, handled at the edge
            self._count(_INTERNAL_ERROR)
            raise

    def _count(self, status: int) -> None:
        self._by_status.series(str(status)).inc()
