"""Counts the requests with a wrong signature from each address within the last minute (CR-067)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

from cachetools import LRUCache

from kubevnfm_credentials_receiver.domain.errors import TooManyFailures

_WINDOW_S: Final = 60.0
_MOST_ADDRESSES: Final = 10_000
"""Beyond this number the least recent addresses are dropped, so that a botnet cannot exhaust the memory."""


class Failures:
    """Counts failures by address, only in memory: a limit against guessing need not be exact across replicas.

    It is asked about wrong signatures alone. Many senders may share an address, so one that guesses must not keep the others out;
    and a signature costs less to verify than an answer does to send.
    """

    def __init__(self, *, a_minute: int, now: Callable[[], float] = time.monotonic) -> None:
        self._a_minute, self._now = a_minute, now
        self._at: LRUCache[str, deque[float]] = LRUCache(_MOST_ADDRESSES)

    def note(self, address: str) -> None:
        """Count a failure. Raises TooManyFailures if the address had used up its failures before."""
        now = self._now()
        # Older failures than the last a_minute ones cannot change the decision.
        failed_at = self._at.setdefault(address, deque(maxlen=self._a_minute))
        while failed_at and now - failed_at[0] >= _WINDOW_S:
            failed_at.popleft()
        if len(failed_at) >= self._a_minute:
            raise TooManyFailures(int(_WINDOW_S - (now - failed_at[0])) + 1)
        failed_at.append(now)
