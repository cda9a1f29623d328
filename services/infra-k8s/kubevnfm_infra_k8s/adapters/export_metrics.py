"""The metrics of the export to A&AI (multicloud.md MC-111, MC-136)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kubevnfm_clients.multicloud.inventory import ExportHealth
from prometheus_client import CollectorRegistry, Counter, Gauge


class Waiting(Protocol):
    """The part of the stored state that is measured."""

    async def health(self) -> ExportHealth: ...

    async def lags(self) -> Mapping[str, float]:
        """Return the lag in seconds of the regions of which something waits."""
        ...


class ExportMetrics:
    """The export of this process; what waits is the same in all."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "kubevnfm_aai_requests", "Requests to A&AI; code none: no answer.", ["code"], registry=registry
        )
        self._waiting = Gauge(
            "kubevnfm_aai_waiting", "Entries, links and regions that A&AI does not have as they are.", registry=registry
        )
        self._refused = Gauge(
            "kubevnfm_aai_refused", "How many of those that wait A&AI has refused.", registry=registry
        )
        self._lag = Gauge(
            "kubevnfm_aai_lag_seconds", "Age of the oldest change that A&AI does not have.", registry=registry
        )
        self._reachable = Gauge("kubevnfm_aai_reachable", "0 while A&AI does not answer.", registry=registry)
        self._of_regions = Gauge(
            "kubevnfm_region_export_lag_seconds",
            "Age of the oldest change of a region that A&AI does not have; only of those of which something waits.",
            ["vim_id"],
            registry=registry,
        )
        self._reachable.set(1)
        self.waiting: Waiting | None = None
        """None: there is no export."""

    def request(self, code: str) -> None:
        """Count a request."""
        self._requests.labels(code).inc()

    async def read(self) -> None:
        """Bring the gauges up to date."""
        if self.waiting is None:
            return
        health = await self.waiting.health()
        self._waiting.set(health.waiting)
        self._refused.set(health.refused)
        self._lag.set(health.lag_s)
        self._reachable.set(health.reachable is not False)
        self._of_regions.clear()
        for vim_id, lag_s in (await self.waiting.lags()).items():
            self._of_regions.labels(vim_id).set(lag_s)
