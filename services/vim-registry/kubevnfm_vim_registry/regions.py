"""The cloud regions of the multi-cloud API (port CloudRegions): VIMs with an owner and a name of their own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Final

import structlog
from kubevnfm_clients.multicloud.regions import (
    KEPT_BYTES,
    MOST_LABELS,
    CloudRegion,
    Kubeconfig,
    RegionPatch,
    RegionRequest,
)
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_kit.errors import Conflict, InUse, InvalidInput, NotFound, PreconditionFailed, Unprocessable
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_kit.merge_patch import merge_patch
from kubevnfm_secrets import KeyRing, mask, revealed
from kubevnfm_store.port import AlreadyExists
from kubevnfm_store.prefixes import prefixed
from kubevnfm_store.query import Compare, Op
from kubevnfm_store.races import repeat_lost_writes

from kubevnfm_vim_registry.domain.errors import (
    KubernetesTooOld,
    NameTaken,
    VimInUse,
    VimRefused,
    VimTokenRefused,
    VimTooSlow,
    VimUnauthorized,
    VimUnreachable,
    named,
)
from kubevnfm_vim_registry.domain.features import node_capabilities
from kubevnfm_vim_registry.domain.ports import RegionProbe
from kubevnfm_vim_registry.domain.record import VimRecord
from kubevnfm_vim_registry.domain.region import FOUND, NEEDED, USEFUL, RegionFacts, capabilities_of, with_access
from kubevnfm_vim_registry.records import StoredVim, VimRecords
from kubevnfm_vim_registry.region_access import GivenAccess, RegionAccess
from kubevnfm_vim_registry.registry import DEFAULT_TENANT, VimRegistry, registered, status_events, with_facts

log = structlog.get_logger()

_FILTERS: Final[Mapping[str, str]] = {
    "cloud_owner": "region/cloud_owner",
    "cloud_region": "region/cloud_region",
    "status": "status",
}
"""The paths in the documents, by filter."""
_PREFIXES: Final[Mapping[str, str]] = {"id_prefix": "region/id", "name_prefix": "region/cloud_region"}
_NOT_USABLE: Final = (VimUnauthorized, VimRefused, VimUnreachable, VimTooSlow, KubernetesTooOld)


class Regions:
    """Implements `kubevnfm_clients.multicloud.regions.CloudRegions`."""

    def __init__(
        self,
        records: VimRecords,
        registry: VimRegistry,
        probe: RegionProbe,
        access: RegionAccess,
        ring: KeyRing,
    ) -> None:
        self._records, self._registry, self._probe, self._ring = records, registry, probe, ring
        self._access = access

    @repeat_lost_writes
    async def register(self, wanted: RegionRequest) -> tuple[CloudRegion, bool]:
        self._check_size("kv", wanted.kv)
        self._check_size("other-connectivity-list", wanted.other_connectivity)
        facts = _facts_of(wanted)
        given = await self._access.given(wanted, facts)
        present = await self._records.region(facts.id)
        if present is None:
            vim = await self._verified(given.given_to(self._new(facts)))
            try:
                await self._records.insert(vim, [registered(vim)])
            except (NameTaken, AlreadyExists):
                # Another request has registered it meanwhile; or a VIM that is no region has the name.
                if (present := await self._records.region(facts.id)) is None:
                    raise
            else:
                log.info("region_registered", region=facts.id, vim_id=vim.id, endpoint=vim.auth_url)
                return shown(await self._records.get(vim.id)), True
        return shown(await self._registered_again(present, facts, given)), False

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[CloudRegion]:
        if filters.keys() == {"vim_id"}:
            known = await self._records.find_one(filters["vim_id"])
            return Page([] if known is None or known.vim.region is None else [shown(known)])
        wanted = list[Compare]()
        for name, value in filters.items():
            if name == "cloud_region_id":
                wanted.append(Compare("region/id" if "/" in value else "region/cloud_region", Op.EQ, [value]))
            elif name in _PREFIXES:
                wanted += prefixed(_PREFIXES[name], value)
            elif name in _FILTERS:
                wanted.append(Compare(_FILTERS[name], Op.EQ, [value]))
            else:
                raise InvalidInput(name, "unknown filter")
        if "name_prefix" in filters:  # the first page alone, by the index of names
            named = await self._records.regions(wanted, limit=limit, sort="region/cloud_region")
            return Page([shown(stored) for stored in named])
        found = await self._records.regions(wanted, limit=limit + 1, after=after)
        regions = [shown(stored) for stored in found[:limit]]
        return Page(regions, regions[-1].id if len(found) > limit else None)

    async def get(self, owner: str, region: str) -> CloudRegion:
        return shown(await self.stored(owner, region))

    @repeat_lost_writes
    async def change(self, owner: str, region: str, patch: RegionPatch, *, if_revision: int | None) -> CloudRegion:
        stored = await self._at(owner, region, if_revision)
        facts = stored.vim.region
        assert facts is not None
        given = {name: getattr(patch, name) for name in patch.model_fields_set}
        merged = merge_patch({"labels": facts.labels, "kv": facts.kv}, given)
        labels, kv = dict(merged.get("labels") or {}), merged.get("kv") or {}
        if len(labels) > MOST_LABELS:
            raise Unprocessable("labels", f"at most {MOST_LABELS} labels expected")
        self._check_size("kv", kv)
        changed = facts.model_copy(update={"labels": labels, "kv": kv})
        if _in_clear(changed, self._ring) == _in_clear(facts, self._ring):
            return shown(stored)
        vim = stored.vim.model_copy(update={"region": changed, "updated_at": self._records.now()})
        await self._records.replace(stored, vim)
        log.info("region_changed", region=facts.id, vim_id=vim.id, endpoint=vim.auth_url)
        return shown(await self._records.get(vim.id))

    @repeat_lost_writes
    async def rotate(self, owner: str, region: str, access: Kubeconfig, *, if_revision: int | None) -> CloudRegion:
        stored = await self._at(owner, region, if_revision)
        assert stored.vim.region is not None
        given = await self._access.given(access, stored.vim.region)
        return shown(await self._replace(stored, given.given_to(stored.vim)))

    async def use(self, stored: StoredVim, given: GivenAccess) -> None:
        """Use what the inventory of a region has now; other access data are verified first. Raises Unprocessable, RevisionConflict."""
        changed = given.given_to(stored.vim)
        if self._is_same_login(stored.vim, changed):
            # The end of the access data has been published.
            changed = stored.vim.model_copy(update={"region": changed.region})
            if _in_clear_of(changed, self._ring) == _in_clear_of(stored.vim, self._ring):
                return
            await self._records.replace(stored, changed)
        else:
            await self._replace(stored, changed)

    def _is_same_login(self, one: VimRecord, other: VimRecord) -> bool:
        return (one.auth_url, one.content_sha256) == (other.auth_url, other.content_sha256) and (
            revealed(one.auth_cred, self._ring) == revealed(other.auth_cred, self._ring)
        )

    @repeat_lost_writes
    async def delete(self, owner: str, region: str, *, if_revision: int | None) -> None:
        stored = await self._at(owner, region, if_revision)
        try:
            await self._registry.remove(stored, if_revision=stored.revision)
        except VimInUse as error:
            detail = f"{len(error.users)} VNF instances use cloud region {owner}/{region}: {named(error.users)}"
            raise InUse(detail, error.users) from error
        log.info("region_deleted", region=f"{owner}/{region}", vim_id=stored.vim.id)

    async def stored(self, owner: str, region: str) -> StoredVim:
        """Return the record of a region. Raises NotFound."""
        stored = await self._records.region(f"{owner}/{region}")
        if stored is None:
            raise NotFound(f"cloud region {owner}/{region} does not exist")
        return stored

    async def _at(self, owner: str, region: str, revision: int | None) -> StoredVim:
        """Return the record of a region that has this revision; None: any, as the monitor writes it too. Raises NotFound, PreconditionFailed."""
        stored = await self.stored(owner, region)
        if revision not in (None, stored.revision):
            raise PreconditionFailed("the region has changed since it was read")
        return stored

    async def _registered_again(self, present: StoredVim, facts: RegionFacts, given: GivenAccess) -> StoredVim:
        """Return the region as another registration leaves it, which may bring other access data and descriptions."""
        old = present.vim.region
        assert old is not None
        new = facts.model_copy(update={name: getattr(old, name) for name in (*FOUND, "suspended", "inventory_state")})
        changed = given.given_to(present.vim.model_copy(update={"region": new}))
        if changed.auth_url != present.vim.auth_url:
            raise Conflict(f"cloud region {facts.id} is registered with another endpoint: {present.vim.auth_url}")
        assert changed.region is not None
        if self._is_same_login(present.vim, changed) and _in_clear(changed.region, self._ring) == _in_clear(
            old, self._ring
        ):
            return present
        return await self._replace(present, changed)

    async def _replace(self, stored: StoredVim, vim: VimRecord) -> StoredVim:
        """Verify changed access data, then store them. Raises Unprocessable, RevisionConflict."""
        vim = await self._verified(vim.model_copy(update={"updated_at": self._records.now()}))
        old, new = stored.vim.region, vim.region
        assert old is not None
        assert new is not None
        place = "kubeconfig" if new.inventory is None else "inventory"
        # The author of an inventory chooses the server, which could hide what cluster it is.
        is_known = bool(new.cluster_uid) or new.inventory is not None
        if old.cluster_uid and is_known and old.cluster_uid != new.cluster_uid:
            raise Unprocessable(place, "it leads to another cluster; the one that is registered expected")
        await self._records.replace(stored, vim, status_events(stored.vim, vim))
        log.info("region_changed", region=new.id, vim_id=vim.id, endpoint=vim.auth_url)
        return await self._records.get(vim.id)

    def _new(self, facts: RegionFacts) -> VimRecord:
        now = self._records.now()
        return VimRecord(
            id=new_id(),
            name=facts.id,
            tenant_id=DEFAULT_TENANT,
            type="kubernetes",
            auth_url="",
            created_at=now,
            updated_at=now,
            region=facts,
        )

    def _check_size(self, name: str, given: JsonObject) -> None:
        """Raise Unprocessable for more than is kept, with its secrets: the gateway has counted them without their texts."""
        if len(json.dumps(revealed(given, self._ring))) > KEPT_BYTES:
            raise Unprocessable(name, f"at most {KEPT_BYTES} bytes of JSON expected")

    async def _verified(self, vim: VimRecord) -> VimRecord:
        """Return the record with the facts of its cluster. Raises Unprocessable."""
        facts = vim.region
        assert facts is not None
        place = "kubeconfig" if facts.inventory is None else "inventory"
        try:
            vim = with_facts(vim, await self._registry.verified(vim))
            found = await self._registry.in_time(vim, self._probe.inspect(vim, (*NEEDED, *USEFUL)))
            nodes = await self._registry.in_time(vim, self._probe.listed(vim, "v1", "Node"))
        except VimTokenRefused as error:
            raise Unprocessable("token_request/service_account", str(error)) from error
        except _NOT_USABLE as error:
            raise Unprocessable(place, str(error)) from error
        # In a thread: 5,000 nodes take most of a second.
        on_nodes = await asyncio.to_thread(node_capabilities, nodes)
        lacking = [str(each) for each in NEEDED if each in found.missing]
        if lacking:
            raise Unprocessable(place, f"its user lacks permissions: {', '.join(lacking)}")
        facts = with_access(facts, revealed(vim.auth_cred, self._ring))
        news = {
            "cluster_uid": found.cluster_uid,
            "capabilities": tuple(sorted({*capabilities_of(found.groups), *on_nodes})),
            "missing_permissions": found.missing_permissions,
        }
        return vim.model_copy(update={"region": facts.model_copy(update=news)})


def _facts_of(wanted: RegionRequest) -> RegionFacts:
    given = {name: getattr(wanted, name) for name in RegionFacts.model_fields if name in RegionRequest.model_fields}
    return RegionFacts.model_validate({**given, "id": f"{wanted.cloud_owner}/{wanted.cloud_region}", "context": ""})


def _in_clear_of(vim: VimRecord, ring: KeyRing) -> JsonObject:
    assert vim.region is not None
    return _in_clear(vim.region, ring)


def _in_clear(facts: RegionFacts, ring: KeyRing) -> JsonObject:
    values: JsonObject = revealed(facts.model_dump(), ring)
    return values


def shown(stored: StoredVim) -> CloudRegion:
    """Return a region as clients see it."""
    vim, facts = stored.vim, stored.vim.region
    assert facts is not None
    return CloudRegion(
        **_described(facts),
        vim_id=vim.id,
        endpoint=vim.auth_url,
        server_version=vim.kubernetes_version,
        sha256=vim.content_sha256,
        status=vim.status,
        status_reason=vim.status_reason,
        created_at=vim.created_at,
        updated_at=vim.updated_at,
        revision=stored.revision,
    )


def _described(facts: RegionFacts) -> JsonObject:
    """Return the facts without secrets, with the labels and properties of its inventory below its own."""
    found: JsonObject = mask(facts.model_dump(exclude={"inventory", "inventory_state"}))
    if facts.inventory is not None:
        found["inventory"] = mask(facts.inventory.model_dump(exclude_none=True))
    if (state := facts.inventory_state) is not None:
        found["labels"] = {**state.labels, **found["labels"]}
        found["kv"] = {**mask(state.kv), **found["kv"]}
    return found
