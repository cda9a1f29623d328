"""Calls Kubernetes clusters: reads version and namespaces, over TLS that is verified if a CA is given."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import aiohttp
from kubevnfm_clients.bounded import AnswerTooLarge, read_json
from kubevnfm_kit.tls import tls_failure
from kubevnfm_secrets import KeyRing, revealed

from kubevnfm_vim_registry.domain.errors import KubernetesTooOld, VimRefused, VimUnauthorized, VimUnreachable
from kubevnfm_vim_registry.domain.ports import Verified
from kubevnfm_vim_registry.domain.record import JsonObject, VimRecord

_OLDEST: Final = (1, 25)
_NAMESPACES: Final = 500
_LARGEST: Final = 4 * 2**20
"""Bytes of an answer: 500 namespaces have some 500 KiB."""
_SKIP: Final = "skipTlsVerify"


@dataclass(frozen=True)
class _Refusal:
    """The cluster accepts the credentials, but they lack the permission."""


class KubernetesProbe:
    """`domain.ports.VimProbe` for clusters."""

    def __init__(self, session: aiohttp.ClientSession, ring: KeyRing, *, timeout_s: float) -> None:
        """``timeout_s``: time limit for one request."""
        self._session, self._ring = session, ring
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)

    async def verify(self, vim: VimRecord) -> Verified:
        """See the port. Access data that are limited to one namespace are accepted."""
        tls = await self._tls(vim)
        headers = await self._headers(vim)
        version = str(_allowed(vim, await self._get(vim, "/version", headers, tls)).get("gitVersion", ""))
        numbers = re.match(r"v([0-9]{1,9})\.([0-9]{1,9})", version)
        if numbers is None:
            raise VimRefused(vim.auth_url, "the server is not a Kubernetes API")
        if (int(numbers[1]), int(numbers[2])) < _OLDEST:
            raise KubernetesTooOld("auth_url", f"the cluster runs Kubernetes {version}; v1.25 or later expected")
        # The limit protects against huge clusters; the list is only shown to clients.
        listed = await self._get(vim, f"/api/v1/namespaces?limit={_NAMESPACES}", headers, tls)
        if isinstance(listed, _Refusal):
            return Verified((str(vim.vim_project.get("name") or "default"),), version)
        try:
            names = sorted(str(item["metadata"]["name"]) for item in listed.get("items") or ())
        except (KeyError, TypeError) as error:
            raise VimRefused(vim.auth_url, "its list of namespaces is not that of a Kubernetes API") from error
        return Verified(tuple(names[:_NAMESPACES]), version)

    async def check(self, vim: VimRecord) -> None:
        """See the port."""
        # Not /version, which answers without valid credentials too.
        await self._get(vim, "/api", await self._headers(vim), await self._tls(vim))

    async def _get(
        self, vim: VimRecord, path: str, headers: Mapping[str, str], tls: ssl.SSLContext | bool
    ) -> JsonObject | _Refusal:
        url = f"{vim.auth_url.rstrip('/')}{path}"
        try:
            async with self._session.get(
                # A redirect would send the credentials to another host.
                url,
                headers=headers,
                ssl=tls,
                timeout=self._timeout,
                allow_redirects=False,
            ) as response:
                if response.status == 401:
                    raise VimUnauthorized(vim.auth_url, "the API server rejects the token, password or certificate")
                if response.status == 403:
                    return _Refusal()
                if response.status >= 500 or response.status == 429:
                    raise VimUnreachable(vim.auth_url, f"{path} answered {response.status}")
                if response.status != 200:
                    raise VimRefused(vim.auth_url, f"{path} answered {response.status}, so it is not a Kubernetes API")
                body = await read_json(response, limit_bytes=_LARGEST)
        except AnswerTooLarge as error:
            raise VimRefused(vim.auth_url, f"{path}: {error}") from error
        except (ssl.SSLError, aiohttp.ClientSSLError) as error:
            raise VimRefused(vim.auth_url, tls_failure(str(error))) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise VimUnreachable(vim.auth_url, type(error).__name__) from error
        if not isinstance(body, dict):
            raise VimRefused(vim.auth_url, f"{path}: a JSON object expected in the answer")
        return body

    async def _headers(self, vim: VimRecord) -> dict[str, str]:
        """Return the headers with the credentials; their order of precedence is that of api.md 3.2."""
        access: JsonObject = revealed(vim.auth_cred, self._ring)
        if access.get("oidc_token_url"):
            return {"Authorization": f"Bearer {await self._oidc_token(vim, access)}"}
        if access.get("username") and access.get("password"):
            pair = base64.b64encode(f"{access['username']}:{access['password']}".encode()).decode()
            return {"Authorization": f"Basic {pair}"}
        if access.get("bearer_token"):
            return {"Authorization": f"Bearer {access['bearer_token']}"}
        return {}

    async def _oidc_token(self, vim: VimRecord, access: Mapping[str, object]) -> str:
        """Request an id token with the user's password (RFC 6749 4.3, OpenID Connect)."""
        form = {"grant_type": "password", "scope": "openid"}
        form |= {
            name: str(access[name]) for name in ("username", "password", "client_id", "client_secret") if name in access
        }
        url = str(access["oidc_token_url"])
        try:
            async with self._session.post(url, data=form, timeout=self._timeout, allow_redirects=False) as response:
                if response.status in {400, 401, 403}:
                    raise VimUnauthorized(vim.auth_url, "the OIDC provider rejects the user or client")
                if response.status != 200:
                    raise VimUnreachable(vim.auth_url, f"the OIDC provider answered {response.status}")
                body = await read_json(response, limit_bytes=_LARGEST)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise VimUnreachable(vim.auth_url, f"the OIDC provider does not answer ({type(error).__name__})") from error
        token = body.get("id_token") if isinstance(body, Mapping) else None
        # A token with other characters than visible ASCII cannot be sent in a header.
        if not isinstance(token, str) or not all("!" <= each <= "~" for each in token):
            raise VimRefused(vim.auth_url, "the OIDC provider's answer has no id_token")
        return token

    async def _tls(self, vim: VimRecord) -> ssl.SSLContext | bool:
        if not vim.auth_url.startswith("https"):
            return True
        access: JsonObject = revealed(vim.auth_cred, self._ring)
        is_verified = vim.connection.interface_info.get(_SKIP) is not True
        try:
            # In a thread, because without a CA it reads the system's certificates from disk.
            return await asyncio.to_thread(
                _context,
                access.get("ssl_ca_cert"),
                is_verified,
                access.get("client_certificate"),
                access.get("client_key"),
            )
        except ssl.SSLError as error:
            raise VimRefused(vim.auth_url, "ssl_ca_cert or the client certificate is not PEM") from error


def _allowed(vim: VimRecord, answer: JsonObject | _Refusal) -> JsonObject:
    if isinstance(answer, _Refusal):
        raise VimUnauthorized(vim.auth_url, "the API server forbids reading its version")
    return answer


def _context(ca: str | None, is_verified: bool, certificate: str | None, key: str | None) -> ssl.SSLContext:
    if is_verified:
        context = ssl.create_default_context(cadata=ca)
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
