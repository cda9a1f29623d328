"""One figure: its samples, its goal, and how both are printed."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Figure:
    """A measured quantity with its spread."""

    name: str
    unit: str
    samples: Sequence[float]
    goal: float | None = None
    better: Literal["more", "less"] = "less"

    @property
    def value(self) -> float:
        return statistics.median(self.samples)

    @property
    def meets_goal(self) -> bool:
        if self.goal is None:
            return True
        return self.value >= self.goal if self.better == "more" else self.value <= self.goal

    def line(self) -> str:
        """Return name, median, spread and goal."""
        low, high = min(self.samples), max(self.samples)
        p99 = sorted(self.samples)[min(len(self.samples) - 1, int(len(self.samples) * 0.99))]
        spread = (
            f"[{low:.1f} .. {high:.1f}]" if len(self.samples) < 20 else f"[{low:.1f} .. p99 {p99:.1f} .. {high:.1f}]"
        )
        goal = "" if self.goal is None else f"goal {'>=' if self.better == 'more' else '<='} {self.goal:g}"
        verdict = "" if self.goal is None else ("met" if self.meets_goal else "MISSED")
        return f"  {self.name:<58} {self.value:>9.1f} {self.unit:<7} {spread:<32} {goal:<14} {verdict}"


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
