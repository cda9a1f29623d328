"""Tokens of OpenID providers, for users with a password and for clients with a secret.

They are cached until shortly before they expire. One rule says which failures of a provider pass:

| the provider | means |
|---|---|
| answers 400, 401, 403, or another 4xx | permanent: it rejects the user, the client or the request (RFC 6749 5.2) |
| answers 404, 408, 429 or 5xx, or not at all | temporary: a proxy answers 404 while the provider behind it restarts |
| redirects, or answers 200 without an ``id_token`` | permanent: the address is not that of a token endpoint |
"""

from __future__ import annotations

import base64
import math
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import aiohttp
from kubevnfm_kit.client_session import client_session
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.http_client import ProxyFailure
from kubevnfm_kit.http_dates import read_http_date
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_kit.tls import tls_failure

from kubevnfm_clients.bounded import AnswerTooLarge, read_json
from kubevnfm_clients.cluster_access import OidcUser, provider_tls
from kubevnfm_clients.cluster_errors import ApiRefused, ApiUnauthorized, ApiUnavailable, ProxyAway
from kubevnfm_clients.names import cluster_connector
from kubevnfm_clients.token_cache import CachedToken, Issued, TokenCache

_ANSWER_BYTES: Final = 256 * 1024
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


class OidcTokens:
    """The tokens of users and clients."""

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
        self._cache = TokenCache(monotonic=monotonic)

    async def token(self, user: OidcUser, endpoint: str, *, instead_of: str = "") -> str:
        """Return an id token; ``instead_of``: one that the cluster has rejected; ``endpoint``: the cluster, for errors.

        Raises: ApiUnauthorized, ApiRefused, ApiUnavailable.
        """

        async def request(cached: CachedToken) -> Issued:
            return await self._fetched(user, endpoint, cached)

        return await self._cache.token(user.fingerprint, endpoint, request, instead_of=instead_of)

    async def _fetched(self, user: OidcUser, endpoint: str, cached: CachedToken) -> Issued:
        """Request a token (RFC 6749 4.3 and 4.4); Kubernetes reads OpenID Connect's id_token.

        Providers give a client without a user an access_token alone, which is a JWT for the audience that its scope names.
        """
        form = {"grant_type": "client_credentials", "scope": user.scope, "client_id": user.client_id}
        if user.username:
            form |= {"grant_type": "password", "username": user.username, "password": user.password}
        if user.client_secret:
            form["client_secret"] = user.client_secret
        # A session of its own: that of the cluster may present a client certificate, or lead every name to one address.
        # It does not decompress, because a small answer could expand beyond the limit.
        try:
            connector = cluster_connector(ssl=await provider_tls(user))
            async with (
                client_session(connector=connector, auto_decompress=False) as session,
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
        except ProxyFailure as error:
            raise ProxyAway(endpoint, f"the OIDC provider (oidc_token_url): {error}") from error
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise ApiUnavailable(endpoint, f"the OIDC provider does not answer ({type(error).__name__})") from error
        found: JsonMapping = body if isinstance(body, Mapping) else {}
        token = found.get("id_token") or (None if user.username else found.get("access_token"))
        # A token with other characters than visible ASCII cannot be sent in a header.
        if not isinstance(token, str) or not token or not all("!" <= each <= "~" for each in token):
            wanted = "id_token" if user.username else "id_token and no access_token"
            raise ApiRefused(endpoint, f"the OIDC provider's answer has no {wanted}")
        return Issued(token, life_of(token, self._now()))


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


def life_of(token: str, now: float) -> float:
    """Return for how long a JWT is valid; 0 if it does not say, and is used once then."""
    # Not verified: only the API server has to trust the token, we only plan its renewal.
    try:
        payload = token.split(".")[1]
        ends_at = float(read_foreign(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"])
    except (IndexError, KeyError, OverflowError, ValueError, TypeError):
        return 0.0
    return min(max(ends_at - now, 0.0), _LONGEST_LIFE_S) if math.isfinite(ends_at) else 0.0
