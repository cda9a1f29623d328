"""Clients for the output of machines (mgmt-executor) and for credentials (credentials-receiver)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_secrets import Secret

from kubevnfm_clients.http import InternalApi
from kubevnfm_clients.ports import LogPart


def _given(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


class HttpNodeLogs:
    """`ports.NodeLogs` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("mgmt-executor", base_url, token, session)

    def log(self, operation_id: str, *, node: str | None = None, task: str | None = None) -> AsyncIterator[bytes]:
        return self._api.stream("operations", operation_id, "log", query=_given(node=node, task=task) or None)

    async def following(
        self, operation_id: str, place: JsonMapping, wait_s: float, *, node: str | None = None, task: str | None = None
    ) -> LogPart:
        body = {"place": place, "waitS": wait_s, **_given(node=node, task=task)}
        path = ("operations", operation_id, "log", "following")
        answer = await self._api.call("POST", *path, body=body, wait_s=wait_s)
        return LogPart(answer["text"].encode(), answer["place"])


class HttpCredentials:
    """`ports.CredentialsStore` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("credentials-receiver", base_url, token, session)

    async def kubeconfig(self, credentials_id: str) -> Secret:
        """It crosses sealed: ``{"sealed": "v1..."}``."""
        answer = await self._api.call("GET", "credentials", credentials_id)
        return Secret.from_sealed(answer["sealed"])
