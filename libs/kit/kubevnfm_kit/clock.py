"""The clock as a parameter, so that tests can set the time.

Leases, deadlines and pauses are stored as moments and compared with the present one. A machine's clock may be set at any time:
after a boot with a wrong clock, or when a virtual machine that was suspended runs again. So services do not compare with it,
but with a `SteadyClock`, which passes evenly.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Protocol

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_MOST_CORRECTED: Final = 0.1
"""The part of the time that passes by which a steady clock approaches the machine's clock: an hour in ten hours."""
_AGREE_S: Final = 2.0
"""Clocks that differ by less agree, as those of machines do under NTP."""
_BELIEVED: Final = timedelta(days=1)
"""A time of an earlier boot that is further ahead of the machine's clock was a wrong one itself."""


class Clock(Protocol):
    """A source of the present time."""

    def now(self) -> datetime:
        """Return the present moment in UTC."""
        ...


class SystemClock:
    """The machine's clock: for what is compared with the times of other systems, such as certificates and signatures."""

    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass(frozen=True)
class Reading:
    """The time of a steady clock, in a form from which another process goes on."""

    boot: str
    """The boot of the machine; empty if the system does not name it."""
    elapsed_s: float
    """By the monotonic clock, which the processes of one boot share."""
    time: datetime
    off_s: float = 0.0
    """How far the machine's clock is ahead."""

    @property
    def is_even(self) -> bool:
        """Return whether the machine's clock agrees."""
        return abs(self.off_s) < _AGREE_S


class SteadyClock:
    """A clock that neither jumps nor goes back by itself.

    It begins with the time of the machine's clock and goes on by the monotonic clock. If the machine's clock differs, because it
    was set, the steady one runs a tenth faster or slower until both agree. So a setting of the clock changes no lease, deadline or
    pause by more than a tenth, and the times that are stored and shown are right again after a while.

    Between several machines that would be hours in which each takes the leases of others for ended. So if the machine's clock
    agrees with a machine on which both clocks agree, it is the steady one that is wrong (`agree`): after a boot with a wrong
    clock, or in a virtual machine that was paused.
    """

    def __init__(
        self,
        machine: Clock | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        boot: str | None = None,
        since: Reading | None = None,
    ) -> None:
        """``since``: the last reading that an earlier process has stored; within one boot the time goes on from it, whatever was
        done to the machine's clock meanwhile. After another boot the time does not begin before it.
        """
        self.machine = machine or SystemClock()
        self._monotonic, self._boot = monotonic, boot_id() if boot is None else boot
        self._lock = threading.Lock()
        self._at, self._time = monotonic(), self.machine.now()
        if since is None:
            return
        if since.boot and since.boot == self._boot and since.elapsed_s <= self._at:
            self._at, self._time = since.elapsed_s, since.time
        elif self._time < since.time <= self._time + _BELIEVED:
            self._time = since.time

    def now(self) -> datetime:
        return self.reading().time

    def reading(self) -> Reading:
        with self._lock:
            at, shown = self._monotonic(), self.machine.now()
            passed = timedelta(seconds=max(at - self._at, 0.0))
            even, most = self._time + passed, passed * _MOST_CORRECTED
            self._at, self._time = at, even + max(-most, min(shown - even, most))
            return Reading(self._boot, at, self._time, (shown - self._time).total_seconds())

    def agree(self, other: Reading, *, within_s: float) -> bool:
        """Go on from the time of the machine's clock if another machine confirms it; return whether it did.

        ``other``: what a clock of the other machine showed at some moment of the last ``within_s``.
        """
        if not other.is_even or self.reading().is_even:
            return False
        with self._lock:
            shown = self.machine.now()
            if not -_AGREE_S <= (shown - other.time).total_seconds() <= within_s + _AGREE_S:
                return False
            self._at, self._time = self._monotonic(), shown
            return True


def boot_id() -> str:
    """Return the id of this boot of the machine; empty if the system has none."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def machine_now(clock: Clock) -> datetime:
    """Return the time of the machine's clock: for comparisons with times that other systems have written."""
    return clock.machine.now() if isinstance(clock, SteadyClock) else clock.now()


def rfc3339(moment: datetime) -> str:
    """Write a moment as ETSI's DateTime: UTC, milliseconds, ``Z`` (RFC 3339)."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def lease_left_s(until: str, now: datetime, length_s: float) -> float:
    """Return for how many seconds a stored lease still holds: never longer than its length.

    If its end is much further away, the clock that has written it was ahead, and it is over: its owner, if there still is one,
    finds at the next renewal that another process has it.
    """
    left_s = (datetime.fromisoformat(until) - now).total_seconds()
    return 0.0 if left_s > 2 * length_s else max(0.0, min(left_s, length_s))
