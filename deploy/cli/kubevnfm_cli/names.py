"""The nearest known name, for messages about a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_LONGEST: Final = 100
"""Characters of a name that is compared: a comparison takes time with the product of two lengths."""
_MOST: Final = 300


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like ``name``, case aside; None if none is."""
    if len(name) > _LONGEST:
        return None
    from difflib import get_close_matches
    from itertools import islice

    by_folded = {one.casefold(): one for one in islice(known, _MOST) if len(one) <= _LONGEST}
    found = get_close_matches(name.casefold(), by_folded, n=1)
    return by_folded[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about a name that is not known: the nearest one, or all if they are few."""
    names = sorted(known)
    near = nearest(name, names)
    if near is not None:
        return f"; did you mean {near}?"
    return f"; there are {', '.join(names)}" if 0 < len(names) <= 8 else ""
