"""Work that one of the processes repeats: in each round, a conditional write decides which one does it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.run import repeat
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import Compare, Op

ROUNDS: Final = "drift_rounds"  # a stored name: it stays
_MOST_SHARE: Final = 0.05
"""The largest part of the time that rounds may take: with very many documents the pause between two becomes longer."""


@dataclass(frozen=True)
class Rounds:
    """The rounds of one kind of work."""

    store: DocumentStore
    clock: Clock
    name: str
    """Stored: the same in every process."""
    every_s: float
    """From the start of a round to the start of the next."""

    async def repeat(
        self, work: Callable[[], Awaitable[None]], *, is_due: Callable[[], Awaitable[bool]] | None = None
    ) -> None:
        """Do the work in rounds until cancelled; ``is_due``: whether there is any, which costs less than to claim a round."""

        async def do_ours() -> None:
            if (is_due is None or await is_due()) and await self.is_ours():
                await work()

        await repeat(do_ours, every_s=self.every_s, most_share=_MOST_SHARE)

    async def is_ours(self) -> bool:
        """Return whether this process does the work in this round, by one conditional write."""
        now = self.clock.now()
        # A little less than a round: clocks and pauses are not exact, and a skipped round would double the interval.
        until = {"until": rfc3339(now + timedelta(seconds=self.every_s * 0.9))}
        try:
            await self.store.update(ROUNDS, self.name, until, where=Compare("until", Op.LTE, [rfc3339(now)]))
        except RevisionConflict:
            try:
                await self.store.insert(ROUNDS, self.name, until)
            except AlreadyExists:
                return False
        return True
