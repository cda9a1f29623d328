"""Texts and ids that begin with what a caller has typed: each a range of an index, so that the collection's size does not matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import AllOf, Compare, Filter, Op, Query, Stored

_LAST: Final = "\U0010ffff"
"""Behind every character that a name has."""


def prefixed(path: str, prefix: str) -> list[Compare]:
    """Return the filters for texts that begin so."""
    return [Compare(path, Op.GTE, [prefix]), Compare(path, Op.LT, [f"{prefix}{_LAST}"])]


async def with_id(
    store: DocumentStore,
    collection: str,
    prefix: str,
    *,
    limit: int,
    exclude: Sequence[str] = (),
    where: Sequence[Filter] = (),
) -> Sequence[Stored]:
    """Return documents whose id begins so, by id. ``where`` does not apply to one that has the whole id."""
    # Those behind the prefix itself, which is read alone.
    exact = await store.get(collection, prefix)
    found = await store.find(collection, Query(AllOf(where), after=(None, prefix), limit=limit, exclude=exclude))
    begun = [each for each in found if each.id.startswith(prefix)]
    return [*([] if exact is None else [exact]), *begun][:limit]
