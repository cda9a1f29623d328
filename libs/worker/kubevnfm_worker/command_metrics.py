"""Counts the commands that a worker handles, and those that it has in hand."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final, Literal

from kubevnfm_bus.port import Ack, Again, Dead, Verdict
from kubevnfm_events import CommandFailed, Envelope, Event, Message
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.metrics import SLOW_S, Metrics

from kubevnfm_worker.failure import CANCELLED, TIMED_OUT

_FORGET_S: Final = 60.0
"""So long after its time a command that rests has not come back here: another process has it."""
_OUTCOMES: Final = {TIMED_OUT: "timed_out", CANCELLED: "cancelled"}
"""By the code of the failure."""


class CommandMetrics:
    """The commands of one service in this process."""

    def __init__(self, metrics: Metrics, service: str, clock: Clock) -> None:
        self._service, self._clock = service, clock
        of_type = ["service", "type"]
        self._ended = metrics.counter("kubevnfm_commands", "Commands by their outcome.", ["service", "type", "outcome"])
        self._again = metrics.counter(
            "kubevnfm_command_repeats", "Tries without an outcome, by the reason.", ["service", "type", "reason"]
        )
        self._seconds = metrics.histogram("kubevnfm_command_seconds", "Time of a try.", of_type, buckets=SLOW_S)
        self._delay = metrics.histogram(
            "kubevnfm_command_start_seconds", "From the sending of a command to its first try.", of_type
        )
        self._running = metrics.gauge("kubevnfm_commands_running", "Commands being handled.", ["service"]).series(
            service
        )
        self._in_hand = metrics.gauge("kubevnfm_inbox_commands", "Commands without an outcome.", ["service"]).series(
            service
        )
        self._oldest = metrics.gauge("kubevnfm_inbox_oldest_seconds", "Age of the oldest of them.", ["service"])
        self._parked = metrics.gauge("kubevnfm_commands_parked", "Commands parked within a day.", ["service"])
        self._taken_over = metrics.counter("kubevnfm_lease_takeovers", "Commands of workers that ended.", ["service"])
        # Shown from the beginning: a counter that begins with its first event has no increase.
        self._taken_over.series(service)
        self.parked(0)
        self._handled: dict[str, datetime] = {}
        """When each command was sent that is handled now, by its id."""
        self._resting: dict[str, tuple[datetime, float]] = {}
        """The commands that come again: when each was sent, and when another process must have it."""
        metrics.before_reading(self._read)

    @contextmanager
    def handling(self, command: Envelope[Message]) -> Iterator[None]:
        """Count a command that is handled in the block."""
        self._resting.pop(command.id, None)
        self._handled[command.id] = command.time
        self._running.inc()
        begun = time.monotonic()
        try:
            yield
        finally:
            self._seconds.series(self._service, command.type).observe(time.monotonic() - begun)
            self._running.dec()
            self._handled.pop(command.id, None)

    def first_try(self, command: Envelope[Message]) -> None:
        """Measure how long a command has waited for a worker."""
        waited_s = (self._clock.now() - command.time).total_seconds()
        self._delay.series(self._service, command.type).observe(max(0.0, waited_s))

    def ended(self, command: Envelope[Message], event: Event, verdict: Verdict, *, is_parked: bool) -> None:
        """Count an outcome."""
        if not isinstance(event, CommandFailed):
            outcome = "done"
        elif is_parked:
            outcome = "parked"
        elif isinstance(verdict, Dead):
            outcome = "broken"
        else:
            outcome = _OUTCOMES.get(event.code, "failed")
        self._ended.series(self._service, command.type, outcome).inc()

    def again(self, command: Envelope[Message], reason: Literal["error", "wait"], in_s: float) -> None:
        """Count a try that has no outcome."""
        self._again.series(self._service, command.type, reason).inc()
        self._resting[command.id] = command.time, self._now_s() + in_s + _FORGET_S

    def direct(self, command: Envelope[Message], verdict: Verdict) -> None:
        """Count a try of a command without an inbox."""
        match verdict:
            case Ack():
                self._ended.series(self._service, command.type, "done").inc()
            case Dead():
                self._ended.series(self._service, command.type, "broken").inc()
            case Again(in_s=in_s):
                self.again(command, "wait", in_s)

    def taken_over(self) -> None:
        """Count a command whose worker has ended, or has lost its lease."""
        self._taken_over.series(self._service).inc()

    def parked(self, count: int) -> None:
        """Show how many commands are parked."""
        self._parked.series(self._service).set(count)

    async def _read(self) -> None:
        now = self._now_s()
        for gone in [each for each, (_, until) in self._resting.items() if until < now]:
            del self._resting[gone]
        sent = [*self._handled.values(), *(at for at, _ in self._resting.values())]
        self._in_hand.set(len(sent))
        age_s = (self._clock.now() - min(sent)).total_seconds() if sent else 0.0
        self._oldest.series(self._service).set(max(0.0, age_s))

    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()
