"""The limit of wrong credentials from one network, so that passwords cannot be guessed by trying."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

from cachetools import LRUCache

from kubevnfm_access.credentials import Credentials
from kubevnfm_access.limiter import RateLimit

_MOST: Final = 10_000
"""Number of right credentials that are remembered; the least recently used ones are dropped."""
_SITE_BITS: Final = 64
"""A caller with an IPv6 address usually has all of its /64 (RFC 6177)."""


class Tries:
    """Counts wrong credentials by network.

    Credentials that were right before are checked without a limit: callers that share an address with a guesser, behind a
    proxy for example, are not shut out. They are stored as keyed digests, in memory only.
    """

    def __init__(self, *, per_min: float, burst: int, now: Callable[[], float] = time.monotonic) -> None:
        self._limit = RateLimit(per_s=per_min / 60, burst=burst, now=now)
        self._key = secrets.token_bytes(32)
        self._right: LRUCache[bytes, None] = LRUCache(_MOST)

    def wait_s(self, credentials: Credentials, *, address: str) -> int:
        """Return how long these credentials must wait before they are checked, in whole seconds; 0: not at all."""
        return 0 if self._mark(credentials) in self._right else self._limit.wait_s(_network(address))

    def note_right(self, credentials: Credentials) -> None:
        """Remember credentials that were accepted."""
        self._right[self._mark(credentials)] = None

    def note_wrong(self, credentials: Credentials, *, address: str) -> None:
        """Count credentials that were refused. A request without any is no try: clients send it to learn the schemes."""
        self._right.pop(self._mark(credentials), None)
        if not credentials.are_absent:
            self.charge(address)

    def charge(self, address: str) -> None:
        """Count an attempt of the address."""
        # Also above the rate: of many tries at once each was begun before the first had failed.
        self._limit.charge(_network(address))

    def _mark(self, credentials: Credentials) -> bytes:
        digest = hashlib.blake2b(key=self._key)
        texts = [*credentials.authorization, "", credentials.auth_token or ""]
        for part in (*(text.encode(errors="surrogateescape") for text in texts), credentials.certificate or b""):
            digest.update(len(part).to_bytes(8, "big") + part)
        return digest.digest()


def _network(address: str) -> str:
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is None:
        return str(IPv6Network((int(parsed) >> _SITE_BITS << _SITE_BITS, _SITE_BITS)))
    return address
