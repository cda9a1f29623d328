"""The cloud regions of the multi-cloud API (port CloudRegions): VIMs with an owner and a name of their own."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import Mapping
from typing import Final

import structlog
from kubevnfm_clients.callback import sha256_hex
from kubevnfm_clients.kubeconfig import Allowed, ContextAccess, context_access
from kubevnfm_clients.multicloud.regions import (
    KEPT_BYTES,
    KUBECONFIG_BYTES,
    MOST_LABELS,
    CloudRegion,
    Kubeconfig,
    OidcClient,
    RegionPatch,
    RegionRequest,
)
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_kit.errors import Conflict, InUse, InvalidInput, NotFound, Unprocessable
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_kit.merge_patch import merge_patch
from kubevnfm_secrets import KeyRing, mask, revealed
from kubevnfm_store.port import AlreadyExists, RevisionConflict

from kubevnfm_vim_registry.domain.errors import (
    KubernetesTooOld,
    NameTaken,
    VimInUse,
    VimRefused,
    VimTokenRefused,
    VimTooSlow,
    VimUnauthorized,
    VimUnreachable,
)
from kubevnfm_vim_registry.domain.features import node_capabilities
from kubevnfm_vim_registry.domain.ports import RegionProbe
from kubevnfm_vim_registry.domain.record import VimRecord, auth_cred_of
from kubevnfm_vim_registry.domain.region import FOUND, NEEDED, USEFUL, RegionFacts, capabilities_of, with_access
from kubevnfm_vim_registry.records import StoredVim, VimRecords
from kubevnfm_vim_registry.registry import DEFAULT_TENANT, VimRegistry, registered, status_events, with_facts

log = structlog.get_logger()

_FILTERS: Final[Mapping[str, str]] = {
    "cloud_owner": "region/cloud_owner",
    "cloud_region": "region/cloud_region",
    "status": "status",
}
"""The paths in the documents, by filter."""
_RACE: Final = "the region was changed by another request at the same time: try again"
_MOST_SHOWN: Final = 100
_NOT_USABLE: Final = (VimUnauthorized, VimRefused, VimUnreachable, VimTooSlow, KubernetesTooOld)


class Regions:
    """Implements `kubevnfm_clients.multicloud.regions.CloudRegions`."""

    def __init__(
        self,
        records: VimRecords,
        registry: VimRegistry,
        probe: RegionProbe,
        ring: KeyRing,
        *,
        allowed: Allowed,
    ) -> None:
        """``allowed``: what kubeconfigs may have."""
        self._records, self._registry, self._probe, self._ring = records, registry, probe, ring
        self._allowed = allowed

    async def register(self, wanted: RegionRequest) -> tuple[CloudRegion, bool]:
        self._check_size("kv", wanted.kv)
        self._check_size("other-connectivity-list", wanted.other_connectivity)
        sha256, access = await self._read(wanted)
        facts = _facts_of(wanted)
        present = await self._records.region(facts.id)
        if present is None:
            vim = await self._verified(_with_access(self._new(facts), sha256, access))
            try:
                await self._records.insert(vim, [registered(vim)])
            except (NameTaken, AlreadyExists):
                # Another request has registered it meanwhile; or a VIM that is no region has the name.
                if (present := await self._records.region(facts.id)) is None:
                    raise
            else:
                log.info("region_registered", region=facts.id, vim_id=vim.id, endpoint=vim.auth_url)
                return shown(await self._records.get(vim.id)), True
        return shown(await self._registered_again(present, facts, sha256, access)), False

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[CloudRegion]:
        wanted = list[tuple[str, str]]()
        for name, value in filters.items():
            if name == "cloud_region_id":
                wanted.append(("region/id" if "/" in value else "region/cloud_region", value))
            elif name in _FILTERS:
                wanted.append((_FILTERS[name], value))
            else:
                raise InvalidInput(name, "unknown filter")
        found = await self._records.regions(wanted, limit=limit + 1, after=after)
        regions = [shown(stored) for stored in found[:limit]]
        return Page(regions, regions[-1].id if len(found) > limit else None)

    async def get(self, owner: str, region: str) -> CloudRegion:
        return shown(await self.stored(owner, region))

    async def change(self, owner: str, region: str, patch: RegionPatch, *, if_revision: int) -> CloudRegion:
        stored = await self.stored(owner, region)
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
        try:
            await self._records.replace(StoredVim(stored.vim, if_revision), vim)
        except RevisionConflict as error:
            raise Conflict(_RACE) from error
        log.info("region_changed", region=facts.id, vim_id=vim.id, endpoint=vim.auth_url)
        return shown(await self._records.get(vim.id))

    async def rotate(self, owner: str, region: str, access: Kubeconfig, *, if_revision: int) -> CloudRegion:
        stored = await self.stored(owner, region)
        sha256, given = await self._read(access)
        changed = _with_access(stored.vim, sha256, given)
        return shown(await self._replace(StoredVim(stored.vim, if_revision), changed))

    async def delete(self, owner: str, region: str, *, if_revision: int) -> None:
        stored = await self.stored(owner, region)
        if stored.revision != if_revision:
            raise Conflict(_RACE)
        try:
            await self._registry.remove(stored, if_revision=if_revision)
        except VimInUse as error:
            ids = ", ".join(error.users[:_MOST_SHOWN])
            detail = f"{len(error.users)} VNF instances use cloud region {owner}/{region}: {ids}"
            raise InUse(detail, error.users) from error
        except RevisionConflict as error:
            raise Conflict(_RACE) from error
        log.info("region_deleted", region=f"{owner}/{region}", vim_id=stored.vim.id)

    async def stored(self, owner: str, region: str) -> StoredVim:
        """Return the record of a region. Raises NotFound."""
        stored = await self._records.region(f"{owner}/{region}")
        if stored is None:
            raise NotFound(f"cloud region {owner}/{region} does not exist")
        return stored

    async def _registered_again(
        self, present: StoredVim, facts: RegionFacts, sha256: str, access: ContextAccess
    ) -> StoredVim:
        """Return the region as another registration leaves it, which may bring other access data and descriptions."""
        old = present.vim.region
        assert old is not None
        new = facts.model_copy(update={name: getattr(old, name) for name in (*FOUND, "suspended")})
        changed = _with_access(present.vim.model_copy(update={"region": new}), sha256, access)
        if changed.auth_url != present.vim.auth_url:
            raise Conflict(f"cloud region {facts.id} is registered with another endpoint: {present.vim.auth_url}")
        assert changed.region is not None
        is_same_login = changed.content_sha256 == present.vim.content_sha256 and (
            revealed(changed.auth_cred, self._ring) == revealed(present.vim.auth_cred, self._ring)
        )
        if is_same_login and _in_clear(changed.region, self._ring) == _in_clear(old, self._ring):
            return present
        return await self._replace(present, changed)

    async def _replace(self, stored: StoredVim, vim: VimRecord) -> StoredVim:
        """Verify changed access data, then store them. Raises Unprocessable, Conflict."""
        vim = await self._verified(vim.model_copy(update={"updated_at": self._records.now()}))
        old, new = stored.vim.region, vim.region
        assert old is not None
        assert new is not None
        if old.cluster_uid and new.cluster_uid and old.cluster_uid != new.cluster_uid:
            raise Unprocessable("kubeconfig", "it leads to another cluster; the one that is registered expected")
        try:
            await self._records.replace(stored, vim, status_events(stored.vim, vim))
        except RevisionConflict as error:
            raise Conflict(_RACE) from error
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

    async def _read(self, given: Kubeconfig) -> tuple[str, ContextAccess]:
        """Return the hash of a kubeconfig and its access data. Raises Unprocessable."""
        try:
            raw = base64.b64decode(given.kubeconfig.reveal(self._ring), validate=True)
            text = raw.decode()
        except (binascii.Error, ValueError):
            raise Unprocessable("kubeconfig", "base64 of a kubeconfig expected") from None
        if len(raw) > KUBECONFIG_BYTES:
            raise Unprocessable("kubeconfig", f"at most {KUBECONFIG_BYTES} bytes expected")
        # In a thread: a file of this size takes a noticeable time.
        access = await asyncio.to_thread(
            context_access, text, context=given.context, allowed=self._allowed, login=_login(given.oidc)
        )
        return sha256_hex(raw), access

    async def _verified(self, vim: VimRecord) -> VimRecord:
        """Return the record with the facts of its cluster. Raises Unprocessable."""
        facts = vim.region
        assert facts is not None
        try:
            vim = with_facts(vim, await self._registry.verified(vim))
            found = await self._registry.in_time(vim, self._probe.inspect(vim, (*NEEDED, *USEFUL)))
            nodes = await self._registry.in_time(vim, self._probe.listed(vim, "v1", "Node"))
        except VimTokenRefused as error:
            raise Unprocessable("token_request/service_account", str(error)) from error
        except _NOT_USABLE as error:
            raise Unprocessable("kubeconfig", str(error)) from error
        # In a thread: 5,000 nodes take most of a second.
        on_nodes = await asyncio.to_thread(node_capabilities, nodes)
        lacking = [str(each) for each in NEEDED if each in found.missing]
        if lacking:
            raise Unprocessable("kubeconfig", f"its user lacks permissions: {', '.join(lacking)}")
        facts = with_access(facts, revealed(vim.auth_cred, self._ring))
        news = {
            "cluster_uid": found.cluster_uid,
            "capabilities": tuple(sorted({*capabilities_of(found.groups), *on_nodes})),
            "missing_permissions": tuple(str(each) for each in USEFUL if each in found.missing),
        }
        return vim.model_copy(update={"region": facts.model_copy(update=news)})


def _facts_of(wanted: RegionRequest) -> RegionFacts:
    given = {name: getattr(wanted, name) for name in RegionFacts.model_fields if name in RegionRequest.model_fields}
    return RegionFacts.model_validate({**given, "id": f"{wanted.cloud_owner}/{wanted.cloud_region}", "context": ""})


def _with_access(vim: VimRecord, sha256: str, access: ContextAccess) -> VimRecord:
    """Return a record with other access data, whose end has not been published."""
    assert vim.region is not None
    connection = access.connection
    return vim.model_copy(
        update={
            "auth_url": str(connection.interface_info["endpoint"]).rstrip("/"),
            "auth_cred": auth_cred_of(connection),
            "content_sha256": sha256,
            "expiry_reported_days": None,
            "region": vim.region.model_copy(update={"context": access.context, "proxy_url": access.proxy_url}),
        }
    )


def _login(client: OidcClient | None) -> JsonObject | None:
    """Return the access data of a client of an OpenID provider."""
    if client is None:
        return None
    return {
        "oidc_token_url": client.token_url,
        "client_id": client.client_id,
        "client_secret": client.client_secret,
        "oidc_scope": client.scope,
    }


def _in_clear(facts: RegionFacts, ring: KeyRing) -> JsonObject:
    values: JsonObject = revealed(facts.model_dump(), ring)
    return values


def shown(stored: StoredVim) -> CloudRegion:
    """Return a region as clients see it."""
    vim, facts = stored.vim, stored.vim.region
    assert facts is not None
    return CloudRegion(
        **mask(facts.model_dump()),
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
