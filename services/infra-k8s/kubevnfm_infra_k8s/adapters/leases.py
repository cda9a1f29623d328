"""The lease of the process that watches: a document that the leader renews, and that another process takes over when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog
from kubevnfm_kit.clock import Clock, lease_left_s, rfc3339
from kubevnfm_kit.owners import Owners
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict, StoreUnavailable
from kubevnfm_store.query import AllOf, Compare, Op, Stored
from kubevnfm_worker.leases import lease_end

from kubevnfm_infra_k8s.adapters.turns import TURNS
from kubevnfm_infra_k8s.domain.inventory.ports import LeaseLost, Term

log = structlog.get_logger()

LEADER: Final = "inventory"
"""The id of its document."""


def is_held(lease: Stored, now: datetime) -> bool:
    """Return whether a process leads."""
    return str(lease.body["until"]) > rfc3339(now)


@dataclass
class HeldTerm:
    """`domain.inventory.ports.Term`."""

    number: int
    held_until: float
    """In the time of the loop, counted from before each renewal: the database may have written it at any moment of it."""

    def check(self) -> None:
        if asyncio.get_running_loop().time() >= self.held_until:
            raise LeaseLost


class StoredLeadership:
    """`domain.inventory.ports.Leadership`."""

    def __init__(self, store: DocumentStore, clock: Clock, *, lease_s: float, owners: Owners) -> None:
        self._store, self._clock, self._lease_s, self._owners = store, clock, lease_s, owners
        self._me = owners.new()

    async def lead(self, work: Callable[[Term], Awaitable[None]]) -> None:
        while True:
            term: HeldTerm | None = None
            with suppress(StoreUnavailable):
                term = await self._take()
            if term is not None:
                await self._work(term, work)
            # A follower looks so often that it takes over within a lease and a third.
            await asyncio.sleep(self._lease_s / 3)

    async def _work(self, term: HeldTerm, work: Callable[[Term], Awaitable[None]]) -> None:
        log.info("inventory_led", term=term.number)
        working = asyncio.ensure_future(work(term))
        renewing = asyncio.create_task(self._renew(term), name="inventory-lease")
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (working, renewing):
                task.cancel()
            results = await asyncio.gather(working, renewing, return_exceptions=True)
            with suppress(StoreUnavailable, RevisionConflict):
                # The next process need not wait.
                await self._store.update(
                    TURNS, LEADER, {"until": rfc3339(self._clock.now())}, where=Compare("holder", Op.EQ, [self._me])
                )
            for result in results:
                if isinstance(result, Exception) and not isinstance(result, LeaseLost | StoreUnavailable):
                    log.error("inventory_failed", exc_info=result)
            log.info("inventory_left", term=term.number)

    async def _take(self) -> HeldTerm | None:
        asked_at, now = asyncio.get_running_loop().time(), self._clock.now()
        stored = await self._store.get(TURNS, LEADER)
        number = 1 if stored is None else int(stored.body["term"]) + 1
        body = {
            "holder": self._me,
            "until": lease_end(now, self._lease_s),
            "renewed_at": rfc3339(now),
            "began_at": rfc3339(now),
            "term": number,
        }
        try:
            if stored is None:
                await self._store.insert(TURNS, LEADER, body)
            elif self._is_held(stored, now):
                return None
            else:
                await self._store.update(TURNS, LEADER, body, if_revision=stored.revision)
        except (AlreadyExists, RevisionConflict):
            return None
        return HeldTerm(number, asked_at + self._lease_s)

    def _is_held(self, lease: Stored, now: datetime) -> bool:
        """Return whether another process may still lead."""
        has_ended = self._owners.has_ended(str(lease.body["holder"]))
        return not has_ended and lease_left_s(str(lease.body["until"]), now, self._lease_s) > 0

    async def _renew(self, term: HeldTerm) -> None:
        """Renew the lease until it is lost."""
        loop = asyncio.get_running_loop()
        mine = AllOf([Compare("holder", Op.EQ, [self._me]), Compare("term", Op.EQ, [term.number])])
        while True:
            await asyncio.sleep(self._lease_s / 3)
            asked_at, now = loop.time(), self._clock.now()
            renewed = {"until": lease_end(now, self._lease_s), "renewed_at": rfc3339(now)}
            try:
                async with asyncio.timeout_at(term.held_until):
                    await self._store.update(TURNS, LEADER, renewed, where=mine)
                term.held_until = asked_at + self._lease_s
            except RevisionConflict:
                return
            # Until the lease ends no other process can have it, even if the database does not answer.
            except (StoreUnavailable, TimeoutError):
                if loop.time() >= term.held_until:
                    return
