"""The copies of packages and charts that a process has from lcm-api: those that are used stay, others make room.

The folder belongs to one process, or to several of one machine. It may be emptied at any time: each use asks for its copy, and gets
it again. The time of its last use is that of the file or folder itself. Anything else, without the name of a copy, is not ours and stays.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
from kubevnfm_kit.ids import new_id

log = structlog.get_logger()

GIB: Final = 2**30
CHARTS: Final = "charts"
UNFINISHED: Final = "fetching-"
"""The names of what is being fetched, or removed, begin so."""
_COPY: Final = re.compile(r"[0-9a-f-]{36,128}(\.tgz|\.part)?")
"""The name of a copy: a digest or an id. Earlier versions left parts of charts."""
_IN_USE_S: Final = 86_400.0
"""One that was used so recently may be used now, by an operation that reads it again."""
_UNUSED_S: Final = 30 * 86_400.0
"""No operation needs one that was not used for so long: a later one fetches it again."""


@dataclass(frozen=True)
class _Copy:
    path: Path
    used_at: float
    size_bytes: int


@dataclass(frozen=True)
class CacheFolder:
    """The copies in a folder, and the charts in a folder of it. Every method blocks."""

    folder: Path
    limit_bytes: int

    def use(self, path: Path) -> bool:
        """Note that a copy is used now; return whether it is there."""
        try:
            os.utime(path)
        except FileNotFoundError:
            return False
        return True

    def make_room(self) -> None:
        """Remove what a process that has died has not finished, what is unused, and the least recently used copies above the limit."""
        now = time.time()
        copies = sorted(self._copies(now), key=lambda each: each.used_at)
        total = sum(each.size_bytes for each in copies)
        for each in copies:
            is_old = each.used_at < now - _UNUSED_S
            if not is_old and (total <= self.limit_bytes or each.used_at >= now - _IN_USE_S):
                return
            if _removed(each):
                total -= each.size_bytes
                log.info("cached_copy_removed", copy=each.path.name, size_bytes=each.size_bytes)

    def _copies(self, now: float) -> Iterator[_Copy]:
        for path in (*_children(self.folder), *_children(self.folder / CHARTS)):
            # Others may remove it meanwhile. One that cannot be removed must not end the operation that has its copy.
            with suppress(OSError):
                used_at = path.lstat().st_mtime
                if _COPY.fullmatch(path.name):
                    yield _Copy(path, used_at, _size(path))
                elif path.name.startswith(UNFINISHED) and used_at < now - _IN_USE_S:
                    _delete(path)


def _children(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _size(path: Path) -> int:
    return sum(each.lstat().st_size for each in (path, *(path.rglob("*") if path.is_dir() else ())))


def _removed(copy: _Copy) -> bool:
    """Remove a copy; return whether it is gone. One that was used since it was examined stays."""
    going = copy.path.with_name(f"{UNFINISHED}{new_id()}")
    try:
        # At once: no reader finds a part of it. Whether it was used is asked when no other can begin to use it.
        copy.path.rename(going)
        if going.lstat().st_mtime != copy.used_at:
            going.rename(copy.path)
            return False
    except OSError as error:
        log.warning("cached_copy_stays", copy=copy.path.name, reason=str(error))
        return False
    _delete(going)
    return True


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
