"""Pages of the lists of our own views: the database filters, sorts and pages, and no query grows with the collection.

A list's module asks `read_page` (`http/pages.py`), asks `views(request).sequence()`, then `find_page`, and answers with `list_answer`.
The pages of a list that another service has come from there; such a module needs `list_answer` alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_store.matching import fits, values_at
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Filter, Json, Query, Sort, Stored

from kubevnfm_lcm_api.http.markers import link_to, next_href
from kubevnfm_lcm_api.http.models import Shown
from kubevnfm_lcm_api.http.pages import PageRequest, words
from kubevnfm_lcm_api.http.routes import Parameter

_MOST_IDS: Final = 100
ID: Final = Parameter("id", f"With one of these ids, at most {_MOST_IDS}", is_repeated=True)
"""A client that follows the event stream reads what an event was about, and not the whole list."""


class ListPage(Shown):
    """A page of a list; the list's model adds ``items``."""

    sequence: str
    """The place in the event stream: sent as ``Last-Event-ID``, the stream goes on from this state."""
    next: str | None = None
    """The address of the next page, which is in the ``Link`` header too; without it this page is the last."""


@dataclass(frozen=True)
class Part:
    """Documents that are listed together, in one order."""

    filters: Sequence[Filter]
    """A document is listed if one of them matches; no document may match two.

    Each is a query of its own, and the answers are merged: so an index on (what a filter compares, what is sorted by) gives every page
    at the cost of its own documents, where ``IN`` would sort all that match.
    """
    sort: Sort


@dataclass(frozen=True)
class Found:
    """The documents of a page."""

    items: Sequence[Stored]
    after: Sequence[Json] | None
    """Where the next page begins; None: this is the last."""


async def find_page(
    store: DocumentStore, collection: str, parts: Sequence[Part], asked: PageRequest, *, exclude: Sequence[str] = ()
) -> Found:
    """Return a page of the list that has the parts one after the other. ``exclude``: paths that the bodies are read without."""
    first, behind = (0, None) if asked.after is None else (asked.after[0], (asked.after[1], asked.after[2]))
    found: list[tuple[int, Stored]] = []
    for number, part in enumerate(parts[first:], start=first):
        # One more than is shown: it proves that there is a next page.
        wanted = asked.limit + 1 - len(found)
        found += [(number, each) for each in await _of_part(store, collection, part, behind, wanted, exclude)]
        if len(found) > asked.limit:
            number_of_last, last = found[asked.limit - 1]
            after = (number_of_last, _value(last, parts[number_of_last].sort), last.id)
            return Found(_newest([each for _, each in found[: asked.limit]]), after)
        behind = None
    return Found(_newest([each for _, each in found]), None)


def _newest(found: Sequence[Stored]) -> Sequence[Stored]:
    """Return each document once: one that changed between two queries of a page matched both."""
    newest = {each.id: each for each in sorted(found, key=lambda each: each.revision)}
    return found if len(newest) == len(found) else [each for each in found if newest[each.id] is each]


async def find_named(store: DocumentStore, collection: str, parts: Sequence[Part], asked: PageRequest) -> Found:
    """Return those that are asked for by id and match the parts; there is no next page. Raises InvalidInput for too many."""
    ids = words([asked.filters[ID.name]], ID)
    if len(ids) > _MOST_IDS:
        raise InvalidInput(ID.name, f"at most {_MOST_IDS} expected")
    stored = await store.get_many(collection, ids)
    found = [each for part in parts for each in stored if any(fits(one, each.body) for one in part.filters)]
    return Found(found, None)


def list_answer(
    request: web.Request, asked: PageRequest, sequence: str, items: Sequence[JsonMapping], after: object
) -> web.Response:
    """Return a page as the answer. ``after``: where the next page begins, as `PageRequest` has it then; None: there is none."""
    if after is None:
        return web.json_response({"sequence": sequence, "items": items})
    href = next_href(request, request.path, asked.filters, after, limit=asked.limit)
    return web.json_response({"sequence": sequence, "items": items, "next": href}, headers=link_to(href))


async def _of_part(
    store: DocumentStore,
    collection: str,
    part: Part,
    behind: tuple[Json, str] | None,
    wanted: int,
    exclude: Sequence[str],
) -> Sequence[Stored]:
    queries = [Query(each, sort=part.sort, after=behind, limit=wanted, exclude=exclude) for each in part.filters]
    answers = await asyncio.gather(*(store.find(collection, query) for query in queries))
    if len(answers) == 1:
        return answers[0]
    merged = [each for answer in answers for each in answer]
    merged.sort(key=lambda each: _place(each, part.sort), reverse=part.sort.descending)
    return merged[:wanted]


def _place(stored: Stored, sort: Sort) -> tuple[bool, Any, str]:
    """Return what the databases sort by: documents without the value come first."""
    value = _value(stored, sort)
    return value is not None, value if value is not None else "", stored.id


def _value(stored: Stored, sort: Sort) -> Json:
    return next(values_at(stored.body, sort.path), None)
