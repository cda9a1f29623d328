"""Filters as SQL over the JSON functions of SQLite.

A path may lead through arrays, which plain ``json_extract`` does not follow. Paths known to be single-valued (those
of indexes, as the catalogue watches them) compare directly, so that an index serves them. All others look at the JSON
type at run time: a scalar is compared as it is, an array (or nothing, if an array on the way hides it) by an EXISTS
over ``json_each``. SQLite may evaluate terms in any order and fails on text that is no JSON; hence the CASEs.
"""

# Names of tables are checked by the catalogue; every value is a bound parameter or a quoted literal.
# ruff: noqa: S608

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from kubevnfm_store.matching import kind_of
from kubevnfm_store.query import AllOf, AnyOf, Compare, Element, Exists, Filter, HasKey, Json, Op
from kubevnfm_store.sqlite.text import ALPHABET, extract, json_path, type_of


@dataclass(frozen=True)
class Sql:
    """A piece of SQL with the parameters of its question marks."""

    text: str
    params: tuple[Any, ...] = ()

    def __add__(self, other: Sql | str) -> Sql:
        if isinstance(other, str):
            return Sql(self.text + other, self.params)
        return Sql(self.text + other.text, self.params + other.params)


NEVER: Final = Sql("0")
ALWAYS: Final = Sql("1")
Test = Callable[[Sql, Sql], Sql]
"""Of the expressions for a value's JSON type and the value itself: whether it fits."""


def joined(word: str, parts: Iterable[Sql], *, empty: Sql) -> Sql:
    """Return the parts with ``word`` between them, in parentheses."""
    listed = list(parts)
    if not listed:
        return empty
    text = f" {word} ".join(part.text for part in listed)
    return Sql(f"({text})", tuple(value for part in listed for value in part.params))


def where(filter: Filter, single_valued: Collection[str]) -> Sql:
    """Return the condition on a documents table; ``single_valued`` are paths on which no document has an array."""
    return _Conditions(single_valued).of(filter, "body")


class _Conditions:
    def __init__(self, single_valued: Collection[str]) -> None:
        self._single_valued = single_valued
        self._numbers = count(1)

    def of(self, filter: Filter, root: str) -> Sql:
        match filter:
            case Compare(path, op, values):
                return self._any_value(root, path, lambda type_, value: comparison(op, values, type_, value))
            case Exists(path, exists):
                found = self._any_there(root, path)
                return found if exists else Sql("NOT ") + found
            case HasKey(path, keys, present):
                return self._any_map(root, path, keys, present=present)
            case Element(path, inner):
                return self._any_element(root, path, inner)
            case AllOf(filters):
                return joined("AND", (self.of(each, root) for each in filters), empty=ALWAYS)
            case AnyOf(filters):
                return joined("OR", (self.of(each, root) for each in filters), empty=NEVER)

    def _any_value(self, root: str, path: str, test: Test) -> Sql:
        if root == "body" and path in self._single_valued:
            return test(Sql(type_of(path)), Sql(extract(path)))
        full = json_path(path)
        type_here, here = Sql(f"json_type({root}, ?)", (full,)), Sql(f"json_extract({root}, ?)", (full,))
        tables, parent, last = self._way(root, path)
        leaf = f"e{next(self._numbers)}"
        tables.append(Sql(f"json_each({parent}, ?) {leaf}", (last,)))
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

    def _any_map(self, root: str, path: str, keys: Sequence[str], *, present: bool) -> Sql:
        tables, parent, last = self._way(root, path)
        tables.append(self._elements(parent, last))
        map_ = self._object(tables[-1])
        wanted = json.dumps([ALPHABET.written(key) for key in keys])
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
        fits = self.of(inner, self._object(tables[-1]))
        return self._exists(tables, Sql(f"{element}.type = 'object' AND ") + fits)

    def _way(self, root: str, path: str) -> tuple[list[Sql], str, str]:
        """Return the tables that fan out on the way to the path's last name, its parent and its JSON path there."""
        *names, last = path.split("/")
        tables: list[Sql] = []
        parent = root
        for name in names:
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


def comparison(op: Op, values: Sequence[Json], type_: Sql, value: Sql) -> Sql:
    """Return the comparison of one value; texts, numbers and booleans never meet."""
    match op:
        case Op.EQ:
            return _among(values[:1], type_, value, negated=False)
        case Op.IN:
            return _among(values, type_, value, negated=False)
        case Op.NEQ:
            return _among(values[:1], type_, value, negated=True)
        case Op.NIN:
            return _among(values, type_, value, negated=True)
        case Op.CONT | Op.NCONT:
            texts = [each for each in values if isinstance(each, str)]
            if not texts:
                return NEVER
            found = joined("OR", (Sql("instr(") + value + Sql(", ?) > 0", (each,)) for each in texts), empty=NEVER)
            is_text = Sql("(") + type_ + " = 'text' AND "
            return is_text + ("" if op is Op.CONT else "NOT ") + found + ")"
        case Op.GT | Op.GTE | Op.LT | Op.LTE:
            kind = kind_of(values[0])
            if kind not in ("text", "number"):
                return NEVER
            compared = value + Sql(f" {_ORDER[op]} ?)", (_bindable(values[0]),))
            # `unlikely`: a range is mostly a small one (what expired, what is newer); unhinted, SQLite rather scans by id
            return Sql("(unlikely(") + compared + " AND " + type_ + f" {_TYPES[kind]})"


def _among(values: Sequence[Json], type_: Sql, value: Sql, *, negated: bool) -> Sql:
    parts = []
    for kind in ("text", "number", "boolean"):
        of_kind = [_bindable(each) for each in values if kind_of(each) == kind]
        if of_kind:
            among = value + _one_of(of_kind, negated=negated)
            parts.append(Sql("(") + among + " AND " + type_ + f" {_TYPES[kind]})")
    if not negated and any(each is None for each in values):
        parts.append(type_ + " = 'null'")
    return joined("OR", parts, empty=NEVER)


def _one_of(values: Sequence[Any], *, negated: bool) -> Sql:
    if len(values) == 1:
        return Sql(" <> ?" if negated else " = ?", (values[0],))
    return Sql(f" {'NOT ' if negated else ''}IN (SELECT value FROM json_each(?))", (json.dumps(values),))


def _bindable(value: Json) -> Any:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    return value
