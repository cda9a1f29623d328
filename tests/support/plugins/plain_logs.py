"""A pytest plugin: the log of a failed test, with plain tracebacks.

structlog's default draws them with colours and the source of every frame, which takes a tenth of the time of tests that
inject faults.
"""

from __future__ import annotations

import structlog


def pytest_configure() -> None:
    """Set structlog up for the tests; services set it up for themselves."""
    plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], plain])
