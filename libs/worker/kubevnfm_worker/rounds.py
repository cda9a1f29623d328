"""Work that one of the processes repeats: in each round, a conditional write decides which one does it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from kubevnfm_kit.clock import Clock
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_kit.owners import Owners
from kubevnfm_kit.run import repeat
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import Filter, by

from kubevnfm_worker.leases import lease_end, lease_is_over

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
    owners: Owners = field(default_factory=Owners)
    ended: Callable[[str], None] = lambda name: None
    """Called with the name after each round that this process has done."""
    _me: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_me", self.owners.new())

    async def repeat(
        self, work: Callable[[], Awaitable[None]], *, is_due: Callable[[], Awaitable[bool]] | None = None
    ) -> None:
        """Do the work in rounds until cancelled; ``is_due``: whether there is any, which costs less than to claim a round."""

        async def do_ours() -> None:
            if (is_due is None or await is_due()) and await self.is_ours():
                await work()
                self.ended(self.name)

        await repeat(do_ours, every_s=self.every_s, most_share=_MOST_SHARE)

    async def is_ours(self) -> bool:
        """Return whether this process does the work in this round, by one conditional write."""
        now = self.clock.now()
        # A little less than a round: clocks and pauses are not exact, and a skipped round would double the interval.
        length_s = self.every_s * 0.9
        ours = {"until": lease_end(now, length_s), "owner": self._me}
        if await self._claimed(ours, lease_is_over("until", now, length_s)):
            return True
        try:
            await self.store.insert(ROUNDS, self.name, ours)
        except AlreadyExists:
            return await self._inherited(ours)
        return True

    async def _claimed(self, ours: JsonMapping, where: Filter) -> bool:
        try:
            await self.store.update(ROUNDS, self.name, ours, where=where)
        except RevisionConflict:
            return False
        return True

    async def _inherited(self, ours: JsonMapping) -> bool:
        """Repeat at once the round of a process that has ended, perhaps in the middle of it."""
        stored = await self.store.get(ROUNDS, self.name)
        owner = "" if stored is None else str(stored.body.get("owner", ""))
        return bool(owner) and self.owners.has_ended(owner) and await self._claimed(ours, by(owner=owner))
