"""Queries as SELECT statements; a page that crosses from missing sort values to present ones takes two."""

# Names of tables are checked by the catalogue; every value is a bound parameter or a quoted literal.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from kubevnfm_store.query import Filter, Query
from kubevnfm_store.sqlite.filters import ALWAYS, Sql, joined, where
from kubevnfm_store.sqlite.text import extract, json_path

_EVERYTHING: Final = -1
"""LIMIT of SQLite for: no limit."""


def table_of(collection: str) -> str:
    """Return the collection's table, quoted."""
    return f'"documents_{collection}"'


def selects(collection: str, query: Query, single_valued: Collection[str]) -> Iterator[Sql]:
    """Yield statements for (id, revision, body) whose rows, one after the other, are the answer.

    The last parameter of each is its LIMIT: how many rows are still wanted.
    """
    body = Sql("body")
    if query.exclude:
        marks = ", ".join("?" * len(query.exclude))
        body = Sql(f"json_remove(body, {marks})", tuple(json_path(path) for path in query.exclude))
    for condition, order in _segments(query):
        fits = joined("AND", [where(query.filter, single_valued), condition], empty=ALWAYS)
        yield (
            Sql("SELECT id, revision, ")
            + body
            + f" FROM {table_of(collection)} WHERE "
            + fits
            + Sql(f" ORDER BY {order} LIMIT ?", (_EVERYTHING if query.limit is None else query.limit,))
        )


def counting(collection: str, filter: Filter, single_valued: Collection[str], limit: int) -> Sql:
    """Return the statement that counts what fits, no further than the limit."""
    return (
        Sql(f"SELECT count(*) FROM (SELECT 1 FROM {table_of(collection)} WHERE ")
        + where(filter, single_valued)
        + Sql(" LIMIT ?)", (limit,))
    )


def _segments(query: Query) -> Iterator[tuple[Sql, str]]:
    """Yield (condition, order): missing values come first, so a page goes on inside them, then with the others.

    The order within one value, and the range after it, are each one range of the index on (value, id).
    """
    down = query.sort is not None and query.sort.descending
    way, beyond = ("DESC", "<") if down else ("ASC", ">")
    by_id = f"id {way}"
    if query.sort is None:
        yield (Sql("id > ?", (query.after[1],)) if query.after else ALWAYS), by_id
        return
    key = extract(query.sort.path)
    by_key = f"{key} {way}, {by_id}"
    if query.after is None:
        yield ALWAYS, by_key
        return
    value, last_id = query.after
    if value is None:
        yield Sql(f"{key} IS NULL AND id {beyond} ?", (last_id,)), by_id
        if not down:
            yield Sql(f"{key} IS NOT NULL"), by_key
        return
    yield Sql(f"({key}, id) {beyond} (?, ?)", (value, last_id)), by_key
    if down:
        yield Sql(f"{key} IS NULL"), by_id
