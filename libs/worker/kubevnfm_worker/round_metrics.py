"""Rounds in the metrics, and gauges that one process counts for all."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from kubevnfm_kit.metrics import Metrics

from kubevnfm_worker.rounds import Rounds

COUNT_EVERY_S: Final = 30.0
"""How often stored documents are counted at most."""


class StoredCounts(Protocol):
    """Gauges of what is stored."""

    async def count(self) -> None:
        """Bring them up to date, by searches with an index. Raises StoreUnavailable."""
        ...

    def clear(self) -> None:
        """Show nothing: another process counts."""
        ...


class RoundMetrics:
    """The rounds that this process does."""

    def __init__(self, metrics: Metrics, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._age = metrics.gauge(
            "kubevnfm_round_age_seconds", "Time since the end of the last round of this process.", ["round"]
        )
        self._ended_at: dict[str, float] = {}
        metrics.before_reading(self._read)

    def ended(self, name: str) -> None:
        """Note the end of a round."""
        self._ended_at[name] = self._monotonic()

    async def _read(self) -> None:
        now = self._monotonic()
        self._age.show({(name,): now - at for name, at in self._ended_at.items()})


def count_stored(metrics: Metrics, rounds: Rounds, counted: Sequence[StoredCounts]) -> None:
    """Have one of the processes count what is stored when its metrics are read; the others show nothing of it."""

    async def count() -> None:
        if await rounds.is_ours():
            for each in counted:
                await each.count()
        else:
            for each in counted:
                each.clear()

    metrics.before_reading(count, every_s=COUNT_EVERY_S)
