"""The turns by which one process at a time works on a thing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from kubevnfm_kit.clock import Clock
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_kit.owners import Owners
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import Filter, Index, by
from kubevnfm_worker.leases import lease_end, lease_is_over

from kubevnfm_infra_k8s.domain.reconciling.ports import TurnTaken

TURNS: Final = "k8s_turns"
INDEXES: Final[Mapping[str, Sequence[Index]]] = {TURNS: [Index(["holder"])]}
_LEASE_S: Final = 30.0
_PAUSE_S: Final = 0.05


class StoredTurns:
    """`domain.reconciling.ports.Turns`: a document while the turn lasts."""

    def __init__(self, store: DocumentStore, clock: Clock, owners: Owners) -> None:
        self._store, self._clock, self._owners = store, clock, owners

    @asynccontextmanager
    async def held(self, name: str, *, within_s: float) -> AsyncIterator[None]:
        holder, loop = self._owners.new(), asyncio.get_running_loop()
        until = loop.time() + within_s
        while not await self._take(name, holder):
            if loop.time() >= until:
                raise TurnTaken(f"{name}: another process works on it")
            await asyncio.sleep(_PAUSE_S)
        try:
            yield
        finally:
            # By its holder: if the turn has ended meanwhile, that of the next one stays.
            await self._store.delete_many(TURNS, by(holder=holder))

    async def _take(self, name: str, holder: str) -> bool:
        now = self._clock.now()
        body = {"holder": holder, "until": lease_end(now, _LEASE_S)}
        try:
            await self._store.insert(TURNS, name, body)
        except AlreadyExists:
            return await self._take_over(name, body, lease_is_over("until", now, _LEASE_S)) or (
                await self._inherit(name, body)
            )
        return True

    async def _take_over(self, name: str, body: JsonMapping, where: Filter) -> bool:
        try:
            await self._store.update(TURNS, name, body, where=where)
        except RevisionConflict:
            return False
        return True

    async def _inherit(self, name: str, body: JsonMapping) -> bool:
        """Take the turn of a process that has ended."""
        stored = await self._store.get(TURNS, name)
        if stored is None or not self._owners.has_ended(str(stored.body["holder"])):
            return False
        return await self._take_over(name, body, by(holder=stored.body["holder"]))
