"""The sentence of a cause: ours, short, and foreign text in it bounded."""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 300
_SPACE: Final = re.compile(r"[\s\x00-\x1f\x7f]+")


def line(text: str, most: int = LONGEST) -> str:
    """Return the text on one line, cut behind a word at ``most`` characters."""
    # Only what can be shown is read: a text of a megabyte costs no more than a short one.
    flat = _SPACE.sub(" ", text[: most * 4]).strip()
    if len(flat) <= most:
        return flat
    cut = flat[: most - 1]
    head, space, _ = cut.rpartition(" ")
    return (head if space and len(head) > most // 2 else cut).rstrip(" ,;:") + "…"


def sentence(text: str) -> str:
    """Return the text as one sentence: a capital letter, a full stop, at most `LONGEST` characters."""
    flat = line(text, LONGEST - 1)
    if not flat:
        return "No reason was reported."
    ended = flat if flat[-1] in ".!?…" else f"{flat}."
    return ended[0].upper() + ended[1:]
