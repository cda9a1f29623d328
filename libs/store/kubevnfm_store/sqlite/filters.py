"""Filters as SQL over the JSON functions of SQLite.

A path may lead through arrays, which plain ``json_extract`` does not follow. Indexed paths (`Paths`) are compared
directly while no document has an array on them, and by the table of their values if one has, so that an index serves
them. All others check the JSON type at run time: a scalar is compared directly, an array (or nothing, if an array on
the way hides it) by an EXISTS over ``json_each``. SQLite may evaluate terms in any order and fails on text that is not
JSON; hence the CASEs.

Filters of one shape, which differ only in their values, share one text: it is built once and cached (`compiled`), and
each filter adds its values (`shape_of`).
"""

# Names of tables are checked by the catalogue; every value is a bound parameter or a quoted literal.
# ruff: noqa: S608

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count
from typing import Any, Final, NamedTuple

from kubevnfm_store.matching import kind_of
from kubevnfm_store.query import AllOf, AnyOf, Compare, Element, Exists, Filter, HasKey, Json, Op
from kubevnfm_store.sqlite.text import ALPHABET, extract, is_there, json_path, literal, type_of

Values = Sequence[Sequence[Any]]
"""The values of a filter's comparisons, in the order in which `shape_of` meets them."""


class Paths(NamedTuple):
    """The indexed paths of a collection."""

    collection: str
    single: frozenset[str] = frozenset()
    """No document has an array on them: the collection's own indexes serve them."""
    many: frozenset[str] = frozenset()
    """Documents have arrays on them: all their values are rows of the table ``elements``."""


@dataclass(frozen=True)
class Bound:
    """A parameter that differs between filters of one shape."""

    place: int
    """The index of the comparison whose values it is made from."""
    read: Callable[[Sequence[Any]], Any]
    """Makes the parameter from these values."""


@dataclass(frozen=True)
class Sql:
    """A piece of SQL with the parameters of its question marks."""

    text: str
    params: tuple[Any, ...] = ()

    def bound(self, values: Values) -> Sql:
        """Return the piece with the values in the places of its Bound parameters."""
        return Sql(
            self.text,
            tuple(param.read(values[param.place]) if type(param) is Bound else param for param in self.params),
        )

    def __add__(self, other: Sql | str) -> Sql:
        if isinstance(other, str):
            return Sql(self.text + other, self.params)
        return Sql(self.text + other.text, self.params + other.params)


NEVER: Final = Sql("0")
ALWAYS: Final = Sql("1")
Test = Callable[[Sql, Sql], Sql]
"""Takes the expressions for a value's JSON type and for the value; returns the condition that it matches."""


def joined(word: str, parts: Iterable[Sql], *, empty: Sql) -> Sql:
    """Return the parts with ``word`` between them, in parentheses."""
    listed = list(parts)
    if not listed:
        return empty
    text = f" {word} ".join(part.text for part in listed)
    return Sql(f"({text})", tuple(value for part in listed for value in part.params))


def where(filter: Filter, paths: Paths) -> Sql:
    """Return the condition on the collection's table of documents."""
    values: list[Sequence[Any]] = []
    shape = shape_of(filter, values)
    return _condition(shape, paths).bound(values)


def shape_of(filter: Filter, values: list[Sequence[Any]]) -> Filter:
    """Return the filter with its values taken out, into the list: hashable, and all that the text depends on."""
    match filter:
        case Compare(path, op, given):
            values.append(given)
            return Compare(path, op, _kinds(op, given))
        case AllOf(filters):
            return AllOf(tuple([shape_of(each, values) for each in filters]))
        case AnyOf(filters):
            return AnyOf(tuple([shape_of(each, values) for each in filters]))
        case HasKey(path, keys, present):
            values.append(keys)
            return HasKey(path, (), present)
        case Element(path, inner):
            return Element(path, shape_of(inner, values))
        case Exists():
            return filter


def _kinds(op: Op, values: Sequence[Json]) -> tuple[str, ...]:
    """Return the kinds of the values that count, no kind more often than it matters."""
    match op:
        case Op.IN | Op.NIN:
            # Nearly all are texts.
            if all(type(value) is str for value in values):
                return ("text", "text")[: len(values)]
            kinds = [kind_of(value) for value in values]
            return tuple([kind for kind in _KINDS for _ in range(min(kinds.count(kind), 2))])
        case Op.CONT | Op.NCONT:
            return tuple([kind for value in values if (kind := kind_of(value)) == "text"])
        case _:
            return (kind_of(values[0]),) if values else ()


_KINDS: Final = ("text", "number", "boolean", "null")


def compiled(shape: Filter, paths: Paths, places: Iterator[int]) -> Sql:
    """Return the condition for filters of the shape; its values are in the next of the places."""
    return _Conditions(paths, places).condition(shape, "body")


@lru_cache(maxsize=1024)
def _condition(shape: Filter, paths: Paths) -> Sql:
    return compiled(shape, paths, count())


class _Conditions:
    def __init__(self, paths: Paths, places: Iterator[int]) -> None:
        self._paths = paths
        self._places = places
        self._numbers = count(1)

    def condition(self, shape: Filter, root: str) -> Sql:
        match shape:
            case Compare(path, op, kinds):
                place = next(self._places)
                return self._any_value(root, path, lambda type_, value: _comparison(op, kinds, place, type_, value))
            case Exists(path, exists):
                if root == "body" and path in self._paths.single:
                    # Not of NULL, which a missing path gives, would be NULL.
                    return Sql(is_there(path) if exists else f"coalesce({type_of(path)}, 'null') = 'null'")
                found = self._any_there(root, path)
                return found if exists else Sql("NOT ") + found
            case HasKey(path, _, present):
                return self._any_map(root, path, next(self._places), present=present)
            case Element(path, inner):
                return self._any_element(root, path, inner)
            case AllOf(shapes):
                return joined("AND", [self.condition(each, root) for each in shapes], empty=ALWAYS)
            case AnyOf(shapes):
                return joined("OR", [self.condition(each, root) for each in shapes], empty=NEVER)

    def _any_value(self, root: str, path: str, test: Test) -> Sql:
        if root == "body" and path in self._paths.single:
            return test(Sql(type_of(path)), Sql(extract(path)))
        if root == "body" and path in self._paths.many:
            its = f"collection = {literal(self._paths.collection)} AND path = {literal(path)}"
            return Sql(f"id IN (SELECT document FROM elements WHERE {its} AND ") + test(Sql("type"), Sql("value")) + ")"
        full = json_path(path)
        type_here, here = Sql(f"json_type({root}, ?)", (full,)), Sql(f"json_extract({root}, ?)", (full,))
        tables, parent, last = self._way(root, path)
        leaf = f"e{next(self._numbers)}"
        tables.append(Sql(f"json_each({parent}, ?) {leaf}", (last,)))
        # json_each over an object would yield its attributes as if they were elements.
        is_no_object = Sql(f"json_type({parent}, ?) <> 'object' AND ", (last,))
        in_arrays = self._exists(tables, is_no_object + test(Sql(f"{leaf}.type"), Sql(f"{leaf}.value")))
        return (
            Sql("CASE WHEN coalesce(")
            + type_here
            + ", 'array') = 'array' THEN "
            + in_arrays
            + " ELSE "
            + test(type_here, here)
            + " END"
        )

    def _any_there(self, root: str, path: str) -> Sql:
        direct = Sql(f"coalesce(json_type({root}, ?), 'null') <> 'null'", (json_path(path),))
        if "/" not in path:
            return Sql("(") + direct + ")"
        tables, parent, last = self._way(root, path)
        beyond = self._exists(tables, Sql(f"coalesce(json_type({parent}, ?), 'null') <> 'null'", (last,)))
        return Sql("(") + direct + " OR " + beyond + ")"

    def _any_map(self, root: str, path: str, place: int, *, present: bool) -> Sql:
        tables, parent, last = self._way(root, path)
        tables.append(self._elements(parent, last))
        map_ = self._object(tables[-1])
        wanted = Bound(place, _written)
        has = Sql(
            f"EXISTS (SELECT 1 FROM json_each({map_}) k WHERE k.key IN (SELECT value FROM json_each(?)))", (wanted,)
        )
        return self._exists(
            tables, Sql(f"{self._alias(tables[-1])}.type = 'object' AND {'' if present else 'NOT '}") + has
        )

    def _any_element(self, root: str, path: str, inner: Filter) -> Sql:
        tables, parent, last = self._way(root, path)
        element = f"e{next(self._numbers)}"
        array = f"CASE json_type({parent}, ?) WHEN 'array' THEN json_extract({parent}, ?) ELSE '[]' END"
        tables.append(Sql(f"json_each({array}) {element}", (last, last)))
        fits = self.condition(inner, self._object(tables[-1]))
        return self._exists(tables, Sql(f"{element}.type = 'object' AND ") + fits)

    def _way(self, root: str, path: str) -> tuple[list[Sql], str, str]:
        """Return the tables that fan out on the way to the path's last name, its parent and its JSON path there."""
        *way, last = path.split("/")
        tables: list[Sql] = []
        parent = root
        for name in way:
            tables.append(self._elements(parent, json_path(name)))
            parent = self._object(tables[-1])
        return tables, parent, json_path(last)

    def _elements(self, parent: str, path: str) -> Sql:
        """Return the table of an array's elements, or of the one object that is there instead."""
        listed = (
            f"CASE json_type({parent}, ?) WHEN 'array' THEN json_extract({parent}, ?)"
            f" WHEN 'object' THEN json_array(json_extract({parent}, ?)) ELSE '[]' END"
        )
        return Sql(f"json_each({listed}) e{next(self._numbers)}", (path, path, path))

    @staticmethod
    def _alias(table: Sql) -> str:
        return table.text.rpartition(" ")[2]

    def _object(self, table: Sql) -> str:
        alias = self._alias(table)
        return f"CASE {alias}.type WHEN 'object' THEN {alias}.value ELSE '{{}}' END"

    @staticmethod
    def _exists(tables: Sequence[Sql], condition: Sql) -> Sql:
        if not tables:
            return Sql("(") + condition + ")"
        joined_tables = Sql(
            ", ".join(table.text for table in tables), tuple(value for table in tables for value in table.params)
        )
        return Sql("EXISTS (SELECT 1 FROM ") + joined_tables + " WHERE " + condition + ")"


_ORDER: Final = {Op.GT: ">", Op.GTE: ">=", Op.LT: "<", Op.LTE: "<="}
_TYPES: Final = {
    "text": "= 'text'",
    "number": "IN ('integer', 'real')",
    "boolean": "IN ('true', 'false')",
    "null": "= 'null'",
}
"""JSON types of SQLite by the kind of value."""


def _comparison(op: Op, kinds: Sequence[Json], place: int, type_: Sql, value: Sql) -> Sql:
    """Return the comparison of one value; texts, numbers and booleans never meet."""
    match op:
        case Op.EQ | Op.IN:
            return _among(kinds, place, type_, value, negated=False)
        case Op.NEQ | Op.NIN:
            return _among(kinds, place, type_, value, negated=True)
        case Op.CONT | Op.NCONT:
            if not kinds:
                return NEVER
            texts = [Bound(place, partial(_text, number)) for number in range(len(kinds))]
            parts = [Sql("instr(") + value + Sql(", ?) > 0", (text,)) for text in texts]
            is_text = Sql("(") + type_ + " = 'text' AND "
            return is_text + ("" if op is Op.CONT else "NOT ") + joined("OR", parts, empty=NEVER) + ")"
        case Op.GT | Op.GTE | Op.LT | Op.LTE:
            if kinds[0] not in ("text", "number"):
                return NEVER
            compared = value + Sql(f" {_ORDER[op]} ?)", (Bound(place, _first),))
            # `unlikely`: most ranges are small (expired, or newer than); without the hint SQLite scans by id
            return Sql("(unlikely(") + compared + " AND " + type_ + f" {_TYPES[str(kinds[0])]})"


def _among(kinds: Sequence[Json], place: int, type_: Sql, value: Sql, *, negated: bool) -> Sql:
    parts = []
    for kind, types in _TYPES.items():
        many = kinds.count(kind)
        if kind == "null":
            if many and not negated:
                parts.append(type_ + f" {types}")
        elif many:
            parts.append(
                Sql("(") + value + _one_of(kind, place, many, negated=negated) + " AND " + type_ + f" {types})"
            )
    return joined("OR", parts, empty=NEVER)


def _one_of(kind: str, place: int, many: int, *, negated: bool) -> Sql:
    if many == 1:
        return Sql(" <> ?" if negated else " = ?", (Bound(place, partial(_only, kind)),))
    listed = Bound(place, partial(_listed, kind))
    return Sql(f" {'NOT ' if negated else ''}IN (SELECT value FROM json_each(?))", (listed,))


def _first(values: Sequence[Json]) -> Any:
    return bindable(values[0])


def _only(kind: str, values: Sequence[Json]) -> Any:
    return bindable(next(value for value in values if kind_of(value) == kind))


def _listed(kind: str, values: Sequence[Json]) -> str:
    if kind == "text" and all(type(value) is str for value in values):
        return _dump(values)
    return _dump([bindable(value) for value in values if kind_of(value) == kind])


def _text(number: int, values: Sequence[Json]) -> Any:
    return [value for value in values if isinstance(value, str)][number]


def _written(keys: Sequence[str]) -> str:
    return json.dumps([ALPHABET.written(key) for key in keys])


_dump: Final = json.JSONEncoder().encode
"""As `json.dumps`, which asks each time for what is as usual."""


def bindable(value: Json) -> Any:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    return value
