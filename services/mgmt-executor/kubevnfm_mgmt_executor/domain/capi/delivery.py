"""Sends one call-back: signs each try, and follows the table of answers until the receiver has accepted or refused."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol
from urllib.parse import urlsplit

from kubevnfm_clients import callback as signing
from kubevnfm_kit.clock import Clock, machine_now, rfc3339

from kubevnfm_mgmt_executor.domain.capi.answers import (
    LONGEST_S,
    MOST_TRIES,
    Accepted,
    Again,
    Answer,
    GivenUp,
    Refused,
    Silence,
    Tries,
    next_move,
)
from kubevnfm_mgmt_executor.domain.capi.errors import CallbackNotConfigured, CallbackRefused, CallbackUnreachable
from kubevnfm_mgmt_executor.domain.capi.request import Request

_NONCE_BYTES: Final = 24
"""192 random bits, 32 characters."""

Progress = Callable[[str], Awaitable[None]]
"""Publishes what is waited for, and the last error."""


class Receivers(Protocol):
    """Receivers of call-backs, over HTTP."""

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer | Silence:
        """Send one request; follow no redirect."""
        ...


@dataclass(frozen=True)
class Rhythm:
    """Time as the sender sees it, so that tests need not wait."""

    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    monotonic: Callable[[], float] = time.monotonic
    jitter: Callable[[], float] = random.random


@dataclass(frozen=True)
class Sender:
    """Sends call-backs with the keys that are derived from the master keys."""

    receivers: Receivers
    clock: Clock
    master_keys: Sequence[bytes] = field(repr=False)
    """As the receiver has them. With two, the second one signs: the newer one of a rotation (CR-070)."""
    rhythm: Rhythm = field(default_factory=Rhythm)

    def check(self) -> None:
        """Raise CallbackNotConfigured without keys."""
        if not self.master_keys:
            raise CallbackNotConfigured("mgmt-executor has no callback_master_keys, so it cannot sign a call-back")

    async def deliver(
        self, request: Request, *, quoted: Callable[[str], str], progress: Progress, longest_s: float = LONGEST_S
    ) -> Accepted:
        """Send the request until it is accepted, or for ``longest_s``. ``quoted``: masks what receivers say.

        The progress says since when it is tried, how often and how long, and what the receiver has answered last.

        Raises: CallbackRefused, CallbackUnreachable, CallbackNotConfigured.
        """
        self.check()
        began, offset_s = self.rhythm.monotonic(), 0.0
        tries = Tries(made=0, spent_s=0.0, longest_s=longest_s)
        limits = f"at most {MOST_TRIES} tries, or {longest_s:.0f} s if the receiver names a pause"
        since = f"waits since {rfc3339(self.clock.now())} for the receiver ({limits})"
        await progress(since)
        while True:
            answer = await self.receivers.post(request.url, request.body, self._headers(request, offset_s))
            tries = replace(tries, made=tries.made + 1, spent_s=self.rhythm.monotonic() - began)
            now = machine_now(self.clock).timestamp()
            match next_move(answer, tries, now=now, jitter=self.rhythm.jitter()):
                case Accepted() as accepted:
                    return accepted
                case Again() as again:
                    if again.clock_offset_s is not None:
                        offset_s = again.clock_offset_s
                        tries = replace(tries, has_corrected_clock=True)
                    said = f"try {tries.made}, after {tries.spent_s:.0f} s: {quoted(again.reason)}"
                    await progress(f"{since}: {said}; next try in {again.pause_s:.0f} s")
                    await self.rhythm.pause(again.pause_s)
                case Refused(reason=reason):
                    raise CallbackRefused(f"{_shown(request.url)}: {quoted(reason)}")
                case GivenUp(reason=reason):
                    raise CallbackUnreachable(f"{_shown(request.url)}: {quoted(reason)}")

    def _headers(self, request: Request, offset_s: float) -> Mapping[str, str]:
        parts = urlsplit(request.url)
        number = len(self.master_keys)
        return signing.signed_headers(
            signing.instance_key(self.master_keys[number - 1], request.vnf_instance_id),
            request.body,
            vnf_instance_id=request.vnf_instance_id,
            timestamp=round(machine_now(self.clock).timestamp() + offset_s),
            nonce=secrets.token_urlsafe(_NONCE_BYTES),
            idempotency_key=request.idempotency_key,
            target=(parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
            key_number=number,
        )


def _shown(url: str) -> str:
    """Return the URL without its query, which may hold a token of the operator's web server."""
    return url.partition("?")[0]
