"""The Authorization header of a connection: fixed, or an OpenID provider's token that is renewed before it expires."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import aiohttp
from kubevnfm_clients.bounded import read_json
from kubevnfm_kit.foreign_json import read_foreign

from kubevnfm_infra_k8s.adapters.access import Access, Oidc
from kubevnfm_infra_k8s.domain.errors import AccessRefused, ClusterUnavailable

_SPARE_S: Final = 30.0
"""A token is renewed this long before it expires, because it must be valid until the request arrives."""
_TIMEOUT: Final = aiohttp.ClientTimeout(total=20)
_LARGEST: Final = 256 * 1024
"""Bytes of an answer with tokens."""
Post = Callable[[str, dict[str, str]], Awaitable[tuple[int, Any]]]


class Authorization:
    """Returns the header's value."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._token, self._ends_at = "", 0.0
        self._renewing = asyncio.Lock()

    async def header(self, session: aiohttp.ClientSession) -> str:
        """Return the present value, "" for none. Raises AccessRefused, ClusterUnavailable."""
        access = self._access
        if access.oidc is not None:
            # The calls that wait here use the token of the first one.
            async with self._renewing:
                if time.time() > self._ends_at - _SPARE_S:
                    self._token = await _token(session, access.oidc)
                    self._ends_at = _end_of(self._token)
            return f"Bearer {self._token}"
        if access.username:
            pair = base64.b64encode(f"{access.username}:{access.password}".encode()).decode()
            return f"Basic {pair}"
        return f"Bearer {access.bearer_token}" if access.bearer_token else ""

    def forget(self) -> None:
        """Request a new token next time, because the cluster refused the present one."""
        self._ends_at = 0.0


async def _token(session: aiohttp.ClientSession, oidc: Oidc) -> str:
    """Request a token (RFC 6749 4.3); Kubernetes reads OpenID Connect's id_token."""
    form = {
        "grant_type": "password",
        "scope": "openid",
        "client_id": oidc.client_id,
        "username": oidc.username,
        "password": oidc.password,
    }
    if oidc.client_secret:
        form["client_secret"] = oidc.client_secret
    try:
        async with session.post(oidc.token_url, data=form, timeout=_TIMEOUT, allow_redirects=False) as response:
            if response.status >= 500:
                raise ClusterUnavailable(f"OpenID provider: HTTP {response.status}")
            if response.status != 200:
                raise AccessRefused(f"the OpenID provider refused the user: HTTP {response.status}")
            answer = await read_json(response, limit_bytes=_LARGEST)
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ClusterUnavailable(f"OpenID provider: {type(error).__name__}") from error
    token = answer.get("id_token") if isinstance(answer, dict) else None
    # A token with other characters than visible ASCII cannot be sent in a header.
    if not isinstance(token, str) or not all("!" <= each <= "~" for each in token):
        raise AccessRefused("the OpenID provider's answer has no id_token")
    return token


def _end_of(token: str) -> float:
    """Return when a JWT expires, in seconds since 1970; 0 if it does not say."""
    # Not verified: only the API server has to trust the token, we only plan its renewal.
    try:
        payload = token.split(".")[1]
        return float(read_foreign(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"])
    except (IndexError, KeyError, OverflowError, ValueError, TypeError):
        return 0.0
