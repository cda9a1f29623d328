"""Names in free containers of requests (``additionalParams``, ``extra``) that nothing reads: warnings, not errors (api.md 3.3).

SOL003 lets such a container have any name, so an unknown one cannot be refused. It is not carried out either, so it is shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from kubevnfm_kit import request_warnings
from kubevnfm_kit.nearest import Work, nearest, shown
from kubevnfm_kit.request_warnings import RequestWarning, pointer

_MOST: Final = 20
"""Names of one container that are named."""
_MOST_COMPARED: Final = 200
"""Names of all containers of a request that are compared with the known ones, each of which takes up to 50 ms."""


@dataclass(frozen=True)
class Container:
    """Names of a request, and those that are known in their place."""

    path: Sequence[str | int]
    names: Iterable[str]
    known: Collection[str]
    field: str | None = None
    """The part of the request that the warnings name; None: each name itself."""


def unread(
    given: Iterable[str], known: Collection[str], path: Sequence[str | int], readers: str, *, separator: str = "/"
) -> Sequence[RequestWarning]:
    """Return a warning for each name that is not known, with the nearest known one.

    ``path``: that of the container in the request; ``readers``: as "kubevnfm reads no attribute"; ``separator``: of the parts of
    the path in the text.
    """
    work = Work()
    found = (_warning(name, known, path, readers, separator, work) for name in _unknown(given, known))
    return list(islice(found, _MOST))


def misspelled(containers: Iterable[Container], readers: str) -> Sequence[RequestWarning]:
    """Return a warning for each name that is not known and is like a known one; others may be for code of the package."""
    work = Work()
    unknown = ((one, name) for one in containers for name in _unknown(one.names, one.known))
    compared = (
        (one, _warning(name, one.known, one.path, readers, "/", work)) for one, name in islice(unknown, _MOST_COMPARED)
    )
    found = (
        each if one.field is None else each.model_copy(update={"field": one.field})
        for one, each in compared
        if each.nearest is not None
    )
    return list(islice(found, _MOST))


def _unknown(given: Iterable[str], known: Collection[str]) -> Iterator[str]:
    return (name for name in given if name not in known)


def _warning(
    name: str, known: Collection[str], path: Sequence[str | int], readers: str, separator: str, work: Work
) -> RequestWarning:
    near = nearest(name, known, work)
    hint = f"; the nearest is {near}" if near is not None else ""
    where = request_warnings.place([*path, shown(name)], separator=separator)
    text = f"{where}: not used, since {readers} of this name{hint}"
    return RequestWarning(text=text, field=pointer([*path, name]), nearest=near)
