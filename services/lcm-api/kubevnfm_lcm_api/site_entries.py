"""The things of a site file, which the command line marks: two calls that apply the file at the same moment make each of them once.

The key of an entry is in its document, under a unique index. The mark itself is an attribute that clients can change, so it has none.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, TypeVar

from kubevnfm_kit.errors import Conflict
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_store.port import AlreadyExists, DocumentStore, RevisionConflict
from kubevnfm_store.query import AllOf, Compare, Exists, Index, Op, Query

_T = TypeVar("_T")
PATH: Final = "internal/siteEntry"
INDEX: Final = Index([PATH], unique=True)


def site_entry(mark: object, *names: str, content: object = None) -> str | None:
    """Return the key of the entry that a mark names by these attributes; None if it is no mark of the command line."""
    facts = [mark.get(name) for name in names] if isinstance(mark, Mapping) else []
    if not facts or not all(isinstance(fact, str) and fact for fact in facts):
        return None
    return derived_id("site-entry", json.dumps([*facts, content], sort_keys=True))


async def insert_once(
    store: DocumentStore,
    collection: str,
    entry: str | None,
    insert: Callable[[], Awaitable[_T]],
    *,
    present: Callable[[JsonMapping], str | None],
) -> _T:
    """Insert the document of an entry. Raises Conflict if another document is that entry already.

    ``present``: returns the entry that a document is now. One that has become another one's no longer counts.
    """
    try:
        return await insert()
    except AlreadyExists:
        if entry is None:
            raise
    is_it = AllOf([Compare(PATH, Op.EQ, [entry]), Exists(PATH)])
    for stored in await store.find(collection, Query(is_it, limit=1)):
        if present(stored.body) == entry:
            raise _made(stored.id)
        with suppress(RevisionConflict):  # it was deleted meanwhile, or another request has done the same
            await store.update(collection, stored.id, {}, unset=[PATH], where=is_it)
    try:
        return await insert()
    except AlreadyExists as error:
        raise _made("that another request has just created") from error


def _made(which: str) -> Conflict:
    return Conflict(f"this entry of the site file exists already: {which}")
