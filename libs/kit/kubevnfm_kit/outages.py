"""An outage of something outside is two lines, at its begin and at its end, and not one for each try."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import structlog

from kubevnfm_kit.error_text import bounded
from kubevnfm_kit.errors import VnfmError

log = structlog.get_logger()

_REASON_BYTES = 1024


class Outage:
    """The state of one outside system, as this process knows it: the broker, the database, a VIM, a cluster."""

    def __init__(self, system: str, **facts: object) -> None:
        """``facts``: say which one it is."""
        self._system, self._facts = system, facts
        self._since: float | None = None
        self._last_failed_at = 0.0
        self._tries = 0

    @property
    def is_on(self) -> bool:
        """Whether the last calls have failed."""
        return self._since is not None

    def failed(self, reason: object, *, asked_at: float | None = None) -> None:
        """Note a call without an answer; the first one is said. ``asked_at``: by `time.monotonic`."""
        self._last_failed_at = time.monotonic()
        self._tries += 1
        if self._since is None:
            self._since = self._last_failed_at if asked_at is None else asked_at
            say_outage(self._system, reason, **self._facts)

    def answered(self, *, asked_at: float | None = None) -> None:
        """Note an answer; it ends the outage, unless it is that to a call which was made before another one failed."""
        if self._since is None or (asked_at is not None and asked_at < self._last_failed_at):
            return
        duration_s, tries = time.monotonic() - self._since, self._tries
        self._since, self._tries = None, 0
        say_outage_ended(self._system, duration_s, tries, **self._facts)

    @contextmanager
    def watched(self, *failures: type[Exception]) -> Iterator[None]:
        """Note how a call ends; other errors than these say nothing about the system."""
        asked_at = time.monotonic()
        try:
            yield
        except failures as error:
            self.failed(error, asked_at=asked_at)
            raise
        self.answered(asked_at=asked_at)


def say_outage(system: str, reason: object, **facts: object) -> None:
    """Say that a system does not answer."""
    text = bounded(str(reason), _REASON_BYTES) or type(reason).__name__
    log.warning("outage_began", system=system, reason=text, **facts)


def say_outage_ended(system: str, duration_s: float, tries: int, **facts: object) -> None:
    """Say that a system answers again, after so many failed tries."""
    log.info("outage_ended", system=system, duration_s=round(duration_s, 3), failed_tries=tries, **facts)


class Lines(Protocol):
    """A logger."""

    def info(self, event: str, **facts: object) -> object: ...
    def warning(self, event: str, **facts: object) -> object: ...


class _DebugLines:
    def info(self, event: str, **facts: object) -> None:
        log.debug(event, **facts)

    warning = info


def unless_said(error: VnfmError) -> Lines:
    """Return the logger for a line about the error: with the level ``debug`` if its outage is in the log already."""
    lines: Lines = _DebugLines() if error.is_said else log
    return lines
