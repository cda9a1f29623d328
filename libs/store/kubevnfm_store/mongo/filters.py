"""Filters as MongoDB queries.

MongoDB's comparison through arrays means "any element", as ours does, but its negations mean "no element". So NEQ
becomes "less or greater", and NIN, NCONT and absent keys name the innermost array on the path: either the path has no
array, or its k-th prefix is the array and one element matches (``$elemMatch``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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


def sought(filter: Filter) -> JsonMapping:
    """Return the query for bodies."""
    return _sought(filter, "body.")


def _sought(filter: Filter, prefix: str) -> JsonMapping:
    match filter:
        case Compare(path, op, values):
            return _compare(prefix + field(path), op, values)
        case Exists(path, exists):
            there = {prefix + field(path): NOT_NULL}
            return there if exists else {"$nor": [there]}
        case HasKey(path, keys, present):
            return _has_key(prefix + field(path), [ALPHABET.written(key) for key in keys], present)
        case Element(path, inner):
            # A wrapped inner array is stored as an object; the condition on its key keeps it from matching as an
            # element.
            element = {"$and": [{WRAPPED: {"$exists": False}}, _sought(inner, "")]}
            return {prefix + field(path): {"$elemMatch": element}}
        case AllOf(filters):
            return {"$and": [_sought(each, prefix) for each in filters]} if filters else {}
        case AnyOf(filters):
            return {"$or": [_sought(each, prefix) for each in filters]} if filters else NEVER


def _compare(name: str, op: Op, values: Sequence[Json]) -> JsonMapping:
    match op:
        case Op.EQ:
            return _is_one_of(name, values[:1])
        case Op.IN:
            return _is_one_of(name, values)
        case Op.GT | Op.GTE | Op.LT | Op.LTE:
            is_ordered = kind_of(values[0]) in ("text", "number")
            return {name: {_ORDER[op]: values[0]}} if is_ordered else NEVER
        case Op.NEQ:
            return _is_none_of(name, values[:1])
        case Op.NIN:
            return _is_none_of(name, values)
        case Op.CONT | Op.NCONT:
            texts = [value for value in values if isinstance(value, str)]
            if not texts:
                return NEVER
            pattern = "|".join(re.escape(text) for text in texts)
            if op is Op.CONT:
                return {name: {"$type": "string", "$regex": pattern}}
            return _some_element(name, {"$type": "string", "$not": {"$regex": pattern}})


def _is_one_of(name: str, values: Sequence[Json]) -> JsonMapping:
    known = [value for value in values if value is not None]
    parts: list[JsonMapping] = []
    if known:
        parts.append({name: {"$eq": known[0]} if len(known) == 1 else {"$in": known}})
    if len(known) < len(values):
        # Equality with null would find documents without the attribute too.
        parts.append({name: {"$type": "null"}})
    return {"$or": parts} if len(parts) > 1 else parts[0] if parts else NEVER


def _is_none_of(name: str, values: Sequence[Json]) -> JsonMapping:
    known = [value for value in values if value is not None]
    if not known:
        return NEVER
    # `$lt` and `$gt` compare within the type of the value, so a value of another type does not match.
    if len(known) == 1 and not isinstance(known[0], bool):
        return {"$or": [{name: {"$lt": known[0]}}, {name: {"$gt": known[0]}}]}
    if all(isinstance(value, bool) for value in known):
        return _is_one_of(name, [value for value in (True, False) if value not in known])
    types = sorted({_TYPES[kind_of(value)] for value in known})
    return _some_element(name, {"$type": types, "$nin": known})


def _has_key(name: str, keys: Sequence[str], present: bool) -> JsonMapping:
    if present:
        return {"$or": [{f"{name}.{key}": {"$exists": True}} for key in keys]} if keys else NEVER
    absent = {key: {"$exists": False} for key in [WRAPPED, *keys]}
    parts: list[JsonMapping] = []
    for outer, inner in _splits(name):
        of_map: JsonObject = {f"{inner}.{key}": missing for key, missing in absent.items()}
        of_map[inner] = {"$type": "object"}
        parts.append({outer: {"$elemMatch": of_map}} if outer else of_map)
    return {"$or": [*parts, {name: {"$elemMatch": absent}}]}


def _some_element(name: str, test: JsonMapping) -> JsonMapping:
    """Return the query for: one value at the path, not all of them together, passes the (negated) test."""
    parts: list[JsonMapping] = []
    for outer, inner in _splits(name):
        parts.append({outer: {"$elemMatch": {inner: test}}} if outer else {inner: test})
    return {"$or": [*parts, {name: {"$elemMatch": test}}]}


def _splits(name: str) -> list[tuple[str, str]]:
    """Return (array, rest of the path inside its elements) for each array that may be the innermost; "" for none."""
    names = name.split(".")
    start = 1 if names[0] == "body" else 0
    cuts = range(start + 1, len(names))
    return [("", name), *((".".join(names[:cut]), ".".join(names[cut:])) for cut in cuts)]
