"""The setup of structlog, once in a process: constant event names, facts as keywords, JSON or console lines (docs/logging.md)."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Final, Literal, TextIO, cast

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from kubevnfm_kit.error_text import bounded, without_logins
from kubevnfm_kit.library_lines import hear_libraries
from kubevnfm_kit.log_output import LogOutput

FACT_BYTES: Final = 16 * 1024
"""Longest text of one fact of a log line, tracebacks among them."""

LogForm = Literal["json", "console"]

log = structlog.get_logger()


class _Level:
    """The least severe level that is logged. structlog keeps each logger as it was at its first line, so a processor compares."""

    def __init__(self) -> None:
        self.set("INFO")

    def set(self, name: str) -> None:
        self.configured = self.number = logging.getLevelNamesMapping()[name.upper()]

    def check(self, _: WrappedLogger, method: str, event: EventDict) -> EventDict:
        if _NUMBERS[method] < self.number:
            raise structlog.DropEvent
        return event


_NUMBERS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "exception": logging.ERROR,
    "critical": logging.CRITICAL,
}
_LEVEL: Final = _Level()


def configure_logging(service: str, *, level: str = "INFO", form: LogForm = "json") -> None:
    """Send every log line of this process to stderr, with ``service`` bound; logs of libraries below WARNING are dropped."""

    def add_service(_: object, __: str, event: EventDict) -> EventDict:
        event.setdefault("service", service)
        return event

    def rendered(event: EventDict) -> str:
        line = render(None, "", event)
        assert isinstance(line, str)
        return line

    def say_dropped(lines: int) -> str:
        # Not by a logger: its line would wait for the room that is being made.
        event = {"event": "log_lines_dropped", "lines": lines, "level": "warning"}
        return rendered(add_time(None, "", add_service(None, "", event))) + "\n"

    render: Processor = (
        structlog.processors.JSONRenderer(default=str)
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=False)
    )
    add_time = structlog.processors.TimeStamper(fmt="iso", utc=True)
    _LEVEL.set(level)
    structlog.configure(
        processors=[
            _LEVEL.check,
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            add_service,
            add_time,
            structlog.processors.format_exc_info,
            _bound_facts,
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=structlog.WriteLoggerFactory(file=_output(say_dropped)),
        cache_logger_on_first_use=True,
    )
    hear_libraries()


def switch_debug() -> None:
    """Log debug lines from now on, or no longer: SIGUSR1 calls it (`run_until_signal`)."""
    is_debug = _LEVEL.number == logging.DEBUG
    # A process whose level is DEBUG from the start goes to INFO.
    usual = _LEVEL.configured if _LEVEL.configured != logging.DEBUG else logging.INFO
    _LEVEL.number = usual if is_debug else logging.DEBUG
    log.warning("log_level_changed", to=logging.getLevelName(_LEVEL.number))


def _output(say_dropped: Callable[[int], str]) -> TextIO:
    try:
        descriptor = sys.stderr.fileno()
    except (OSError, ValueError):  # a test has replaced it
        return sys.stderr
    return cast("TextIO", LogOutput(descriptor, say_dropped=say_dropped))  # it has the methods that are called


def _bound_facts(_: object, __: str, event: EventDict) -> EventDict:
    """Cut long texts and mask logins: a fact, or the traceback of an error, may quote what foreign code or another system has said."""
    for name, fact in event.items():
        if isinstance(fact, str):
            event[name] = bounded(_masked(fact), FACT_BYTES)
        elif not isinstance(fact, int | float | None) and len(text := str(fact)) > FACT_BYTES:
            event[name] = bounded(_masked(text), FACT_BYTES)
    return event


def _masked(text: str) -> str:
    # More than is shown of it, as a part of a login would not be found.
    return without_logins(text[: 2 * FACT_BYTES]) if "://" in text else text
