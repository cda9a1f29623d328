"""Copies of packages that were fetched on demand: their progress, and their last use (multicloud.md MC-125).

A copy is a package whose document has ``internal/fetch``. That, and the instances in the store, say what may be removed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_store.port import DocumentStore, RevisionConflict
from kubevnfm_store.query import Exists, Filter, Query, Sort, Stored

from kubevnfm_lcm_api.packages.catalogue import PackageBusy, Packages
from kubevnfm_lcm_api.packages.domain.ports import Content
from kubevnfm_lcm_api.packages.room import Copy, Room
from kubevnfm_lcm_api.packages.usable import COLLECTION

USED_AT: Final = "internal/fetch/usedAt"
_FETCH: Final = "internal/fetch"
PROGRESS: Final = (f"{_FETCH}/done", f"{_FETCH}/total")
"""The bytes that have arrived of a fetch that runs, and those that it has in all."""
_LARGE: Final = ("additionalArtifacts", "softwareImages", "userDefinedData", "warnings")


@dataclass(frozen=True)
class Copies:
    """The copies, with their limits."""

    packages: Packages
    store: DocumentStore
    room: Room
    limit_bytes: int
    """The largest copy."""

    def begun(self) -> JsonObject:
        """Return the fields of a package whose fetch begins."""
        return {_FETCH: {"usedAt": rfc3339(self.room.clock.now()), "done": 0}}

    def counted(self, package_id: str, content: Content, *, where: Filter) -> AsyncIterator[bytes]:
        """Return the content, of which is written now and then how much has arrived."""

        async def write(progress: JsonMapping) -> None:
            fields = {f"{_FETCH}/{name}": value for name, value in progress.items()}
            await self.store.update(COLLECTION, package_id, fields, where=where)

        return self.room.counted(content, write)

    async def touch(self, stored: Stored) -> None:
        """Record that a copy is being used; it is not removed for the next minutes."""
        if self.room.is_touched(stored.body["internal"]["fetch"]["usedAt"]):
            return
        # The condition: a copy that is removed at the same time is not made again by this.
        try:
            fields = {USED_AT: rfc3339(self.room.clock.now())}
            await self.store.update(COLLECTION, stored.id, fields, where=Exists(USED_AT))
        except RevisionConflict:
            return

    async def copies(self) -> Sequence[Copy]:
        """Return all of them, for the room that they take."""
        query = Query(Exists(USED_AT), sort=Sort(USED_AT), exclude=_LARGE)
        return [
            Copy(
                each.id,
                each.body["internal"]["fetch"]["usedAt"],
                _size(each),
                partial(self._removed, each) if _is_held(each) else None,
            )
            for each in await self.store.find(COLLECTION, query)
        ]

    async def _removed(self, stored: Stored) -> bool:
        """Remove a copy unless it is in use; return whether it is gone."""
        if await self.packages.is_in_use(stored.body):
            return False
        try:
            await self.remove(stored)
        except PackageBusy:  # used, or removed, since
            return False
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
