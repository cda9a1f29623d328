"""Reads the inventories of cloud regions again: in rounds, and when a cluster rejects the access data (multicloud.md MC-078, MC-079)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

import structlog
from kubevnfm_events.vim import VimInventoryLost
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.errors import VnfmError
from kubevnfm_store.port import RevisionConflict

from kubevnfm_vim_registry.domain.errors import InventoryAway, InventoryLost
from kubevnfm_vim_registry.records import StoredVim, VimRecords
from kubevnfm_vim_registry.region_access import GivenAccess, RegionAccess

log = structlog.get_logger()

_FIRST_RETRY_S: Final = 10.0
_LONGEST_FIRST_S: Final = 300.0
"""A process that starts does not know when the one before it has read, which may have ended after less than ``refresh``."""
_REFUSAL_APART_S: Final = 10.0
"""A cluster that goes on rejecting what the inventory has would otherwise have each of its callers read the inventory."""


class UsesAccess(Protocol):
    """The part of `regions.Regions` that takes what was read."""

    async def use(self, stored: StoredVim, given: GivenAccess) -> None:
        """Use the access data that the inventory of a region has now. Raises Unprocessable, RevisionConflict."""
        ...


@dataclass
class _Turn:
    """When the inventory of a region is read next."""

    due_at: float
    refresh_s: float
    failures: int = 0
    read_at: float = float("-inf")
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class RegionInventories:
    """Each replica reads; the first one that writes a change publishes it."""

    def __init__(
        self,
        records: VimRecords,
        access: RegionAccess,
        regions: UsesAccess,
        *,
        at_a_time: int,
        monotonic: Callable[[], float] | None = None,
        spread: Callable[[], float] = random.random,
    ) -> None:
        """``spread``: gives the part of the first pause, so that the inventories of many regions are not read at one moment."""
        self._records, self._access, self._regions = records, access, regions
        self._places = asyncio.Semaphore(at_a_time)
        self._monotonic = monotonic or (lambda: asyncio.get_running_loop().time())
        self._spread = spread
        self._turns: dict[str, _Turn] = {}

    async def read_due(self) -> None:
        """Read the inventories whose time has come. Raises StoreUnavailable."""
        found = await self._records.with_inventory()
        for deleted in self._turns.keys() - {stored.vim.id for stored in found}:
            del self._turns[deleted]
        await asyncio.gather(*(self._read_if_due(stored) for stored in found))

    async def rejected(self, vim_id: str) -> None:
        """Read the inventory of a region now, whose cluster rejects the access data. Nothing happens for other VIMs."""
        stored = await self._records.find_one(vim_id)
        if stored is None or stored.vim.region is None or stored.vim.region.inventory is None:
            return
        turn = self._turn(stored)
        asked_at = self._monotonic()
        async with turn.lock:
            if asked_at >= turn.read_at + _REFUSAL_APART_S:
                # Many regions may reject their access data at one moment.
                async with self._places:
                    await self._read(stored, turn)

    async def _read_if_due(self, stored: StoredVim) -> None:
        turn = self._turn(stored)
        if self._monotonic() >= turn.due_at:
            # In the order of `rejected`.
            async with turn.lock, self._places:
                if self._monotonic() >= turn.due_at:
                    await self._read(stored, turn)

    def _turn(self, stored: StoredVim) -> _Turn:
        facts = stored.vim.region
        assert facts is not None
        assert facts.inventory is not None
        refresh_s, now = facts.inventory.refresh, self._monotonic()
        turn = self._turns.get(stored.vim.id)
        if turn is None:
            # Not at once: it was read when it was registered, or by the process before this one.
            first_s = min(refresh_s, _LONGEST_FIRST_S)
            if facts.inventory_state is not None and facts.inventory_state.health.reason:
                first_s = _FIRST_RETRY_S
            turn = self._turns[stored.vim.id] = _Turn(now + self._spread() * first_s, refresh_s)
        elif turn.refresh_s != refresh_s:
            turn.due_at, turn.refresh_s = min(turn.due_at, now + refresh_s), refresh_s
        return turn

    async def _read(self, stored: StoredVim, turn: _Turn) -> None:
        facts = stored.vim.region
        assert facts is not None
        assert facts.inventory is not None
        refresh_s = facts.inventory.refresh
        context = facts.inventory_state.context if facts.inventory_state is not None else None
        try:
            await self._regions.use(stored, await self._access.pulled(facts, facts.inventory, context))
        except VnfmError as error:
            turn.failures += 1
            turn.due_at = self._monotonic() + BackOff(_FIRST_RETRY_S, refresh_s).after(turn.failures)
            # A race with a request: the next round reads what it has stored.
            if not isinstance(error, RevisionConflict):
                await self._failed(stored, error)
        else:
            turn.failures, turn.due_at = 0, self._monotonic() + refresh_s
        finally:
            turn.read_at = self._monotonic()

    async def _failed(self, stored: StoredVim, error: VnfmError) -> None:
        """Note why nothing usable could be read; the last copy stays in use."""
        facts = stored.vim.region
        if facts is None or facts.inventory_state is None:
            return
        # No answer says nothing about what the inventory has.
        was_lost = facts.inventory_state.health.lost and isinstance(error, InventoryAway)
        is_lost = was_lost or isinstance(error, InventoryLost)
        state = facts.inventory_state.failed(str(error), is_lost=is_lost, now=self._records.now())
        if state == facts.inventory_state:
            return
        events = []
        if is_lost and not facts.inventory_state.health.lost:
            events.append(VimInventoryLost(vim_id=stored.vim.id, region=facts.id, reason=str(error)))
        vim = stored.vim.model_copy(update={"region": facts.model_copy(update={"inventory_state": state})})
        try:
            await self._records.replace(stored, vim, events)
        except RevisionConflict:
            return  # changed, deleted or published by another replica meanwhile
        log.warning("region_inventory_failed", region=facts.id, vim_id=stored.vim.id, reason=str(error), lost=is_lost)
