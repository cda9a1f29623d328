"""Names of the owners of leases that show whether the owner's process has ended.

A process that was killed does not release its leases. The next one need not wait for their ends, if it knows that the owner has
ended: because it is the only process of its database, or because the system of the machine on which both run says so.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from kubevnfm_kit.clock import boot_id
from kubevnfm_kit.ids import new_id

_PROC: Final = Path("/proc")
_ENDED: Final = ("Z", "X")
"""The states of a process that has ended, and whose parent has not asked yet how."""


@dataclass(frozen=True)
class ProcessName:
    """The facts that no other process shares, at any time and on any machine."""

    host: str
    boot: str
    """The boot of the machine's system; the containers of a machine have it in common."""
    namespace: str
    """The one of its process ids: each start of a container has its own."""
    pid: int
    started: str
    """In ticks since the boot: process ids are used again."""

    @classmethod
    def of_this(cls) -> Self:
        """Return the name of the running process."""
        pid = os.getpid()
        return cls(platform.node(), boot_id(), _namespace(), pid, _started(pid))

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return the name that `__str__` has written; None if the text is none, as in leases of earlier releases."""
        parts = text.split("|")
        if len(parts) != 5 or not parts[3].isdecimal():
            return None
        return cls(parts[0], parts[1], parts[2], int(parts[3]), parts[4])

    def __str__(self) -> str:
        return "|".join([self.host.replace("|", ""), self.boot, self.namespace, str(self.pid), self.started])

    def has_seen_end_of(self, other: ProcessName) -> bool:
        """Return whether this process can know, and knows, that the other one has ended."""
        if not other.boot or other.boot != self.boot:
            return False
        if other.namespace == self.namespace:
            return _has_ended(other)
        # A container that was started again has its host name, and its main process its number, from the one before it.
        return bool(other.namespace) and (other.host, other.pid) == (self.host, self.pid)


class Owners:
    """Makes the names of the owners of one process's leases, and judges those of others."""

    def __init__(self, *, is_alone: bool = False, this: ProcessName | None = None) -> None:
        """``is_alone``: no other process uses the database, so all other owners have ended."""
        self.is_alone, self._this = is_alone, this or ProcessName.of_this()

    def new(self) -> str:
        """Return the name of another owner in this process."""
        return f"{new_id()}@{self._this}"

    def has_ended(self, owner: str) -> bool:
        """Return whether the owner of a lease is known to have ended."""
        process = owner.partition("@")[2]
        if process == str(self._this):
            return False
        if self.is_alone:
            return True
        name = ProcessName.read(process)
        return name is not None and self._this.has_seen_end_of(name)


def _namespace() -> str:
    try:
        return str((_PROC / "self" / "ns" / "pid").readlink())
    except OSError:
        return ""


def _started(pid: int) -> str:
    return _facts(pid)[1]


def _facts(pid: int) -> tuple[str, str]:
    """Return the state of a process and when it was started; empty texts if the system does not show them."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return "", ""
    # The name of the program, in parentheses, may contain anything.
    fields = stat.rpartition(")")[2].split()
    return fields[0], fields[19]


def _has_ended(process: ProcessName) -> bool:
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # it belongs to another user
        return False
    state, started = _facts(process.pid)
    return state in _ENDED or (bool(started and process.started) and started != process.started)
