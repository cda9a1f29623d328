"""Standard output and a terminal there: what it can show, and text that does it no harm."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Mapping
from typing import Final, TextIO

CELL: Final = 200
"""Characters of one foreign text in a line."""
LINE: Final = 4000
_HARMFUL: Final = "\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff"
"""Controls of terminals (C0, DEL, C1), what changes the direction of text, what is not visible, and surrogates."""
_CONTROLS: Final = re.compile(f"[{_HARMFUL}]")
_CONTROLS_OF_TEXT: Final = re.compile(f"(?![\n\t])[{_HARMFUL}]")
_OWN: Final = re.compile(f"\x1b\\[[0-9;]{{0,16}}m|((?![\n\t])[{_HARMFUL}])")
"""Colours, and control characters of any other kind."""
_CODES: Final = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "bold": "1", "dim": "2"}
_PAGER: Final = "less"


def _escaped(found: re.Match[str]) -> str:
    code = ord(found.group())
    return {9: "\\t", 10: "\\n", 13: "\\r"}.get(code) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


def printable(text: object, limit: int = CELL) -> str:
    """Return a foreign text as one line without control characters, of at most ``limit`` characters."""
    plain = str(text)
    if len(plain) > limit:
        plain = f"{plain[: limit - 1]}…"
    return _CONTROLS.sub(_escaped, plain)


def printable_text(text: str) -> str:
    """Return a text whose line ends and tabs stay, and whose other control characters are escaped."""
    return _CONTROLS_OF_TEXT.sub(_escaped, text)


def is_harmless(text: str) -> bool:
    """Return whether a text with line ends has no other character that can control a terminal."""
    return _CONTROLS_OF_TEXT.search(text) is None


def printable_json(text: str) -> str:
    """Return JSON of the same meaning, in which no character can control a terminal."""
    return _CONTROLS_OF_TEXT.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def width_of(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text
    )


def cut(text: str, width: int) -> str:
    """Return a text that takes at most so many columns; its end gives way to a mark."""
    if width_of(text) <= width:
        return text
    kept, used = [], 1
    for one in text:
        used += width_of(one)
        if used > width:
            break
        kept.append(one)
    return f"{''.join(kept)}…"


class Screen:
    """A stream to write to, with colours where they are wanted."""

    def __init__(self, stream: TextIO, environment: Mapping[str, str], *, no_color: bool = False) -> None:
        self.stream = stream
        self.is_terminal = stream.isatty()
        self.can_redraw = self.is_terminal and environment.get("TERM") != "dumb"
        """Whether what was written can be written over."""
        self._environment = environment
        self.has_colours = not no_color and _has_colours(self.is_terminal, environment)

    @property
    def columns(self) -> int:
        """The width, 80 if it is not a terminal."""
        return self._size()[0]

    @property
    def lines(self) -> int:
        """The height."""
        return self._size()[1]

    def _size(self) -> tuple[int, int]:
        try:
            size = os.get_terminal_size(self.stream.fileno())
        except (OSError, ValueError):
            return 80, 24
        return size.columns or 80, size.lines or 24

    def paint(self, text: str, colour: str | None) -> str:
        """Return the text in a colour, if there are colours."""
        if not colour or not self.has_colours:
            return text
        return f"\x1b[{_CODES[colour]}m{text}\x1b[0m"

    def say(self, line: str) -> None:
        """Write a line at once."""
        self.stream.write(f"{self._safe(line)}\n")
        self.stream.flush()

    def _safe(self, text: str) -> str:
        """Return a text for this stream: whatever a verb has forgotten to escape, a terminal gets colours alone."""
        if not self.is_terminal:
            return text
        return _OWN.sub(lambda found: found.group() if found.group(1) is None else _escaped(found), text)

    def page(self, text: str, *, no_pager: bool = False) -> None:
        """Write a whole text, by a pager if it is longer than the terminal."""
        pager = self._environment.get("PAGER", _PAGER)
        text = self._safe(text)
        if no_pager or not self.is_terminal or not pager or text.count("\n") < self.lines:
            self.stream.write(text)
            self.stream.flush()
            return
        import shlex
        import signal
        import subprocess

        environment = {"LESS": "FRX", "LESSSECURE": "1", **self._environment}
        # Ctrl-C is for the pager: if it were killed here, the terminal would stay as it has set it.
        before = signal.signal(signal.SIGINT, lambda *_: None)
        try:
            subprocess.run(shlex.split(pager), input=text.encode(), env=environment, check=False)  # noqa: S603
        except (OSError, ValueError):  # no such program, or quotes without an end
            self.stream.write(text)
            self.stream.flush()
        finally:
            signal.signal(signal.SIGINT, before)


def _has_colours(is_terminal: bool, environment: Mapping[str, str]) -> bool:
    if environment.get("NO_COLOR"):
        return False
    if environment.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return is_terminal and environment.get("TERM") != "dumb"


def end_quietly() -> None:
    """Let the end of the process write nothing more to readers that went away, or to a disk that is full."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
