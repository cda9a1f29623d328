"""Order, pages and projections in MongoDB's terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_store.mongo.documents import in_body
from kubevnfm_store.query import Query

Order = Sequence[tuple[str, int]]


def segments(query: Query) -> Iterator[tuple[JsonMapping, Order]]:
    """Yield (condition, order) of searches whose concatenated results are the answer.

    Each reads one range of the index on (value, id): the rest of the last page's value, then the values beyond
    it; missing values come before all others.
    """
    way, beyond = (-1, "$lt") if query.sort is not None and query.sort.descending else (1, "$gt")
    by_id = [("_id", way)]
    if query.sort is None:
        yield ({"_id": {beyond: query.after[1]}} if query.after else {}), by_id
        return
    name = in_body(query.sort.path)
    by_value = [(name, way), ("_id", way)]
    if query.after is None:
        yield {}, by_value
        return
    value, last_id = query.after
    yield {name: {"$eq": value}, "_id": {beyond: last_id}}, by_id
    if value is not None:
        yield {name: {beyond: value}}, by_value
    if value is None and way == 1:
        yield {name: {"$ne": None}}, by_value
    if value is not None and way == -1:
        yield {name: {"$eq": None}}, by_id


def projection(exclude: Sequence[str]) -> Mapping[str, int]:
    """Return the projection without the paths; the server refuses a path inside another."""
    names = sorted(in_body(path) for path in exclude)
    outermost = [name for name in names if not any(name.startswith(f"{other}.") for other in names)]
    return {"outbox": 0} | dict.fromkeys(outermost, 0)
