"""The nearest known name, for messages about a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

_LONGEST: Final = 100
"""Characters of a name that is compared and shown: a comparison takes time with the product of two lengths."""
_MOST: Final = 300
"""Known names that are compared, at up to 0.2 ms each."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like ``name``, case aside; None if none is, or ``name`` is too long to be one."""
    if len(name) > _LONGEST:
        return None
    by_folded = {one.casefold(): one for one in islice(known, _MOST) if len(one) <= _LONGEST}
    found = get_close_matches(name.casefold(), by_folded, n=1)
    return by_folded[found[0]] if found else None


def shown(name: str) -> str:
    """Return the part of a name that messages show: one of a sender may have megabytes."""
    return name[:_LONGEST]
