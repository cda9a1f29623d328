"""Tokens that are requested again before they expire: callers share a request, and its failure."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from cachetools import LRUCache
from kubevnfm_kit.back_off import BackOff

from kubevnfm_clients.cluster_errors import ApiRefused, ApiUnauthorized, ApiUnavailable

_MOST: Final = 1000
"""Number of tokens that are cached; the least recently used one is dropped."""
_MARGIN_S: Final = 30.0
"""A token is not used in the last part of its life, this long or a tenth of it: it must be valid until a request arrives."""
_EARLY: Final = 0.8
"""The part of its life after which a token is renewed while it is still good, as kubelets renew those of pods."""
_JITTER: Final = 0.05
"""So much of its life earlier at most: the tokens of many regions, requested at one moment, are not renewed at one moment."""
_RETRIES: Final = BackOff(first_s=1.0, longest_s=60.0)

_Failure = ApiUnauthorized | ApiRefused | ApiUnavailable
FAILURES: Final = (ApiUnauthorized, ApiRefused, ApiUnavailable)


@dataclass(frozen=True)
class Issued:
    """A token as it was given."""

    token: str = field(repr=False)
    life_s: float
    """0: it is used once."""


@dataclass
class CachedToken:
    """One token, and what is known of the requests for it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    token: str = field(default="", repr=False)
    renewed_at: float = 0.0
    """From then on a request for another one is due."""
    ends_at: float = 0.0
    not_before: float = 0.0
    """The provider asked for no request until then."""
    tries: int = 0
    failures: int = 0
    """Renewals in a row that failed."""
    failure: tuple[type[_Failure], str] | None = None
    """The class and reason of the last try's failure."""

    def has(self, rejected: str, now: float) -> bool:
        """Return whether there is a usable token beside one that was rejected."""
        return self.token not in {"", rejected} and now < self.ends_at


Request = Callable[[CachedToken], Awaitable[Issued]]
"""Requests a token; notes in the cached one until when no other request is wanted. Raises one of `FAILURES`."""


class TokenCache:
    """Tokens in memory, each by the fingerprint of what it is for."""

    def __init__(self, *, is_early: bool = False, monotonic: Callable[[], float] = time.monotonic) -> None:
        """``is_early``: renew a token while it is good; a renewal that fails is tried again while the token lasts."""
        self._is_early, self._monotonic = is_early, monotonic
        self._cached: LRUCache[str, CachedToken] = LRUCache(_MOST)

    async def token(self, fingerprint: str, endpoint: str, request: Request, *, instead_of: str = "") -> str:
        """Return a token; ``instead_of``: one that the cluster has rejected; ``endpoint``: the cluster, for errors.

        Raises: ApiUnauthorized, ApiRefused, ApiUnavailable.
        """
        cached = self._cached.setdefault(fingerprint, CachedToken())
        if cached.has(instead_of, self._monotonic()) and (
            self._monotonic() < cached.renewed_at or cached.lock.locked()
        ):
            return cached.token
        tries = cached.tries
        async with cached.lock:
            now = self._monotonic()
            # Several callers may report the same rejected token: the first requests another, which the others get too.
            if cached.has(instead_of, now) and now < max(cached.renewed_at, cached.not_before):
                return cached.token
            is_shared = cached.tries != tries  # by the caller that held the lock meanwhile
            if cached.failure is not None and (is_shared or now < cached.not_before):
                kind, reason = cached.failure
                raise kind(endpoint, reason)
            if not (is_shared and cached.token not in {"", instead_of}):
                await self._renew(cached, request, instead_of)
            return cached.token

    async def _renew(self, cached: CachedToken, request: Request, rejected: str) -> None:
        cached.failure = None
        if not cached.has(rejected, self._monotonic()):
            cached.token = ""
        try:
            issued = await request(cached)
        except FAILURES as error:
            if cached.token:
                # It is good for some time yet.
                cached.failures += 1
                cached.renewed_at = self._monotonic() + _RETRIES.after(cached.failures)
                return
            cached.failure = type(error), error.reason
            raise
        finally:
            cached.tries += 1
        now, life_s = self._monotonic(), issued.life_s
        cached.token, cached.failures = issued.token, 0
        cached.ends_at = now + life_s - min(_MARGIN_S, life_s / 10)
        early_s = life_s * (_EARLY - _JITTER * random.random())  # noqa: S311  # spreads requests, hides nothing
        cached.renewed_at = now + early_s if self._is_early else cached.ends_at
