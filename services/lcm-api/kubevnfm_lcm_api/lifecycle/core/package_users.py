"""The VNF instances that use a VNF package: the answer of the life cycle to a question of `packages`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import AllOf, Compare, Exists, Op, Query, by

from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION, DST_VNFD_ID

_MOST_IDS: Final = 101
"""One more than an answer lists."""
_LARGE: Final = ("instantiatedVnfInfo", "internal")


class PackageUsers:
    """`packages.domain.ports.PackageUsers` over the stored instances."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    async def exist(self, vnfd_id: str) -> bool:
        # A running change of package uses the new one already, though the instance still names the old one.
        changing = AllOf([Exists(DST_VNFD_ID), Compare(DST_VNFD_ID, Op.EQ, [vnfd_id])])
        for users in (by(vnfdId=vnfd_id), changing):
            if await self._store.count(COLLECTION, users, limit=1):
                return True
        return False

    async def ids(self, vnfd_ids: Sequence[str]) -> list[str]:
        query = Query(Compare("vnfdId", Op.IN, list(vnfd_ids)), limit=_MOST_IDS, exclude=_LARGE)
        return [stored.id for stored in await self._store.find(COLLECTION, query)]

    async def next_vnfd(self, instance_id: str) -> str | None:
        stored = await self._store.get(COLLECTION, instance_id)
        return stored.body["internal"].get("dstVnfdId") if stored is not None else None
