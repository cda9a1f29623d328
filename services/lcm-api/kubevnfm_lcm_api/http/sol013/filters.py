"""Attribute-based filters (SOL013 clause 5.2), parsed into the store's syntax tree and checked against a shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_secrets import is_secret_name
from kubevnfm_store.query import AllOf, AnyOf, Compare, Element, Filter, HasKey, Json, Op, path_of

from kubevnfm_lcm_api.http.sol013.shapes import Attribute, Kind, Shape

_ONE: Final = {Op.EQ, Op.NEQ, Op.GT, Op.GTE, Op.LT, Op.LTE}
_MAX_LENGTH: Final = 4096
_MAX_EXPRESSIONS: Final = 20
_MAX_VALUES: Final = 100
_ESCAPES: Final = {"~0": "~", "~1": "/", "~a": ",", "~b": "@"}


class InvalidFilter(InvalidInput):
    """The filter cannot be understood; the message says where (SOL013 5.2.4: 400)."""

    def __init__(self, reason: str, *, at: int | None = None) -> None:
        super().__init__("filter", f"{reason}, at character {at + 1}" if at is not None else reason)


@dataclass(frozen=True)
class _Expression:
    op: Op
    path: tuple[str, ...]
    values: tuple[str, ...]
    at: int


def parse_filter(text: str, shape: Shape) -> Filter:
    """Return the filter. Raises InvalidFilter naming the place and what was expected."""
    if len(text) > _MAX_LENGTH:
        raise InvalidFilter(f"at most {_MAX_LENGTH} characters are taken")
    expressions = list(_expressions(text))
    if len(expressions) > _MAX_EXPRESSIONS:
        raise InvalidFilter(f"at most {_MAX_EXPRESSIONS} expressions are taken")
    return _all_of(expressions, shape.attributes)


# --- text to expressions ----------------------------------------------------------------------------------------------


def _expressions(text: str) -> Iterator[_Expression]:
    position = 0
    while True:
        expression, position = _expression(text, position)
        yield expression
        if position == len(text):
            return
        if text[position] != ";":
            raise InvalidFilter("; or the end expected", at=position)
        position += 1


def _expression(text: str, start: int) -> tuple[_Expression, int]:
    if not text.startswith("(", start):
        raise InvalidFilter("( expected", at=start)
    words: list[str] = []
    position = start + 1
    while True:
        word, position = _word(text, position)
        words.append(word)
        if position >= len(text):
            raise InvalidFilter(") expected", at=position)
        if text[position] == ")":
            break
        position += 1
    if len(words) < 3:
        raise InvalidFilter("operator, attribute and value expected", at=start)
    name, path, *values = words
    if name not in Op.__members__.values():
        raise InvalidFilter(f"operator {name} is unknown; one of {', '.join(Op)} expected", at=start + 1)
    op = Op(name)
    if op in _ONE and len(values) != 1:
        raise InvalidFilter(f"{op} takes exactly one value", at=start)
    if len(values) > _MAX_VALUES:
        raise InvalidFilter(f"at most {_MAX_VALUES} values are taken", at=start)
    return _Expression(op, tuple(path.split("/")), tuple(values), start), position + 1


def _word(text: str, start: int) -> tuple[str, int]:
    """Return a name or value and where it ends: before ``,`` or ``)``."""
    if text.startswith("'", start):
        return _quoted(text, start)
    position = start
    while position < len(text) and text[position] not in ",)":
        if text[position] in "('":
            raise InvalidFilter(f"a value with {text[position]} must be quoted", at=position)
        position += 1
    return text[start:position], position


def _quoted(text: str, start: int) -> tuple[str, int]:
    parts: list[str] = []
    position = start + 1
    while True:
        end = text.find("'", position)
        if end < 0:
            raise InvalidFilter("closing quote expected", at=start)
        parts.append(text[position:end])
        if not text.startswith("''", end):
            break
        parts.append("'")
        position = end + 2
    if end + 1 < len(text) and text[end + 1] not in ",)":
        raise InvalidFilter(", or ) expected after a quoted value", at=end + 1)
    return "".join(parts), end + 1


def _unescaped(name: str) -> str:
    # ~0 last, as in RFC 6901: otherwise ~01 would become / instead of ~1.
    for escape, plain in (*((e, p) for e, p in _ESCAPES.items() if e != "~0"), ("~0", "~")):
        name = name.replace(escape, plain)
    return name


# --- expressions to the tree ------------------------------------------------------------------------------------------


def _all_of(expressions: Sequence[_Expression], attributes: Mapping[str, Attribute]) -> Filter:
    """Put together what must hold; expressions through one array must hold for the same element."""
    filters: list[Filter] = []
    through: dict[tuple[str, ...], tuple[Attribute, list[_Expression]]] = {}
    for expression in expressions:
        depth, array = _first_array(expression, attributes)
        if array is None:
            filters.append(_compare(expression, attributes))
        else:
            prefix, rest = expression.path[:depth], expression.path[depth:]
            inner = _Expression(expression.op, rest, expression.values, expression.at)
            through.setdefault(prefix, (array, []))[1].append(inner)
    for prefix, (array, inner_expressions) in through.items():
        filters.append(Element(path_of(*map(_unescaped, prefix)), _all_of(inner_expressions, array.members)))
    return filters[0] if len(filters) == 1 else AllOf(filters)


def _first_array(expression: _Expression, attributes: Mapping[str, Attribute]) -> tuple[int, Attribute | None]:
    """Return the first array of objects on the path, and how many names lead to it."""
    members = attributes
    for depth, name in enumerate(expression.path, start=1):
        attribute = members.get(name)
        if attribute is None or attribute.kind in {"map", "free"}:
            return depth, None
        if attribute.kind == "array" and attribute.members and depth < len(expression.path):
            return depth, attribute
        members = attribute.members
    return len(expression.path), None


def _compare(expression: _Expression, attributes: Mapping[str, Attribute]) -> Filter:
    path: list[str] = []
    members: Mapping[str, Attribute] = attributes
    attribute: Attribute | None = None
    kind: Kind = "object"
    for index, raw in enumerate(expression.path):
        name = _unescaped(raw)
        if kind in {"map", "free"} and raw == "@key":
            if index != len(expression.path) - 1:
                raise InvalidFilter("@key must be the last name of a path", at=expression.at)
            return _keys(expression, path_of(*path))
        if kind == "map":
            kind = "object"
        elif kind == "free":
            if is_secret_name(name):
                raise InvalidFilter(f"attribute {name} is secret and cannot be filtered by", at=expression.at)
        else:
            attribute = members.get(name)
            if attribute is None:
                raise InvalidFilter(f"attribute {'/'.join(expression.path)} is unknown", at=expression.at)
            if attribute.no_filter:
                raise InvalidFilter(f"attribute {name} cannot be filtered by: {attribute.no_filter}", at=expression.at)
            # Comparisons would reveal the secret bit by bit to a caller who may only list.
            if attribute.is_secret:
                raise InvalidFilter(f"attribute {name} is secret and cannot be filtered by", at=expression.at)
            kind, members = attribute.kind, attribute.members
        path.append(name)
    if kind == "array" and attribute is not None and not attribute.members:
        kind = attribute.element
    if kind in {"object", "array", "map"}:
        raise InvalidFilter(f"attribute {'/'.join(expression.path)} is no simple value", at=expression.at)
    return _typed(expression, path_of(*path), kind)


def _keys(expression: _Expression, path: str) -> Filter:
    if expression.op in {Op.EQ, Op.IN}:
        return HasKey(path, expression.values)
    if expression.op in {Op.NEQ, Op.NIN}:
        return HasKey(path, expression.values, present=False)
    raise InvalidFilter("@key takes eq, neq, in and nin", at=expression.at)


def _typed(expression: _Expression, path: str, kind: Kind) -> Filter:
    op = expression.op
    if op in {Op.CONT, Op.NCONT}:
        return Compare(path, op, expression.values)
    if kind != "free":
        return Compare(path, op, [_value(value, kind, expression.at) for value in expression.values])
    # An attribute without a declared type may hold a text, a number or a flag: any reading of the value may match.
    readings = [list(expression.values)]
    numbers = [_number(value) for value in expression.values]
    if all(number is not None for number in numbers):
        readings.append(numbers)  # type: ignore[arg-type]  # no None among them
    if all(value in {"true", "false"} for value in expression.values):
        readings.append([value == "true" for value in expression.values])  # type: ignore[misc]
    return (
        AnyOf([Compare(path, op, reading) for reading in readings])
        if len(readings) > 1
        else Compare(path, op, readings[0])
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _value(text: str, kind: Kind, at: int) -> Json:
    if kind == "number":
        number = _number(text)
        if number is None:
            raise InvalidFilter(f"a number expected, got {text!r}", at=at)
        return number
    if kind == "boolean":
        if text not in {"true", "false"}:
            raise InvalidFilter(f"true or false expected, got {text!r}", at=at)
        return text == "true"
    if kind == "datetime":
        try:
            # A + that is not percent-encoded in a query arrives as a space.
            moment = datetime.fromisoformat(text.replace(" ", "+"))
        except ValueError as error:
            raise InvalidFilter(f"a date-time (RFC 3339) expected, got {text!r}", at=at) from error
        if moment.tzinfo is None:
            raise InvalidFilter(f"a date-time with its offset expected, got {text!r}", at=at)
        return rfc3339(moment)
    return text
