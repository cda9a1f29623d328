"""What the life cycle needs of the outside, as Protocols."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kubevnfm_csar import BaseHot, Package


@dataclass(frozen=True)
class Upload:
    """A CSAR that lies on disk."""

    size_bytes: int
    sha256: str
    """Hex."""


class PackageFiles(Protocol):
    """The packages' bytes: uploads stream to disk, nothing is read whole into memory."""

    async def store(self, package_id: str, chunks: AsyncIterator[bytes], *, limit_bytes: int) -> Upload:
        """Write the upload; what was there before is replaced once it is whole. Raises PackageTooLarge (413)."""
        ...

    async def onboard(self, package_id: str) -> Package:
        """Check and unpack the stored CSAR; safe to repeat. Raises PackageRefused saying which file, which rule."""
        ...

    def content(self, package_id: str) -> Path:
        """Return the uploaded file's path."""
        ...

    def folder(self, package_id: str) -> Path:
        """Return the folder with the unpacked files."""
        ...

    async def base_hot(self, package_id: str, flavour_id: str) -> BaseHot | None:
        """Return the flavour's Base HOT, None when it has none. Raises PackageRefused."""
        ...

    async def archive(self, package_id: str) -> Path:
        """Return a zip of the package without its VM images, for the other services."""
        ...

    async def remove(self, package_id: str) -> None:
        """Forget everything of the package; nothing happens when there is nothing."""
        ...
