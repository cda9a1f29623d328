"""The VNF package's files, which are fetched when the first of them is read."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kubevnfm_clients.ports import Packages
from kubevnfm_events.common import PackageRef
from kubevnfm_kit.errors import NotFound


class FetchedPackage:
    """One package behind the port of the drivers."""

    def __init__(self, packages: Packages, package: PackageRef) -> None:
        self._packages, self._package = packages, package

    async def read(self, path: str) -> bytes | None:
        """Return the file's content; None when the package has no such file, or a link that leads out of it."""
        folder = await self._packages.folder(self._package)
        try:
            return await asyncio.to_thread(_read, folder, path)
        except FileNotFoundError:
            # The folder is without Files/images, where Tacker's guide puts the image of a registry.
            return await self._streamed(path)
        except ValueError:
            return None

    async def _streamed(self, path: str) -> bytes | None:
        try:
            return b"".join([chunk async for chunk in self._packages.stream(self._package, path)])
        except NotFound:
            return None


def _read(folder: Path, path: str) -> bytes:
    """Return the content. Raises FileNotFoundError; ValueError for what is no file of the folder."""
    root = folder.resolve()
    # resolve() follows links, so the check below also catches a link in the package to a file of this host. The root is
    # resolved as well, because the cache folder may itself be reached through a link.
    file = (root / path).resolve()
    if not file.is_relative_to(root) or file.is_dir():
        raise ValueError(f"{path}: no file of the package")
    return file.read_bytes()
