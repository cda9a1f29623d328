"""Filters as MongoDB queries.

MongoDB's comparison through arrays means "any element", as ours does, but its negations mean "no element". So NEQ
becomes "less or greater", and NIN, NCONT and absent keys name the innermost array on the path: either the path has no
array, or its k-th prefix is the array and one element matches (``$elemMatch``).

FerretDB supports ``$elemMatch`` for single operators only. For it such conditions become weaker ones, and ``exact``
says that the documents found must be matched once more in memory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kubevnfm_kit.json_types import JsonMapping, JsonObject

from kubevnfm_store.matching import kind_of
from kubevnfm_store.mongo.documents import ALPHABET, WRAPPED, field
from kubevnfm_store.query import AllOf, AnyOf, Compare, Element, Exists, Filter, HasKey, Json, Op

NEVER: Final[JsonMapping] = {"_id": {"$in": []}}
# Every type of a JSON value. The filter of a partial index accepts `$type`, but no `$ne: null`.
NOT_NULL: Final = {"$type": ["double", "string", "object", "array", "bool", "int", "long"]}
_TYPES: Final = {"text": "string", "number": "number", "boolean": "bool"}
_ORDER: Final = {Op.GT: "$gt", Op.GTE: "$gte", Op.LT: "$lt", Op.LTE: "$lte"}


@dataclass(frozen=True)
class Sought:
    """A query, and whether it finds exactly the matching documents, or more."""

    query: JsonMapping
    exact: bool = True


def sought(filter: Filter, *, elements: bool) -> Sought:
    """Return the query for bodies; ``elements``: whether the server supports ``$elemMatch`` with whole queries."""
    return _of(filter, "body.", elements=elements)


def _of(filter: Filter, prefix: str, *, elements: bool) -> Sought:
    match filter:
        case Compare(path, op, values):
            return _compare(prefix + field(path), op, values, elements=elements)
        case Exists(path, exists):
            there = {prefix + field(path): NOT_NULL}
            return Sought(there if exists else {"$nor": [there]})
        case HasKey(path, keys, present):
            return _has_key(prefix + field(path), [ALPHABET.written(key) for key in keys], present, elements=elements)
        case Element(path, inner):
            name = prefix + field(path)
            if not elements:
                return Sought({name: NOT_NULL}, exact=False)
            # A wrapped inner array is stored as an object; the condition on its key keeps it from matching as an
            # element.
            element = _of(inner, "", elements=True).query
            return Sought({name: {"$elemMatch": {"$and": [{WRAPPED: {"$exists": False}}, element]}}})
        case AllOf(filters):
            parts = [_of(each, prefix, elements=elements) for each in filters]
            query = {"$and": [part.query for part in parts]} if parts else {}
            return Sought(query, all(part.exact for part in parts))
        case AnyOf(filters):
            parts = [_of(each, prefix, elements=elements) for each in filters]
            either: JsonMapping = {"$or": [part.query for part in parts]} if parts else NEVER
            return Sought(either, all(part.exact for part in parts))


def _compare(name: str, op: Op, values: Sequence[Json], *, elements: bool) -> Sought:
    match op:
        case Op.EQ:
            return Sought(_is_one_of(name, values[:1]))
        case Op.IN:
            return Sought(_is_one_of(name, values))
        case Op.GT | Op.GTE | Op.LT | Op.LTE:
            is_ordered = kind_of(values[0]) in ("text", "number")
            return Sought({name: {_ORDER[op]: values[0]}} if is_ordered else NEVER)
        case Op.NEQ:
            return _is_none_of(name, values[:1], elements=elements)
        case Op.NIN:
            return _is_none_of(name, values, elements=elements)
        case Op.CONT | Op.NCONT:
            texts = [value for value in values if isinstance(value, str)]
            if not texts:
                return Sought(NEVER)
            pattern = "|".join(re.escape(text) for text in texts)
            if op is Op.CONT:
                return Sought({name: {"$type": "string", "$regex": pattern}})
            return _some_element(name, {"$type": "string", "$not": {"$regex": pattern}}, elements=elements)


def _is_one_of(name: str, values: Sequence[Json]) -> JsonMapping:
    known = [value for value in values if value is not None]
    parts: list[JsonMapping] = []
    if known:
        parts.append({name: {"$eq": known[0]} if len(known) == 1 else {"$in": known}})
    if len(known) < len(values):
        # Equality with null would find documents without the attribute too.
        parts.append({name: {"$type": "null"}})
    return {"$or": parts} if len(parts) > 1 else parts[0] if parts else NEVER


def _is_none_of(name: str, values: Sequence[Json], *, elements: bool) -> Sought:
    known = [value for value in values if value is not None]
    if not known:
        return Sought(NEVER)
    # `$lt` and `$gt` compare within the type of the value, so a value of another type does not match.
    if len(known) == 1 and not isinstance(known[0], bool):
        return Sought({"$or": [{name: {"$lt": known[0]}}, {name: {"$gt": known[0]}}]})
    if all(isinstance(value, bool) for value in known):
        return Sought(_is_one_of(name, [value for value in (True, False) if value not in known]))
    types = sorted({_TYPES[kind_of(value)] for value in known})
    return _some_element(name, {"$type": types, "$nin": known}, elements=elements)


def _has_key(name: str, keys: Sequence[str], present: bool, *, elements: bool) -> Sought:
    if present:
        return Sought({"$or": [{f"{name}.{key}": {"$exists": True}} for key in keys]} if keys else NEVER)
    if not elements:
        return Sought({name: NOT_NULL}, exact=False)
    absent = {key: {"$exists": False} for key in [WRAPPED, *keys]}
    parts: list[JsonMapping] = []
    for outer, inner in _splits(name):
        of_map: JsonObject = {f"{inner}.{key}": missing for key, missing in absent.items()}
        of_map[inner] = {"$type": "object"}
        parts.append({outer: {"$elemMatch": of_map}} if outer else of_map)
    return Sought({"$or": [*parts, {name: {"$elemMatch": absent}}]})


def _some_element(name: str, test: JsonMapping, *, elements: bool) -> Sought:
    """Return the query for: one value at the path, not all of them together, passes the (negated) test."""
    if not elements:
        return Sought({name: {"$type": test["$type"]}}, exact=False)
    parts: list[JsonMapping] = []
    for outer, inner in _splits(name):
        parts.append({outer: {"$elemMatch": {inner: test}}} if outer else {inner: test})
    return Sought({"$or": [*parts, {name: {"$elemMatch": test}}]})


def _splits(name: str) -> list[tuple[str, str]]:
    """Return (array, rest of the path inside its elements) for each array that may be the innermost; "" for none."""
    names = name.split(".")
    start = 1 if names[0] == "body" else 0
    cuts = range(start + 1, len(names))
    return [("", name), *((".".join(names[:cut]), ".".join(names[cut:])) for cut in cuts)]
