"""The setup of structlog, once in a process: constant event names, facts as keywords, JSON or console lines."""

from __future__ import annotations

import logging
import sys
from typing import Final, Literal

import structlog
from structlog.typing import EventDict, Processor

from kubevnfm_kit.error_text import bounded

FACT_BYTES: Final = 16 * 1024
"""Longest text of one fact of a log line, tracebacks among them."""


def configure_logging(service: str, *, level: str = "INFO", form: Literal["json", "console"] = "json") -> None:
    """Send every log line of this process to stderr, with ``service`` bound; logs of libraries below WARNING are dropped."""

    def add_service(_: object, __: str, event: EventDict) -> EventDict:
        event.setdefault("service", service)
        return event

    render: Processor = (
        structlog.processors.JSONRenderer(default=str)
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=False)
    )
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s %(message)s")
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            add_service,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _bound_facts,
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )


def _bound_facts(_: object, __: str, event: EventDict) -> EventDict:
    """Cut long texts: a fact may quote what foreign code or another system has said."""
    for name, fact in event.items():
        if isinstance(fact, str):
            event[name] = bounded(fact, FACT_BYTES)
        elif not isinstance(fact, int | float | None) and len(text := str(fact)) > FACT_BYTES:
            event[name] = bounded(text, FACT_BYTES)
    return event
