"""Folders that only the user of the process can enter."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

_OWNER_ONLY: Final = 0o700


def private_folder(folder: Path) -> Path:
    """Create the folder and its parents if they are missing; close it to other users, also if it was there."""
    folder.mkdir(parents=True, exist_ok=True, mode=_OWNER_ONLY)
    # Versions up to 0.1.0 made folders that every user could read. If another user owns it, its mode is that one's decision.
    with suppress(PermissionError):
        folder.chmod(_OWNER_ONLY)
    return folder
