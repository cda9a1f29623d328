"""The names in the folder of a package."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

CONTENT: Final = "content.zip"
FILES: Final = "files"
EXTERNAL: Final = "external"
"""Artifacts from outside of the package, each under `external_name`: they stay for another try."""
ARCHIVE: Final = "archive.zip"
SELECTIONS: Final = "selections"
SCRATCH: Final = "onboarding-"
"""The beginning of the names of folders that exist only during a check."""


def drop_scratch(folder: Path) -> None:
    """Remove what an ended ``unpack`` has left in a package's folder."""
    for left in folder.glob(f"{SCRATCH}*"):
        shutil.rmtree(left, ignore_errors=True)
