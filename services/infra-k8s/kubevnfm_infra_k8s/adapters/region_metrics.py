"""The metrics of each region (multicloud.md MC-136)."""

from __future__ import annotations

import time
from collections import Counter as Counts
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from kubevnfm_kit.metrics import MOST, Family, M, Metrics, code_of

from kubevnfm_infra_k8s.adapters.export_metrics import ExportMetrics

_IDLE_S: Final = 3600.0
"""After this time without a call a region has no series: it can be deleted."""
_AWAY_S: Final = 300.0
"""After this time without a call it is not known whether a region answers: one that was removed while it was away has no calls."""
_OTHERS: Final = "others"
"""More regions than `MOST`: callers choose the ids of VIMs that are not registered."""


@dataclass
class Sent:
    """One request to an API server."""

    status: int | None = None
    """None: there was no answer."""


class OpenWatch:
    """A watch; its events are awaited in the block that it encloses."""

    def __init__(self, vim_id: str, opened: set[OpenWatch], monotonic: Callable[[], float]) -> None:
        self.vim_id, self._opened, self._monotonic = vim_id, opened, monotonic
        self.heard()

    def __enter__(self) -> OpenWatch:
        self._opened.add(self)
        return self

    def __exit__(self, *failure: object) -> None:
        self._opened.discard(self)

    def heard(self) -> None:
        """Note an event or a bookmark."""
        self.heard_at = self._monotonic()


@dataclass
class _Series:
    """The series of one region."""

    used_at: float
    parts: set[tuple[Family[Any], tuple[str, ...]]] = field(default_factory=set)
    """Each by its metric and labels."""
    is_away: bool | None = None
    """As the gauge shows it; None: it shows nothing."""


class RegionMetrics:
    """All regions of this process."""

    def __init__(self, metrics: Metrics, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.registry, self._monotonic = metrics, monotonic
        self._requests = metrics.counter(
            "kubevnfm_region_requests",
            "Requests to the API server of a region; code none: no answer, other: a code that HTTP does not have.",
            ["vim_id", "method", "code"],
        )
        self._seconds = metrics.histogram(
            "kubevnfm_region_request_seconds", "Time from a request to the head of its answer.", ["vim_id"]
        )
        self._objects = metrics.counter(
            "kubevnfm_region_objects",
            "Objects that were applied, or that the API server refused.",
            ["vim_id", "result"],
        )
        self._watches = metrics.counter(
            "kubevnfm_region_watch_starts",
            "Begins of watches; each watch is begun again every few minutes, and after each fault.",
            ["vim_id"],
        )
        self._away = metrics.gauge(
            "kubevnfm_region_away",
            "1 while calls are not sent because the last ones got no answer.",
            ["vim_id"],
        )
        self._open = metrics.gauge("kubevnfm_region_watches", "Open watches.", ["vim_id"])
        self._silence = metrics.gauge(
            "kubevnfm_region_watch_silence_seconds",
            "How long the open watch that was silent the longest has had no event and no bookmark.",
            ["vim_id"],
        )
        self._heard: set[OpenWatch] = set()
        """The open watches."""
        metrics.before_reading(self._show_watches)
        self._series: dict[str, _Series] = {}
        metrics.before_reading(self._forget_idle)
        self.export = ExportMetrics(metrics)

    def of_region(self, vim_id: str) -> RegionMeter:
        """Return what counts for one VIM; "": clusters whose access data a request has."""
        return RegionMeter(self, vim_id)

    def counted(self, vim_id: str, method: str, sent: Sent, took_s: float) -> None:
        """Count a request."""
        self._of(self._requests, vim_id, method, code_of(sent.status)).inc()
        self._of(self._seconds, vim_id).observe(took_s)

    def counted_object(self, vim_id: str, result: str) -> None:
        """Count an object that was sent."""
        self._of(self._objects, vim_id, result).inc()

    def counted_watch(self, vim_id: str) -> OpenWatch:
        """Count the begin of a watch; it is shown as long as the block lasts that it encloses."""
        self._of(self._watches, vim_id).inc()
        return OpenWatch(self._series_of(vim_id)[0], self._heard, self._monotonic)

    async def _show_watches(self) -> None:
        now = self._monotonic()
        opened: Counts[tuple[str, ...]] = Counts()
        silence: dict[tuple[str, ...], float] = {}
        for watch in self._heard:
            opened[(watch.vim_id,)] += 1
            silence[(watch.vim_id,)] = max(silence.get((watch.vim_id,), 0.0), now - watch.heard_at)
        self._open.show(opened)
        self._silence.show(silence)

    def set_away(self, vim_id: str, *, is_away: bool) -> None:
        """Show whether calls are sent."""
        vim_id, series = self._series_of(vim_id)
        if series.is_away is not is_away:
            series.is_away = is_away
            self._of(self._away, vim_id).set(int(is_away))

    def _series_of(self, vim_id: str) -> tuple[str, _Series]:
        series = self._series.get(vim_id)
        if series is None:
            if len(self._series) >= MOST:
                vim_id = _OTHERS
            series = self._series.setdefault(vim_id, _Series(0.0))
        series.used_at = self._monotonic()
        return vim_id, series

    def _of(self, metric: Family[M], vim_id: str, *labels: str) -> M:
        vim_id, series = self._series_of(vim_id)
        series.parts.add((metric, (vim_id, *labels)))
        return metric.series(vim_id, *labels)

    async def _forget_idle(self) -> None:
        now = self._monotonic()
        for vim_id, series in list(self._series.items()):
            idle_s = now - series.used_at
            for metric, labels in list(series.parts):
                if idle_s > (_AWAY_S if metric is self._away else _IDLE_S):
                    metric.forget(*labels)
                    series.parts.remove((metric, labels))
                    if metric is self._away:
                        series.is_away = None
            if not series.parts:
                del self._series[vim_id]


class RegionMeter:
    """The same for one region."""

    def __init__(self, metrics: RegionMetrics, vim_id: str) -> None:
        self._metrics, self._vim_id = metrics, vim_id

    @property
    def vim_id(self) -> str:
        """The id of the VIM; "": access data of a request."""
        return self._vim_id

    def request(self, method: str) -> _Counted:
        """Return what encloses a request, and counts it; the block notes the status of its answer."""
        return _Counted(self._metrics, self._vim_id, method)

    def object(self, *, is_applied: bool) -> None:
        """Count an object that was sent."""
        self._metrics.counted_object(self._vim_id, "applied" if is_applied else "failed")

    def watch(self) -> OpenWatch:
        """Return what encloses a watch, and counts it."""
        return self._metrics.counted_watch(self._vim_id)

    def away(self, *, is_away: bool) -> None:
        """Show whether calls are sent."""
        self._metrics.set_away(self._vim_id, is_away=is_away)


class _Counted:
    """A context manager, as each call of an API server has one: those of `contextlib` take three times as long."""

    __slots__ = ("_begun", "_method", "_metrics", "_sent", "_vim_id")

    def __init__(self, metrics: RegionMetrics, vim_id: str, method: str) -> None:
        self._metrics, self._vim_id, self._method = metrics, vim_id, method

    def __enter__(self) -> Sent:
        self._sent, self._begun = Sent(), time.monotonic()
        return self._sent

    def __exit__(self, *failure: object) -> None:
        self._metrics.counted(self._vim_id, self._method, self._sent, time.monotonic() - self._begun)
