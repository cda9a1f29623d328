"""Watches the VIMs: one light call each, all at once but bounded; a changed status is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog
from kubevnfm_events.vim import VimStatus
from kubevnfm_kit.errors import VnfmError
from kubevnfm_store.port import RevisionConflict, StoreUnavailable

from kubevnfm_vim_registry.domain.ports import Probes
from kubevnfm_vim_registry.domain.record import VimRecord
from kubevnfm_vim_registry.records import Kept, VimRecords
from kubevnfm_vim_registry.registry import became

log = structlog.get_logger()


class VimMonitor:
    """Every replica watches; whoever writes a changed status first tells it."""

    def __init__(
        self, records: VimRecords, probes: Probes, *, every_s: float, timeout_s: float, at_a_time: int
    ) -> None:
        """``timeout_s``: how long a VIM may take to give a sign of life; ``at_a_time``: VIMs asked side by side."""
        self._records, self._probes = records, probes
        self._every_s, self._timeout_s = every_s, timeout_s
        self._places = asyncio.Semaphore(at_a_time)

    async def watch(self) -> None:
        """Look after all VIMs again and again, until cancelled."""
        now: Callable[[], float] = asyncio.get_running_loop().time
        while True:
            begun_at = now()
            try:
                await self.look_after_all()
            except StoreUnavailable as error:
                log.warning("vims_not_watched", reason=str(error))
            await asyncio.sleep(max(self._every_s - (now() - begun_at), 0.0))

    async def look_after_all(self) -> None:
        """Ask each VIM once. Raises StoreUnavailable."""
        await asyncio.gather(*(self._look_after(kept) for kept in await self._records.all()))

    async def _look_after(self, kept: Kept) -> None:
        async with self._places:
            status, reason = await self._status(kept.vim)
        if status == kept.vim.status:
            return
        vim = kept.vim.model_copy(update={"status": status, "status_reason": reason})
        try:
            await self._records.replace(kept, vim, became(kept.vim, vim))
        except RevisionConflict:
            return  # changed or deleted meanwhile, or told by another replica: the next round sees it as it is
        log.warning("vim_status_changed", vim_id=vim.id, name=vim.name, status=status, reason=reason)

    async def _status(self, vim: VimRecord) -> tuple[VimStatus, str]:
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._probes[vim.type].greet(vim)
        except TimeoutError:
            return "UNREACHABLE", f"no answer within {self._timeout_s:g} s"
        except VnfmError as error:
            return ("UNREACHABLE" if error.retryable else "ERROR"), str(error)
        return "ACTIVE", ""
