"""Clients for the output of machines (mgmt-executor) and for credentials (credentials-receiver)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
from kubevnfm_secrets import Secret

from kubevnfm_clients.http import InternalApi


class HttpNodeLogs:
    """`ports.NodeLogs` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("mgmt-executor", base_url, token, session)

    def log(self, operation_id: str, *, node: str | None = None) -> AsyncIterator[bytes]:
        return self._api.stream("operations", operation_id, "log", query={"node": node} if node else None)


class HttpCredentials:
    """`ports.CredentialsStore` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("credentials-receiver", base_url, token, session)

    async def kubeconfig(self, credentials_id: str) -> Secret:
        """It crosses sealed: ``{"sealed": "v1..."}``."""
        answer = await self._api.call("GET", "credentials", credentials_id)
        return Secret.from_sealed(answer["sealed"])
