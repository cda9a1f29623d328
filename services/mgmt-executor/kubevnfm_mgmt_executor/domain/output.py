"""Collects a command's output: whole lines, masked, with a cap that keeps beginning and end."""

from __future__ import annotations

from collections import deque
from typing import Final

from kubevnfm_mgmt_executor.domain.masking import Mask

HEAD_CHARS: Final = 64 * 1024
TAIL_CHARS: Final = 192 * 1024
"""The end says why it failed, so it gets more."""
LONGEST_LINE: Final = 16 * 1024
"""A longer one is cut in pieces of this size, so that output without line ends needs no memory."""
LAST_LINES: Final = 12


class CollectedOutput:
    """Takes bytes as they come; a secret that is cut by a packet's edge is still masked, for lines are whole."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._open = b""
        self._head: list[str] = []
        self._head_chars = 0
        self._tail: deque[str] = deque()
        self._tail_chars = 0
        self._dropped = 0

    def add(self, data: bytes) -> None:
        """Take some output."""
        *lines, self._open = (self._open + data).split(b"\n")
        for line in lines:
            self._keep(line)
        while len(self._open) > 2 * LONGEST_LINE:
            # masked before it is cut: a secret is within the piece, or whole in the rest when its end has come
            masked = self._mask(self._open.decode("utf-8", "replace")).encode()
            self._keep(masked[:LONGEST_LINE])
            self._open = masked[LONGEST_LINE:]

    def _keep(self, raw: bytes) -> None:
        line = self._mask(raw.decode("utf-8", "replace").rstrip("\r"))
        if self._head_chars < HEAD_CHARS:
            self._head.append(line)
            self._head_chars += len(line) + 1
            return
        self._tail.append(line)
        self._tail_chars += len(line) + 1
        while self._tail_chars > TAIL_CHARS:
            gone = self._tail.popleft()
            self._tail_chars -= len(gone) + 1
            self._dropped += len(gone) + 1

    def text(self) -> str:
        """Return all that was kept, a line in place of what was left out."""
        if self._open:
            self._keep(self._open)
            self._open = b""
        middle = [f"[{self._dropped} characters left out]"] if self._dropped else []
        return "\n".join([*self._head, *middle, *self._tail])

    def last_lines(self) -> str:
        """Return the last non-empty lines, for an error."""
        lines = [line for line in self.text().splitlines() if line.strip()]
        return "\n".join(lines[-LAST_LINES:])[-2000:]
