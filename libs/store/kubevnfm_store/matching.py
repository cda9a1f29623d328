"""Matches a document in memory with a filter: the meaning that the adapters' queries must have.

In addition to the rules in `query`: the elements of an array at the end of a path are compared one by one; arrays
directly inside arrays are ignored; EQ and IN of null find a stored null. NEQ and NIN need a stored value of the type of
one of the values; GT, GTE, LT, LTE compare texts and numbers; CONT and NCONT texts; `Element` matches objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_store.query import AllOf, AnyOf, Compare, Element, Exists, Filter, HasKey, Json, Op, names_of


def fits(filter: Filter, body: JsonMapping) -> bool:
    """Return whether the document's body matches."""
    match filter:
        case Compare(path, op, values):
            return any(_TESTS[op](value, values) for value in values_at(body, path))
        case Exists(path, exists):
            return exists == any(value is not None for value in _reached(body, names_of(path)))
        case HasKey(path, keys, present):
            maps = [value for value in values_at(body, path) if isinstance(value, Mapping)]
            return any(present == any(key in found for key in keys) for found in maps)
        case Element(path, inner):
            arrays = [value for value in _reached(body, names_of(path)) if isinstance(value, list | tuple)]
            return any(isinstance(each, Mapping) and fits(inner, each) for array in arrays for each in array)
        case AllOf(filters):
            return all(fits(each, body) for each in filters)
        case AnyOf(filters):
            return any(fits(each, body) for each in filters)


def _reached(node: Any, names: Sequence[str]) -> Iterator[Any]:
    """Yield the values at the path; arrays on the way fan out, arrays at its end do not."""
    if not names:
        yield node
    elif isinstance(node, Mapping) and names[0] in node:
        child = node[names[0]]
        if len(names) > 1 and isinstance(child, list | tuple):
            for element in child:
                if isinstance(element, Mapping):
                    yield from _reached(element, names[1:])
        else:
            yield from _reached(child, names[1:])


def values_at(body: Any, path: str) -> Iterator[Any]:
    """Yield what `Compare` compares: the values at the path, those of arrays one by one."""
    for found in _reached(body, names_of(path)):
        if isinstance(found, list | tuple):
            yield from found
        else:
            yield found


def kind_of(value: Any) -> str:
    """Return the type by which values compare: text, number, boolean, null, or other (objects, arrays)."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "text"
        case _:
            return "other"


def _is(stored: Any, value: Json) -> bool:
    return kind_of(stored) == kind_of(value) and bool(stored == value)


def _is_none_of(stored: Any, values: Sequence[Json]) -> bool:
    return kind_of(stored) in {kind_of(value) for value in values} and not any(_is(stored, value) for value in values)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Sequence[Json]], bool]:
    def test(stored: Any, values: Sequence[Json]) -> bool:
        kind = kind_of(stored)
        return kind in ("text", "number") and kind == kind_of(values[0]) and compare(stored, values[0])

    return test


def _contains(stored: Any, values: Sequence[Json]) -> bool:
    return isinstance(stored, str) and any(isinstance(value, str) and value in stored for value in values)


def _contains_none(stored: Any, values: Sequence[Json]) -> bool:
    texts = [value for value in values if isinstance(value, str)]
    return isinstance(stored, str) and bool(texts) and not any(text in stored for text in texts)


_TESTS: Final[Mapping[Op, Callable[[Any, Sequence[Json]], bool]]] = {
    Op.EQ: lambda stored, values: _is(stored, values[0]),
    Op.IN: lambda stored, values: any(_is(stored, value) for value in values),
    Op.NEQ: lambda stored, values: _is_none_of(stored, values[:1]),
    Op.NIN: _is_none_of,
    Op.GT: _ordered(lambda stored, value: stored > value),
    Op.GTE: _ordered(lambda stored, value: stored >= value),
    Op.LT: _ordered(lambda stored, value: stored < value),
    Op.LTE: _ordered(lambda stored, value: stored <= value),
    Op.CONT: _contains,
    Op.NCONT: _contains_none,
}
