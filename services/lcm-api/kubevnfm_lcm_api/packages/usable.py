"""The package that new instances are made of, with as few reads of the database as a create can do with: one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from cachetools import LRUCache, TTLCache
from kubevnfm_events import PackageRef
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Query, Stored, by

COLLECTION: Final = "vnf_packages"
_RECENT_S: Final = 5.0
"""How long a package is taken for usable without a read. Another gateway may have disabled it meanwhile: a create then stores
its instance and deletes it again, so the time is short."""
_KEPT: Final = 64
_CONFIRMED: Final = 1000
_LARGE: Final = ("additionalArtifacts", "softwareImages", "userDefinedData", "warnings")


class PackageUnusable(Unprocessable, code="package-unusable"):
    """The VNF package of the vnfdId is missing, not ONBOARDED or not ENABLED (SOL003 5.4.2.3.1: 422)."""


@dataclass(frozen=True)
class UsablePackage:
    """An ONBOARDED and ENABLED package when it was read."""

    reference: PackageRef
    is_in_use: bool
    """Its stored usageState."""


class UsablePackages:
    """Reads packages by their VNFDs."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._recent: TTLCache[str, PackageRef] = TTLCache(_KEPT, _RECENT_S, lambda: asyncio.get_running_loop().time())
        """The references that are taken for usable, by VNFD."""
        self._changes = 0
        self._running: dict[str, asyncio.Task[UsablePackage]] = {}
        self._next: dict[str, asyncio.Task[UsablePackage]] = {}
        self._confirmed: LRUCache[str, asyncio.Future[bool]] = LRUCache(_CONFIRMED)
        """Whether the package was in use when it was read after this instance was stored; by instance."""

    def forget(self) -> None:
        """Read every package again: one was changed."""
        self._recent.clear()
        self._changes += 1

    async def read(self, vnfd_id: str) -> UsablePackage:
        """Return the package by a read that begins now or later. Raises PackageUnusable."""
        # Callers that wait for the same read share it: a hundred creates at once cost a few reads.
        task = self._next.get(vnfd_id)
        if task is None:
            task = self._next[vnfd_id] = asyncio.create_task(self._read(vnfd_id), name="usable-package")
        return await asyncio.shield(task)

    async def _read(self, vnfd_id: str) -> UsablePackage:
        if (before := self._running.get(vnfd_id)) is not None:
            await asyncio.wait([before])
        # From here on a caller needs a later read: this one does not see what is written after its start.
        task = self._running[vnfd_id] = self._next.pop(vnfd_id)
        changes = self._changes
        try:
            query = Query(by(vnfdId=vnfd_id), limit=1, exclude=_LARGE)
            found = await self._store.find(COLLECTION, query)
            package = _usable(vnfd_id, found[0] if found else None)
        except Unprocessable:
            self._recent.pop(vnfd_id, None)
            raise
        finally:
            if self._running.get(vnfd_id) is task:
                del self._running[vnfd_id]
        if changes == self._changes:
            self._recent[vnfd_id] = package.reference
        return package

    async def recent(self, vnfd_id: str) -> PackageRef:
        """Return the package as it was read up to 5 s ago, in this process. Raises PackageUnusable."""
        return self._recent.get(vnfd_id) or (await self.read(vnfd_id)).reference

    async def confirm(self, package: PackageRef, *, instance_id: str) -> None:
        """Check that the package is usable after an instance of it was stored. Raises PackageUnusable."""
        # Before the first await: the event of the instance may be handled next, and waits for this read.
        seen = self._confirmed[instance_id] = asyncio.get_running_loop().create_future()
        try:
            now = await self.read(package.vnfd_id)
            seen.set_result(now.is_in_use)
        finally:
            if not seen.done():
                seen.set_result(False)
        if now.reference != package:
            raise PackageUnusable("vnfdId", f"the VNF package {package.package_id} was replaced by another: try again")

    async def was_in_use(self, instance_id: str) -> bool:
        """Return whether the package was seen in use after the instance was stored; False also where that is not known."""
        seen = self._confirmed.pop(instance_id, None)
        return seen is not None and await seen


def reference(stored: Stored) -> PackageRef:
    """Return how commands refer to a package."""
    checksum = stored.body.get("checksum", {}).get("hash", "")
    return PackageRef(package_id=stored.id, vnfd_id=stored.body.get("vnfdId", ""), checksum=checksum)


def _usable(vnfd_id: str, stored: Stored | None) -> UsablePackage:
    if stored is None:
        raise PackageUnusable("vnfdId", f"no VNF package with VNFD {vnfd_id} is onboarded")
    body = stored.body
    if body["onboardingState"] != "ONBOARDED" or body["operationalState"] != "ENABLED":
        state = f"{body['onboardingState']} and {body['operationalState']}"
        raise PackageUnusable("vnfdId", f"the VNF package {stored.id} is {state}; ONBOARDED and ENABLED expected")
    return UsablePackage(reference(stored), body["usageState"] == "IN_USE")
