"""Which writes of an operation a process has died at, and which are left."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_TRIES: Final = 3
"""For a write at whose name no process has died yet; one for others, since how often a name comes depends on the load of the machine."""
_BY_THE_CLOCK: Final = (
    "clear_outbox ", "update k8s_turns", "update k8s_watched_regions", "update drift_rounds", "delete_many callback_nonces",
)  # fmt: skip
"""Writes of work that comes by the clock: in none or in several of the runs of an operation."""
_BY_A_WATCH: Final = " k8s_inventory"
"""The end of writes that come once a watch has seen a change: sooner or later than the operation has written the same."""


class Write(NamedTuple):
    """A write of an operation."""

    name: str
    nth: int
    """Its number among those with this name, from 1."""

    def __str__(self) -> str:
        return f"{self.name} (number {self.nth})"


@dataclass
class EveryDeath:
    """The writes that runs of an operation had before the first death, and those of other names that later ones had. A process dies after each.

    How often a name comes depends on the load of the machine, so that the list would never end. A process dies before a write only if that
    is the first, or if another write was under way: else what is stored is what the death after the last write has left.
    """

    waits: dict[tuple[Write, bool | None], int] = field(default_factory=dict)
    """Where no process has died yet, and how often it was tried. False: before it; True: after it; None: `Fate.is_done` says which."""
    taken: dict[tuple[Write, bool | None], int] = field(default_factory=dict)
    """Where one is about to die: several run side by side."""
    known: set[Write] = field(default_factory=set)
    killed: set[Write] = field(default_factory=set)
    """Those after which the process has died."""
    missed: set[Write] = field(default_factory=set)
    """Those that came in one run and not in others."""
    deaths: int = 0
    are_first_enough: bool = False
    """Whether a process dies at the first write of each name alone."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left."""
        return bool(self.known) and not self.waits and not self.taken

    def next(self) -> tuple[Write, bool | None] | None:
        """Return where a process dies next; None: it does not. `died` follows."""
        if (at := min(self.waits, key=lambda each: self.waits[each], default=None)) is not None:
            self.taken[at] = self.waits.pop(at)
        return at

    def saw(self, names: list[str]) -> None:
        """Take note of the writes of a life."""
        counts: Counter[str] = Counter()
        is_first = not self.known
        earlier = {each.name for each in self.known} if self.deaths else set[str]()
        for name in names:
            counts[name] += 1
            write = Write(name, counts[name])
            if self.are_first_enough and write.nth > 1:
                continue
            if write not in self.known and name not in earlier:
                self.known.add(write)
                self.waits[write, None] = 0
                if is_first:
                    self.waits[write, False] = 0
                    is_first = False

    def died(self, at: tuple[Write, bool | None], deaths: list[str]) -> None:
        """Take note of the result of `next`."""
        tries = 1 + self.taken.pop(at)
        write, is_done = at
        if not deaths:
            if write.name in self.unproven and tries < _TRIES:
                self.waits[at] = tries
            elif is_done is not False:
                self.missed.add(write)
            return
        assert deaths in ([f"before {write.name}"], [f"after {write.name}"]), deaths
        self.deaths += 1
        if deaths[0].startswith("after "):
            self.killed.add(write)
        elif is_done is None:
            self.waits[write, True] = 0

    def harmed(self, at: tuple[Write, bool | None] | None) -> None:
        """Take note that a run has failed."""
        if at is not None:
            del self.taken[at]

    @property
    def unproven(self) -> set[str]:
        """The names of writes at none of which a process has died. A name may come once more in a run, after a conflict or by the clock."""
        killed = {each.name for each in self.killed}
        names = {each.name for each in self.known} - killed
        return {each for each in names if not each.startswith(_BY_THE_CLOCK) and not each.endswith(_BY_A_WATCH)}

    @property
    def report(self) -> str:
        """How many writes processes have died at."""
        left = sorted(map(str, self.known - self.killed - self.missed))
        text = f"{self.deaths} deaths at {len(self.killed)} writes, {f'not at {left}' if left else 'which are all'}"
        if self.missed:
            text += f" but {len(self.missed)} that came in one run and not in another: {sorted(map(str, self.missed))}"
        return text


EveryForm = defaultdict[str, EveryDeath]
"""By the name of the operation and of the form to which it brings a VNF."""
