"""Access tokens by OAuth 2.0 client credentials: fetched when needed, kept until shortly before they end."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote_plus

import aiohttp
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_clients.bounded import read_json
from kubevnfm_clients.outbound import trouble

_FETCH_S: Final = 10.0
_ANSWER_BYTES: Final = 64 * 1024
_MOST: Final = 1000
"""Clients whose tokens are kept; the one that was not used for longest gives way."""
_LIFE_UNTOLD_S: Final = 60.0
"""How long a token is used whose answer does not tell its life."""
_MARGIN_S: Final = 30.0
"""A token is not used in the last part of its life: this long, or a tenth of it."""


class NoToken(Exception):
    """The token endpoint gave none; the text says why, for whoever named the endpoint."""


@dataclass(frozen=True)
class Client:
    """Who asks for a token, and where."""

    endpoint: str = field(repr=False)
    client_id: str = field(repr=False)
    password: str | None = field(repr=False)
    """None: the TLS certificate shows who asks (RFC 8705)."""

    @property
    def key(self) -> str:
        facts = json.dumps([self.endpoint, self.client_id, self.password])
        return hashlib.sha256(facts.encode()).hexdigest()


@dataclass
class _Kept:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    token: str = field(default="", repr=False)
    ends_at: float = 0.0


class ClientTokens:
    """The tokens in memory, one by client; who asks at the same moment waits for one fetch."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def token(self, client: Client, session: aiohttp.ClientSession, *, instead_of: str | None = None) -> str:
        """Return a token; ``instead_of`` names one that was not accepted. Raises NoToken."""
        kept = self._kept.setdefault(client.key, _Kept())
        self._kept.move_to_end(client.key)
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        async with kept.lock:
            if kept.token in {"", instead_of} or self._monotonic() >= kept.ends_at:
                kept.token = ""
                kept.token, life_s = await _fetched(client, session)
                kept.ends_at = self._monotonic() + life_s - min(_MARGIN_S, life_s / 10)
            return kept.token


async def _fetched(client: Client, session: aiohttp.ClientSession) -> tuple[str, float]:
    """Return a new token and its life (RFC 6749 clause 4.4)."""
    form = {"grant_type": "client_credentials"}
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    if client.password is None:
        form["client_id"] = client.client_id
    else:
        # both are encoded like a form's values before (RFC 6749 clause 2.3.1)
        headers["Authorization"] = aiohttp.encode_basic_auth(quote_plus(client.client_id), quote_plus(client.password))
    try:
        async with session.post(
            client.endpoint,
            data=form,
            headers=headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=_FETCH_S),
        ) as response:
            if response.status != 200:
                raise NoToken(f"its token endpoint answered {response.status}")
            told = await read_json(response, limit_bytes=_ANSWER_BYTES)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise NoToken(f"its token endpoint: {trouble(error)}") from error
    answer: JsonMapping = told if isinstance(told, Mapping) else {}
    token, life = answer.get("access_token"), answer.get("expires_in")
    # what is no visible ASCII could not be sent in a header
    if not isinstance(token, str) or not token or not all("!" <= each <= "~" for each in token):
        raise NoToken("its token endpoint gave no access token")
    if not isinstance(life, int | float) or isinstance(life, bool) or life <= 0:
        return token, _LIFE_UNTOLD_S
    return token, float(life)
