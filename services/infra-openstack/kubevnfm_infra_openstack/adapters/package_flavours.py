"""CachedFlavours: the flavours of VNF packages, each parsed once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from cachetools import LRUCache
from kubevnfm_clients.ports import Packages
from kubevnfm_csar.files import FolderFiles
from kubevnfm_csar.hot import read_base_hot
from kubevnfm_csar.vnfd.read import flavour_template, read_vnfd
from kubevnfm_events import PackageRef

from kubevnfm_infra_openstack.domain.ports import PackageFlavour

_MOST_FLAVOURS = 64
"""Parsed flavours in memory; each takes some hundred kilobytes."""


class CachedFlavours:
    """Parses packages in a thread and caches the result."""

    def __init__(self, packages: Packages) -> None:
        self._packages = packages
        self._parsed: LRUCache[tuple[str, str], PackageFlavour] = LRUCache(_MOST_FLAVOURS)

    async def flavour(self, package: PackageRef, flavour_id: str) -> PackageFlavour:
        folder = await self._packages.folder(package)
        # A folder never gets other content: its name is the package's checksum or id, and packages do not change.
        key = (str(folder), flavour_id)
        known = self._parsed.get(key)
        if known is None:
            known = self._parsed[key] = await asyncio.to_thread(_read, folder, flavour_id)
        return known

    def stream(self, package: PackageRef, path: str) -> AsyncIterator[bytes]:
        return self._packages.stream(package, path)


def _read(folder: Path, flavour_id: str) -> PackageFlavour:
    files = FolderFiles(folder)
    vnfd = read_vnfd(files).flavour(flavour_id)
    return PackageFlavour(folder, read_base_hot(files, flavour_id), vnfd, flavour_template(files, flavour_id))
