"""Makes texts of other systems safe to print, and shows in an error which part of it is such a text."""

from __future__ import annotations

import re
from typing import Final

_SEQUENCES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
"""Control sequences of terminals (ECMA-48 5.4, and xterm's for titles): colours, movements of the cursor, titles."""
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Other control characters, and those that reverse the direction of a text; without tab and line feed."""


def printable(text: str) -> str:
    """Return the text without what could change the terminal of its reader.

    Control sequences are removed, as most are decoration. Other control characters become U+FFFD, so that a reader sees that
    there was something.
    """
    if text.isprintable():
        return text
    return _CONTROLS.sub("\ufffd", _SEQUENCES.sub("", text))


def quoted_end(text: str, most: int) -> str:
    """Return the end of a foreign text for an error or a log line of ours: each of its lines begins on a new line with ``| ``.

    A text cannot leave the quotation, because every line end in it is followed by the mark. Secrets are masked before.
    ``most``: bytes as UTF-8, with the marks.
    """
    lines = printable(text).strip().split("\n")
    quotation = "".join(f"\n| {line}" for line in lines)
    cut = quotation.encode()[-most:].decode("utf-8", "ignore")
    return quotation if cut == quotation else _without_first_line(cut)


def quoted_start(text: str, most: int) -> str:
    """Return the beginning of a foreign text, as `quoted_end`."""
    lines = printable(text[:most]).strip().split("\n")
    return "".join(f"\n| {line}" for line in lines).encode()[:most].decode("utf-8", "ignore")


def _without_first_line(cut: str) -> str:
    """Return the rest of a quotation whose first line may have lost its mark."""
    _, end, rest = cut.partition("\n")
    # A single line that is longer than all that is shown has no other line to begin with.
    return end + rest if end else f"\n| {cut[3:]}"
