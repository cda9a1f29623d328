"""Lists: SOL013 filter, selectors and paging as one query; the database filters, sorts and pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from inspect import isawaitable
from typing import Final

from aiohttp import web
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_store.query import AllOf, Filter, Query, Sort

from kubevnfm_lcm_api.http.context import context
from kubevnfm_lcm_api.http.markers import MARKER, next_page, read_marker
from kubevnfm_lcm_api.http.routes import Parameter
from kubevnfm_lcm_api.http.sol013.filters import parse_filter
from kubevnfm_lcm_api.http.sol013.selectors import Selectors, project, read_selectors
from kubevnfm_lcm_api.http.sol013.shapes import Shape

EVERYTHING: Final = AllOf()
View = Callable[[JsonMapping], JsonObject | Awaitable[JsonObject]]

_FILTER_AND_SELECTORS: Final = (
    Parameter("filter", "SOL013 5.2: (op,path,value), joined by semicolons"),
    Parameter("all_fields", "Everything", is_flag=True),
    Parameter("fields", "Names of attributes to show, by commas; simple and required ones are always shown"),
    Parameter("exclude_fields", "Names of attributes to leave out, by commas"),
    Parameter("exclude-fields", "The same, as existing clients spell it"),
    Parameter("exclude_default", "Without what is left out unless asked", is_flag=True),
)
PARAMETERS: Final = (
    *_FILTER_AND_SELECTORS,
    MARKER,
    Parameter("all_records", "Everything in one answer", values=("yes",)),
)
_ALL_RECORDS: Final = 10_000
"""The most that ``all_records`` returns in one answer (api.md 5.3: bounded)."""


@dataclass(frozen=True)
class Listed:
    """A kind of resource that can be listed."""

    name: str
    shape: Shape
    sort: str
    public: Filter = EVERYTHING
    """The documents that are public at all."""
    hidden: tuple[str, ...] = ("internal",)
    """Attributes of the documents that are not read."""


async def list_page(request: web.Request, collection: str, listed: Listed, view: View) -> web.Response:
    """Answer a list request with one page; the ``Link`` header has the next one (SOL013 5.4)."""
    raw, after = _asked(request, listed)
    limit = _limit(request)
    query, selectors = _page(listed, raw, after, limit)
    found = list(await context(request).store.find(collection, query))
    more = len(found) > limit
    answers = []
    for stored in found[:limit]:
        shown = view(stored.body)
        answers.append(project(await shown if isawaitable(shown) else shown, listed.shape, selectors))
    headers = {}
    if more:
        last = found[limit - 1]
        headers = next_page(request, listed.name, raw, (last.body[listed.sort], last.id))
    return web.json_response(answers, headers=headers)


def _limit(request: web.Request) -> int:
    asked = request.query.get("all_records")
    if asked not in {None, "yes"}:
        raise InvalidInput("all_records", "yes expected")
    return context(request).page_size if asked is None else _ALL_RECORDS


def _asked(request: web.Request, listed: Listed) -> tuple[dict[str, str], tuple[str, str] | None]:
    """Return filter and selectors as given or from the marker, and the position at which the page starts."""
    given = {one.name: request.query[one.name] for one in _FILTER_AND_SELECTORS if one.name in request.query}
    marker = read_marker(request, listed.name, given)
    return (given, None) if marker is None else (marker["q"], (marker["a"][0], marker["a"][1]))


def _page(listed: Listed, raw: Mapping[str, str], after: tuple[str, str] | None, limit: int) -> tuple[Query, Selectors]:
    selectors = read_selectors({name: value for name, value in raw.items() if name != "filter"}, listed.shape)
    wanted = parse_filter(raw["filter"], listed.shape) if "filter" in raw else AllOf()
    query = Query(
        filter=AllOf([listed.public, wanted]),
        sort=Sort(listed.sort),
        after=after,
        # One more than is shown: it proves that there is a next page.
        limit=limit + 1,
        exclude=(*listed.hidden, *selectors.left_out),
    )
    return query, selectors
