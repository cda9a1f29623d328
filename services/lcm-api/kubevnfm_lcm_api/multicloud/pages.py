"""Pages of lists of other services (multicloud.md MC-007): ``limit``, and a marker that names where the next page begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from aiohttp import web
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.http.markers import MARKER, next_page, read_marker
from kubevnfm_lcm_api.http.routes import Parameter

T = TypeVar("T")

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

    filters: dict[str, str]
    limit: int
    after: str | None


def read_page(request: web.Request, filters: Sequence[Parameter]) -> PageRequest:
    """Return what a list request asks for. Raises InvalidInput naming the parameter."""
    given = {one.name: request.query[one.name] for one in filters if one.name in request.query}
    for one in filters:
        if one.values and one.name in given and given[one.name] not in one.values:
            raise InvalidInput(one.name, f"{', '.join(one.values)} expected")
    limit = _limit(request.query.get(_LIMIT))
    marker = read_marker(request, request.path, given)
    if marker is None:
        return PageRequest(given, limit or _USUAL, None)
    return PageRequest(marker["q"], limit or marker["limit"], marker["a"])


def page_answer(
    request: web.Request, asked: PageRequest, page: Page[T], shown: Callable[[T], JsonObject]
) -> web.Response:
    """Return a page; its Link header has the next one."""
    headers = {}
    if page.next_after is not None:
        headers = next_page(request, request.path, asked.filters, page.next_after, limit=asked.limit)
    return web.json_response([shown(item) for item in page.items], headers=headers)


def _limit(given: str | None) -> int | None:
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) <= 4 and 1 <= int(given) <= _MOST):
        raise InvalidInput(_LIMIT, f"a number from 1 to {_MOST} expected")
    return int(given)
