"""The nearest known name, for messages about a name that is not known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Final

_LONGEST: Final = 100
"""Characters of a name that is compared and shown: a comparison takes time with the product of two lengths."""
_MOST: Final = 2000
"""Known names of which the length is compared."""
_WORK: Final = 200_000
"""The pairs of equal characters in the names that are compared: each takes 0.15 us, so all of them up to 40 ms. Enough for 700 names as
long as those of TOSCA's types."""
_EACH: Final = 4
"""A name of few such pairs costs as much as so many of them for each character."""
_CUTOFF: Final = 0.6
"""That of `get_close_matches`; names whose lengths differ too much do not reach it."""


class Work:
    """How much may be compared; one for all names of a request, which its sender chooses, bounds them together."""

    def __init__(self) -> None:
        self.left = _WORK


def nearest(name: str, known: Iterable[str], work: Work | None = None) -> str | None:
    """Return the known name that is most like ``name``, case aside; None if none is, or ``name`` is too long to be one.

    ``work``: that of several calls together; known names beyond it are not compared.
    """
    if len(name) > _LONGEST:
        return None
    work = work or Work()
    wanted, by_folded = name.casefold(), dict[str, str]()
    counted = Counter(wanted)
    for one in islice(known, _MOST):
        if len(one) > _LONGEST or min(len(one), len(name)) * 2 < _CUTOFF * (len(one) + len(name)):
            continue
        folded = one.casefold()
        work.left -= _EACH * len(one) + sum(counted[character] * times for character, times in Counter(folded).items())
        if work.left < 0:
            break
        by_folded[folded] = one
    found = get_close_matches(wanted, by_folded, n=1, cutoff=_CUTOFF)
    return by_folded[found[0]] if found else None


def no_such(name: str, known: Sequence[str], what: str = "attribute") -> str:
    """Return the reason of a refusal of a name that is not known: with the nearest one, or else with all."""
    meant = nearest(name, known)
    if meant is not None:
        return f"no such {what}: did you mean {meant}?"
    return f"no such {what}: {f'known are {joined}' if (joined := ', '.join(known)) else 'there is none'}"


def shown(name: str) -> str:
    """Return the part of a name that messages show: one of a sender may have megabytes."""
    return name[:_LONGEST]
