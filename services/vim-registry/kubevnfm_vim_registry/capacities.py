"""The capacities of VIMs: read when a caller asks, and kept for a while in memory, so that views cost a VIM little."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from cachetools import TTLCache
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.error_text import bounded
from kubevnfm_kit.errors import VnfmError

from kubevnfm_vim_registry.domain.capacity import SeenCapacity
from kubevnfm_vim_registry.domain.ports import CapacityProbes
from kubevnfm_vim_registry.domain.record import VimRecord

_FRESH_S: Final = 60.0
_KEPT_S: Final = 3600.0
_MOST_VIMS: Final = 10_000
_MOST_NODES: Final = 50_000
"""Nodes that are kept, of all VIMs together: a large cluster has 5,000. Those that are dropped are read again after a minute."""
_MOST_READINGS: Final = 256
"""Those that run or wait; a further one begins for a later caller."""
_LONGEST_S: Final = 20.0
"""The time limit for the calls to one VIM: those of 5,000 nodes take some seconds."""
_REASON_BYTES: Final = 512


@dataclass(frozen=True)
class KnownCapacity:
    """The last reading of a VIM."""

    seen: SeenCapacity | None = None
    error: str = ""
    """Why the last try has failed."""


class Capacities:
    """Reads each VIM at most once a minute, one reading at a time, and a few VIMs at once."""

    def __init__(self, probes: CapacityProbes, clock: Clock, *, at_a_time: int) -> None:
        self._probes, self._clock = probes, clock
        self._places = asyncio.Semaphore(at_a_time)
        self._fresh: TTLCache[tuple[str, str], bool] = TTLCache(_MOST_VIMS, ttl=_FRESH_S)
        self._kept: TTLCache[str, KnownCapacity] = TTLCache(_MOST_VIMS + _MOST_NODES, ttl=_KEPT_S, getsizeof=_size)
        self._running: dict[tuple[str, str], asyncio.Task[None]] = {}

    def known(self, vim: VimRecord) -> KnownCapacity:
        """Return what is known without a call; if that is old, it is read in the background for the next caller."""
        self._reading(vim)
        return self._kept.get(vim.id, KnownCapacity())

    async def read(self, vim: VimRecord, *, longest_s: float) -> KnownCapacity:
        """Return what is known, once it is fresh or so much time has passed."""
        reading = self._reading(vim)
        if reading is not None:
            # The reading goes on for other callers.
            await asyncio.wait([reading], timeout=longest_s)
        return self._kept.get(vim.id, KnownCapacity())

    async def aclose(self) -> None:
        """End the readings."""
        running = list(self._running.values())
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _reading(self, vim: VimRecord) -> asyncio.Task[None] | None:
        # Changed access data may lead to another project.
        key = (vim.id, vim.updated_at)
        if key in self._running:
            return self._running[key]
        if key in self._fresh or vim.status == "UNREACHABLE" or len(self._running) >= _MOST_READINGS:
            return None
        task = asyncio.create_task(self._read(key, vim), name=f"capacity of {vim.id}")
        self._running[key] = task
        task.add_done_callback(lambda _: self._running.pop(key, None))
        return task

    async def _read(self, key: tuple[str, str], vim: VimRecord) -> None:
        async with self._places:
            before = self._kept.get(vim.id, KnownCapacity())
            try:
                async with asyncio.timeout(_LONGEST_S):
                    seen = await self._probes[vim.type].capacity(vim, as_of=rfc3339(self._clock.now()))
            except TimeoutError:
                found = KnownCapacity(before.seen, f"no answer within {_LONGEST_S:g} s")
            except VnfmError as error:
                found = KnownCapacity(before.seen, bounded(str(error), _REASON_BYTES))
            else:
                found = KnownCapacity(seen)
            self._kept[vim.id] = found
            self._fresh[key] = True


def _size(known: KnownCapacity) -> int:
    # One with more nodes than there is room for would not be kept at all.
    return 1 + min(len(known.seen.nodes) if known.seen is not None else 0, _MOST_NODES)
