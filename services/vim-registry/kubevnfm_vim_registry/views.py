"""VIMs as people ask for them (`kubevnfm_clients.ports.Vims`: `views` and `view`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubevnfm_clients.vim_views import VimView
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_secrets import KeyRing, revealed
from kubevnfm_store.prefixes import prefixed
from kubevnfm_store.query import Compare, Filter, Op

from kubevnfm_vim_registry.capacities import Capacities, KnownCapacity
from kubevnfm_vim_registry.domain.expiry import first_expiry
from kubevnfm_vim_registry.domain.record import VimRecord
from kubevnfm_vim_registry.monitor import VimMonitor
from kubevnfm_vim_registry.records import VimRecords

_EQUAL: Final = ("type", "status", "owner")
_PATIENCE_S: Final = 4.0
"""How long a view waits for the capacity; the reading goes on for the next one."""


class VimViews:
    """Returns what is stored of VIMs, with what the monitor and the last readings have seen."""

    def __init__(
        self, records: VimRecords, monitor: VimMonitor, capacities: Capacities, ring: KeyRing, clock: Clock
    ) -> None:
        self._records, self._monitor, self._capacities = records, monitor, capacities
        self._ring, self._clock = ring, clock

    async def page(
        self, filters: Mapping[str, str], *, limit: int, after: tuple[str, str] | None
    ) -> tuple[Sequence[VimView], tuple[str, str] | None]:
        """Return a page, and where the next one begins. Raises InvalidInput for an unknown filter."""
        unknown = next((name for name in filters if name not in {*_EQUAL, "name", "id"}), None)
        if unknown is not None:
            raise InvalidInput(unknown, "unknown filter")
        if "id" in filters:
            return [self._shown(each) for each in await self._records.with_id(filters["id"], limit=limit)], None
        wanted: list[Filter] = [Compare(name, Op.EQ, [filters[name]]) for name in _EQUAL if name in filters]
        # Every record has a name: so the index is read in its order.
        wanted += prefixed("name", filters.get("name", ""))
        found = await self._records.page(wanted, limit=limit + 1, after=after)
        shown = [self._shown(each) for each in found[:limit]]
        return shown, (shown[-1].name, shown[-1].id) if len(found) > limit else None

    async def one(self, vim_id: str) -> VimView:
        """Return one with its nodes. Raises VimUnknown."""
        vim = (await self._records.get(vim_id)).vim
        known = await self._capacities.read(vim, longest_s=_PATIENCE_S)
        nodes = known.seen.nodes if known.seen is not None and vim.type == "kubernetes" else None
        return self._shown(vim, known).model_copy(update={"cluster_nodes": nodes if nodes is None else tuple(nodes)})

    def _shown(self, vim: VimRecord, known: KnownCapacity | None = None) -> VimView:
        known, check, region = known or self._capacities.known(vim), self._monitor.last(vim.id), vim.region
        expiry = first_expiry(revealed(vim.auth_cred, self._ring)) if vim.type == "kubernetes" else None
        return VimView(
            id=vim.id,
            name=vim.name,
            description=vim.description,
            type=vim.type,
            is_default=vim.is_default,
            status=vim.status,
            status_reason=vim.status_reason,
            status_since=vim.status_since or vim.created_at,
            endpoint=vim.auth_url,
            owner=vim.owner,
            region_id=region.id if region is not None else None,
            kubernetes_version=vim.kubernetes_version,
            places=tuple(vim.placement_attr.get("regions", ())),
            features=region.capabilities if region is not None else (),
            missing_permissions=region.missing_permissions if region is not None else (),
            expires_at=rfc3339(expiry.at) if expiry is not None else None,
            expiring=expiry.part if expiry is not None else None,
            days_left=expiry.days_left(self._clock.now()) if expiry is not None else None,
            checked_at=check.at,
            check_ms=check.took_ms,
            error=check.error,
            error_at=check.error_at,
            capacity=known.seen.capacity if known.seen is not None else None,
            capacity_error=known.error,
            nodes_not_ready=known.seen.not_ready if known.seen is not None else (),
            created_at=vim.created_at,
            updated_at=vim.updated_at,
        )
