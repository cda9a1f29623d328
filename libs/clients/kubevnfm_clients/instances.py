"""A client for the operations that run on VNF instances, and for the call-backs that they await (lcm-api)."""

from __future__ import annotations

import aiohttp
from kubevnfm_kit.errors import NotFound

from kubevnfm_clients.awaited import AwaitedCallback
from kubevnfm_clients.http import InternalApi, ServiceUnavailable


class HttpInstances:
    """`ports.AwaitedCallbacks` and `ports.InstanceOperations` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("lcm-api", base_url, token, session)

    async def awaited(self, vnf_instance_id: str, operation_id: str) -> AwaitedCallback | None:
        query = {"vnfInstanceId": vnf_instance_id, "operation": operation_id}
        try:
            found = await self._api.call("GET", "awaited-callbacks", query=query)
        except NotFound as error:
            # An upgrade: the lcm-api that answers is still the earlier one, and the sender comes again.
            raise ServiceUnavailable(
                "lcm-api does not say which call-back it awaits: it is of an earlier version"
            ) from error
        return next((AwaitedCallback.model_validate(one) for one in found["awaited"]), None)

    async def running(self, vnf_instance_id: str) -> str | None:
        try:
            found = await self._api.call("GET", "instances", vnf_instance_id)
        except NotFound:
            return None
        operation = found.get("operation")
        return None if operation is None else str(operation)
