"""Answers the questions of each operation to vim-registry in the same process: over HTTP each costs a millisecond of processor time."""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp
from kubevnfm_clients.multicloud.regions import HttpCloudRegions
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_clients.vims import HttpVims
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_secrets import KeyRing
from kubevnfm_vim_registry.wiring import RunningVimRegistry


class OwnVims(HttpVims):
    """`ports.Vims`, of which a VIM is read without HTTP."""

    def __init__(self, running: RunningVimRegistry, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        super().__init__(base_url, token, session)
        self._registry = running.registry

    async def get(self, vim_id: str) -> JsonMapping:
        return await self._registry.get(vim_id)


class OwnRegions(HttpCloudRegions):
    """`CloudRegions`, of which the suspensions are read without HTTP."""

    def __init__(
        self, running: RunningVimRegistry, base_url: str, token: str, session: aiohttp.ClientSession, ring: KeyRing
    ) -> None:
        super().__init__(base_url, token, session, ring)
        self._suspensions = running.suspensions

    async def suspensions(self) -> Mapping[str, Suspension]:
        return await self._suspensions.all()
