"""A pytest plugin: the folders of tests are in memory, if the machine has room for them there.

Databases of tests write to disk what survives a loss of power, which no test shows. `docs/speed.md` has what that takes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

MEMORY: Final = Path("/dev/shm")
LEAST_FREE: Final = 4 << 30
"""Bytes: four times what one run has at the same time."""


def pytest_configure() -> None:
    """Name the root of temporary folders, unless the caller has named one."""
    if _has_room(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def _has_room(folder: Path) -> bool:
    """Return whether tests can write there, run programs from there, and leave enough memory to others."""
    if not os.access(folder, os.W_OK):
        return False
    mounted = os.statvfs(folder)
    memory = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    available = int(memory["MemAvailable"].split()[0]) * 1024
    return not mounted.f_flag & os.ST_NOEXEC and min(mounted.f_bavail * mounted.f_frsize, available) >= LEAST_FREE
