"""The metrics of each region, in the text format of Prometheus (multicloud.md MC-136)."""

from __future__ import annotations

import asyncio
import time
from collections import Counter as Counts
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Protocol, TypeVar

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from kubevnfm_infra_k8s.adapters.export_metrics import ExportMetrics

_BUCKETS_S: Final = (0.005, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0)
_MOST: Final = 1000
"""Regions with series of their own: callers choose the ids of VIMs that are not registered."""
_IDLE_S: Final = 3600.0
"""After this time without a call a region has no series: it can be deleted."""
_AWAY_S: Final = 300.0
"""After this time without a call it is not known whether a region answers: one that was removed while it was away has no calls."""
_OTHERS: Final = "others"
_NO_ANSWER: Final = "none"
_CODES: Final = frozenset(map(int, HTTPStatus))
"""With a label of their own: API servers choose what they answer."""
_OTHER_CODE: Final = "other"
_M = TypeVar("_M", Counter, Gauge, Histogram)


class Links(Protocol):
    """The part of the stored links that is counted."""

    def states(self) -> AsyncIterator[tuple[str, str]]:
        """Yield VIM and status of each link."""
        ...


@dataclass
class Sent:
    """One request to an API server."""

    status: int | None = None
    """None: there was no answer."""


@dataclass
class _Series:
    """The series of one region."""

    used_at: float
    parts: dict[tuple[Counter | Gauge | Histogram, tuple[str, ...]], Any] = field(default_factory=dict)
    """By metric and labels: the metric itself takes a lock, and three times as long, to find what is counted."""
    is_away: bool | None = None
    """As the gauge shows it; None: it shows nothing."""


class RegionMetrics:
    """All regions of this process."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        # When each series began: a third of all series, which Prometheus does not need. A setting of the whole process.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        # Not the default one: a process can have several services, and tests have many.
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "kubevnfm_region_requests",
            "Requests to the API server of a region; code none: no answer, other: a code that HTTP does not have.",
            ["vim_id", "method", "code"],
            registry=registry,
        )
        self._seconds = Histogram(
            "kubevnfm_region_request_seconds",
            "Time from a request to the head of its answer.",
            ["vim_id"],
            buckets=_BUCKETS_S,
            registry=registry,
        )
        self._objects = Counter(
            "kubevnfm_region_objects",
            "Objects that were applied, or that the API server refused.",
            ["vim_id", "result"],
            registry=registry,
        )
        self._watches = Counter(
            "kubevnfm_region_watch_starts",
            "Begins of watches; each watch is begun again every few minutes, and after each fault.",
            ["vim_id"],
            registry=registry,
        )
        self._away = Gauge(
            "kubevnfm_region_away",
            "1 while calls are not sent because the last ones got no answer.",
            ["vim_id"],
            registry=registry,
        )
        self._links = Gauge(
            "kubevnfm_region_virtual_links", "Virtual links by status.", ["vim_id", "status"], registry=registry
        )
        self._series: dict[str, _Series] = {}
        self._reading = asyncio.Lock()
        self.export = ExportMetrics(registry)

    def of_region(self, vim_id: str) -> RegionMeter:
        """Return what counts for one VIM; "": clusters whose access data a request has."""
        return RegionMeter(self, vim_id)

    async def text(self, links: Links) -> str:
        """Return what Prometheus reads."""
        counts: Counts[tuple[str, str]] = Counts()
        # One after another: two servers may read at the same time, and one would see what the other has just cleared.
        async with self._reading:
            self._forget_idle()
            async for state in links.states():
                counts[state] += 1
            self._links.clear()
            for (vim_id, status), count in counts.items():
                self._links.labels(vim_id, status).set(count)
            await self.export.read()
            # In a thread: those of a thousand regions take most of a second.
            return (await asyncio.to_thread(generate_latest, self._registry)).decode()

    def routes(self, links: Links) -> web.RouteTableDef:
        """Return the route of ``/metrics``."""
        routes = web.RouteTableDef()

        @routes.get("/metrics")
        async def show(_: web.Request) -> web.Response:
            return web.Response(text=await self.text(links), headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

        return routes

    def counted(self, vim_id: str, method: str, sent: Sent, took_s: float) -> None:
        """Count a request."""
        code = _NO_ANSWER if sent.status is None else str(sent.status) if sent.status in _CODES else _OTHER_CODE
        self._of(self._requests, vim_id, method, code).inc()
        self._of(self._seconds, vim_id).observe(took_s)

    def counted_object(self, vim_id: str, result: str) -> None:
        """Count an object that was sent."""
        self._of(self._objects, vim_id, result).inc()

    def counted_watch(self, vim_id: str) -> None:
        """Count the begin of a watch."""
        self._of(self._watches, vim_id).inc()

    def set_away(self, vim_id: str, *, is_away: bool) -> None:
        """Show whether calls are sent."""
        vim_id, series = self._series_of(vim_id)
        if series.is_away is not is_away:
            series.is_away = is_away
            self._of(self._away, vim_id).set(int(is_away))

    def _series_of(self, vim_id: str) -> tuple[str, _Series]:
        series = self._series.get(vim_id)
        if series is None:
            if len(self._series) >= _MOST:
                vim_id = _OTHERS
            series = self._series.setdefault(vim_id, _Series(0.0))
        series.used_at = self._monotonic()
        return vim_id, series

    def _of(self, metric: _M, vim_id: str, *labels: str) -> _M:
        vim_id, series = self._series_of(vim_id)
        key = (metric, (vim_id, *labels))
        part: _M | None = series.parts.get(key)
        if part is None:
            part = series.parts[key] = metric.labels(vim_id, *labels)
        return part

    def _forget_idle(self) -> None:
        now = self._monotonic()
        for vim_id, series in list(self._series.items()):
            idle_s = now - series.used_at
            for metric, labels in list(series.parts):
                if idle_s > (_AWAY_S if metric is self._away else _IDLE_S):
                    metric.remove(*labels)
                    del series.parts[metric, labels]
                    if metric is self._away:
                        series.is_away = None
            if not series.parts:
                del self._series[vim_id]


class RegionMeter:
    """The same for one region."""

    def __init__(self, metrics: RegionMetrics, vim_id: str) -> None:
        self._metrics, self._vim_id = metrics, vim_id

    def request(self, method: str) -> _Counted:
        """Return what encloses a request, and counts it; the block notes the status of its answer."""
        return _Counted(self._metrics, self._vim_id, method)

    def object(self, *, is_applied: bool) -> None:
        """Count an object that was sent."""
        self._metrics.counted_object(self._vim_id, "applied" if is_applied else "failed")

    def watch(self) -> None:
        """Count the begin of a watch."""
        self._metrics.counted_watch(self._vim_id)

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
