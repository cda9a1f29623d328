"""A clock that stands still until a test sets it."""

from __future__ import annotations

from datetime import datetime, timedelta


class SetClock:
    """A clock that stands still until a test sets it."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at

    def advance(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)
