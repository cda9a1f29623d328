"""The periods of a PM job: times as numbers of collection periods since the job's beginning. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True)
class Periods:
    """The periods of one job."""

    begin: datetime
    collection_s: int
    reporting_s: int
    boundary: datetime | None = None

    @property
    def in_report(self) -> int:
        """The collection periods of a report."""
        return self.reporting_s // self.collection_s

    @property
    def last(self) -> int | None:
        """The number of the last collection period that ends by the boundary; None: there is no boundary."""
        if self.boundary is None:
            return None
        return max(0, int((self.boundary - self.begin).total_seconds() // self.collection_s))

    def end(self, number: int) -> datetime:
        """Return the end of a period; they are numbered from 1, so that of 0 is the job's beginning."""
        return self.begin + timedelta(seconds=number * self.collection_s)

    def number_of(self, moment: datetime) -> int:
        """Return the number of the period that a moment is in; its end belongs to it."""
        return -int((self.begin - moment).total_seconds() // self.collection_s)

    def ended(self, now: datetime) -> int:
        """Return the number of the last period that has ended, within the boundary."""
        passed = max(0, int((now - self.begin).total_seconds() // self.collection_s))
        return passed if self.last is None else min(passed, self.last)

    def report_ends(self, after: int, upto: int) -> list[int]:
        """Return the periods in (after, upto] with which a report ends: each multiple, and the last one of all."""
        every = self.in_report
        ends = list(range((after // every + 1) * every, upto + 1, every))
        if self.last is not None and after < self.last <= upto and self.last not in ends:
            ends.append(self.last)
        return ends

    def report_after(self, number: int, reports: int) -> int:
        """Return the period with which the last of so many reports ends that end after this period, or (negative) before it."""
        return (number // self.in_report + reports) * self.in_report

    def report_begin(self, end: int) -> int:
        """Return the number of the period before the first one of the report that ends with this one."""
        return (end - 1) // self.in_report * self.in_report

    def is_over(self, measured: int) -> bool:
        """Return whether no period follows this one."""
        return self.last is not None and measured >= self.last
