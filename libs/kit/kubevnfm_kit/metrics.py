"""The metrics of one process for Prometheus: one registry, shared by all services that run in it (docs/monitoring.md)."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Generic, NoReturn, TypeVar

import structlog
from aiohttp import hdrs, web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics import MetricWrapperBase

from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.outages import Outage
from kubevnfm_kit.run import background

log = structlog.get_logger()

PATH: Final = "/metrics"
FAST_S: Final = (0.005, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0)
"""The bounds of a histogram of calls."""
SLOW_S: Final = (0.1, 0.5, 2.0, 10.0, 60.0, 300.0, 1200.0, 3600.0)
"""The same of work that waits for an infrastructure."""
_OPENMETRICS: Final = "application/openmetrics-text"
_LONGEST_ACCEPT: Final = 1024
MOST: Final = 1000
"""Series of one metric whose labels others choose."""
_LAG_BUCKETS_S: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5)
_LAG_EVERY_S: Final = 0.5
_READ_WITHIN_S: Final = 5.0
"""Half of the time that Prometheus waits by default."""
_MOST_SHARE: Final = 0.05
"""The largest part of the time that a read may take which is not done at each call."""
_PAUSE_S: Final = 10.0
"""From the end of a read that fails or hangs to the next one: two that scrape at once must not wait one after another."""
_CODES: Final = frozenset(map(int, HTTPStatus))
"""With a label of their own."""
M = TypeVar("M", bound=MetricWrapperBase)
Exemplar = dict[str, str] | None
Read = Callable[[], Awaitable[None]]


class Family(Generic[M]):
    """One metric. Its series are found by a dict: the library takes a lock and three times as long."""

    def __init__(self, metric: M) -> None:
        self._metric = metric
        self._found: dict[tuple[str, ...], M] = {}

    def series(self, *labels: str) -> M:
        """Return the series with these values of its labels."""
        series = self._found.get(labels)
        if series is None:
            series = self._found[labels] = self._metric.labels(*labels) if labels else self._metric
        return series

    def forget(self, *labels: str) -> None:
        """Remove a series."""
        if self._found.pop(labels, None) is not None:
            self._metric.remove(*labels)

    def clear(self: Family[Gauge]) -> None:
        """Have a gauge show nothing; 0 without labels."""
        for labels in list(self._found):
            if labels:
                self.forget(*labels)
            else:
                self.series().set(0)

    def show(self: Family[Gauge], values: Mapping[tuple[str, ...], float]) -> None:
        """Have a gauge with labels show these values, at most `MOST` of them, and no others."""
        shown = dict(sorted(values.items())[:MOST]) if len(values) > MOST else values
        for labels in [each for each in self._found if each not in shown]:
            self.forget(*labels)
        for labels, value in shown.items():
            self.series(*labels).set(value)


@dataclass
class _Reading:
    """Work that brings gauges up to date before they are shown."""

    read: Read
    every_s: float
    due_at: float = -math.inf
    has_ended_well: bool = True
    """The last time; False while it is read."""


class Metrics:
    """The registry of one process."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        # When each series began: a third of all series, which Prometheus does not need. A setting of the whole process.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        # Not the default one: tests have many in a process.
        self._registry = CollectorRegistry()
        self._families: dict[str, Any] = {}
        self._readings: list[_Reading] = []
        self._reading = asyncio.Lock()
        self._outage = Outage("metrics")
        ProcessCollector(registry=self._registry)

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Family[Counter]:
        """Return the counter of that name, without ``_total``; services of one process share it."""
        return self._family(name, lambda: Counter(name, text, labels, registry=self._registry))

    def gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Family[Gauge]:
        """Return the gauge of that name; services of one process share it."""
        return self._family(name, lambda: Gauge(name, text, labels, registry=self._registry))

    def histogram(
        self, name: str, text: str, labels: Sequence[str] = (), *, buckets: Sequence[float] = FAST_S
    ) -> Family[Histogram]:
        """Return the histogram of that name; services of one process share it."""
        return self._family(name, lambda: Histogram(name, text, labels, buckets=buckets, registry=self._registry))

    def before_reading(self, read: Read, *, every_s: float = 0.0) -> None:
        """Have gauges brought up to date before they are shown, at most every ``every_s`` seconds.

        A failure, or a read that takes too long, leaves them as they are, for `_PAUSE_S` at least.
        """
        self._readings.append(_Reading(read, every_s))

    @asynccontextmanager
    async def watching(self, version: str) -> AsyncIterator[None]:
        """Measure the event loop, and show the version, while the block lasts."""
        self.gauge("kubevnfm_build_info", "1.", ["version"]).series(version).set(1)
        async with background(event_loop=self._watch_event_loop()):
            yield

    async def text(self, accept: str = "") -> tuple[bytes, str]:
        """Return what Prometheus reads, and its content type: OpenMetrics if the header ``Accept`` has it."""
        generate, content_type = choose_encoder(_format_in(accept))
        # One after another: two may read at the same time, and one would see what the other has just cleared.
        async with self._reading:
            await self._read()
            # In a thread: the series of a thousand regions take most of a second.
            return await asyncio.to_thread(generate, self._registry), content_type

    async def answer(self, request: web.Request) -> web.Response:
        """Answer a request for the metrics."""
        body, content_type = await self.text(request.headers.get(hdrs.ACCEPT, ""))
        return web.Response(body=body, headers={hdrs.CONTENT_TYPE: content_type})

    async def _read(self) -> None:
        now = self._monotonic()
        due = [each for each in self._readings if now >= each.due_at]
        if not due:
            return
        for each in due:
            # Until it has ended well. If one hangs, the calls behind this one do not wait for it again.
            each.due_at = now + max(each.every_s, _READ_WITHIN_S + _PAUSE_S)
            each.has_ended_well = False
        try:
            async with asyncio.timeout(_READ_WITHIN_S):
                await asyncio.gather(*(self._one(each, now) for each in due))
        except TimeoutError:
            self._outage.failed(f"no answer within {_READ_WITHIN_S:g} s")
        # One that has failed is read less often than the others, which say nothing about it.
        if all(each.has_ended_well for each in self._readings):
            self._outage.answered()

    async def _one(self, reading: _Reading, now: float) -> None:
        try:
            await reading.read()
        except VnfmError as error:  # the others are shown all the same
            if not error.is_said:
                self._outage.failed(error)
            return
        except Exception as error:  # the edge: a fault of one gauge must not hide all the others
            if not self._outage.is_on:
                log.exception("metrics_not_read")
            self._outage.failed(error)
            return
        ended = self._monotonic()
        # Counting a large collection takes no more than its share of the time.
        reading.due_at = max(now + reading.every_s, ended + (ended - now) / _MOST_SHARE if reading.every_s else now)
        reading.has_ended_well = True

    async def _watch_event_loop(self) -> NoReturn:
        lag = self.histogram(
            "kubevnfm_event_loop_lag_seconds",
            "How late the event loop resumes a task that sleeps.",
            buckets=_LAG_BUCKETS_S,
        ).series()
        while True:
            begun = time.monotonic()
            await asyncio.sleep(_LAG_EVERY_S)
            lag.observe(max(0.0, time.monotonic() - begun - _LAG_EVERY_S))

    def _family(self, name: str, make: Callable[[], M]) -> Family[M]:
        found: Family[M] | None = self._families.get(name)
        if found is None:
            found = self._families[name] = Family(make())
        return found


def add_metrics(app: web.Application, metrics: Metrics) -> None:
    """Add ``GET /metrics``, open to all who reach the listener."""
    app.router.add_get(PATH, metrics.answer)


def traced(trace_id: str) -> Exemplar:
    """Return the exemplar that leads from a series to a trace; None without one."""
    return {"trace_id": trace_id} if trace_id else None


def code_of(status: int | None) -> str:
    """Return the label of the status of an answer: servers outside choose what they answer. None: there was none."""
    return "none" if status is None else str(int(status)) if status in _CODES else "other"


def _format_in(accept: str) -> str:
    """Return OpenMetrics 1 if the header has OpenMetrics, else nothing: the text format 0.0.4."""
    has_it = any(each.strip().startswith(_OPENMETRICS) for each in accept[:_LONGEST_ACCEPT].split(","))
    return f"{_OPENMETRICS}; version=1.0.0" if has_it else ""
