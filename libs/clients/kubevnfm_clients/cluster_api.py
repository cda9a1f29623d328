"""Plain requests to one Kubernetes API server with the access data of a VIM.

For services that read or write a few known objects; infra-k8s has discovery, watches and server-side apply.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import aiohttp
from kubevnfm_events import VimConnection
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.http_client import ProxyFailure
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_kit.tls import tls_failure
from kubevnfm_secrets import KeyRing

from kubevnfm_clients.bounded import AnswerTooLarge, json_in, read_body
from kubevnfm_clients.cluster_access import cluster_tls, read_access
from kubevnfm_clients.cluster_errors import ApiRefused, ApiUnauthorized, ApiUnavailable, ProxyAway
from kubevnfm_clients.cluster_login import ClusterLogin, ClusterTokens
from kubevnfm_clients.cluster_proxy import ClusterProxy
from kubevnfm_clients.outbound import refusal_in

_LARGEST: Final = 4 * 2**20
"""Bytes of an answer: 500 namespaces have some 500 KiB, and etcd stores at most 1.5 MiB as one object."""
_FOR_CALLERS: Final = frozenset({403, 404, 409, 422})
"""Statuses whose meaning depends on the request."""


@dataclass(frozen=True)
class ApiAnswer:
    """An answer below 300, or one whose meaning depends on the request: 403, 404, 409, 422."""

    status: int
    body: JsonObject
    size_bytes: int = 0
    """The length of the answer, for callers that read many."""

    @property
    def is_success(self) -> bool:
        """Whether the server did what was asked."""
        return self.status < 300

    @property
    def message(self) -> str:
        """The message of the server's Status object, for people."""
        return str(self.body.get("message") or f"HTTP {self.status}")[:1024]


class ClusterApi:
    """The API server of one VIM. Errors name the endpoint and never show access data."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        vim: VimConnection,
        ring: KeyRing,
        *,
        timeout_s: float,
        tokens: ClusterTokens | None = None,
    ) -> None:
        """``vim``: with its access data; ``timeout_s``: time limit for one request; ``tokens``: those of other objects too.

        Raises InvalidInput naming a missing attribute of the access data.
        """
        self._session, self._access = session, read_access(vim, ring)
        self._login = ClusterLogin(self._access, tokens or ClusterTokens())
        self.endpoint = self._access.endpoint
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._tls: ssl.SSLContext | bool | None = None
        self._proxy = ClusterProxy()

    async def get(self, path: str) -> ApiAnswer:
        """Return the answer to GET. Raises as ``call``."""
        return await self.call("GET", path)

    async def call(self, method: str, path: str, *, body: JsonMapping | None = None) -> ApiAnswer:
        """Send one request; redirects are not followed, because they would send the credentials to another host.

        Raises: ApiUnauthorized, ApiRefused, ApiUnavailable.
        """
        async with self._request(method, path, body) as response:
            raw = await read_body(response, limit_bytes=_LARGEST)
            answer = json_in(raw)
            if response.status >= 300:
                return ApiAnswer(response.status, answer if isinstance(answer, dict) else {}, len(raw))
            if not isinstance(answer, dict):
                raise ApiRefused(self.endpoint, f"{path}: a JSON object expected in the answer")
            return ApiAnswer(response.status, answer, len(raw))

    async def status(self, path: str) -> int:
        """Return the status of the answer to GET, whose body is not JSON (``/readyz``). Raises as ``call``."""
        async with self._request("GET", path, None) as response:
            return response.status

    @asynccontextmanager
    async def _request(self, method: str, path: str, body: JsonMapping | None) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self._authorized(method, path, body) as response:
                self._check(response.status, path)
                yield response
        except AnswerTooLarge as error:
            raise ApiRefused(self.endpoint, f"{path}: {error}") from error
        except (ssl.SSLError, aiohttp.ClientSSLError) as error:
            raise ApiRefused(self.endpoint, tls_failure(str(error))) from error
        except ProxyFailure as error:
            raise ProxyAway(self.endpoint, str(error)) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if (refusal := refusal_in(error)) is not None:
                raise ApiRefused(self.endpoint, refusal) from error
            raise ApiUnavailable(self.endpoint, type(error).__name__) from error

    @asynccontextmanager
    async def _authorized(
        self, method: str, path: str, body: JsonMapping | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yield the answer; a cached token that has been withdrawn is replaced once."""
        if self._tls is None:
            try:
                self._tls = await cluster_tls(self._access)
                self._proxy = ClusterProxy.from_access(self._access)
            except InvalidInput as error:
                raise ApiRefused(self.endpoint, error.reason) from error
        tries = 2 if self._login.is_renewable else 1
        for left in reversed(range(tries)):
            header = await self._login.header()
            async with self._session.request(
                method,
                f"{self.endpoint}{path}",
                json=body,
                headers={"Authorization": header} if header else {},
                ssl=self._tls,
                timeout=self._timeout,
                allow_redirects=False,
                proxy=self._proxy.url,
                proxy_headers=self._proxy.headers,
            ) as response:
                if response.status == 401 and left:
                    self._login.reject(header)
                    continue
                yield response
                return

    def _check(self, status: int, path: str) -> None:
        if status == 401:
            raise ApiUnauthorized(self.endpoint, "the API server rejects the token, password or certificate")
        if status >= 500 or status == 429:
            raise ApiUnavailable(self.endpoint, f"{path} answered {status}")
        if status >= 300 and status not in _FOR_CALLERS:
            raise ApiRefused(self.endpoint, f"{path} answered {status}, so it is not a Kubernetes API")
