"""The files that the drivers bring themselves, for packages that have none of their own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parents[1] / "files"


class OwnFiles:
    """`driver.PackageFiles` of this service: a package's files, but installed with the program."""

    async def read(self, path: str) -> bytes | None:
        file = _FOLDER / path
        return await asyncio.to_thread(file.read_bytes) if file.is_file() else None
