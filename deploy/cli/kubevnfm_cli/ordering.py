"""The order of a list: ``--sort-by`` with the title of a column, or with a JSONPath."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from kubevnfm_cli import jsonpath
from kubevnfm_cli.faults import UsageFault
from kubevnfm_cli.json_types import JsonObject
from kubevnfm_cli.names import did_you_mean
from kubevnfm_cli.output import Table
from kubevnfm_cli.terminal import printable

T = TypeVar("T")
_DIGITS: Final = re.compile(r"(\d+)")
_MOST_DIGITS: Final = 18


def sorted_by(field: str, table: Table, things: Sequence[T], item_of: Callable[[T], JsonObject]) -> list[T]:
    """Return things in the order of a field; those without it are last. Raises UsageFault, also if there are no things."""
    value = _reader(field, table)
    return sorted(things, key=lambda one: _key(value(item_of(one))))


def _reader(field: str, table: Table) -> Callable[[JsonObject], object]:
    if field.startswith((".", "{", "$", "[")):
        path = field.removeprefix("{").removesuffix("}")
        jsonpath.found(path, None)  # a wrong one is refused
        return lambda one: next(iter(jsonpath.found(path, one)), None)
    columns = {column.title: column for column in table.columns}
    column = columns.get(field.upper().replace("_", " "))
    if column is None:
        raise UsageFault(
            f"--sort-by {printable(field)}: one of {', '.join(columns)} expected, or a JSONPath as .name{did_you_mean(field, columns)}"
        )
    return column.exact or column.value


def _key(value: object) -> tuple[Any, ...]:
    """Return what values of any types are compared by: numbers, then texts with their numbers as numbers, then what has none."""
    if isinstance(value, bool | int | float):
        return (0, value)
    if value in (None, "", []):
        return (2,)
    pieces = _DIGITS.split(str(value).casefold())
    return (
        1,
        [(place % 2, int(one) if place % 2 and len(one) <= _MOST_DIGITS else one) for place, one in enumerate(pieces)],
    )
