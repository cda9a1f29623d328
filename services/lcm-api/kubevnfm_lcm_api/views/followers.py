"""The callers who follow logs at this gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kubevnfm_access.errors import TooManyRequests

_MOST_FOLLOWERS: Final = 50
"""Each asks mgmt-executor for what is new, and keeps a connection to it."""
_AGAIN_S: Final = 10


class Followers:
    """The callers who follow logs at this gateway."""

    def __init__(self, most: int = _MOST_FOLLOWERS) -> None:
        self._most, self._count = most, 0
        self._closing = asyncio.Event()

    @contextmanager
    def place_for_one(self) -> Iterator[asyncio.Event]:
        """Yield what is set when the gateway stops. Raises TooManyRequests."""
        if self._count >= self._most:
            raise TooManyRequests("no more logs can be followed here", retry_after_s=_AGAIN_S)
        self._count += 1
        try:
            yield self._closing
        finally:
            self._count -= 1

    def close(self) -> None:
        """End their answers, so that the gateway does not wait for them when it stops."""
        self._closing.set()
