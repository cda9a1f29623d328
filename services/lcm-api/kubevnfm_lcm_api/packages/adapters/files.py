"""VNF packages on disk: ``<data dir>/packages/<id>/`` with the upload, the unpacked files and the archive for services.

Blocking work runs in threads, the check of a package in a process of its own (`unpacking`); an upload is written chunk by
chunk as it arrives.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import zipfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from cachetools import LRUCache
from kubevnfm_csar.archive import external_name
from kubevnfm_csar.errors import External
from kubevnfm_csar.files import IMAGES, FolderFiles
from kubevnfm_csar.hot import BaseHot, read_base_hot
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.ids import new_id

from kubevnfm_lcm_api.packages.adapters.arrivals import PART, store_arriving
from kubevnfm_lcm_api.packages.adapters.package_folder import ARCHIVE, CONTENT, EXTERNAL, FILES, SELECTIONS
from kubevnfm_lcm_api.packages.adapters.unpacking_process import UnpackingProcesses
from kubevnfm_lcm_api.packages.domain.ports import OnboardedFiles, Upload

_KEPT_SELECTIONS: Final = 4
_MAGIC: Final = b"PK\x03\x04"
_EMPTY_MAGIC: Final = b"PK\x05\x06"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip archive can store."""
_MODE: Final = 0o100644
_COPIED_BYTES: Final = 1024 * 1024
_CACHED_HOTS: Final = 64


class NoArchive(InvalidInput):
    """The upload is not a zip archive."""

    def __init__(self) -> None:
        super().__init__("", "a zip archive (CSAR) expected")


class DiskPackageFiles:
    """`domain.ports.PackageFiles` in a folder."""

    def __init__(self, data_dir: Path, processes: UnpackingProcesses) -> None:
        self._root, self._processes = data_dir / "packages", processes
        self._hots: LRUCache[tuple[str, str, float], BaseHot | None] = LRUCache(_CACHED_HOTS)

    async def store(self, package_id: str, chunks: AsyncIterator[bytes], *, limit_bytes: int) -> Upload:
        target = self._root / package_id / CONTENT
        return await store_arriving(
            chunks, target, limit_bytes=limit_bytes, check_head=_check_head, check=_check_length
        )

    async def store_external(
        self, package_id: str, external: External, chunks: AsyncIterator[bytes], *, limit_bytes: int
    ) -> Upload:
        name = external_name(external.uri, external.algorithm, external.hash)
        return await store_arriving(chunks, self._root / package_id / EXTERNAL / name, limit_bytes=limit_bytes)

    async def onboard(self, package_id: str) -> OnboardedFiles:
        return await self._processes.unpack(self._root / package_id)

    def content(self, package_id: str) -> Path:
        return self._root / package_id / CONTENT

    def folder(self, package_id: str) -> Path:
        return self._root / package_id / FILES

    async def base_hot(self, package_id: str, flavour_id: str) -> BaseHot | None:
        folder = self.folder(package_id)
        # Content that is uploaded after an ERROR has the same package id: the folder's time distinguishes it.
        stamp = (await asyncio.to_thread(folder.stat)).st_mtime
        key = (package_id, flavour_id, stamp)
        if key not in self._hots:
            self._hots[key] = await asyncio.to_thread(lambda: read_base_hot(FolderFiles(folder), flavour_id))
        return self._hots[key]

    async def files(self, package_id: str, paths: Sequence[str], *, limit_bytes: int) -> Mapping[str, bytes]:
        return await asyncio.to_thread(_read, self.folder(package_id), paths, limit_bytes)

    async def archive(self, package_id: str) -> Path:
        path = self._root / package_id / ARCHIVE
        if not await asyncio.to_thread(path.exists):
            await asyncio.to_thread(_pack, self.folder(package_id), path)
        return path

    async def remove(self, package_id: str) -> None:
        # The package's document is deleted by now: files that cannot be deleted must not fail the request.
        await asyncio.to_thread(shutil.rmtree, self._root / package_id, ignore_errors=True)

    async def selection(self, package_id: str, names: Sequence[str]) -> Path:
        """The newest few archives are kept, so that range requests for a large one do not pack it again."""
        folder = self._root / package_id
        key = hashlib.sha256("\0".join(names).encode()).hexdigest()[:32]
        return await asyncio.to_thread(_selected, folder, folder / SELECTIONS / f"{key}.zip", tuple(names))


def _check_head(head: bytes) -> None:
    if not _may_be_zip(head):
        raise NoArchive


async def _check_length(part: Path) -> None:
    if (await asyncio.to_thread(part.stat)).st_size < len(_MAGIC):
        raise NoArchive


def _may_be_zip(head: bytes) -> bool:
    """Archives begin with a file's header, empty ones with the directory's end (APPNOTE 4.3.7, 4.3.16)."""
    return head[: len(_MAGIC)] in (_MAGIC[: len(head)], _EMPTY_MAGIC[: len(head)])


def _read(folder: Path, paths: Sequence[str], limit_bytes: int) -> Mapping[str, bytes]:
    found = [(path, folder / path) for path in paths]
    return {path: file.read_bytes() for path, file in found if file.is_file() and file.stat().st_size <= limit_bytes}


def _pack(folder: Path, path: Path) -> None:
    """Zip the files without VM images."""
    names = [file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()]
    _zip(folder, sorted(name for name in names if not name.startswith(IMAGES)), path)


def _selected(folder: Path, path: Path, names: Sequence[str]) -> Path:
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        _zip(folder / FILES, names, path)
        newest_first = sorted(path.parent.glob("*.zip"), key=lambda each: each.stat().st_mtime_ns, reverse=True)
        for old in newest_first[_KEPT_SELECTIONS:]:
            old.unlink(missing_ok=True)  # who reads it has it open
    return path


def _zip(folder: Path, names: Sequence[str], path: Path) -> None:
    """Zip these files, stored rather than compressed; the same files always give the same bytes."""
    part = path.with_name(f"{new_id()}{PART}")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
            for name in names:
                # A fixed time and mode: the archive's entity tag is strong and made from the names, so the bytes must
                # not differ.
                info = zipfile.ZipInfo(name, date_time=_EPOCH)
                info.external_attr = _MODE << 16
                info.file_size = (folder / name).stat().st_size  # the library needs it to decide on 64-bit sizes
                with (folder / name).open("rb") as source, archive.open(info, "w") as target:
                    shutil.copyfileobj(source, target, _COPIED_BYTES)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
