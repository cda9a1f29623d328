"""A client for the existence of VNF instances (lcm-api)."""

from __future__ import annotations

import aiohttp
from kubevnfm_kit.errors import NotFound

from kubevnfm_clients.http import InternalApi


class HttpInstances:
    """`ports.Instances` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("lcm-api", base_url, token, session)

    async def exists(self, vnf_instance_id: str) -> bool:
        """See the port."""
        try:
            await self._api.call("GET", "instances", vnf_instance_id)
        except NotFound:
            return False
        return True
