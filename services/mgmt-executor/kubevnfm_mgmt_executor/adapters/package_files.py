"""The VNF package's files, which are fetched when the first of them is read."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kubevnfm_clients.ports import Packages
from kubevnfm_events.common import PackageRef


class FetchedPackage:
    """One package behind the port of the drivers."""

    def __init__(self, packages: Packages, package: PackageRef) -> None:
        self._packages, self._package = packages, package

    async def read(self, path: str) -> bytes | None:
        """Return the file's content; None when the package has no such file, or a link that leads out of it."""
        folder = await self._packages.folder(self._package)
        return await asyncio.to_thread(_read, folder, path)


def _read(folder: Path, path: str) -> bytes | None:
    root = folder.resolve()
    # resolve() follows links, so the check below also catches a link in the package to a file of this host. The root is
    # resolved as well, because the cache folder may itself be reached through a link.
    file = (root / path).resolve()
    return file.read_bytes() if file.is_relative_to(root) and file.is_file() else None
