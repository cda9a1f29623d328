"""A client for the operations that run on VNF instances, and for the call-backs that they await (lcm-api)."""

from __future__ import annotations

import aiohttp
from kubevnfm_kit.errors import NotFound
from kubevnfm_kit.ids import is_id

from kubevnfm_clients.awaited import AwaitedCallback
from kubevnfm_clients.http import InternalApi, ServiceUnavailable


class HttpInstances:
    """`ports.AwaitedCallbacks` and `ports.InstanceOperations` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("lcm-api", base_url, token, session)

    async def awaited(self, vnf_instance_id: str, operation_id: str) -> AwaitedCallback | None:
        """See the port."""
        if not is_id(vnf_instance_id):
            return None
        try:
            found = await self._api.call(
                "GET", "instances", vnf_instance_id, "awaited-callback", query={"operation": operation_id}
            )
        except NotFound as error:
            # An unknown instance awaits nothing, which is an answer. During an upgrade an earlier lcm-api may have the port.
            raise ServiceUnavailable(
                "lcm-api does not say which call-back it awaits: it is of an earlier version"
            ) from error
        awaited = found.get("awaited")
        return None if awaited is None else AwaitedCallback.model_validate(awaited)

    async def running(self, vnf_instance_id: str) -> str | None:
        """See the port."""
        try:
            found = await self._api.call("GET", "instances", vnf_instance_id)
        except NotFound:
            return None
        operation = found.get("operation")
        return None if operation is None else str(operation)
