"""The limits of the calls of one API server: so many a second, and none while it does not answer (multicloud.md MC-083)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import copy
from datetime import UTC, datetime
from types import TracebackType
from typing import Final

import aiohttp
from kubevnfm_clients.outbound import refused_in
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.metrics import Metrics
from kubevnfm_kit.outages import Outage

from kubevnfm_infra_k8s.adapters.region_metrics import RegionMeter, RegionMetrics, Sent
from kubevnfm_infra_k8s.domain.concurrency import BURST, REQUESTS_PER_S
from kubevnfm_infra_k8s.domain.errors import ClusterUnavailable

_FAILURES: Final = 5
"""So many calls in a row get no answer until no more are sent."""
_PAUSES: Final = BackOff(first_s=1.0, longest_s=30.0)
_PROBE_S: Final = 30.0
"""So long a probe may wait for an answer, a watch too: no other call is sent meanwhile."""


class RegionAway(ClusterUnavailable, is_said=True):
    """The API server has not answered the last calls, so this one was not sent."""


class CircuitBreaker:
    """Refuses calls of an API server that does not answer; after each pause one call probes it."""

    def __init__(self, endpoint: str, monotonic: Callable[[], float] | None = None) -> None:
        self._endpoint = endpoint
        self._monotonic = monotonic or (lambda: asyncio.get_running_loop().time())
        self._failures = 0
        """Calls in a row without an answer."""
        self._since = self._reason = ""
        """When the first of them failed, and why the last one did."""
        self._outage = Outage("cluster", endpoint=endpoint)
        self._pauses = 0
        self._refused_until = 0.0
        self._is_probing = False

    @property
    def is_open(self) -> bool:
        """Whether calls are refused."""
        return self._failures >= _FAILURES

    def check(self) -> None:
        """Raise RegionAway if no call is to be sent now."""
        if self.is_open and (self._is_probing or self._monotonic() < self._refused_until):
            raise RegionAway(f"{self._endpoint}: no answer since {self._since}; the last error: {self._reason}")

    def call(self) -> _EnclosedCall:
        """Return what encloses a call up to the head of its answer, and says whether it is a probe."""
        return _EnclosedCall(self)

    def begin(self) -> bool:
        """Note that a call begins; return whether it is a probe. Raises RegionAway if none is to be sent."""
        if not self.is_open:
            return False
        self.check()
        self._is_probing = True
        return True

    def end(self, error: BaseException | None, *, is_probe: bool) -> None:
        """Note how a call has ended."""
        if error is None:
            self._failures = self._pauses = 0
            self._outage.answered()
        # A refused address says nothing about the API server.
        elif isinstance(error, (aiohttp.ClientError, OSError, TimeoutError)) and refused_in(error) is None:
            self._failed(error, is_probe=is_probe)
        if is_probe:
            self._is_probing = False

    def _failed(self, error: BaseException, *, is_probe: bool) -> None:
        # aiohttp's texts contain the host but no headers, so they reveal no credentials.
        self._reason = "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        if not self._failures:
            self._since = rfc3339(datetime.now(UTC))
        self._failures += 1
        if self.is_open:
            self._outage.failed(self._reason)
        # Calls that were sent before make no pause longer: hundreds of them may fail at one moment.
        if self._failures == _FAILURES or (is_probe and self.is_open):
            self._pauses += 1
            self._refused_until = self._monotonic() + _PAUSES.after(self._pauses)


class _EnclosedCall:
    """A context manager, as each call of an API server has one: those of `contextlib` take three times as long."""

    __slots__ = ("_breaker", "_is_probe")

    def __init__(self, breaker: CircuitBreaker) -> None:
        self._breaker = breaker

    def __enter__(self) -> bool:
        self._is_probe = self._breaker.begin()
        return self._is_probe

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._breaker.end(error, is_probe=self._is_probe)


class RateLimit:
    """Lets so many calls begin in a second, and a burst after a time with fewer. Calls wait in their order."""

    def __init__(self, per_s: float, burst: int, monotonic: Callable[[], float] | None = None) -> None:
        self._apart_s, self._ahead_s = 1 / per_s, burst / per_s
        self._monotonic = monotonic or (lambda: asyncio.get_running_loop().time())
        self._next_at = float("-inf")

    def reserve(self) -> float:
        """Take the next turn; return how long to wait for it."""
        now = self._monotonic()
        self._next_at = max(self._next_at, now - self._ahead_s) + self._apart_s
        return max(0.0, self._next_at - now)

    async def turn(self) -> None:
        """Wait for a turn."""
        if (wait_s := self.reserve()) > 0:
            try:
                await asyncio.sleep(wait_s)
            except asyncio.CancelledError:
                # Callers that give up and come again would otherwise wait for the turns of their earlier calls.
                self._next_at -= self._apart_s
                raise


class CallGuard:
    """Both for one API server, and what counts its calls. Connections to it come and go; the limits stay."""

    def __init__(
        self,
        endpoint: str,
        meter: RegionMeter | None = None,
        *,
        per_s: float = REQUESTS_PER_S,
        burst: int = BURST,
        probe_s: float = _PROBE_S,
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        self.probe_s = probe_s
        self.breaker, self._limit = CircuitBreaker(endpoint, monotonic), RateLimit(per_s, burst, monotonic)
        self.meter = meter or RegionMetrics(Metrics()).of_region("")

    def counted_by(self, meter: RegionMeter) -> CallGuard:
        """Return a guard with the same limits and another count: several VIMs, also one after another, may be one cluster."""
        guard = copy(self)
        guard.meter = meter
        return guard

    def call(self, method: str) -> GuardedCall:
        """Return what encloses a call or the begin of a watch, up to the head of its answer, whose status is noted.

        Raises RegionAway; TimeoutError for a probe without an answer.
        """
        return GuardedCall(self, method)

    def show_away(self) -> None:
        """Show whether calls are sent."""
        self.meter.away(is_away=self.breaker.is_open)

    async def turn(self) -> None:
        """Wait for a turn. Raises RegionAway at once if no call is to be sent now."""
        self.breaker.check()
        await self._limit.turn()


class GuardedCall:
    """As `_EnclosedCall`."""

    __slots__ = ("_counted", "_enclosed", "_guard", "_limit")

    def __init__(self, guard: CallGuard, method: str) -> None:
        self._guard, self._enclosed, self._counted = guard, guard.breaker.call(), guard.meter.request(method)
        self._limit: asyncio.Timeout | None = None

    async def __aenter__(self) -> Sent:
        try:
            # First: a call that is refused takes no turn. Again afterwards: the state may have changed in the wait.
            await self._guard.turn()
            is_probe = self._enclosed.__enter__()
        except BaseException:
            self._guard.show_away()
            raise
        if is_probe:
            self._limit = await asyncio.timeout(self._guard.probe_s).__aenter__()
        return self._counted.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._limit is not None:
                # Raises TimeoutError in place of the cancellation that it has caused.
                await self._limit.__aexit__(kind, error, trace)
        except TimeoutError as late:
            error = late
            raise
        finally:
            self._counted.__exit__()
            self._enclosed.__exit__(kind, error, trace)
            self._guard.show_away()
