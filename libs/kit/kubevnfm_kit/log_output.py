"""Writes log lines to a file descriptor without waiting for a slow reader.

A plain write into a pipe that is not read stops the event loop, and with it each request and the renewal of each lease, as soon as
65,536 bytes are in it. A line is therefore written at once only if the kernel takes it at once; otherwise a thread writes it. At most `MOST_BYTES` wait
for that thread, and one line says how many were dropped.
"""

from __future__ import annotations

import atexit
import os
import select
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

MOST_BYTES: Final = 1024 * 1024
_PIECE: Final = 4096
"""A pipe that is ready takes so many bytes (PIPE_BUF) without waiting."""
_AT_END_S: Final = 2.0


class LogOutput:
    """One descriptor; has the methods of a file that structlog uses. Lines keep their order."""

    def __init__(self, descriptor: int, *, say_dropped: Callable[[int], str]) -> None:
        """``say_dropped``: returns the line about so many lines that were dropped."""
        self._descriptor, self._say_dropped = descriptor, say_dropped
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._dropped = 0
        self._is_draining = False
        self._is_awaited_at_end = False

    def write(self, text: str) -> None:
        """Write, now or as soon as the reader takes it."""
        raw = text.encode(errors="backslashreplace")
        with self._changed:
            if not self._is_draining:
                raw = self._written_at_once(raw)
            if not raw:
                return
            # The rest of a line that was begun is never dropped: the next one would be glued to it.
            if self._is_draining and self._waiting_bytes + len(raw) > MOST_BYTES:
                self._dropped += 1
                return
            self._waiting.append(raw)
            self._waiting_bytes += len(raw)
            if not self._is_draining:
                self._is_draining = True
                threading.Thread(target=self._drain, name="log-output", daemon=True).start()
                if not self._is_awaited_at_end:
                    self._is_awaited_at_end = True
                    atexit.register(self._end)

    def flush(self) -> None:
        """Do nothing: nothing is kept that could be written."""

    def _written_at_once(self, raw: bytes) -> bytes:
        """Write as much as the kernel takes without waiting; return the rest."""
        while raw and self._poll.poll(0):
            try:
                raw = raw[os.write(self._descriptor, raw[:_PIECE]) :]
            except BlockingIOError:
                break
            except OSError:  # the reader has ended: there is no place to say so
                return b""
        return raw

    def _drain(self) -> None:
        while True:
            with self._changed:
                counted = 0
                if not self._waiting and self._dropped:
                    line = self._say_dropped(self._dropped).encode()
                    self._dropped = 0
                elif not self._waiting:
                    self._is_draining = False
                    self._changed.notify_all()
                    return
                else:
                    line = self._waiting.popleft()
                    counted = len(line)
            while line:
                self._poll.poll()
                line = self._written_at_once(line)
            with self._changed:
                self._waiting_bytes -= counted

    def _end(self) -> None:
        """Wait for a short time for what is not written yet."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_draining, timeout=_AT_END_S)
