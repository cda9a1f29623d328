"""The forms of output: tables for people, and the API's own bodies for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from kubevnfm_cli.faults import UsageFault
from kubevnfm_cli.json_types import JsonObject, objects
from kubevnfm_cli.terminal import CELL, LINE, Screen, printable, printable_json, width_of

if TYPE_CHECKING:
    from kubevnfm_cli.call import Call

KINDS: Final = ("table", "wide", "json", "yaml", "jsonl", "name", "csv")
_COLOURS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("FAILED", "FAILED_TEMP", "ERROR", "PROBLEM", "UNREACHABLE", "DEGRADED"), "red"),
    **dict.fromkeys(("PROCESSING", "STARTING", "ROLLING_BACK", "PENDING", "PROGRESSING", "REGISTERING"), "yellow"),
    **dict.fromkeys(("COMPLETED", "ONBOARDED", "INSTANTIATED", "READY", "REACHABLE", "ENABLED", "OK"), "green"),
    **dict.fromkeys(("ROLLED_BACK", "NOT_INSTANTIATED", "UNKNOWN", "DISABLED"), "dim"),
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


def show_list(call: Call, body: object, items: Sequence[JsonObject], table: Table) -> None:
    """Write things: ``body`` is the API's, ``items`` are the things in it."""
    form = call.format
    if form.is_for_people:
        if not items:
            call.note("nothing found")
            return
        call.page(table_text(call.out, items, table.columns, is_wide=form.kind == "wide"))
    elif form.kind == "jsonl":
        call.out.stream.write("".join(f"{_json(one, indent=None)}\n" for one in items))
    elif form.kind == "name":
        call.out.stream.write("".join(f"{table.noun}/{printable(table.id_of(one))}\n" for one in items))
    elif form.kind == "csv":
        _write_csv(call.out, items, table.columns)
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


def table_text(screen: Screen, items: Sequence[JsonObject], columns: Sequence[Column], *, is_wide: bool) -> str:
    """Return a table with a line for each thing; a terminal's width bounds the last column."""
    shown = [column for column in columns if is_wide or not column.is_wide]
    limit = LINE if is_wide else CELL
    rows = [[_cell(column.value(one), limit) for column in shown] for one in items]
    widths = [max([len(column.title), *(width_of(row[place]) for row in rows)]) for place, column in enumerate(shown)]
    room = screen.columns - sum(widths[:-1]) - 2 * (len(widths) - 1) if screen.is_terminal and not is_wide else LINE
    lines = [screen.paint(_line([column.title for column in shown], widths), "bold")]
    for row in rows:
        if width_of(row[-1]) > room >= 10:
            row[-1] = f"{row[-1][: room - 1]}…"
        painted = [
            screen.paint(text, colour_of(text)) if column.is_state else text
            for text, column in zip(row, shown, strict=True)
        ]
        lines.append(_line(painted, widths, row))
    return "".join(f"{line}\n" for line in lines)


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


def _write_csv(screen: Screen, items: Sequence[JsonObject], columns: Sequence[Column]) -> None:
    import csv
    import io

    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow([column.title for column in columns])
    for one in items:
        values = ((column.exact or column.value)(one) for column in columns)
        writer.writerow(["" if value is None else _cell(value, LINE) for value in values])
    screen.stream.write(_shown(screen, written.getvalue()))


def _shown(screen: Screen, text: str) -> str:
    from kubevnfm_cli.terminal import printable_text

    return printable_text(text) if screen.is_terminal else text


def _json(value: object, *, indent: int | None) -> str:
    return printable_json(json.dumps(value, indent=indent, ensure_ascii=False))
