"""The turns by which one process at a time works on a thing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.ids import new_id
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import Compare, Index, Op, by

from kubevnfm_infra_k8s.domain.reconciling.ports import TurnTaken

TURNS: Final = "k8s_turns"
INDEXES: Final[Mapping[str, Sequence[Index]]] = {TURNS: [Index(["holder"])]}
_LEASE: Final = timedelta(seconds=30)
_PAUSE_S: Final = 0.05


class StoredTurns:
    """`domain.reconciling.ports.Turns`: a document while the turn lasts."""

    def __init__(self, store: DocumentStore, clock: Clock) -> None:
        self._store, self._clock = store, clock

    @asynccontextmanager
    async def held(self, name: str, *, within_s: float) -> AsyncIterator[None]:
        holder, loop = new_id(), asyncio.get_running_loop()
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
        body = {"holder": holder, "until": rfc3339(now + _LEASE)}
        try:
            await self._store.insert(TURNS, name, body)
        except AlreadyExists:
            try:
                await self._store.update(TURNS, name, body, where=Compare("until", Op.LTE, [rfc3339(now)]))
            except RevisionConflict:
                return False
        return True
