"""The metrics of the export to A&AI (multicloud.md MC-111, MC-136)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from kubevnfm_clients.multicloud.inventory import ExportHealth
from kubevnfm_kit.metrics import Metrics, code_of

_EVERY_S: Final = 15.0
"""Each read takes ten searches."""


class Waiting(Protocol):
    """The part of the stored state that is measured."""

    async def health(self) -> ExportHealth: ...

    async def lags(self) -> Mapping[str, float]:
        """Return the lag in seconds of the regions of which something waits."""
        ...


class ExportMetrics:
    """The export of this process; what waits is the same in all."""

    def __init__(self, metrics: Metrics) -> None:
        self._requests = metrics.counter("kubevnfm_aai_requests", "Requests to A&AI; code none: no answer.", ["code"])
        self._waiting = metrics.gauge(
            "kubevnfm_aai_waiting", "Entries, links and regions that A&AI does not have as they are."
        ).series()
        self._refused = metrics.gauge("kubevnfm_aai_refused", "How many of those that wait A&AI has refused.").series()
        self._lag = metrics.gauge(
            "kubevnfm_aai_lag_seconds", "Age of the oldest change that A&AI does not have."
        ).series()
        self._reachable = metrics.gauge("kubevnfm_aai_reachable", "0 while A&AI does not answer.").series()
        self._of_regions = metrics.gauge(
            "kubevnfm_region_export_lag_seconds",
            "Age of the oldest change of a region that A&AI does not have; only of those of which something waits.",
            ["vim_id"],
        )
        metrics.before_reading(self._read, every_s=_EVERY_S)
        self._reachable.set(1)
        self.waiting: Waiting | None = None
        """None: there is no export."""

    def request(self, status: int | None) -> None:
        """Count a request by the status of its answer; None: there was none."""
        self._requests.series(code_of(status)).inc()

    async def _read(self) -> None:
        """Bring the gauges up to date."""
        if self.waiting is None:
            return
        health = await self.waiting.health()
        self._waiting.set(health.waiting)
        self._refused.set(health.refused)
        self._lag.set(health.lag_s)
        self._reachable.set(health.reachable is not False)
        self._of_regions.show({(vim_id,): lag_s for vim_id, lag_s in (await self.waiting.lags()).items()})
