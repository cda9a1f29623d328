"""The forms of output: tables for people, and the API's own bodies for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from kubevnfm_cli.faults import UsageFault
from kubevnfm_cli.json_types import JsonObject, objects
from kubevnfm_cli.terminal import CELL, LINE, Screen, cut, printable, printable_json, width_of

if TYPE_CHECKING:
    from kubevnfm_cli.call import Call, Parser

_NARROW: Final = 8
"""The columns to which a long text is cut at most, where a terminal is narrow."""
_SHORT_ID: Final = 8
"""The characters of an id that all verbs take for it."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
KINDS: Final = ("table", "wide", "json", "yaml", "jsonl", "name", "csv")
_COLOURS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "FAILED",
            "FAILED_TEMP",
            "ERROR",
            "PROBLEM",
            "UNREACHABLE",
            "DEGRADED",
            "WAITING",
            "CRITICAL",
            "MAJOR",
            "NOT_DONE",
        ),
        "red",
    ),
    **dict.fromkeys(
        (
            "PROCESSING",
            "STARTING",
            "ROLLING_BACK",
            "PENDING",
            "PROGRESSING",
            "REGISTERING",
            "DELIVERING",
            "MINOR",
            "WARNING",
            "COLLECTING",
            "STARTED",
            "UP",
        ),
        "yellow",
    ),
    **dict.fromkeys(
        ("COMPLETED", "DONE", "ONBOARDED", "INSTANTIATED", "READY", "REACHABLE", "ENABLED", "MEASURING", "OK"), "green"
    ),
    **dict.fromkeys(("ROLLED_BACK", "NOT_INSTANTIATED", "UNKNOWN", "DISABLED", "ENDED", "TRIAL"), "dim"),
}


def colour_of(state: object) -> str | None:
    """Return the colour of a state."""
    return _COLOURS.get(str(state).upper())


@dataclass(frozen=True)
class Format:
    """The value of ``--output``."""

    kind: str
    expression: str = ""
    """The expression of ``jsonpath``."""

    @classmethod
    def read(cls, text: str | None) -> Self:
        """Return the form. Raises UsageFault."""
        if text is None:
            return cls("table")
        if text in KINDS:
            return cls(text)
        name, equals, expression = text.partition("=")
        if name == "jsonpath" and equals and expression:
            from kubevnfm_cli.jsonpath import evaluate

            evaluate(expression, None)  # a wrong one is refused before anything is asked
            return cls("jsonpath", expression)
        raise UsageFault(f"-o {printable(text)}: {', '.join(KINDS)} or jsonpath=EXPRESSION expected")

    @property
    def is_for_people(self) -> bool:
        """Whether the output is a table or a text."""
        return self.kind in ("table", "wide")

    @property
    def has_columns(self) -> bool:
        """Whether the output has a row for each thing."""
        return self.is_for_people or self.kind == "csv"


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    title: str
    value: Callable[[JsonObject], object]
    is_wide: bool = False
    """Only in ``-o wide`` and ``-o csv``."""
    is_state: bool = False
    """Its word has a colour."""
    exact: Callable[[JsonObject], object] | None = None
    """The value for programs, if it is another one."""


@dataclass(frozen=True)
class Table:
    """How things of a kind are listed."""

    noun: str
    columns: Sequence[Column]
    id_of: Callable[[JsonObject], object] = lambda one: one.get("id")


def add_table_options(parser: Parser) -> None:
    """Add the options of lists."""
    parser.add_argument(
        "--sort-by", metavar="FIELD", help="by a column (also one of -o wide) or a JSONPath, such as AGE or .name"
    )
    parser.add_argument("--no-headers", action="store_true", help="-o table, wide or csv: without the line of titles")


def check_table_options(call: Call) -> None:
    """Raise UsageFault for an option that the form of the output does not have."""
    if call.given.no_headers and not call.format.has_columns:
        raise UsageFault("--no-headers is for -o table, wide and csv")


def show_list(call: Call, body: object, items: Sequence[JsonObject], table: Table) -> None:
    """Write things: ``body`` is the API's, ``items`` are the things in it."""
    form, has_titles = call.format, not getattr(call.given, "no_headers", False)
    if form.is_for_people:
        if not items:
            call.note("nothing found")
            return
        call.page(table_text(call.out, items, table.columns, is_wide=form.kind == "wide", has_titles=has_titles))
    elif form.kind == "jsonl":
        call.out.stream.write("".join(f"{_json(one, indent=None)}\n" for one in items))
    elif form.kind == "name":
        call.out.stream.write("".join(f"{table.noun}/{printable(table.id_of(one))}\n" for one in items))
    elif form.kind == "csv":
        call.out.stream.write(_shown(call.out, csv_text(items, table.columns, has_titles=has_titles)))
    else:
        show_body(call, body)


def show_one(call: Call, body: JsonObject, table: Table, text: Callable[[], str] | None = None) -> None:
    """Write one thing: for people as ``text``, or as a table with one line."""
    if call.format.is_for_people and text is not None:
        call.page(text())
    else:
        show_list(call, body, [body], table)


def show_body(call: Call, body: object) -> None:
    """Write a JSON value as it is: ``json``, ``yaml``, ``jsonl`` or ``jsonpath``. Raises UsageFault for another form."""
    form = call.format
    if form.kind == "yaml":
        from kubevnfm_cli import yaml_text

        call.page(yaml_text.write(body))
    elif form.kind == "jsonpath":
        from kubevnfm_cli.jsonpath import evaluate

        found = evaluate(form.expression, body)
        call.out.stream.write(_shown(call.out, found if found.endswith("\n") else f"{found}\n"))
    elif form.kind in ("jsonl", "name", "csv"):
        lines: list[object] = [*objects(body)] or [body]
        if form.kind != "jsonl":
            raise UsageFault(f"-o {form.kind} is for lists: json, yaml, jsonl or jsonpath= expected")
        call.out.stream.write("".join(f"{_json(one, indent=None)}\n" for one in lines))
    else:
        call.page(f"{_json(body, indent=2)}\n")


def table_text(
    screen: Screen, items: Sequence[JsonObject], columns: Sequence[Column], *, is_wide: bool, has_titles: bool = True
) -> str:
    """Return a table with a line for each thing."""
    return Grid(screen, columns, is_wide=is_wide, has_titles=has_titles).text(items)


class Grid:
    """A table, to which lines can be added later. In a terminal that is too narrow, ids and then the longest columns are cut."""

    def __init__(self, screen: Screen, columns: Sequence[Column], *, is_wide: bool, has_titles: bool = True) -> None:
        self._screen, self._has_titles = screen, has_titles
        self._columns = [column for column in columns if is_wide or not column.is_wide]
        self._has_short_ids = False
        self._limit = LINE if is_wide else CELL
        self._is_bounded = screen.is_terminal and not is_wide
        self._widths: list[int] = []

    def text(self, items: Sequence[JsonObject]) -> str:
        """Return lines for things; the first ones have the titles above, and decide which columns there are."""
        is_first = not self._widths
        rows = [[_cell(column.value(one), self._limit) for column in self._columns] for one in items]
        if is_first:
            rows = self._fit(rows)
        else:
            self._grow(rows)
        lines = [self._row(row) for row in rows]
        if is_first and self._has_titles:
            titles = [column.title for column in self._columns]
            lines.insert(0, self._screen.paint(_line(titles, self._widths), "bold"))
        return "".join(f"{line}\n" for line in lines)

    def _row(self, row: Sequence[str]) -> str:
        shown = [cut(text, width) for text, width in zip(row, self._widths, strict=True)] if self._is_bounded else row
        if self._has_short_ids:
            # Each verb takes the beginning of an id.
            shown = [row[0][:_SHORT_ID], *shown[1:]]
        painted = [
            self._screen.paint(short, colour_of(text)) if column.is_state else short
            for short, text, column in zip(shown, row, self._columns, strict=True)
        ]
        return _line(painted, self._widths, shown)

    def _fit(self, rows: list[list[str]]) -> list[list[str]]:
        """Decide the widths; in a terminal so that a line fits, if that is possible. Return the cells that are shown."""
        self._widths = self._wanted(rows)
        room = self._screen.columns
        if not self._is_bounded or self._total() <= room or not rows:
            return rows
        if all(_UUID.fullmatch(row[0]) for row in rows):
            self._has_short_ids, self._widths[0] = True, _SHORT_ID
        self._shrink(lambda column, width: width if column.is_state else min(width, max(len(column.title), _NARROW)))
        if self._total() > room:
            # The last column says why; a line that comes later may have it.
            last = len(self._columns) - 1
            columns = [place for place in range(last + 1) if place == last or any(row[place] != "-" for row in rows)]
            self._columns = [self._columns[place] for place in columns]
            rows = [[row[place] for place in columns] for row in rows]
            self._widths = self._wanted(rows)
            if self._has_short_ids:
                self._widths[0] = _SHORT_ID
            self._shrink(lambda column, width: min(width, max(len(column.title), _NARROW + 4 * column.is_state)))
        return rows

    def _grow(self, rows: Sequence[Sequence[str]]) -> None:
        """Make room for longer texts of later lines; in a terminal as much as there is, first for states."""
        before, wanted = self._widths, self._wanted(rows)
        self._widths = [max(pair) for pair in zip(before, wanted, strict=True)]
        if self._has_short_ids:
            self._widths[0] = _SHORT_ID
        if self._is_bounded:
            widths = iter(before)
            self._shrink(lambda column, width: max(next(widths), width if column.is_state else 0))
            widths = iter(before)
            self._shrink(lambda column, width: next(widths))

    def _wanted(self, rows: Sequence[Sequence[str]]) -> list[int]:
        return [
            max([len(column.title) * self._has_titles, *(width_of(row[place]) for row in rows)])
            for place, column in enumerate(self._columns)
        ]

    def _total(self) -> int:
        return sum(self._widths) + 2 * (len(self._widths) - 1)

    def _shrink(self, least_of: Callable[[Column, int], int]) -> None:
        """Take from the widest columns, as long as a line is too long and they are wider than they must be."""
        least = [least_of(column, width) for column, width in zip(self._columns, self._widths, strict=True)]
        least[0] = self._widths[0]
        while self._total() > self._screen.columns:
            place = max(range(len(least)), key=lambda one: (self._widths[one] > least[one], self._widths[one]))
            if self._widths[place] <= least[place]:
                break
            self._widths[place] -= 1


def _line(cells: Sequence[str], widths: Sequence[int], plain: Sequence[str] | None = None) -> str:
    padded = (
        cell + " " * (width - width_of(bare)) for cell, width, bare in zip(cells, widths, plain or cells, strict=True)
    )
    return "  ".join(padded).rstrip()


def _cell(value: object, limit: int) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return printable(", ".join(str(one) for one in value), limit)
    return printable(value, limit)


def csv_text(items: Sequence[JsonObject], columns: Sequence[Column], *, has_titles: bool = True) -> str:
    """Return things as CSV."""
    import csv
    import io

    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    if has_titles:
        writer.writerow([column.title for column in columns])
    for one in items:
        values = ((column.exact or column.value)(one) for column in columns)
        writer.writerow(["" if value is None else _cell(value, LINE) for value in values])
    return written.getvalue()


def _shown(screen: Screen, text: str) -> str:
    from kubevnfm_cli.terminal import printable_text

    return printable_text(text) if screen.is_terminal else text


def _json(value: object, *, indent: int | None) -> str:
    return printable_json(json.dumps(value, indent=indent, ensure_ascii=False))
