"""The setup of structlog, once in a process: constant event names, facts as keywords, JSON or console lines."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog
from structlog.typing import EventDict, Processor


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
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
