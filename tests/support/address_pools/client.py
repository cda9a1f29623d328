"""The client of the owner's internal API."""

from __future__ import annotations

from collections.abc import Sequence

import aiohttp
from kubevnfm_clients.http import InternalApi

from address_pools.record import Pool, PoolPatch, PoolRequest


class HttpAddressPools:
    """Address pools over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("the owner", base_url, token, session)

    async def create(self, wanted: PoolRequest) -> Pool:
        return Pool.model_validate(await self._api.call("POST", "address-pools", body=wanted.model_dump(mode="json")))

    async def all(self) -> Sequence[Pool]:
        return [Pool.model_validate(one) for one in (await self._api.call("GET", "address-pools"))["pools"]]

    async def get(self, pool_id: str) -> Pool:
        return Pool.model_validate(await self._api.call("GET", "address-pools", pool_id))

    async def change(self, pool_id: str, patch: PoolPatch, *, if_revision: int) -> Pool:
        body, query = patch.model_dump(mode="json"), {"revision": if_revision}
        return Pool.model_validate(await self._api.call("PATCH", "address-pools", pool_id, body=body, query=query))

    async def delete(self, pool_id: str, *, if_revision: int) -> None:
        await self._api.call("DELETE", "address-pools", pool_id, query={"revision": if_revision})
