"""Monitors the VIMs: makes one light call to each in every round, and publishes a changed status."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog
from kubevnfm_events.vim import VimStatus
from kubevnfm_kit.errors import VnfmError
from kubevnfm_store.port import RevisionConflict, StoreUnavailable

from kubevnfm_vim_registry.domain.ports import Probes
from kubevnfm_vim_registry.domain.record import VimRecord
from kubevnfm_vim_registry.records import StoredVim, VimRecords
from kubevnfm_vim_registry.registry import status_events

log = structlog.get_logger()


class VimMonitor:
    """Monitors all VIMs. Each replica does so; the first one that writes a changed status publishes it."""

    def __init__(
        self, records: VimRecords, probes: Probes, *, every_s: float, timeout_s: float, at_a_time: int
    ) -> None:
        """``timeout_s``: time limit for the call to one VIM; ``at_a_time``: number of simultaneous calls."""
        self._records, self._probes = records, probes
        self._every_s, self._timeout_s = every_s, timeout_s
        self._places = asyncio.Semaphore(at_a_time)

    async def watch(self) -> None:
        """Check all VIMs every ``every_s`` seconds until cancelled."""
        now: Callable[[], float] = asyncio.get_running_loop().time
        while True:
            begun_at = now()
            try:
                await self.check_all()
            except StoreUnavailable as error:
                log.warning("vims_not_watched", reason=str(error))
            # The interval counts from the start of a round, so slow VIMs do not make the others wait.
            await asyncio.sleep(max(self._every_s - (now() - begun_at), 0.0))

    async def check_all(self) -> None:
        """Check each VIM once. Raises StoreUnavailable."""
        await asyncio.gather(*(self._check(stored) for stored in await self._records.all()))

    async def _check(self, stored: StoredVim) -> None:
        async with self._places:
            status, reason = await self._status(stored.vim)
        if status == stored.vim.status:
            return
        vim = stored.vim.model_copy(update={"status": status, "status_reason": reason})
        try:
            await self._records.replace(stored, vim, status_events(stored.vim, vim))
        except RevisionConflict:
            return  # changed, deleted or published by another replica meanwhile; the next round reads it again
        log.warning("vim_status_changed", vim_id=vim.id, name=vim.name, status=status, reason=reason)

    async def _status(self, vim: VimRecord) -> tuple[VimStatus, str]:
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._probes[vim.type].check(vim)
        except TimeoutError:
            return "UNREACHABLE", f"no answer within {self._timeout_s:g} s"
        except VnfmError as error:
            return ("UNREACHABLE" if error.retryable else "ERROR"), str(error)
        return "ACTIVE", ""
