"""The one login to Kubernetes clusters: the ``Authorization`` header that a VIM's access data give.

Tokens of OpenID providers are cached until shortly before they expire. One rule says which failures of a provider pass:

| the provider | means |
|---|---|
| answers 400, 401, 403, or another 4xx | permanent: it rejects the user, the client or the request (RFC 6749 5.2) |
| answers 404, 408, 429 or 5xx, or not at all | temporary: a proxy answers 404 while the provider behind it restarts |
| redirects, or answers 200 without an ``id_token`` | permanent: the address is not that of a token endpoint |
"""

from __future__ import annotations

import asyncio
import base64
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
from cachetools import LRUCache
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.http_dates import read_http_date
from kubevnfm_kit.tls import tls_failure

from kubevnfm_clients.bounded import AnswerTooLarge, read_json
from kubevnfm_clients.cluster_access import ClusterAccess, OidcUser, provider_tls
from kubevnfm_clients.cluster_errors import ApiRefused, ApiUnauthorized, ApiUnavailable

_ANSWER_BYTES: Final = 256 * 1024
_MOST: Final = 1000
"""Number of users whose tokens are cached; the least recently used one is dropped."""
_MARGIN_S: Final = 30.0
"""A token is not used in the last part of its life, this long or a tenth of it: it must be valid until a request arrives."""
_LONGEST_LIFE_S: Final = 24 * 3600.0
_BUSY_S: Final = 5.0
"""Pause after a 429 that names none."""
_LONGEST_PAUSE_S: Final = 300.0
_TEMPORARY: Final = frozenset({404, 408, 429})
_BUSY: Final = frozenset({429, 503})
_REASONS: Final = frozenset(
    {
        "invalid_request",
        "invalid_client",
        "invalid_grant",
        "unauthorized_client",
        "unsupported_grant_type",
        "invalid_scope",
    }
)
"""The ``error`` of an answer (RFC 6749 5.2). Any other text is the provider's own, and may repeat what it was sent."""


@dataclass
class _Cached:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    token: str = field(default="", repr=False)
    ends_at: float = 0.0
    not_before: float = 0.0
    """The provider asked for no request until then."""
    tries: int = 0
    failure: tuple[type[ApiUnauthorized | ApiRefused | ApiUnavailable], str] | None = None
    """The class and reason of the last try's failure."""


class OidcTokens:
    """A cache of tokens by user. Concurrent callers share one request, and its failure."""

    def __init__(
        self,
        *,
        timeout_s: float = 20.0,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``timeout_s``: time limit of a request to the provider; ``now``: seconds since the epoch."""
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._now, self._monotonic = now, monotonic
        self._cached: LRUCache[str, _Cached] = LRUCache(_MOST)

    async def token(self, user: OidcUser, endpoint: str, *, instead_of: str = "") -> str:
        """Return an id token; ``instead_of``: one that the cluster has rejected; ``endpoint``: the cluster, for errors.

        Raises: ApiUnauthorized, ApiRefused, ApiUnavailable.
        """
        cached = self._cached.setdefault(user.fingerprint, _Cached())
        tries = cached.tries
        async with cached.lock:
            # Several callers may report the same rejected token: the first fetches another, which the others get too.
            if cached.token not in {"", instead_of} and self._monotonic() < cached.ends_at:
                return cached.token
            is_shared = cached.tries != tries  # by the caller that held the lock meanwhile
            if cached.failure is not None and (is_shared or self._monotonic() < cached.not_before):
                kind, reason = cached.failure
                raise kind(endpoint, reason)
            if not (is_shared and cached.token not in {"", instead_of}):
                await self._renew(user, endpoint, cached)
            return cached.token

    async def _renew(self, user: OidcUser, endpoint: str, cached: _Cached) -> None:
        cached.token, cached.failure = "", None
        try:
            cached.token, life_s = await self._fetched(user, endpoint, cached)
            cached.ends_at = self._monotonic() + life_s - min(_MARGIN_S, life_s / 10)
        except (ApiUnauthorized, ApiRefused, ApiUnavailable) as error:
            cached.failure = type(error), error.reason
            raise
        finally:
            cached.tries += 1

    async def _fetched(self, user: OidcUser, endpoint: str, cached: _Cached) -> tuple[str, float]:
        """Request a token (RFC 6749 4.3) and return it with its life; Kubernetes reads OpenID Connect's id_token."""
        form = {
            "grant_type": "password",
            "scope": "openid",
            "client_id": user.client_id,
            "username": user.username,
            "password": user.password,
        }
        if user.client_secret:
            form["client_secret"] = user.client_secret
        # A session of its own: that of the cluster may present a client certificate, or lead every name to one address.
        # It does not decompress, because a small answer could expand beyond the limit.
        try:
            connector = aiohttp.TCPConnector(ssl=await provider_tls(user))
            async with (
                aiohttp.ClientSession(connector=connector, auto_decompress=False) as session,
                session.post(
                    user.token_url,
                    data=form,
                    headers={"Accept": "application/json", "Accept-Encoding": "identity"},
                    timeout=self._timeout,
                    allow_redirects=False,  # a redirect would carry the password to another server
                ) as response,
            ):
                if response.status != 200:
                    cached.not_before = self._monotonic() + _pause_s(response, self._now())
                    raise await _failure(endpoint, response)
                body = await read_json(response, limit_bytes=_ANSWER_BYTES)
        except InvalidInput as error:
            raise ApiRefused(endpoint, error.reason) from error
        except AnswerTooLarge as error:
            raise ApiRefused(endpoint, f"the OIDC provider: {error}") from error
        except aiohttp.ClientSSLError as error:
            raise ApiRefused(endpoint, f"the OIDC provider: {tls_failure(str(error))}") from error
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise ApiUnavailable(endpoint, f"the OIDC provider does not answer ({type(error).__name__})") from error
        token = body.get("id_token") if isinstance(body, Mapping) else None
        # A token with other characters than visible ASCII cannot be sent in a header.
        if not isinstance(token, str) or not token or not all("!" <= each <= "~" for each in token):
            raise ApiRefused(endpoint, "the OIDC provider's answer has no id_token")
        return token, _life_s(token, self._now())


class ClusterLogin:
    """The ``Authorization`` header for one cluster."""

    def __init__(self, access: ClusterAccess, tokens: OidcTokens) -> None:
        self._access, self._tokens = access, tokens
        self._token = self._rejected = ""

    @property
    def is_renewable(self) -> bool:
        """Whether another header may be accepted after the cluster has rejected one."""
        return self._access.oidc is not None

    async def header(self) -> str:
        """Return the present value, "" for none. Raises as `OidcTokens.token`."""
        access = self._access
        if access.oidc is not None:
            self._token = await self._tokens.token(access.oidc, access.endpoint, instead_of=self._rejected)
            return f"Bearer {self._token}"
        if access.username:
            pair = base64.b64encode(f"{access.username}:{access.password}".encode()).decode()
            return f"Basic {pair}"
        return f"Bearer {access.bearer_token}" if access.bearer_token else ""

    def reject(self) -> None:
        """Return another token next time, because the cluster has rejected the present one."""
        self._rejected = self._token


async def _failure(endpoint: str, response: aiohttp.ClientResponse) -> ApiUnauthorized | ApiRefused | ApiUnavailable:
    """Return the error that an answer without a token means (see the table above)."""
    status = response.status
    if status in _TEMPORARY or status >= 500:
        return ApiUnavailable(endpoint, f"the OIDC provider (oidc_token_url) answered {status}")
    if status < 400:
        return ApiRefused(endpoint, f"the OIDC provider (oidc_token_url) answered {status}; a token expected")
    try:
        body: Any = await read_json(response, limit_bytes=_ANSWER_BYTES)
    except aiohttp.ClientError:
        body = None
    code = body.get("error") if isinstance(body, Mapping) else None
    said = f" {code}" if isinstance(code, str) and code in _REASONS else ""
    return ApiUnauthorized(endpoint, f"the OIDC provider rejects the user or client (HTTP {status}{said})")


def _pause_s(response: aiohttp.ClientResponse, now: float) -> float:
    """Return how long the provider asks for no request (RFC 9110 10.2.3); 0 if it does not."""
    given = response.headers.get("Retry-After", "").strip()
    if response.status not in _BUSY:
        return 0.0
    if given.isascii() and given.isdigit():
        return min(float(given[:9]), _LONGEST_PAUSE_S)
    at = read_http_date(given)
    if at is None:
        return _BUSY_S if response.status == 429 else 0.0
    return min(max(at.timestamp() - now, 0.0), _LONGEST_PAUSE_S)


def _life_s(token: str, now: float) -> float:
    """Return for how long a JWT is valid; 0 if it does not say, and is used once then."""
    # Not verified: only the API server has to trust the token, we only plan its renewal.
    try:
        payload = token.split(".")[1]
        ends_at = float(read_foreign(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"])
    except (IndexError, KeyError, OverflowError, ValueError, TypeError):
        return 0.0
    return min(max(ends_at - now, 0.0), _LONGEST_LIFE_S) if math.isfinite(ends_at) else 0.0
