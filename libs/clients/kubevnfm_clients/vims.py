"""Clients for VIMs (vim-registry) and for their users (lcm-api)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import aiohttp
from cachetools import TTLCache
from kubevnfm_events import VimConnection
from kubevnfm_kit.json_types import JsonMapping, JsonObject

from kubevnfm_clients.cloud_identity import CloudIdentity
from kubevnfm_clients.http import InternalApi
from kubevnfm_clients.multicloud.types import revision_query
from kubevnfm_clients.ports import RevisedVim
from kubevnfm_clients.vim_views import VimView

_MOST: Final = 1000
_FRESH_S: Final = 5.0
"""How long an answer is cached: long enough for a burst, short enough for rotated credentials."""


class HttpVimDirectory:
    """`ports.VimDirectory` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("vim-registry", base_url, token, session)
        self._known: TTLCache[str, VimConnection] = TTLCache(_MOST, ttl=_FRESH_S)
        self._rejected: TTLCache[str, bool] = TTLCache(_MOST, ttl=_FRESH_S)

    async def connection(self, vim: VimConnection) -> VimConnection:
        # A request with its own access data is used as it is, also if its VIM is registered.
        if not vim.is_reference:
            return vim
        assert vim.vim_id is not None
        known = self._known.get(vim.vim_id)
        if known is None:
            # vim-registry reads the inventory of a cloud region then (multicloud.md MC-078).
            query: JsonMapping = {"rejected": "true"} if self._rejected.pop(vim.vim_id, False) else {}
            answer = await self._api.call("GET", "vims", vim.vim_id, "connection", query=query)
            known = VimConnection.model_validate(answer)
            self._known[vim.vim_id] = known
        return vim.resolved(known)

    def forget(self, vim: VimConnection) -> None:
        self._known.pop(vim.vim_id or "", None)
        if vim.is_reference:
            self._rejected[vim.vim_id or ""] = True


class HttpCloudIdentities:
    """`ports.CloudIdentities` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("vim-registry", base_url, token, session)

    async def give(self, vim_id: str, vnf_instance_id: str, *, present: str | None) -> CloudIdentity:
        path = ("vims", vim_id, "cloud-identities", vnf_instance_id)
        return CloudIdentity.model_validate(await self._api.call("POST", *path, body={"present": present}))

    async def take_back(self, vim_id: str, vnf_instance_id: str) -> int:
        answer = await self._api.call("DELETE", "vims", vim_id, "cloud-identities", vnf_instance_id)
        return int(answer["deleted"])


class HttpVims:
    """`ports.Vims` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("vim-registry", base_url, token, session)

    async def create(self, vim: JsonMapping) -> JsonMapping:
        record: JsonObject = await self._api.call("POST", "vims", body=dict(vim))
        return record

    async def list(self, filters: Mapping[str, Sequence[str]]) -> Sequence[JsonMapping]:
        records: Sequence[JsonObject] = (await self._api.call("GET", "vims", query=filters))["vims"]
        return records

    async def get(self, vim_id: str) -> JsonMapping:
        record: JsonObject = await self._api.call("GET", "vims", vim_id)
        return record

    async def revised(self, vim_id: str) -> RevisedVim:
        found: JsonObject = await self._api.call("GET", "vims", vim_id, "revised")
        return RevisedVim(vim_id, int(found["revision"]), found["record"])

    async def update(self, vim_id: str, changes: JsonMapping, *, if_revision: int | None = None) -> JsonMapping:
        query = revision_query(if_revision)
        record: JsonObject = await self._api.call("PUT", "vims", vim_id, body=dict(changes), query=query)
        return record

    async def delete(self, vim_id: str, *, if_revision: int | None = None) -> None:
        await self._api.call("DELETE", "vims", vim_id, query=revision_query(if_revision))

    async def default(self) -> JsonMapping | None:
        found = await self.list({"is_default": ["True"]})
        return found[0] if found else None

    async def views(
        self, filters: Mapping[str, str], *, limit: int, after: tuple[str, str] | None = None
    ) -> tuple[Sequence[VimView], tuple[str, str] | None]:
        behind = {} if after is None else {"after_name": after[0], "after_id": after[1]}
        answer = await self._api.call("GET", "vim-views", query={**filters, **behind, "limit": str(limit)})
        following = answer["next_after"]
        found = [VimView.model_validate(each) for each in answer["vims"]]
        return found, None if following is None else (str(following[0]), str(following[1]))

    async def view(self, vim_id: str) -> VimView:
        return VimView.model_validate(await self._api.call("GET", "vim-views", vim_id))

    async def forms(self) -> JsonMapping:
        found: JsonObject = await self._api.call("GET", "vim-forms")
        return found


class HttpVimUsers:
    """`ports.VimUsers` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("lcm-api", base_url, token, session)

    async def users(self, vim_id: str) -> Sequence[str]:
        answer = await self._api.call("GET", "vims", vim_id, "users")
        return [str(user) for user in answer["users"]]
