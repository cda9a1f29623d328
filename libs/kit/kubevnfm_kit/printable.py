"""Makes texts of other systems safe to print."""

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
    return _CONTROLS.sub("\ufffd", _SEQUENCES.sub("", text))
