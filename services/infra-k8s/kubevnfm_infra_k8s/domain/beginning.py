"""When an attempt of a step began, and when its cluster did not answer: that time counts in no limit of the step (CR-023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

_REPORT_S: Final = 5.0
"""A wait ends this long before the command's deadline, so that the failure says what it waited for."""


@dataclass(frozen=True)
class Beginning:
    """The beginning of an attempt of a step."""

    at: datetime
    silences: Sequence[tuple[datetime, datetime]] = ()

    def silence_since(self, moment: datetime) -> timedelta:
        """Return for how long the cluster has not answered after a moment."""
        ends = (end - max(begin, moment) for begin, end in self.silences if end > moment)
        return sum(ends, timedelta())

    def deadline(self, command: datetime | None, wait_s: float, *, since: datetime | None = None) -> datetime:
        """Return the end of a wait ``since`` a moment, by default since the beginning, but always before the deadline of its ``command``."""
        began = since or self.at
        return deadline_of(command, began + self.silence_since(began), wait_s)


def deadline_of(command: datetime | None, began: datetime, wait_s: float) -> datetime:
    """Return the end of a wait: ``wait_s`` after it began, but always before the deadline of its ``command``."""
    wanted = began + timedelta(seconds=wait_s)
    return wanted if command is None else min(wanted, command - timedelta(seconds=_REPORT_S))
