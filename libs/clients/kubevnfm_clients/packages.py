"""A client for VNF packages (lcm-api)."""

from __future__ import annotations

import asyncio
import shutil
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import mkdtemp

import aiohttp
from kubevnfm_events import PackageRef
from kubevnfm_kit.files import private_folder

from kubevnfm_clients.cache_folder import GIB, UNFINISHED, CacheFolder
from kubevnfm_clients.http import InternalApi


class HttpPackages:
    """`ports.Packages` over HTTP, with unpacked copies in a cache folder that may be emptied at any time."""

    def __init__(
        self, base_url: str, token: str, session: aiohttp.ClientSession, *, cache_dir: Path, cache_gib: float = 20.0
    ) -> None:
        self._api = InternalApi("lcm-api", base_url, token, session)
        self._cache_dir, self._cache = cache_dir, CacheFolder(cache_dir, int(cache_gib * GIB))
        self._fetching: dict[str, asyncio.Lock] = {}

    async def folder(self, package: PackageRef) -> Path:
        key = package.checksum or package.package_id
        folder = self._cache_dir / key
        # A package can be some GiB: callers of this process that need the same one wait for a single fetch.
        async with self._fetching.setdefault(key, asyncio.Lock()):
            if not await asyncio.to_thread(self._cache.use, folder):
                await self._fetch(package, folder)
                await asyncio.to_thread(self._cache.make_room)
        return folder

    async def _fetch(self, package: PackageRef, folder: Path) -> None:
        """Unpack beside the folder and move it there: it is complete or missing, also after a crash."""
        await asyncio.to_thread(private_folder, self._cache_dir)
        # In the cache folder itself: a rename is atomic within one file system only.
        part = Path(await asyncio.to_thread(mkdtemp, prefix=UNFINISHED, dir=self._cache_dir))
        try:
            archive = part / "archive.zip"
            with await asyncio.to_thread(archive.open, "wb") as file:
                async for chunk in self._api.stream("packages", package.package_id, "archive"):
                    await asyncio.to_thread(file.write, chunk)
            await asyncio.to_thread(_unpack, archive, part / "files")
            await asyncio.to_thread(_move, part / "files", folder)
        finally:
            await asyncio.to_thread(shutil.rmtree, part, ignore_errors=True)

    def stream(self, package: PackageRef, path: str) -> AsyncIterator[bytes]:
        return self._api.stream("packages", package.package_id, "files", *path.split("/"))


def _unpack(archive: Path, target: Path) -> None:
    """The archive was made by lcm-api from a package that it had checked; zipfile keeps members inside all the same."""
    target.mkdir()
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(target)


def _move(source: Path, target: Path) -> None:
    try:
        source.rename(target)
    except OSError:
        if not target.is_dir():  # else another process of ours was quicker
            raise
