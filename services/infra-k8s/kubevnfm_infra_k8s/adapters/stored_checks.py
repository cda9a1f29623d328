"""The stored health checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Index, Query, Sort, by

from kubevnfm_infra_k8s.domain.health_checks.record import StoredCheck

CHECKS: Final = "k8s_health_checks"
# The unique index decides races between requests: one check runs at a time for an instance.
INDEXES: Final[Mapping[str, Sequence[Index]]] = {
    CHECKS: [Index(["runningOf"], unique=True), Index(["vnfInstanceId", "startedAt"]), Index(["settled"])]
}


class StoredChecks:
    """`domain.health_checks.owner.Records`: a document each."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    async def get(self, check_id: str, /) -> StoredCheck | None:
        stored = await self._store.get(CHECKS, check_id)
        return None if stored is None else StoredCheck.from_stored(stored)

    async def of_instance(self, vnf_instance_id: str) -> Sequence[StoredCheck]:
        query = Query(by(vnfInstanceId=vnf_instance_id), sort=Sort("startedAt"))
        return [StoredCheck.from_stored(each) for each in await self._store.find(CHECKS, query)]

    async def unsettled(self) -> Sequence[tuple[str, str]]:
        found = await self._store.find(CHECKS, Query(by(settled=False), exclude=["check"]))
        return [(each.id, str(each.body["vimId"])) for each in found]

    async def has_unsettled(self) -> bool:
        return await self._store.count(CHECKS, by(settled=False), limit=1) > 0

    async def settled(self) -> Sequence[tuple[str, str]]:
        """Return none: nothing of a check that has ended can change."""
        return ()

    async def insert(self, check: StoredCheck) -> StoredCheck:
        return StoredCheck.from_stored(await self._store.insert(CHECKS, check.id, check.stored()))

    async def replace(self, check: StoredCheck, /) -> StoredCheck:
        stored = await self._store.replace(CHECKS, check.id, check.stored(), if_revision=check.revision)
        return StoredCheck.from_stored(stored)

    async def lose_region(self, check: StoredCheck, reason: str, /, *, now: str) -> None:
        changed = check.without_region(reason, now=now)
        if changed != check:
            await self.replace(changed)

    async def delete(self, check: StoredCheck, /) -> None:
        await self._store.delete(CHECKS, check.id, if_revision=check.revision)
