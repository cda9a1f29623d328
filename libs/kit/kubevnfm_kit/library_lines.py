"""Lines of libraries (standard ``logging``, ``warnings``, errors that no code has caught) in the form of our own.

asyncio's "exception was never retrieved" is among them.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
import time
from typing import Final

import structlog

from kubevnfm_kit.error_text import bounded
from kubevnfm_kit.printable import printable

log = structlog.get_logger()

_TEXT_BYTES: Final = 2048
_ONCE_IN_S: Final = 10.0
_MOST_KINDS: Final = 256
_NUMBER: Final = re.compile(r"0x[0-9a-f]+|\d+")


class _Lines(logging.Handler):
    """Writes what a library says; the same text with other values at most once in ten seconds."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._last: dict[tuple[str, str], tuple[float, int]] = {}
        """For each logger and text without its values: when it was written last, and how often it was left out since then."""

    def emit(self, record: logging.LogRecord) -> None:
        # Some libraries write values into the text itself, such as asyncio the number and the address of a task.
        kind, now = (record.name, _NUMBER.sub("", str(record.msg)[:200])), time.monotonic()
        at, left_out = self._last.get(kind, (-_ONCE_IN_S, 0))
        if now - at < _ONCE_IN_S:
            self._last[kind] = at, left_out + 1
            return
        if len(self._last) >= _MOST_KINDS:
            self._last.clear()
        self._last[kind] = now, 0
        # A level of the library's own is as severe as the next known one below.
        say = log.error if record.levelno >= logging.ERROR else log.warning
        more = {"left_out": left_out} if left_out else {}
        say("library_said", logger=record.name, text=_text(record), exc_info=record.exc_info, **more)


def hear_libraries() -> None:
    """Write what libraries say from WARNING on, instead of their own handlers."""
    root = logging.getLogger()
    for earlier in [each for each in root.handlers if isinstance(each, _Lines)]:
        root.removeHandler(earlier)
    root.addHandler(_Lines())
    root.setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)
    threading.excepthook = _thread_ended
    sys.unraisablehook = _not_raised


def _text(record: logging.LogRecord) -> str:
    try:
        text = record.getMessage()
    except (TypeError, ValueError, LookupError, AttributeError):  # its values do not fit its text
        text = str(record.msg)
    return printable(bounded(text, _TEXT_BYTES))


def _thread_ended(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None:
        name = ended.thread.name if ended.thread is not None else ""
        log.error("library_said", logger="threading", text=f"thread {name} has ended", exc_info=ended.exc_value)


def _not_raised(error: sys.UnraisableHookArgs) -> None:
    text = error.err_msg or "an exception was ignored"
    log.error("library_said", logger="python", text=text, exc_info=error.exc_value)
