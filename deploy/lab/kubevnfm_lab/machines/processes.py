"""The process groups that a machine's shells started, and how they end."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path


class ProcessGroups:
    """Groups by the pid of the shell that leads each.

    A group outlives its shell if the command left something in the background. Its id cannot be reused while a process is in
    it; after that it can, so groups without their shell are killed only after a check of their environment.
    """

    def __init__(self) -> None:
        self._led: dict[int, asyncio.subprocess.Process] = {}
        self._left_behind: set[int] = set()

    def add(self, process: asyncio.subprocess.Process) -> None:
        """Remember a shell that leads a group of its own."""
        self._led[process.pid] = process

    def shell_ended(self, pid: int) -> None:
        """Record that the shell was waited for; the group is kept while a process is in it."""
        self._led.pop(pid, None)
        if _is_there(pid):
            self._left_behind.add(pid)

    def signal(self, pid: int, number: signal.Signals) -> None:
        """Send a signal to a whole group whose shell was not waited for yet."""
        # A reaped pid may belong to a foreign process by now.
        if pid in self._led:
            with suppress(ProcessLookupError):
                os.killpg(pid, number)

    def end_all(self, root: Path) -> None:
        """Kill everything at once, as a power cut does."""
        for pid in list(self._led):
            self.signal(pid, signal.SIGKILL)
        if any(_is_there(pid) for pid in self._left_behind):
            _end_left_behind(self._left_behind, root)
        self._left_behind.clear()


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _end_left_behind(groups: set[int], root: Path) -> None:
    # Every process of a machine inherits this variable, so it proves where a group belongs.
    mark = f"KUBEVNFM_SYSROOT={root}\0".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            if os.getpgid(int(entry.name)) in groups and mark in (entry / "environ").read_bytes() + b"\0":
                os.kill(int(entry.name), signal.SIGKILL)
