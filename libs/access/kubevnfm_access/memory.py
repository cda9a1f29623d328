"""A cache of identity servers' answers, bounded in time and number."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Final

from cachetools import TLRUCache

from kubevnfm_access.caller import Caller

_MOST: Final = 10_000


class VerdictMemory:
    """Callers by token. Tokens are stored as hashes; simultaneous requests with the same token share one question."""

    def __init__(self, *, keep_s: float, now: Callable[[], float] = time.time) -> None:
        def until(key: str, caller: Caller, now_s: float) -> float:
            return min(now_s + keep_s, float("inf") if caller.expires is None else caller.expires)

        self._known: TLRUCache[str, Caller] = TLRUCache(_MOST, ttu=until, timer=now)
        self._asking: dict[str, _Asking] = {}

    async def caller(self, token: str, ask: Callable[[], Awaitable[Caller]]) -> Caller:
        """Return the cached caller of the token, otherwise the result of ``ask``; its errors are not cached."""
        # The cache holds no token that could be used elsewhere. Headers that are not UTF-8 arrive with surrogates, which
        # plain `encode` refuses.
        key = hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()
        if (known := self._known.get(key)) is not None:
            return known
        asking = self._asking.setdefault(key, _Asking())
        asking.callers += 1
        async with AsyncExitStack() as stack:
            stack.callback(self._done, key, asking)
            await stack.enter_async_context(asking.lock)
            # The answer came while this request waited for the lock.
            if (known := self._known.get(key)) is not None:
                return known
            caller = self._known[key] = await ask()
            return caller

    def _done(self, key: str, asking: _Asking) -> None:
        asking.callers -= 1
        # Removed with its last request; otherwise the locks of all tokens ever seen would stay.
        if asking.callers == 0:
            self._asking.pop(key, None)


class _Asking:
    """One question under way, and the requests that wait for it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.callers = 0
