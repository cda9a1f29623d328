"""CachedFlavours: what VNF packages say about their flavours, read once per package."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from pathlib import Path

from kubevnfm_clients.ports import Packages
from kubevnfm_csar import FolderFiles, flavour_template, read_base_hot, read_vnfd
from kubevnfm_events import PackageRef

from kubevnfm_infra_openstack.domain.ports import PackageFlavour

_KEPT = 64
"""Flavours kept parsed: some hundred kilobytes each."""


class CachedFlavours:
    """Reads packages in a thread; parsing a VNFD takes longer than making a stack's parameters from it."""

    def __init__(self, packages: Packages) -> None:
        self._packages = packages
        self._kept: OrderedDict[tuple[str, str], PackageFlavour] = OrderedDict()

    async def flavour(self, package: PackageRef, flavour_id: str) -> PackageFlavour:
        """See PackageFlavours."""
        folder = await self._packages.folder(package)
        key = (str(folder), flavour_id)
        if key not in self._kept:
            self._kept[key] = await asyncio.to_thread(_read, folder, flavour_id)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]

    def stream(self, package: PackageRef, path: str) -> AsyncIterator[bytes]:
        """See PackageFlavours."""
        return self._packages.stream(package, path)


def _read(folder: Path, flavour_id: str) -> PackageFlavour:
    files = FolderFiles(folder)
    vnfd = read_vnfd(files).flavour(flavour_id)
    return PackageFlavour(folder, read_base_hot(files, flavour_id), vnfd, flavour_template(files, flavour_id))
