"""How long to wait before something that has failed is tried again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BackOff:
    """Pauses that double from ``first_s`` up to ``longest_s``. It keeps no state: the caller counts the failures."""

    first_s: float
    longest_s: float

    def after(self, failures: int) -> float:
        """Return the pause after so many failures in a row, from 1."""
        # Bounded, because 2.0 ** 1024 is no float any more, and a count may come from a document.
        return min(self.first_s * 2.0 ** min(max(failures - 1, 0), 64), self.longest_s)
