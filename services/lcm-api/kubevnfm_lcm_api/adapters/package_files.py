"""VNF packages on disk: ``<data dir>/packages/<id>/`` with the upload, the unpacked files and the archive for services.

Everything that blocks runs in threads; an upload is written in the chunks that it comes in.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import zipfile
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO, Final

from kubevnfm_csar import (
    BaseHot,
    FolderFiles,
    Limits,
    Package,
    PackageRefused,
    describe,
    extract,
    open_csar,
    read_base_hot,
)
from kubevnfm_kit.errors import VnfmError

from kubevnfm_lcm_api.domain.ports import Upload

_CONTENT: Final = "content.zip"
_PART: Final = "content.part"
_FILES: Final = "files"
_ARCHIVE: Final = "archive.zip"
_IMAGES: Final = "Files/images/"
_CACHED_HOTS: Final = 64
_BROKEN_ZIP: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)
"""What the library raises for truncated or damaged archives, and for ways of compression that it does not know."""


class PackageTooLarge(VnfmError):
    """The upload is larger than this VNFM takes."""

    code = "package-too-large"
    title = "Package too large"
    status = 413


class DiskPackageFiles:
    """`domain.ports.PackageFiles` in a folder."""

    def __init__(self, data_dir: Path) -> None:
        self._root = data_dir / "packages"
        self._hots: dict[tuple[str, str, float], BaseHot | None] = {}

    async def store(self, package_id: str, chunks: AsyncIterator[bytes], *, limit_bytes: int) -> Upload:
        """See the port."""
        folder = self._root / package_id
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        digest, size = hashlib.sha256(), 0
        file: BinaryIO = await asyncio.to_thread((folder / _PART).open, "wb")
        try:
            async for chunk in chunks:
                size += len(chunk)
                if size > limit_bytes:
                    raise PackageTooLarge(f"the package has more than {limit_bytes} bytes")
                await asyncio.to_thread(_write, file, chunk, digest)
        finally:
            await asyncio.to_thread(file.close)
        await asyncio.to_thread((folder / _PART).replace, folder / _CONTENT)
        return Upload(size_bytes=size, sha256=digest.hexdigest())

    async def onboard(self, package_id: str) -> Package:
        """See the port."""
        return await asyncio.to_thread(_onboard, self._root / package_id)

    def content(self, package_id: str) -> Path:
        """See the port."""
        return self._root / package_id / _CONTENT

    def folder(self, package_id: str) -> Path:
        """See the port."""
        return self._root / package_id / _FILES

    async def base_hot(self, package_id: str, flavour_id: str) -> BaseHot | None:
        """See the port."""
        folder = self.folder(package_id)
        stamp = (await asyncio.to_thread(folder.stat)).st_mtime
        key = (package_id, flavour_id, stamp)
        if key not in self._hots:
            if len(self._hots) >= _CACHED_HOTS:
                self._hots.pop(next(iter(self._hots)))
            self._hots[key] = await asyncio.to_thread(lambda: read_base_hot(FolderFiles(folder), flavour_id))
        return self._hots[key]

    async def archive(self, package_id: str) -> Path:
        """See the port."""
        path = self._root / package_id / _ARCHIVE
        if not await asyncio.to_thread(path.exists):
            await asyncio.to_thread(_pack, self.folder(package_id), path)
        return path

    async def remove(self, package_id: str) -> None:
        """See the port."""
        await asyncio.to_thread(shutil.rmtree, self._root / package_id, ignore_errors=True)


def _write(file: BinaryIO, chunk: bytes, digest: hashlib._Hash) -> None:
    file.write(chunk)
    digest.update(chunk)


def _onboard(folder: Path) -> Package:
    target = folder / _FILES
    shutil.rmtree(target, ignore_errors=True)
    (folder / _ARCHIVE).unlink(missing_ok=True)
    try:
        csar = open_csar(folder / _CONTENT, limits=Limits())
        package = describe(csar)
        extract(csar, target)
    except _BROKEN_ZIP as error:
        raise PackageRefused("a zip archive that can be read to its end expected") from error
    return package


def _pack(folder: Path, path: Path) -> None:
    """Zip the files without VM images, stored rather than compressed: it crosses one machine or a local network."""
    part = path.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
        for file in sorted(folder.rglob("*")):
            name = file.relative_to(folder).as_posix()
            if file.is_file() and not name.startswith(_IMAGES):
                archive.write(file, name)
    part.replace(path)
