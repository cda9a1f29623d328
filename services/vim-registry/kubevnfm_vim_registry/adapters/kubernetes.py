"""Kubernetes clusters: version and namespaces, over TLS that is verified where a CA is given."""

from __future__ import annotations

import base64
import os
import re
import ssl
import tempfile
from collections.abc import Mapping
from typing import Any, Final

import aiohttp
from kubevnfm_secrets import KeyRing, Secret

from kubevnfm_vim_registry.domain.ports import Found, VimRefused, VimTooOld, VimUnavailable
from kubevnfm_vim_registry.domain.vim import Vim

_OLDEST: Final = (1, 25)
_MANY: Final = 500


class KubernetesProbe:
    """`domain.ports.VimProbe` for clusters."""

    def __init__(self, session: aiohttp.ClientSession, ring: KeyRing, *, timeout_s: float) -> None:
        self._session, self._ring = session, ring
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)

    async def look(self, vim: Vim) -> Found:
        """See the port."""
        version = str((await self._get(vim, "/version")).get("gitVersion", ""))
        numbers = re.match(r"v(\d+)\.(\d+)", version)
        if numbers is not None and (int(numbers[1]), int(numbers[2])) < _OLDEST:
            raise VimTooOld(f"the cluster runs Kubernetes {version}; v1.25 or later expected")
        listed = await self._get(vim, f"/api/v1/namespaces?limit={_MANY}")
        return Found(tuple(item["metadata"]["name"] for item in listed.get("items", ())), version)

    async def answers(self, vim: Vim) -> None:
        """See the port."""
        await self._get(vim, "/version")

    async def _get(self, vim: Vim, path: str) -> Mapping[str, Any]:
        url = f"{vim.auth_url.rstrip('/')}{path}"
        try:
            async with self._session.get(
                url, headers=self._headers(vim), ssl=self._tls(vim), timeout=self._timeout, allow_redirects=False
            ) as response:
                if response.status in {401, 403}:
                    raise VimRefused(f"{vim.auth_url} answered {response.status}: unauthorized for VIM {vim.name}")
                if response.status != 200:
                    raise VimUnavailable(f"{vim.auth_url}{path} answered {response.status}")
                body = await response.json(content_type=None)
        except (ssl.SSLError, aiohttp.ClientSSLError) as error:
            raise VimRefused(f"{vim.auth_url}: the TLS certificate does not fit the CA that was given") from error
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise VimUnavailable(f"{vim.auth_url} does not answer ({type(error).__name__})") from error
        if not isinstance(body, Mapping):
            raise VimUnavailable(f"{vim.auth_url}{path} answered something that is no Kubernetes API")
        return body

    def _headers(self, vim: Vim) -> dict[str, str]:
        token = self._value(vim, "bearer_token")
        if token:
            return {"Authorization": f"Bearer {token}"}
        username, password = self._value(vim, "username"), self._value(vim, "password")
        if username and password:
            pair = base64.b64encode(f"{username}:{password}".encode()).decode()
            return {"Authorization": f"Basic {pair}"}
        return {}

    def _tls(self, vim: Vim) -> ssl.SSLContext | bool:
        if not vim.auth_url.startswith("https"):
            return True
        ca = self._value(vim, "ssl_ca_cert")
        try:
            context = ssl.create_default_context(cadata=ca if ca and ca != "None" else None)
            if ca == "None":  # what existing clients send for "do not verify" (api.md 8)
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            certificate, key = self._value(vim, "client_certificate"), self._value(vim, "client_key")
            if certificate and key:
                _load_pair(context, certificate, key)
        except ssl.SSLError as error:
            raise VimRefused("auth_cred: ssl_ca_cert or the client certificate is not PEM") from error
        return context

    def _value(self, vim: Vim, name: str) -> str:
        value = vim.auth_cred.get(name)
        return value.reveal(self._ring) if isinstance(value, Secret) else str(value or "")


def _load_pair(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """OpenSSL takes a client's pair from a file only: one that nobody else reads and that is gone at once."""
    descriptor, path = tempfile.mkstemp(prefix="kubevnfm-")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{certificate}\n{key}\n")
        context.load_cert_chain(path)
    finally:
        os.unlink(path)  # noqa: PTH108
