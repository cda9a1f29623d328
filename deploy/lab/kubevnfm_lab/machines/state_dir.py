"""The folder with the machines' files, which one lab has at a time."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_LOCK: Final = "in-use"


class StateDirInUse(Exception):
    """Another lab, in this process or another, has the folder: its end would remove the programs of this one."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"state folder {folder}: another lab uses it; each lab needs a folder of its own")


@contextmanager
def reserved(folder: Path) -> Iterator[None]:
    """Create the folder and reserve it; the end of the block, and of the process, releases it. Raises StateDirInUse."""
    # Other local users must not read the secret in the stand-ins.
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StateDirInUse(folder) from error
        yield
