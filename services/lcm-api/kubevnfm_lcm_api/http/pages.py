"""Which page of a list is asked for: ``limit``, filters, and a marker that names where the page begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web
from kubevnfm_kit.errors import InvalidInput

from kubevnfm_lcm_api.http.markers import MARKER, read_marker
from kubevnfm_lcm_api.http.routes import Parameter

LIMIT: Final = "limit"
_USUAL: Final = 100
_MOST: Final = 1000
PARAMETERS: Final = (
    Parameter(LIMIT, f"The largest number of entries of a page: 1 to {_MOST}, {_USUAL} unless given"),
    MARKER,
)


@dataclass(frozen=True)
class PageRequest:
    """Which part of a list is asked for."""

    filters: Mapping[str, str]
    """By name; the values of one that is given several times are joined by commas."""
    limit: int
    after: Any
    """Where the page begins, as the list has said it with the page before; None: the first page."""


def read_page(request: web.Request, filters: Sequence[Parameter]) -> PageRequest:
    """Return what a list request asks for. Raises InvalidInput naming the parameter."""
    given = {one.name: ",".join(request.query.getall(one.name)) for one in filters if one.name in request.query}
    for one in filters:
        if one.values and not one.is_repeated and one.name in given and given[one.name] not in one.values:
            raise InvalidInput(one.name, f"{', '.join(one.values)} expected")
    limit = read_limit(request, most=_MOST)
    marker = read_marker(request, request.path, given)
    if marker is None:
        return PageRequest(given, limit or _USUAL, None)
    return PageRequest(marker["q"], limit or marker["limit"], marker["a"])


def words(given: Iterable[str], parameter: Parameter) -> Sequence[str]:
    """Return the values of a repeated parameter, each once, also those joined by commas. Raises InvalidInput for one that it does not have."""
    found = list(dict.fromkeys(word for each in given for word in each.split(",")))
    if parameter.values and not set(found) <= set(parameter.values):
        raise InvalidInput(parameter.name, f"{', '.join(parameter.values)} expected, several by commas")
    return found


def read_limit(request: web.Request, *, most: int) -> int | None:
    """Return the parameter ``limit``; None if it is not given. ``most`` has up to four digits. Raises InvalidInput."""
    given = request.query.get(LIMIT)
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) <= 4 and 1 <= int(given) <= most):
        raise InvalidInput(LIMIT, f"a number from 1 to {most} expected")
    return int(given)
