"""Monitors the VIMs: makes one light call to each in every round, and publishes a changed status and access data that expire."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import structlog
from kubevnfm_clients.ports import InstanceOperations
from kubevnfm_events import Event
from kubevnfm_events.vim import VimCredentialsExpiring, VimStatus
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.error_text import bounded
from kubevnfm_kit.errors import OutsideUnavailable, VnfmError
from kubevnfm_kit.metrics import Metrics
from kubevnfm_secrets import KeyRing, revealed
from kubevnfm_store.port import RevisionConflict

from kubevnfm_vim_registry.domain.expiry import DAILY, THRESHOLDS_DAYS, first_expiry
from kubevnfm_vim_registry.domain.ports import Probes
from kubevnfm_vim_registry.domain.record import VimRecord
from kubevnfm_vim_registry.records import StoredVim, VimRecords
from kubevnfm_vim_registry.registry import status_events
from kubevnfm_vim_registry.vim_metrics import VimMetrics

log = structlog.get_logger()

_REASON_BYTES: Final = 1024
_SILENT_PROBES: Final = 3
"""So many probes in a row a region must not answer until it is UNREACHABLE (multicloud.md MC-080)."""


Rejected = Callable[[str], Awaitable[None]]
"""Called with the id of a VIM that rejects its access data."""


@dataclass(frozen=True)
class LastCheck:
    """The last call to a VIM by this process."""

    at: str | None = None
    """None: it has not called it yet."""
    took_ms: float | None = None
    error: str = ""
    """The last failure."""
    error_at: str | None = None


class VimMonitor:
    """Monitors all VIMs. Each replica does so; the first one that writes a change publishes it."""

    def __init__(
        self,
        records: VimRecords,
        probes: Probes,
        operations: InstanceOperations,
        clock: Clock,
        ring: KeyRing,
        *,
        rejected: Rejected,
        timeout_s: float,
        at_a_time: int,
        tolerated_s: float,
        metrics: Metrics | None = None,
    ) -> None:
        """``rejected``: called for a region whose kubeconfig is of an inventory; ``timeout_s``: time limit for the call to one VIM; ``at_a_time``: number of simultaneous calls; ``tolerated_s``:
        how long a cluster may be silent during an operation of its instance.
        """
        self._records, self._probes, self._operations = records, probes, operations
        self._clock, self._ring, self._rejected = clock, ring, rejected
        self._tolerated_s = tolerated_s
        self._metrics = VimMetrics(metrics or Metrics())
        self._silent_since: dict[str, datetime] = {}
        """In memory, as each replica makes its own calls."""
        self._silent_probes: Counter[str] = Counter()
        """The probes in a row that a region has not answered."""
        self._last: dict[str, LastCheck] = {}
        self._timeout_s = timeout_s
        self._places = asyncio.Semaphore(at_a_time)
        self._unverified: AbstractSet[str] = frozenset()

    async def check_all(self) -> None:
        """Check each VIM once. Raises StoreUnavailable."""
        found = await self._records.all()
        for deleted in self._silent_since.keys() - {stored.vim.id for stored in found}:
            del self._silent_since[deleted]
        for deleted in self._silent_probes.keys() - {stored.vim.id for stored in found}:
            del self._silent_probes[deleted]
        for deleted in self._last.keys() - {stored.vim.id for stored in found}:
            del self._last[deleted]
        self._report_unverified([stored.vim for stored in found if stored.vim.is_tls_unverified])
        await asyncio.gather(*(self._check(stored) for stored in found))
        self._metrics.show([stored.vim for stored in found])

    def last(self, vim_id: str) -> LastCheck:
        """Return the last call to a VIM."""
        return self._last.get(vim_id, LastCheck())

    def _report_unverified(self, vims: Sequence[VimRecord]) -> None:
        """Log, once after each start and change, the clusters whose certificates are not verified (capi.md CR-007)."""
        for vim in vims:
            if vim.id not in self._unverified:
                log.warning("vim_tls_not_verified", vim_id=vim.id, name=vim.name)
        self._unverified = {vim.id for vim in vims}

    async def _check(self, stored: StoredVim) -> None:
        async with self._places:
            began = time.monotonic()
            status, reason = await self._status(stored.vim)
            self._note(stored.vim.id, reason, (time.monotonic() - began) * 1000)
        if status == "ERROR" and stored.vim.region is not None and stored.vim.region.inventory is not None:
            # It answers, and rejects the login, or its certificate is of another CA. If this changes the record, the next round judges it.
            await self._rejected(stored.vim.id)
        if status != "UNREACHABLE":
            self._silent_since.pop(stored.vim.id, None)
            self._silent_probes.pop(stored.vim.id, None)
        elif self._may_be_tolerated(stored.vim) and await self._is_tolerated(stored.vim):
            status, reason = stored.vim.status, stored.vim.status_reason
        vim, events = stored.vim, list[Event]()
        if status != vim.status:
            vim = vim.model_copy(update={"status": status, "status_reason": reason})
            events += status_events(stored.vim, vim)
        vim, expiring = self._expiring(vim)
        events += expiring
        if not events:
            return
        try:
            await self._records.replace(stored, vim, events)
        except RevisionConflict:
            return  # changed, deleted or published by another replica meanwhile; the next round reads it again
        if status != stored.vim.status:
            log.warning("vim_status_changed", vim_id=vim.id, name=vim.name, status=status, reason=reason)
        for event in expiring:
            log.warning("vim_credentials_expire", vim_id=vim.id, part=event.part, expires_at=event.expires_at)

    def _note(self, vim_id: str, error: str, took_ms: float) -> None:
        at, before = rfc3339(self._clock.now()), self.last(vim_id)
        failure = {"error": bounded(error, _REASON_BYTES), "error_at": at} if error else {}
        self._last[vim_id] = replace(before, at=at, took_ms=round(took_ms, 1), **failure)

    @staticmethod
    def _may_be_tolerated(vim: VimRecord) -> bool:
        # A region in ERROR answers too, and each change is an event of its own.
        return vim.status == "ACTIVE" or (vim.region is not None and vim.status != "UNREACHABLE")

    async def _is_tolerated(self, vim: VimRecord) -> bool:
        """Return whether the silence is too short to count, or that of a control plane which an operation replaces (capi.md CR-101)."""
        if vim.region is not None:
            self._silent_probes[vim.id] += 1
            return self._silent_probes[vim.id] < _SILENT_PROBES
        # Noted in any case: the silence may have begun before the operation.
        since = self._silent_since.setdefault(vim.id, self._clock.now())
        if (self._clock.now() - since).total_seconds() >= self._tolerated_s or vim.owner is None:
            return False
        try:
            return await self._operations.running(vim.owner) is not None
        except OutsideUnavailable:
            return True  # unknown: the next round asks again, and the time is limited

    def _expiring(self, vim: VimRecord) -> tuple[VimRecord, list[VimCredentialsExpiring]]:
        """Return the record and the event, if a further threshold is reached."""
        expiry = first_expiry(revealed(vim.auth_cred, self._ring)) if vim.type == "kubernetes" else None
        self._metrics.checked(vim.id, vim.status, None if expiry is None else expiry.at)
        thresholds = THRESHOLDS_DAYS if vim.region is None else DAILY
        threshold = expiry.threshold(self._clock.now(), thresholds) if expiry is not None else None
        if expiry is None or threshold is None:
            return vim, []
        if vim.expiry_reported_days is not None and vim.expiry_reported_days <= threshold:
            return vim, []
        event = VimCredentialsExpiring(
            vim_id=vim.id,
            name=vim.name,
            part=expiry.part,
            expires_at=rfc3339(expiry.at),
            days_left=expiry.days_left(self._clock.now()),
        )
        return vim.model_copy(update={"expiry_reported_days": threshold}), [event]

    async def _status(self, vim: VimRecord) -> tuple[VimStatus, str]:
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._probes[vim.type].check(vim)
        except TimeoutError:
            return "UNREACHABLE", f"no answer within {self._timeout_s:g} s"
        except VnfmError as error:
            return ("UNREACHABLE" if error.retryable else "ERROR"), str(error)
        return "ACTIVE", ""
