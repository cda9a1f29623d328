"""The parts of a process that are not ready, for its readiness and its reports: one look at each every 2 s, for all who ask.

A part that hangs is waited for once, so no answer is late because of it: it is not ready once a look takes 2 s.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog
from kubevnfm_events.services import Trouble
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.health import PartState, State
from kubevnfm_kit.run import background

log = structlog.get_logger()

_LOOK_EVERY_S: Final = 2.0
_FRESH_S: Final = 3.0
"""How old a look may be that an answer is made from: the next one is late, or none is made in the background."""
HANGS_S: Final = 2.0
"""How long a look may take."""
_WAIT_S: Final = 0.5
"""How long an answer waits for looks under way."""
_LONGEST: Final = 512


@dataclass(frozen=True)
class Lack:
    """A reason why a part is not ready."""

    text: str
    """For those who may see the services."""
    shown: str = ""
    """For anybody: without names of files and hosts; the text unless given."""
    is_blocking: bool = False
    """Whether nothing that needs the part is done."""
    is_vital: bool = False
    """Whether the process can answer no request."""
    of: str = ""
    """Which of several things of one part it is about; the same as long as it lasts."""
    ends_at: datetime | None = None
    """When that ends."""


@dataclass(frozen=True)
class Part:
    """A part that a process needs."""

    name: str
    look: Callable[[], Awaitable[Sequence[Lack]]]
    """Returns what it lacks; may hang."""
    silent: Callable[[], Lack]
    """Returns what it lacks while a look hangs."""


class _Watched:
    """A part, and what is known of it."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.look: asyncio.Task[Sequence[Lack]] | None = None
        self.began = -math.inf
        self.has_ended = False
        self.has_failed = False
        self.lacks: Sequence[Lack] = ()
        self.state: State | None = None
        self.since: datetime | None = None

    def begin(self, now: float) -> None:
        self.began = now
        self.look = asyncio.create_task(self._looked(), name=f"look-at-{self.part.name}")

    def hangs_at(self) -> float | None:
        """Return when the look that is under way hangs; None: there is none."""
        return None if self.look is None or self.look.done() else self.began + HANGS_S

    async def _looked(self) -> Sequence[Lack]:
        try:
            self.lacks = await self.part.look()
            self.has_failed = False
        except Exception:  # the edge: a part whose look fails, by whatever, is as silent as one whose look hangs
            if not self.has_failed:  # a line when it begins, not one every 2 s
                log.exception("look_failed", part=self.part.name)
            self.lacks, self.has_failed = (self.part.silent(),), True
        self.has_ended = True
        return self.lacks

    def judge(self, now: float, at: datetime) -> bool:
        """Note what is known now; return whether the state has changed."""
        hangs_at = self.hangs_at()
        if hangs_at is not None and now >= hangs_at:
            self.lacks, self.has_ended = (self.part.silent(),), True
        before = self.state
        if not self.has_ended:
            self.state = "unknown"
        elif not self.lacks:
            self.state = "ready"
        else:
            self.state = "failed" if any(each.is_blocking for each in self.lacks) else "degraded"
        if self.state != before:
            self.since = at
        return before not in (None, self.state)

    def shown(self) -> PartState:
        assert self.state is not None
        assert self.since is not None
        is_vital = any(each.is_vital for each in self.lacks) if self.has_ended else self.part.silent().is_vital
        text = " ".join(dict.fromkeys(each.shown or each.text for each in self.lacks))
        return PartState(self.part.name, self.state, self.since, text, is_vital)

    def troubles(self) -> Sequence[Trouble]:
        return [
            Trouble(
                part=self.part.name,
                text=each.text[:_LONGEST],
                is_blocking=each.is_blocking,
                since=self.since,
                of=each.of,
                ends_at=each.ends_at,
            )
            for each in self.lacks
        ]


class Health:
    """The parts of one process."""

    def __init__(self, clock: Clock, parts: Sequence[Part]) -> None:
        self._clock = clock
        self._watched = [_Watched(each) for each in parts]
        self.changed = asyncio.Event()
        """Set when the state of a part has changed."""

    async def parts(self) -> Sequence[PartState]:
        """Return each part; within half a second, although one hangs."""
        await self._know(_FRESH_S)
        return [each.shown() for each in self._watched]

    async def troubles(self) -> Sequence[Trouble]:
        """Return what the process lacks; as soon as `parts`."""
        await self._know(_FRESH_S)
        return [trouble for each in self._watched for trouble in each.troubles()]

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Look at the parts while the block lasts."""
        try:
            async with background(health=self._watch()):
                yield
        finally:
            looks = [each.look for each in self._watched if each.look is not None]
            for look in looks:
                look.cancel()
            await asyncio.gather(*looks, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            await self._know(0.0)
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _know(self, fresh_s: float) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for each in self._watched:
            if each.hangs_at() is None and now - each.began >= fresh_s:
                each.begin(now)
        # One that hangs already is not waited for again.
        ends = [end for each in self._watched if (end := each.hangs_at()) is not None and end > now]
        running = [each.look for each in self._watched if each.look is not None and each.began + HANGS_S > now]
        if running and ends:
            await asyncio.wait(running, timeout=min(_WAIT_S, max(ends) - now))
        now, at = loop.time(), self._clock.now()
        for each in self._watched:
            if each.judge(now, at):
                self.changed.set()
