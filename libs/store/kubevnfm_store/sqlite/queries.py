"""Queries as SELECT statements; a page that crosses from missing sort values to present ones takes two."""

# Names of tables are checked by the catalogue; every value is a bound parameter or a quoted literal.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import count
from operator import itemgetter
from typing import Any, Final

from kubevnfm_store.query import Filter, Query, Sort
from kubevnfm_store.sqlite.filters import ALWAYS, Bound, Paths, Sql, compiled, joined, shape_of, where
from kubevnfm_store.sqlite.text import extract, json_path

_EVERYTHING: Final = -1
"""SQLite's LIMIT for: no limit."""


def table_of(collection: str) -> str:
    """Return the collection's table, quoted."""
    return f'"documents_{collection}"'


def selects(paths: Paths, query: Query) -> Iterator[Sql]:
    """Yield statements for (id, revision, body) whose concatenated rows are the answer.

    The last parameter of each is its LIMIT: how many rows are still wanted.
    """
    values: list[Sequence[Any]] = []
    shape = shape_of(query.filter, values)
    after = None if query.after is None else "there" if query.after[0] is not None else "missing"
    statements = _selects(paths, shape, query.sort, after, tuple(query.exclude))
    values += [query.after or (), (_EVERYTHING if query.limit is None else query.limit,)]
    for statement in statements:
        yield statement.bound(values)


@lru_cache(maxsize=1024)
def _selects(
    paths: Paths, shape: Filter, sort: Sort | None, after: str | None, exclude: tuple[str, ...]
) -> Sequence[Sql]:
    """Return the statements of all queries that differ only in values; ``after``: the kind of the last sort value."""
    body = Sql("body")
    if exclude:
        marks = ", ".join("?" * len(exclude))
        body = Sql(f"json_remove(body, {marks})", tuple(json_path(path) for path in exclude))
    places = count()
    fits = compiled(shape, paths, places)
    after_place, limit_place = next(places), next(places)
    return [
        Sql("SELECT id, revision, ")
        + body
        + f" FROM {table_of(paths.collection)} WHERE "
        + joined("AND", [fits, condition], empty=ALWAYS)
        + Sql(f" ORDER BY {order} LIMIT ?", (Bound(limit_place, itemgetter(0)),))
        for condition, order in _segments(sort, after, after_place)
    ]


def counting(paths: Paths, filter: Filter, limit: int) -> Sql:
    """Return the statement that counts matching documents, up to the limit."""
    return (
        Sql(f"SELECT count(*) FROM (SELECT 1 FROM {table_of(paths.collection)} WHERE ")
        + where(filter, paths)
        + Sql(" LIMIT ?)", (limit,))
    )


def _segments(sort: Sort | None, after: str | None, place: int) -> Iterator[tuple[Sql, str]]:
    """Yield (condition, order): missing values come first, so a page continues inside them, then with the others.

    The order within one value, and the range after it, are each one range of the index on (value, id).
    """
    down = sort is not None and sort.descending
    way, beyond = ("DESC", "<") if down else ("ASC", ">")
    by_id = f"id {way}"
    last_value, last_id = Bound(place, itemgetter(0)), Bound(place, itemgetter(1))
    if sort is None:
        yield (ALWAYS if after is None else Sql("id > ?", (last_id,))), by_id
        return
    key = extract(sort.path)
    by_key = f"{key} {way}, {by_id}"
    if after is None:
        yield ALWAYS, by_key
        return
    if after == "missing":
        yield Sql(f"{key} IS NULL AND id {beyond} ?", (last_id,)), by_id
        if not down:
            yield Sql(f"{key} IS NOT NULL"), by_key
        return
    # A row value with NULL compares as unknown, so documents without the value are not in this range.
    yield Sql(f"({key}, id) {beyond} (?, ?)", (last_value, last_id)), by_key
    if down:
        yield Sql(f"{key} IS NULL"), by_id
