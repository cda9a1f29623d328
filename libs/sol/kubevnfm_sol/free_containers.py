"""Names in free containers of requests (``additionalParams``, ``extra``) that nothing reads: warnings, not errors (api.md 3.3).

SOL003 lets such a container have any name, so an unknown one cannot be refused. It is not carried out either, so it is shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Final

from kubevnfm_kit.nearest import nearest, shown

_MOST: Final = 20
"""Names of one container that are named."""


def unread(given: Iterable[str], known: Collection[str], place: str, readers: str) -> Sequence[str]:
    """Return a warning for each name that is not known, with the nearest known one.

    ``place``: that of the container, with its separator; ``readers``: as "kubevnfm reads no attribute".
    """
    return [_warning(name, known, place, readers) for name in islice(_unknown(given, known), _MOST)]


def _unknown(given: Iterable[str], known: Collection[str]) -> Iterable[str]:
    return (name for name in given if name not in known)


def _warning(name: str, known: Collection[str], place: str, readers: str) -> str:
    near = nearest(name, known)
    hint = f"; the nearest is {near}" if near is not None else ""
    return f"{place}{shown(name)}: not used, since {readers} of this name{hint}"
