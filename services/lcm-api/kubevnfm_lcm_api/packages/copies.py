"""Copies of packages that were fetched on demand: their progress, their last use, and room for them on the disk (multicloud.md MC-125).

A copy is a package whose document has ``internal/fetch``. That, and the instances in the store, say what may be removed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import structlog
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_store.port import DocumentStore, RevisionConflict
from kubevnfm_store.query import Exists, Filter, Query, Sort, Stored

from kubevnfm_lcm_api.packages.catalogue import PackageBusy, Packages
from kubevnfm_lcm_api.packages.domain.ports import Content
from kubevnfm_lcm_api.packages.usable import COLLECTION

log = structlog.get_logger()

USED_AT: Final = "internal/fetch/usedAt"
_DONE: Final = "internal/fetch/done"
_TOTAL: Final = "internal/fetch/total"
PROGRESS: Final = (_DONE, _TOTAL)
"""The bytes that have arrived of a fetch that runs, and those that it has in all."""
_WRITE_EVERY: Final = timedelta(seconds=1)
_TOUCH_AFTER: Final = timedelta(seconds=60)
_KEPT: Final = timedelta(minutes=10)
"""A copy that was used so recently is not removed: the instance that it is used for may not be stored yet."""
_LARGE: Final = ("additionalArtifacts", "softwareImages", "userDefinedData", "warnings")


class DiskFull(VnfmError, code="artifact-disk-full", title="No room for the package", status=507):
    """All copies together would exceed the limit of the disk, and those that exist are in use."""


@dataclass(frozen=True)
class Copies:
    """The copies, with their limits."""

    packages: Packages
    store: DocumentStore
    clock: Clock
    limit_bytes: int
    """The largest copy."""
    disk_bytes: int
    """The limit of all copies together."""

    def begun(self) -> JsonObject:
        """Return the fields of a package whose fetch begins."""
        return {"internal/fetch": {"usedAt": rfc3339(self.clock.now()), "done": 0}}

    async def counted(self, package_id: str, content: Content, *, where: Filter) -> AsyncIterator[bytes]:
        """Yield the content, and write now and then how much of it has arrived."""
        done, write_at = 0, self.clock.now()
        async for chunk in content.chunks:
            done += len(chunk)
            if self.clock.now() >= write_at:
                total = {} if content.size_bytes is None else {_TOTAL: content.size_bytes}
                await self.store.update(COLLECTION, package_id, {_DONE: done, **total}, where=where)
                write_at = self.clock.now() + _WRITE_EVERY
            yield chunk

    async def touch(self, stored: Stored) -> None:
        """Record that a copy is being used; it is not removed for the next minutes."""
        if stored.body["internal"]["fetch"]["usedAt"] > rfc3339(self.clock.now() - _TOUCH_AFTER):
            return
        # The condition: a copy that is removed at the same time is not made again by this.
        try:
            await self.store.update(COLLECTION, stored.id, {USED_AT: rfc3339(self.clock.now())}, where=Exists(USED_AT))
        except RevisionConflict:
            return

    async def make_room(self, package_id: str, size_bytes: int) -> None:
        """Remove the copies that were least recently used until this one has room; never one in use. Raises DiskFull."""
        query = Query(Exists(USED_AT), sort=Sort(USED_AT), exclude=_LARGE)
        others = [each for each in await self.store.find(COLLECTION, query) if each.id != package_id]
        excess = size_bytes + sum(map(_size, others)) - self.disk_bytes
        for each in others:
            if excess <= 0:
                return
            if _is_held(each) and await self._removed(each):
                excess -= _size(each)
        if excess > 0:
            raise DiskFull(f"{size_bytes} bytes: the limit of {self.disk_bytes} bytes is reached by copies in use")

    async def _removed(self, stored: Stored) -> bool:
        """Remove a copy unless it is in use; return whether it is gone."""
        body = stored.body
        is_recent = body["internal"]["fetch"]["usedAt"] > rfc3339(self.clock.now() - _KEPT)
        if is_recent or await self.packages.is_in_use(body):
            return False
        try:
            await self.remove(stored)
        except PackageBusy:  # used, or removed, since
            return False
        log.info("copy_removed", package_id=stored.id)
        return True

    async def remove(self, stored: Stored) -> None:
        """Remove a package that is not in use. Raises PackageBusy, NotFound."""
        is_enabled = stored.body["operationalState"] == "ENABLED"
        if is_enabled:
            await self.packages.modify(stored.id, {"operationalState": "DISABLED"}, check=_any)
        try:
            # Counts the instances once more: none can be made of a package that is DISABLED.
            await self.packages.delete(stored.id)
        except PackageBusy:
            if is_enabled:
                await self.packages.modify(stored.id, {"operationalState": "ENABLED"}, check=_any)
            raise


async def _any(_: Stored) -> None:
    """Accept a package in whatever state it is."""


def _is_held(stored: Stored) -> bool:
    return "content" in stored.body["internal"]


def _size(stored: Stored) -> int:
    """Return the room that a copy takes, or will take once its fetch ends."""
    if _is_held(stored):
        content: JsonMapping = stored.body["internal"]["content"]
        return int(content["sizeBytes"])
    fetch: JsonMapping = stored.body["internal"]["fetch"]
    return max(int(fetch.get("total", 0)), int(fetch.get("done", 0)))
