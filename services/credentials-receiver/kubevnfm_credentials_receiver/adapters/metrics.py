"""Counts call-backs by the status of their answer, in the text format of Prometheus (version 0.0.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web
from kubevnfm_kit.errors import VnfmError

_NAME: Final = "kubevnfm_callbacks_total"
_INTERNAL_ERROR: Final = 500


class CallbackMetrics:
    """The counts since the process began."""

    def __init__(self) -> None:
        self._by_status: Counter[int] = Counter()

    @asynccontextmanager
    async def counted(self) -> AsyncIterator[Counter[int]]:
        """Count one call-back: the block adds the status of its answer, an error of the block adds its own."""
        try:
            yield self._by_status
        except VnfmError as error:
            self._by_status[error.status] += 1
            raise
        except Exception:  # counted here, handled at the edge
            self._by_status[_INTERNAL_ERROR] += 1
            raise

    async def show(self, _: web.Request) -> web.Response:
        """GET /metrics."""
        lines = [f"# HELP {_NAME} Call-backs by the status of their answer.", f"# TYPE {_NAME} counter"]
        lines += [f'{_NAME}{{status="{status}"}} {count}' for status, count in sorted(self._by_status.items())]
        return web.Response(text="\n".join(lines) + "\n", headers={"Content-Type": "text/plain; version=0.0.4"})
