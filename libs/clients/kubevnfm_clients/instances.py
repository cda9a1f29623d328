"""A client for the existence of VNF instances, and for the operations that run on them (lcm-api)."""

from __future__ import annotations

import aiohttp
from kubevnfm_kit.errors import NotFound

from kubevnfm_clients.http import InternalApi


class HttpInstances:
    """`ports.Instances` and `ports.InstanceOperations` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("lcm-api", base_url, token, session)

    async def exists(self, vnf_instance_id: str) -> bool:
        """See the port."""
        try:
            await self._api.call("GET", "instances", vnf_instance_id)
        except NotFound:
            return False
        return True

    async def running(self, vnf_instance_id: str) -> str | None:
        """See the port."""
        try:
            found = await self._api.call("GET", "instances", vnf_instance_id)
        except NotFound:
            return None
        operation = found.get("operation")
        return None if operation is None else str(operation)
