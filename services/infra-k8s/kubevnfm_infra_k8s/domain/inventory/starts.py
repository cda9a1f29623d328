"""The turns of watches that begin, and of what they write: a process that starts with hundreds of regions does some of it at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakValueDictionary

_AT_ONCE: Final = 16
"""Enough that the process has always an answer to read, and so few that the answers of one moment hold up nothing else."""
_LONGEST_S: Final = 5.0
_BATCHES_AT_ONCE: Final = 2
"""One is prepared while the database writes the other; a write of anything else, such as the lease, waits for these alone."""


@dataclass(eq=False)
class _Region:
    """A region with a watch that begins or works."""

    answers: bool = False
    """Whether it has answered since a watch failed last."""
    asked: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Until it answers, one of its watches has or awaits a turn: ten of a silent region would hold the others up ten times as long."""


class Starts:
    """The turns of all regions, in the order in which they are asked for."""

    def __init__(self, *, at_once: int = _AT_ONCE, longest_s: float = _LONGEST_S) -> None:
        """``longest_s``: after this time the next one has its turn: regions that do not answer hold none up."""
        self._free, self._longest_s = asyncio.Semaphore(at_once), longest_s
        self._regions: WeakValueDictionary[str, _Region] = WeakValueDictionary()
        self.writing = asyncio.Semaphore(_BATCHES_AT_ONCE)
        """Held while a batch of records is written."""

    @asynccontextmanager
    async def turn(self, vim_id: str) -> AsyncIterator[Callable[[], None]]:
        """Wait for a turn of a region; yield what ends it before the block does, once the region has answered."""
        region = self._regions.setdefault(vim_id, _Region())
        await region.asked.acquire()
        with ExitStack() as held:
            if region.answers:
                region.asked.release()
            else:
                held.callback(region.asked.release)
            await self._free.acquire()
            held.callback(self._free.release)
            held.callback(asyncio.get_running_loop().call_later(self._longest_s, held.close).cancel)

            def answered() -> None:
                region.answers = True
                held.close()

            try:
                yield answered
            except Exception:
                # Its next watch asks alone; the error is its watch's.
                region.answers = False
                raise
