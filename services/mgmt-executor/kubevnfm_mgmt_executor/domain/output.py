"""Collects a command's output: whole lines, masked, and of long output the beginning and the end."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import Final

from kubevnfm_kit.printable import printable
from kubevnfm_secrets import Mask

HEAD_CHARS: Final = 64 * 1024
TAIL_CHARS: Final = 192 * 1024
"""The larger part: the reason of a failure is usually at the end."""
LONGEST_LINE: Final = 16 * 1024
"""A longer line is cut into pieces of this size, so that output without line ends cannot fill the memory."""
LONGEST_WAIT: Final = 500
LAST_LINES: Final = 12
LAST_CHARS: Final = 2000
AFTER_FAILURE: Final = "==== what the machine shows after the failure ===="
"""The install script's line behind which it shows what an engineer would look at: the cause stands before it."""
_WAITS: Final = re.compile(r"[a-z_]{1,40}: waits:(?: (.*))?")
"""The install script's line about what it waits for; without a text: it goes on."""


class CollectedOutput:
    """Collects bytes as they arrive. Only whole lines are masked, so a secret that two packets share is found."""

    def __init__(self, mask: Mask, *, on_wait: Callable[[str], None] | None = None) -> None:
        """``on_wait`` gets what the install script waits for, as soon as it says so, and an empty text once it goes on."""
        self._mask, self._on_wait = mask, on_wait
        self._open = b""
        self._head: list[str] = []
        self._head_chars = 0
        self._tail: deque[str] = deque()
        self._tail_chars = 0
        self._dropped = 0

    def add(self, data: bytes) -> None:
        """Add some output."""
        *lines, self._open = (self._open + data).split(b"\n")
        for line in lines:
            self._keep(line)
        while len(self._open) > 2 * LONGEST_LINE:
            # Masked before it is cut: a secret is then within the piece, or whole in the rest once its end arrives.
            masked = self._mask(printable(self._open.decode("utf-8", "replace"))).encode()
            self._keep(masked[:LONGEST_LINE])
            self._open = masked[LONGEST_LINE:]

    def _keep(self, raw: bytes) -> None:
        # Printable first: a control character within a secret would hide it from the mask.
        line = self._mask(printable(raw.decode("utf-8", "replace").rstrip("\r")))
        if self._on_wait is not None and (waits := _WAITS.fullmatch(line)) is not None:
            self._on_wait((waits[1] or "")[:LONGEST_WAIT])
        if self._head_chars < HEAD_CHARS:
            self._head.append(line)
            self._head_chars += len(line) + 1
            return
        self._tail.append(line)
        self._tail_chars += len(line) + 1
        while self._tail_chars > TAIL_CHARS:
            dropped = self._tail.popleft()
            self._tail_chars -= len(dropped) + 1
            self._dropped += len(dropped) + 1

    def text(self) -> str:
        """Return the collected output, with one line in place of the part that was left out."""
        if self._open:
            self._keep(self._open)
            self._open = b""
        middle = [f"[{self._dropped} characters left out]"] if self._dropped else []
        return "\n".join([*self._head, *middle, *self._tail])

    def end(self, limit_bytes: int) -> str:
        """Return the end of the output, at most so many bytes as UTF-8, without empty lines at its end."""
        return self.text().rstrip().encode()[-limit_bytes:].decode("utf-8", "ignore")

    def last_lines(self) -> str:
        """Return the last non-empty lines, whole ones if one fits, for an error; none of those that a script shows after its failure."""
        lines = [line for line in self.text().partition(AFTER_FAILURE)[0].splitlines() if line.strip()]
        last = "\n".join(lines[-LAST_LINES:])
        if len(last) <= LAST_CHARS:
            return last
        cut, _, whole = last[-LAST_CHARS:].partition("\n")
        return whole or cut
