"""The configuration that an issuer of tokens publishes (OpenID Connect Discovery 1.0, RFC 8414)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_access.errors import IdentityUnavailable
from kubevnfm_access.identity_http import call

_FRESH_S: Final = 600.0
_ASK_EVERY_S: Final = 10.0
"""An issuer that fails is not asked more often: callers without credentials cause these questions, too."""
_LONGEST: Final = 2048
"""Characters of an address."""


class Discovery:
    """The configuration of one issuer: fetched, cached, and used on while the issuer does not answer."""

    def __init__(
        self, session: aiohttp.ClientSession, *, issuer: str, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._session, self.issuer, self._now = session, issuer, now
        self._known: JsonMapping | None = None
        self._fetched = self._asked = float("-inf")
        self._asking = asyncio.Lock()

    async def known(self) -> JsonMapping:
        """Return the configuration. Raises IdentityUnavailable."""
        async with self._asking:
            if self._now() - self._fetched >= _FRESH_S and self._now() - self._asked >= _ASK_EVERY_S:
                self._asked = self._now()
                try:
                    self._known, self._fetched = await self._fetch(), self._now()
                except IdentityUnavailable:
                    if self._known is None:
                        raise
            if self._known is None:
                raise IdentityUnavailable("the token issuer's configuration cannot be read")
            return self._known

    async def address(self, name: str) -> str | None:
        """Return an address of the configuration; None if it has none of that name. Raises IdentityUnavailable."""
        found = (await self.known()).get(name)
        if found is None:
            return None
        # A browser is sent there, and secrets are: another scheme would be a script, a weaker one readable on the way.
        if not isinstance(found, str) or not is_usable(found, self.issuer):
            raise IdentityUnavailable(f"the token issuer's configuration cannot be used: {name}")
        return found

    async def _fetch(self) -> JsonMapping:
        answer = await call(self._session, "GET", f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
        # The document must name the issuer itself (OpenID Connect Discovery 1.0, 4.3).
        if answer.status != 200 or not isinstance(answer.body, dict) or answer.body.get("issuer") != self.issuer:
            raise IdentityUnavailable("the token issuer's configuration cannot be used")
        found: JsonMapping = answer.body
        return found


def is_usable(address: str, issuer: str) -> bool:
    """Return whether an address is one of HTTP, and uses TLS where the issuer does."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    schemes = {"https"} if issuer.lower().startswith("https:") else {"http", "https"}
    is_plain = address.isascii() and address.isprintable() and " " not in address and len(address) <= _LONGEST
    return (
        is_plain and parts.scheme in schemes and bool(parts.hostname) and "@" not in parts.netloc and not parts.fragment
    )
