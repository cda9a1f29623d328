"""The names of VIMs, for sentences: people know a VIM by name, and records have the id."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from cachetools import TTLCache
from kubevnfm_clients.ports import Vims
from kubevnfm_kit.errors import VnfmError

_KNOWN_S: Final = 60.0
_UNKNOWN_S: Final = 10.0
"""After so long a name that could not be read is asked for again."""
_LONGEST_S: Final = 1.0
"""A view is shown without the names rather than later."""
_MOST: Final = 1000


class VimNames:
    """Finds the names of VIMs, and remembers them for a while."""

    def __init__(self, vims: Vims) -> None:
        self._vims = vims
        self._known: TTLCache[str, str] = TTLCache(_MOST, ttl=_KNOWN_S)
        self._unknown: TTLCache[str, None] = TTLCache(_MOST, ttl=_UNKNOWN_S)

    async def by_id(self, vim_ids: Iterable[str]) -> Mapping[str, str]:
        """Return the names as far as they are known now; a name that VIMs of several tenants have is followed by the id."""
        wanted = dict.fromkeys(vim_ids)
        await asyncio.gather(*(self._find(each) for each in wanted if each not in self._known))
        return {each: name for each in wanted if (name := self._known.get(each)) is not None}

    async def _find(self, vim_id: str) -> None:
        if vim_id in self._unknown:
            return
        # Before the calls: while they run, other views do not make them too.
        self._unknown[vim_id] = None
        try:
            async with asyncio.timeout(_LONGEST_S):
                name = str((await self._vims.get(vim_id))["name"])
                is_unique = len(await self._vims.list({"name": [name]})) < 2
        except (VnfmError, TimeoutError):
            return
        self._known[vim_id] = name if is_unique else f"{name} ({vim_id})"
        del self._unknown[vim_id]
