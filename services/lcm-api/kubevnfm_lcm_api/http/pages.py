"""Which page of a list is asked for: ``limit``, filters, and a marker that names where the page begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web
from kubevnfm_kit.errors import InvalidInput

from kubevnfm_lcm_api.http.markers import MARKER, read_marker
from kubevnfm_lcm_api.http.routes import Parameter

_LIMIT: Final = "limit"
_USUAL: Final = 100
_MOST: Final = 1000
PARAMETERS: Final = (
    Parameter(_LIMIT, f"The largest number of entries of a page: 1 to {_MOST}, {_USUAL} unless given"),
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
    limit = _limit(request.query.get(_LIMIT))
    marker = read_marker(request, request.path, given)
    if marker is None:
        return PageRequest(given, limit or _USUAL, None)
    return PageRequest(marker["q"], limit or marker["limit"], marker["a"])


def words(asked: PageRequest, parameter: Parameter) -> Sequence[str]:
    """Return the values of a repeated parameter, each once. Raises InvalidInput for one that it does not have."""
    given = asked.filters.get(parameter.name)
    found = [] if given is None else list(dict.fromkeys(given.split(",")))
    if parameter.values and not set(found) <= set(parameter.values):
        raise InvalidInput(parameter.name, f"{', '.join(parameter.values)} expected, several by commas")
    return found


def _limit(given: str | None) -> int | None:
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) <= 4 and 1 <= int(given) <= _MOST):
        raise InvalidInput(_LIMIT, f"a number from 1 to {_MOST} expected")
    return int(given)
