"""The rate limit: a token bucket for each caller, filled at a steady rate."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

from cachetools import LRUCache

_MOST: Final = 10_000
"""Number of buckets; the least recently used one is dropped, and is long full by then."""


class RateLimit:
    """Buckets by caller."""

    def __init__(self, *, per_s: float, burst: int, now: Callable[[], float] = time.monotonic) -> None:
        self._per_s, self._burst, self._now = per_s, float(burst), now
        self._buckets: LRUCache[str, tuple[float, float]] = LRUCache(_MOST)

    def wait_s(self, caller: str) -> int:
        """Return how long the caller must wait before its next request, in whole seconds; 0: not at all."""
        level = self._level(caller)
        return 0 if level >= 1.0 else max(1, math.ceil((1.0 - level) / self._per_s))

    def count(self, caller: str) -> int:
        """Count a request; return 0. If it exceeds the rate, return the time to wait and do not count it."""
        wait_s = self.wait_s(caller)
        if wait_s == 0:
            self._buckets[caller] = (self._level(caller) - 1.0, self._now())
        return wait_s

    def charge(self, caller: str) -> None:
        """Count what was done already, also above the rate: the caller waits longer then. At most a burst is owed."""
        self._buckets[caller] = (max(self._level(caller) - 1.0, -self._burst), self._now())

    def _level(self, caller: str) -> float:
        level, at = self._buckets.get(caller, (self._burst, self._now()))
        return min(self._burst, level + (self._now() - at) * self._per_s)
