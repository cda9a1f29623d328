"""Tokens of ServiceAccounts by TokenRequest, in place of long-lived credentials (multicloud.md MC-074).

They are in memory only: a process that starts requests its own, so none is lost or revealed with a document.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Protocol
from urllib.parse import quote

import aiohttp
from kubevnfm_kit.client_session import client_session
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.http_client import ProxyFailure
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_kit.printable import printable
from kubevnfm_kit.tls import tls_failure

from kubevnfm_clients.bounded import AnswerTooLarge, read_json
from kubevnfm_clients.cluster_access import ClusterAccess, TokenOrder, cluster_tls
from kubevnfm_clients.cluster_errors import ApiRefused, ApiUnauthorized, ApiUnavailable, ProxyAway, TokenRefused
from kubevnfm_clients.cluster_proxy import ClusterProxy
from kubevnfm_clients.names import cluster_connector
from kubevnfm_clients.oidc_tokens import life_of
from kubevnfm_clients.token_cache import CachedToken, Issued, TokenCache

_ANSWER_BYTES: Final = 256 * 1024
_LONGEST_MESSAGE: Final = 1024
_TEMPORARY: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})


class SentCall(Protocol):
    """A call that is sent."""

    status: int | None
    """Noted once there is an answer."""


Guarded = Callable[[], AbstractAsyncContextManager[SentCall]]
"""Encloses a call of the API server up to the head of its answer. Raises ApiUnavailable instead if none is to be sent now."""


@dataclass
class _Sent:
    status: int | None = None


@asynccontextmanager
async def unguarded() -> AsyncIterator[SentCall]:
    """Enclose a call that is sent in any case."""
    yield _Sent()


class ServiceAccountTokens:
    """The tokens of ServiceAccounts, each renewed while it is good."""

    def __init__(
        self,
        *,
        timeout_s: float = 20.0,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``timeout_s``: time limit of a request; ``now``: seconds since the epoch."""
        self._timeout, self._now = aiohttp.ClientTimeout(total=timeout_s), now
        self._cache = TokenCache(is_early=True, monotonic=monotonic)

    async def token(
        self,
        access: ClusterAccess,
        order: TokenOrder,
        header: Callable[[], Awaitable[str]],
        *,
        instead_of: str = "",
        guarded: Guarded = unguarded,
    ) -> str:
        """Return a token; ``header``: gives the login for a request of one; ``instead_of``: a token that was rejected.

        ``guarded``: as the other calls of the API server are.

        Raises: TokenRefused, ApiUnauthorized, ApiRefused, ApiUnavailable.
        """

        async def request(_: CachedToken) -> Issued:
            return await self._requested(access, order, await header(), guarded)

        return await self._cache.token(access.fingerprint, access.endpoint, request, instead_of=instead_of)

    async def _requested(self, access: ClusterAccess, order: TokenOrder, header: str, guarded: Guarded) -> Issued:
        names = quote(order.namespace, safe=""), quote(order.name, safe="")
        spec: JsonObject = {"expirationSeconds": order.expiration_s}
        if order.audiences:
            spec["audiences"] = list(order.audiences)
        proxy = ClusterProxy.from_access(access)
        try:
            # A session of its own: that of other calls must not present the client certificate of this one.
            connector = cluster_connector(ssl=await cluster_tls(access.for_tokens))
            async with client_session(connector=connector, auto_decompress=False) as session:
                async with guarded() as sent:
                    response = await session.post(
                        f"{access.endpoint}/api/v1/namespaces/{names[0]}/serviceaccounts/{names[1]}/token",
                        json={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
                        headers={"Accept-Encoding": "identity", **({"Authorization": header} if header else {})},
                        timeout=self._timeout,
                        allow_redirects=False,  # a redirect would carry the credentials to another server
                        proxy=proxy.url,
                        proxy_headers=proxy.headers,
                    )
                    sent.status = response.status
                async with response:
                    status, body = response.status, await read_json(response, limit_bytes=_ANSWER_BYTES)
        except InvalidInput as error:
            raise ApiRefused(access.endpoint, error.reason) from error
        except AnswerTooLarge as error:
            raise ApiRefused(access.endpoint, f"TokenRequest: {error}") from error
        except (ssl.SSLError, aiohttp.ClientSSLError) as error:
            raise ApiRefused(access.endpoint, tls_failure(str(error))) from error
        except ProxyFailure as error:
            raise ProxyAway(access.endpoint, f"TokenRequest: {error}") from error
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise ApiUnavailable(access.endpoint, f"TokenRequest: {type(error).__name__}") from error
        found: JsonMapping = body if isinstance(body, Mapping) else {}
        if status >= HTTPStatus.MULTIPLE_CHOICES:
            raise _failure(access.endpoint, order, status, found)
        given = found.get("status")
        token = given.get("token") if isinstance(given, Mapping) else None
        if not isinstance(token, str) or not token or not all("!" <= each <= "~" for each in token):
            raise ApiRefused(access.endpoint, "TokenRequest: an answer with status.token expected")
        # The server may give another life than was asked for.
        return Issued(token, life_of(token, self._now()))


def _failure(
    endpoint: str, order: TokenOrder, status: int, body: JsonMapping
) -> ApiUnauthorized | ApiRefused | ApiUnavailable:
    if status == HTTPStatus.UNAUTHORIZED:
        return ApiUnauthorized(endpoint, "the API server rejects the token, password or certificate")
    if status in _TEMPORARY or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ApiUnavailable(endpoint, f"TokenRequest answered {status}")
    message = printable(str(body.get("message") or f"HTTP {status}")[:_LONGEST_MESSAGE])
    return TokenRefused(endpoint, f"no token of {order}: {message}")
