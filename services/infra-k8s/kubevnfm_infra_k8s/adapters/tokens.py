"""The Authorization header of a connection: fixed, or a token of an OpenID provider renewed before it ends."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import aiohttp

from kubevnfm_infra_k8s.adapters.access import Access, Oidc
from kubevnfm_infra_k8s.domain.errors import AccessRefused, ClusterUnavailable

_SPARE_S: Final = 30.0
"""A token is renewed so long before its end, for it must hold until the request has arrived."""
_TIMEOUT: Final = aiohttp.ClientTimeout(total=20)
Post = Callable[[str, dict[str, str]], Awaitable[tuple[int, Any]]]


class Authorization:
    """Gives the header's value, "" for none."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._token, self._ends_at = "", 0.0
        self._renewing = asyncio.Lock()

    async def header(self, session: aiohttp.ClientSession) -> str:
        """Return the present value. Raises AccessRefused, ClusterUnavailable."""
        access = self._access
        if access.oidc is not None:
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
        """The cluster refused the token: get a new one next time."""
        self._ends_at = 0.0


async def _token(session: aiohttp.ClientSession, oidc: Oidc) -> str:
    """Ask for a token (RFC 6749 4.3, OpenID Connect's id_token, which is what Kubernetes reads)."""
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
            answer = await response.json(content_type=None)
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ClusterUnavailable(f"OpenID provider: {type(error).__name__}") from error
    except ValueError as error:
        raise AccessRefused("the OpenID provider's answer is no JSON") from error
    token = answer.get("id_token") if isinstance(answer, dict) else None
    if not isinstance(token, str):
        raise AccessRefused("the OpenID provider gave no id_token")
    return token


def _end_of(token: str) -> float:
    """Return when a JWT ends, in seconds since 1970; at once if it does not say."""
    try:
        payload = token.split(".")[1]
        return float(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"])
    except (IndexError, KeyError, ValueError, TypeError):
        return 0.0
