"""CachedFlavours: the flavours of VNF packages, each parsed once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from pathlib import Path

from kubevnfm_clients.ports import Packages
from kubevnfm_csar import FolderFiles, flavour_template, read_base_hot, read_vnfd
from kubevnfm_events import PackageRef

from kubevnfm_infra_openstack.domain.ports import PackageFlavour

_MOST_FLAVOURS = 64
"""Parsed flavours in memory; each takes some hundred kilobytes."""


class CachedFlavours:
    """Parses packages in a thread and caches the result."""

    def __init__(self, packages: Packages) -> None:
        self._packages = packages
        self._parsed: OrderedDict[tuple[str, str], PackageFlavour] = OrderedDict()

    async def flavour(self, package: PackageRef, flavour_id: str) -> PackageFlavour:
        folder = await self._packages.folder(package)
        # A folder never gets other content: its name is the package's checksum or id, and packages do not change.
        key = (str(folder), flavour_id)
        if key not in self._parsed:
            self._parsed[key] = await asyncio.to_thread(_read, folder, flavour_id)
            while len(self._parsed) > _MOST_FLAVOURS:
                self._parsed.popitem(last=False)
        self._parsed.move_to_end(key)
        return self._parsed[key]

    def stream(self, package: PackageRef, path: str) -> AsyncIterator[bytes]:
        return self._packages.stream(package, path)


def _read(folder: Path, flavour_id: str) -> PackageFlavour:
    files = FolderFiles(folder)
    vnfd = read_vnfd(files).flavour(flavour_id)
    return PackageFlavour(folder, read_base_hot(files, flavour_id), vnfd, flavour_template(files, flavour_id))
