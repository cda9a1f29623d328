"""The processes of all services, as this gateway hears of them: each reports every 10 s over the bus.

Nothing is stored: a gateway that has just started knows all within 10 s. A gateway hears its own reports too, so it knows whether
it hears any: without a broker it says that nothing is known, and not that all others are away.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal, get_args

from kubevnfm_bus.port import MessageBus
from kubevnfm_events import Envelope, Message
from kubevnfm_events.contract import services
from kubevnfm_events.queues import SERVICE_STATES
from kubevnfm_events.services import Part, ServiceReported
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.health import Parts, PartState, State

AWAY_AFTER: Final = timedelta(seconds=25)
"""Two reports are missing, and the third is late."""
_FORGOTTEN_AFTER: Final = timedelta(minutes=5)
"""When a process that is away is shown no more, if its service has another one."""
_KNOWN: Final = frozenset(services())
_MOST: Final = 200
"""Processes of one service that are kept."""

ProcessState = Literal["ready", "not-ready", "away", "unknown"]
ServiceState = Literal["ready", "not-ready", "away", "missing", "unknown"]
_PARTS: Final = frozenset[str](get_args(Part))
_PART_STATES: Final[Mapping[ServiceState, tuple[State, str]]] = {
    "not-ready": ("failed", ""),
    "away": ("failed", "None of its processes reports any more."),
    "missing": ("failed", "No process of it has reported since this gateway was started."),
    "unknown": ("unknown", "Nothing is heard: this gateway was just started, or the broker does not answer."),
}
"""Services that are not ready; an empty text: what they lack is the text."""
_BEST_FIRST: Final[Sequence[ProcessState]] = ("ready", "not-ready", "unknown")


@dataclass(frozen=True)
class SeenProcess:
    """A process of a service."""

    report: ServiceReported
    state: ProcessState
    since: datetime
    """Since when it is in this state, and lacks something or nothing: of one that is away, when it reported last."""
    seen_at: datetime
    """When it reported last."""


@dataclass(frozen=True)
class SeenService:
    """A service with its processes."""

    name: str
    state: ServiceState
    since: datetime
    processes: Sequence[SeenProcess]


@dataclass
class _Heard:
    report: ServiceReported
    at: datetime
    since: datetime


@dataclass
class Siblings:
    """The processes that this gateway has heard of."""

    clock: Clock
    own: Callable[[], Awaitable[ServiceReported]]
    """Returns the state of this process, which is known without the bus."""
    _heard: dict[object, _Heard] = field(default_factory=dict)
    """By `_key`, the one that has been silent for the longest time first."""
    _heard_at: datetime | None = None
    """When any report came last."""
    _hears_since: datetime | None = None
    """Since when reports come without a long pause."""
    _began_at: datetime = field(init=False)

    def __post_init__(self) -> None:
        self._began_at = self.clock.now()

    @asynccontextmanager
    async def watching(self, bus: MessageBus) -> AsyncIterator[None]:
        """Hear reports while the block lasts."""
        async with bus.watch_events(SERVICE_STATES, self.hear):
            yield

    async def hear(self, envelope: Envelope[Message]) -> None:
        """Note a report."""
        report, now = envelope.data, self.clock.now()
        if not isinstance(report, ServiceReported) or _KNOWN.isdisjoint(report.services):
            return
        if self._heard_at is None or now - self._heard_at > AWAY_AFTER:
            self._hears_since = now
        self._heard_at = now
        before = self._heard.pop(_key(report), None)
        if report.has_ended:
            return
        since = _since(report, before, now)
        # A process that was started again in its container has the old one's place.
        for key, each in list(self._heard.items()):
            if _place(each.report) == _place(report) and each.report.started_at < report.started_at:
                del self._heard[key]
        # One service with very many processes leaves those of the others.
        same = [key for key, each in self._heard.items() if each.report.services == report.services]
        if len(same) >= _MOST:
            del self._heard[same[0]]
        self._heard[_key(report)] = _Heard(report, now, since)

    async def services(self) -> Sequence[SeenService]:
        """Return each service, with those of its processes that are known."""
        return self._services(await self.own())

    def _services(self, own: ServiceReported) -> Sequence[SeenService]:
        now = self.clock.now()
        before = self._heard.get(_key(own))
        seen = {key: self._judged(each, now) for key, each in self._heard.items() if key != _key(own)}
        seen[_key(own)] = SeenProcess(own, _state(own), _since(own, before, now), now)
        named: dict[str, list[SeenProcess]] = {name: [] for name in sorted(_KNOWN)}
        for each in seen.values():
            for name in each.report.services or ("lcm-api",):
                if name in named:
                    named[name].append(each)
        return [self._service(name, found, now) for name, found in named.items()]

    def beside(self, own: Parts) -> Parts:
        """Return what reads the parts of this process, and then the services that it is not."""

        async def parts() -> Sequence[PartState]:
            # Side by side: a part that hangs is waited for once.
            found, report = await asyncio.gather(own(), self.own())
            here = {*report.services, "lcm-api"}
            return [*found, *(_part(each) for each in self._services(report) if each.name not in here)]

        return parts

    def _hears(self, now: datetime) -> bool:
        """Return whether reports that other processes send are heard, and those that are due have come."""
        if self._heard_at is None or self._hears_since is None:
            return False
        return now - self._heard_at <= AWAY_AFTER and now - self._hears_since > AWAY_AFTER

    def _judged(self, heard: _Heard, now: datetime) -> SeenProcess:
        if now - heard.at <= AWAY_AFTER:
            return SeenProcess(heard.report, _state(heard.report), heard.since, heard.at)
        return SeenProcess(heard.report, "away" if self._hears(now) else "unknown", heard.at, heard.at)

    def _service(self, name: str, processes: Sequence[SeenProcess], now: datetime) -> SeenService:
        shown = sorted(processes, key=lambda each: (each.report.started_at, each.report.process))
        for state in _BEST_FIRST:
            found = [each.since for each in shown if each.state == state]
            if found:
                recent = [each for each in shown if each.state != "away" or now - each.seen_at <= _FORGOTTEN_AFTER]
                return SeenService(name, state, min(found), recent)
        if shown:
            return SeenService(name, "away", max(each.since for each in shown), shown)
        return SeenService(name, "missing" if self._hears(now) else "unknown", self._began_at, [])


def _part(service: SeenService) -> PartState:
    """Return a service as anybody may see it: without its hosts, and without the texts that it reports."""
    lacking = [each for each in service.processes if each.state in {"ready", "not-ready"} and each.report.troubles]
    troubles = {each.part for process in lacking for each in process.report.troubles}
    named = ", ".join(sorted(troubles & _PARTS)) or "a part that this gateway does not know"
    lacks = f"A process of it lacks: {named}." if troubles else ""
    state, text = _PART_STATES.get(service.state, ("degraded" if troubles else "ready", lacks))
    since = min(each.since for each in lacking) if state == "degraded" else service.since
    return PartState(service.name, state, since, text or lacks)


def _since(report: ServiceReported, before: _Heard | None, now: datetime) -> datetime:
    """Return since when a process is in the state that it reports, and lacks something or nothing."""
    if before is None:
        return min(report.started_at, now)  # by its own clock, which may be ahead
    is_same = _state(before.report) == _state(report) and bool(before.report.troubles) == bool(report.troubles)
    return before.since if is_same else now


def _key(report: ServiceReported) -> object:
    """Return the key of a process. With its services: by an id alone one service could report for a process of another."""
    return report.services, report.process


def _place(report: ServiceReported) -> object:
    """Return the place of a process, which one alone can have. In the network of the host each container has its name, and pid 1."""
    return report.host, report.pid, report.services


def _state(report: ServiceReported) -> ProcessState:
    return "not-ready" if any(each.is_blocking for each in report.troubles) else "ready"
