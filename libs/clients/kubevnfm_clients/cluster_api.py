"""Plain requests to one Kubernetes API server with the access data of a VIM.

For services that read or write a few known objects; infra-k8s has discovery, watches and server-side apply.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import aiohttp
from kubevnfm_events import VimConnection
from kubevnfm_kit.cluster_trust import ClusterTrust, cluster_trust
from kubevnfm_kit.errors import OutsideUnavailable, VnfmError
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_kit.tls import tls_failure
from kubevnfm_secrets import KeyRing, revealed

from kubevnfm_clients.bounded import AnswerTooLarge, read_json

_LARGEST: Final = 4 * 2**20
"""Bytes of an answer: 500 namespaces have some 500 KiB, and etcd stores at most 1.5 MiB as one object."""
_SKIP: Final = "skipTlsVerify"
_FOR_CALLERS: Final = frozenset({403, 404, 409, 422})
"""Statuses whose meaning depends on the request."""


class ApiUnauthorized(VnfmError):
    """The API server, or the OpenID provider, rejects the access data."""

    code = "cluster-unauthorized"
    title = "Unauthorized for the cluster"
    status = 422

    def __init__(self, endpoint: str, reason: str) -> None:
        super().__init__(f"{endpoint}: {reason}")
        self.endpoint, self.reason = endpoint, reason


class ApiRefused(VnfmError):
    """The server answers, but not as a Kubernetes API does, or its certificate is not trusted."""

    code = "cluster-refused"
    title = "Cluster refused"
    status = 422

    def __init__(self, endpoint: str, reason: str) -> None:
        super().__init__(f"{endpoint}: {reason}")
        self.endpoint, self.reason = endpoint, reason


class ApiUnavailable(OutsideUnavailable):
    """The API server does not answer now."""

    code = "cluster-unavailable"
    title = "Cluster unavailable"

    def __init__(self, endpoint: str, reason: str) -> None:
        super().__init__(f"{endpoint} does not answer: {reason}")
        self.endpoint, self.reason = endpoint, reason


@dataclass(frozen=True)
class ApiAnswer:
    """An answer below 300, or one whose meaning depends on the request: 403, 404, 409, 422."""

    status: int
    body: JsonObject

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

    def __init__(self, session: aiohttp.ClientSession, vim: VimConnection, ring: KeyRing, *, timeout_s: float) -> None:
        """``vim``: with its access data; ``timeout_s``: time limit for one request."""
        self._session = session
        self._access: JsonObject = revealed(vim.access_info, ring)
        self._interface: JsonObject = revealed(vim.interface_info, ring)
        self.endpoint = str(self._interface.get("endpoint", "")).rstrip("/")
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._tls: ssl.SSLContext | bool | None = None
        self._login: Mapping[str, str] | None = None

    async def get(self, path: str) -> ApiAnswer:
        """Return the answer to GET. Raises as ``call``."""
        return await self.call("GET", path)

    async def call(self, method: str, path: str, *, body: JsonMapping | None = None) -> ApiAnswer:
        """Send one request; redirects are not followed, because they would send the credentials to another host.

        Raises: ApiUnauthorized, ApiRefused, ApiUnavailable.
        """
        async with self._request(method, path, body) as response:
            answer = await read_json(response, limit_bytes=_LARGEST)
            if response.status >= 300:
                return ApiAnswer(response.status, answer if isinstance(answer, dict) else {})
            if not isinstance(answer, dict):
                raise ApiRefused(self.endpoint, f"{path}: a JSON object expected in the answer")
            return ApiAnswer(response.status, answer)

    async def status(self, path: str) -> int:
        """Return the status of the answer to GET, whose body is not JSON (``/readyz``). Raises as ``call``."""
        async with self._request("GET", path, None) as response:
            return response.status

    @asynccontextmanager
    async def _request(self, method: str, path: str, body: JsonMapping | None) -> AsyncIterator[aiohttp.ClientResponse]:
        if self._tls is None:
            self._tls = await self._new_tls()
        if self._login is None:
            self._login = await self._new_login()
        try:
            async with self._session.request(
                method,
                f"{self.endpoint}{path}",
                json=body,
                headers=self._login,
                ssl=self._tls,
                timeout=self._timeout,
                allow_redirects=False,
            ) as response:
                self._check(response.status, path)
                yield response
        except AnswerTooLarge as error:
            raise ApiRefused(self.endpoint, f"{path}: {error}") from error
        except (ssl.SSLError, aiohttp.ClientSSLError) as error:
            raise ApiRefused(self.endpoint, tls_failure(str(error))) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiUnavailable(self.endpoint, type(error).__name__) from error

    def _check(self, status: int, path: str) -> None:
        if status == 401:
            raise ApiUnauthorized(self.endpoint, "the API server rejects the token, password or certificate")
        if status >= 500 or status == 429:
            raise ApiUnavailable(self.endpoint, f"{path} answered {status}")
        if status >= 300 and status not in _FOR_CALLERS:
            raise ApiRefused(self.endpoint, f"{path} answered {status}, so it is not a Kubernetes API")

    async def _new_login(self) -> Mapping[str, str]:
        """Return the headers with the credentials; their order of precedence is that of api.md 3.2."""
        access = self._access
        if access.get("oidc_token_url"):
            return {"Authorization": f"Bearer {await self._oidc_token()}"}
        if access.get("username") and access.get("password"):
            pair = base64.b64encode(f"{access['username']}:{access['password']}".encode()).decode()
            return {"Authorization": f"Basic {pair}"}
        if access.get("bearer_token"):
            return {"Authorization": f"Bearer {access['bearer_token']}"}
        return {}

    async def _oidc_token(self) -> str:
        """Request an id token with the user's password (RFC 6749 4.3, OpenID Connect)."""
        form = {"grant_type": "password", "scope": "openid"}
        form |= {
            name: str(self._access[name])
            for name in ("username", "password", "client_id", "client_secret")
            if name in self._access
        }
        url = str(self._access["oidc_token_url"])
        try:
            async with self._session.post(url, data=form, timeout=self._timeout, allow_redirects=False) as response:
                if response.status in {400, 401, 403}:
                    raise ApiUnauthorized(self.endpoint, "the OIDC provider rejects the user or client")
                if response.status != 200:
                    raise ApiUnavailable(self.endpoint, f"the OIDC provider answered {response.status}")
                body = await read_json(response, limit_bytes=_LARGEST)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiUnavailable(
                self.endpoint, f"the OIDC provider does not answer ({type(error).__name__})"
            ) from error
        token = body.get("id_token") if isinstance(body, Mapping) else None
        # A token with other characters than visible ASCII cannot be sent in a header.
        if not isinstance(token, str) or not all("!" <= each <= "~" for each in token):
            raise ApiRefused(self.endpoint, "the OIDC provider's answer has no id_token")
        return token

    async def _new_tls(self) -> ssl.SSLContext | bool:
        if not self.endpoint.startswith("https"):
            return True
        try:
            # In a thread, because without a CA it reads the system's certificates from disk.
            return await asyncio.to_thread(
                _context,
                cluster_trust(
                    self._interface.get("ssl_ca_cert"), skips_verification=self._interface.get(_SKIP) is True
                ),
                self._access.get("client_certificate"),
                self._access.get("client_key"),
            )
        except (ssl.SSLError, ValueError) as error:
            raise ApiRefused(self.endpoint, "ssl_ca_cert or the client certificate is not PEM") from error


def _context(trust: ClusterTrust, certificate: str | None, key: str | None) -> ssl.SSLContext:
    if trust.is_verified:
        context = ssl.create_default_context(cadata=trust.ca_pem or None)
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate and key:
        _load_pair(context, certificate, key)
    return context


def _load_pair(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Load a client certificate and its key into the context."""
    # OpenSSL reads them only from a file. mkstemp() makes one that other users cannot read.
    descriptor, path = tempfile.mkstemp(prefix="kubevnfm-")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{certificate}\n{key}\n")
        context.load_cert_chain(path)
    finally:
        os.unlink(path)  # noqa: PTH108
