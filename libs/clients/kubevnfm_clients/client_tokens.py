"""Access tokens by OAuth 2.0 client credentials: fetched when needed, cached until shortly before they expire."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar
from urllib.parse import quote_plus

import aiohttp
from cachetools import LRUCache
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_clients.bounded import read_json
from kubevnfm_clients.outbound import trouble

_FETCH_S: Final = 10.0
_ANSWER_BYTES: Final = 64 * 1024
_MOST: Final = 1000
"""Number of clients whose tokens are cached; the least recently used one is dropped."""
_LIFE_DEFAULT_S: Final = 60.0
"""Lifetime of a token whose answer has no ``expires_in``."""
_MARGIN_S: Final = 30.0
"""A token is not used in the last part of its lifetime: this long, or a tenth of it."""


class NoToken(Exception):
    """The token endpoint returned no token; the text says why to the caller that configured the endpoint."""


@dataclass(frozen=True)
class Client:
    """A client of a token endpoint."""

    endpoint: str = field(repr=False)
    client_id: str = field(repr=False)
    password: str | None = field(repr=False)
    """None: the TLS certificate authenticates the client (RFC 8705)."""

    @property
    def key(self) -> str:
        facts = json.dumps([self.endpoint, self.client_id, self.password])
        return hashlib.sha256(facts.encode()).hexdigest()


class Answered(Protocol):
    """An answer with its status."""

    @property
    def status(self) -> int: ...


A = TypeVar("A", bound=Answered)


@dataclass
class _Cached:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    token: str = field(default="", repr=False)
    ends_at: float = 0.0


class ClientTokens:
    """A cache of tokens by client; concurrent callers share one fetch."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._cached: LRUCache[str, _Cached] = LRUCache(_MOST)

    async def token(self, client: Client, session: aiohttp.ClientSession, *, instead_of: str | None = None) -> str:
        """Return a token; ``instead_of``: a token that was rejected. Raises NoToken."""
        cached = self._cached.setdefault(client.key, _Cached())
        async with cached.lock:
            # Several callers may report the same rejected token: the first fetches a new one, the others get that.
            if cached.token in {"", instead_of} or self._monotonic() >= cached.ends_at:
                # If the fetch fails the rejected token must not be used again.
                cached.token = ""
                cached.token, life_s = await _fetched(client, session)
                cached.ends_at = self._monotonic() + life_s - min(_MARGIN_S, life_s / 10)
            return cached.token

    async def authorized(
        self, client: Client, session: aiohttp.ClientSession, send: Callable[[str], Awaitable[A]]
    ) -> A:
        """Return the answer of ``send``, which gets the Authorization header. A token that is rejected is replaced once. Raises NoToken."""
        token = await self.token(client, session)
        answer = await send(f"Bearer {token}")
        # The server may have restarted and forgotten its tokens; a second 401 means wrong credentials.
        if answer.status == 401:
            answer = await send(f"Bearer {await self.token(client, session, instead_of=token)}")
        return answer


async def _fetched(client: Client, session: aiohttp.ClientSession) -> tuple[str, float]:
    """Return a new token and its lifetime (RFC 6749 clause 4.4)."""
    form = {"grant_type": "client_credentials"}
    # The outbound session does not decompress: a small compressed answer could expand beyond the limit.
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    if client.password is None:
        form["client_id"] = client.client_id
    else:
        # both are form-encoded first (RFC 6749 clause 2.3.1)
        headers["Authorization"] = aiohttp.encode_basic_auth(quote_plus(client.client_id), quote_plus(client.password))
    try:
        async with session.post(
            client.endpoint,
            data=form,
            headers=headers,
            # A redirect would carry the client's credentials to another server.
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=_FETCH_S),
        ) as response:
            if response.status != 200:
                raise NoToken(f"its token endpoint answered {response.status}")
            body = await read_json(response, limit_bytes=_ANSWER_BYTES)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise NoToken(f"its token endpoint: {trouble(error)}") from error
    answer: JsonMapping = body if isinstance(body, Mapping) else {}
    token, life = answer.get("access_token"), answer.get("expires_in")
    # a token with other characters than visible ASCII cannot be sent in a header
    if not isinstance(token, str) or not token or not all("!" <= each <= "~" for each in token):
        raise NoToken("its token endpoint gave no access token")
    if not isinstance(life, int | float) or isinstance(life, bool) or life <= 0:
        return token, _LIFE_DEFAULT_S
    return token, float(life)
