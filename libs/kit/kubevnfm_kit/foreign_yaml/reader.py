"""Builds values from the events of libyaml, within limits.

Nothing is composed first. libyaml's composer recurses in C, so deep nesting overflows the stack and ends the process; its
nodes take ten times the memory of the values. The event parser keeps its state on the heap.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml
from yaml._yaml import CParser

LARGEST: Final = 16 * 1024 * 1024
"""Bytes of one text. The definitions of the largest operators have some 5 MB."""
DEEPEST: Final = 100
"""Levels of maps and lists. The deepest documents that are known are schemas of Kubernetes, with some 40."""
MOST_NODES: Final = 500_000
"""Documents, scalars, maps and lists, with each alias counted as a copy. ETSI's largest type file has about 20,000."""
MOST_CHARACTERS: Final = 2 * LARGEST
"""Characters of all scalars, with each alias counted as a copy."""
MOST_DIRECTIVES: Final = 100
"""``%TAG`` directives: libyaml compares each of them with all others."""
LONGEST_NUMBER: Final = 4_300
"""Characters. Python converts no decimal number with more digits; the time for other bases grows with the square."""
LONGEST_S: Final = 10.0
"""Processor time. The other limits keep it below 2 s."""

_STEPS: Final = 10_000
"""Events between two checks of the time."""
_SHOWN: Final = 60
"""Characters of the text that an error quotes."""
_LONGEST_PROBLEM: Final = 500
_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = "<<"
_NO_KEY: Final = object()
_MERGED: Final = object()


class YamlRefused(ValueError):
    """The text is not YAML, has a value that is not JSON, or exceeds a limit."""

    def __init__(self, problem: str, *, line: int | None = None, column: int | None = None) -> None:
        """``line``, ``column``: from 1; None if the fault has no place. ``problem`` may quote the text."""
        place = f"line {line}, column {column}: " if line is not None else ""
        super().__init__(f"{place}{problem}")
        self.problem, self.line, self.column = problem, line, column


class YamlTooLarge(YamlRefused):
    """The text exceeds a limit."""


@dataclass
class Budget:
    """The amount that may still be read. Texts that are read together share one."""

    nodes: int = MOST_NODES
    characters: int = MOST_CHARACTERS
    cpu_s: float = LONGEST_S


@dataclass(frozen=True)
class Dialect:
    """The difference between readers of YAML. Each function raises ValueError for what it refuses."""

    plain: Callable[[str], Any]
    """Returns the value of a scalar without quotes and tag."""
    key: Callable[[Any], str]
    """Returns the text for the value of a scalar that is a key."""
    is_repeated_key_refused: bool
    """If not, the last one is used."""


class _Open:
    """A map or list whose end was not read yet."""

    __slots__ = ("anchor", "characters", "items", "key", "keys", "merged", "nodes")

    def __init__(self, items: dict[str, Any] | list[Any], anchor: str | None, nodes: int, characters: int) -> None:
        self.items, self.anchor, self.nodes, self.characters = items, anchor, nodes, characters
        self.key: Any = _NO_KEY
        self.merged: list[Any] | None = None


class Lines:
    """The lines of the keys of maps, for errors about values that are valid YAML."""

    def __init__(self) -> None:
        self._lines: dict[tuple[int, str], int] = {}
        # An id is only unique among objects that exist.
        self._maps: list[dict[str, Any]] = []

    def note(self, items: dict[str, Any], key: str, line: int) -> None:
        """Record the line of a key."""
        self._lines[id(items), key] = line
        self._maps.append(items)

    def line_of(self, items: object, key: str | None = None) -> int | None:
        """Return the line of a key, or of the first key of a map; None if it is not known, as for a map with merged keys."""
        if not isinstance(items, dict):
            return None
        first = next(iter(items), None) if key is None else key
        return None if first is None else self._lines.get((id(items), first))


def read_documents(text: str, dialect: Dialect, budget: Budget | None = None, lines: Lines | None = None) -> list[Any]:
    """Return the documents as JSON values, None for one without content; reduce the budget. Raises YamlRefused.

    ``lines`` gets the lines of the keys.
    """
    budget = Budget() if budget is None else budget
    _check_text(text)
    try:
        return _Reader(CParser(text), dialect, budget, lines).documents()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        problem = error.problem or "not YAML"
        raise YamlRefused(
            problem, line=mark.line + 1 if mark else None, column=mark.column + 1 if mark else None
        ) from None
    except (yaml.YAMLError, UnicodeError) as error:
        problem = getattr(error, "reason", None) or "not YAML"
        raise YamlRefused(f"{problem}: UTF-8 without control characters expected") from None


def _check_text(text: str) -> None:
    size = len(text) if text.isascii() or len(text) > LARGEST else len(text.encode(errors="replace"))
    if size > LARGEST:
        raise YamlTooLarge(f"larger than {LARGEST} bytes")
    if text.count("%TAG") > MOST_DIRECTIVES:
        raise YamlTooLarge(f"more than {MOST_DIRECTIVES} %TAG directives")


class _Reader:
    """One text."""

    def __init__(self, parser: CParser, dialect: Dialect, budget: Budget, lines: Lines | None) -> None:
        self._parser, self._dialect, self._budget, self._lines = parser, dialect, budget, lines
        self._line = 0
        self._nodes = self._characters = 0
        self._open: list[_Open] = []
        self._found: list[Any] = []
        self._anchors: dict[str, Any] = {}
        """By name: value, nodes and characters; the open map or list while its end was not read."""

    def documents(self) -> list[Any]:
        """Return all documents."""
        handlers: Mapping[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.AliasEvent: self._alias,
            yaml.MappingStartEvent: self._begin_map,
            yaml.SequenceStartEvent: self._begin_list,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.DocumentStartEvent: self._begin_document,
        }
        get_event, budget, began = self._parser.get_event, self._budget, time.thread_time()
        steps = 1
        try:
            while (event := get_event()) is not None:
                handler = handlers.get(type(event))
                if handler is not None:
                    try:
                        handler(event)
                    except ValueError as error:
                        raise YamlRefused(str(error)[:_LONGEST_PROBLEM], **_place(event)) from None
                if (
                    self._nodes > budget.nodes
                    or self._characters > budget.characters
                    or len(self._open) > DEEPEST
                    or (steps % _STEPS == 0 and time.thread_time() - began > budget.cpu_s)
                ):
                    raise self._too_large(event)
                steps += 1
        finally:
            budget.nodes = max(0, budget.nodes - self._nodes)
            budget.characters = max(0, budget.characters - self._characters)
            budget.cpu_s = max(0.0, budget.cpu_s - (time.thread_time() - began))
        return self._found

    def _too_large(self, event: Any) -> YamlTooLarge:
        budget = self._budget
        if len(self._open) > DEEPEST:
            problem = f"nested more than {DEEPEST} deep"
        elif self._nodes > budget.nodes:
            problem = f"more than {budget.nodes} nodes once its aliases are written out"
        elif self._characters > budget.characters:
            problem = f"more than {budget.characters} characters once its aliases are written out"
        else:
            problem = f"not read within {budget.cpu_s} s of processor time"
        return YamlTooLarge(problem, **_place(event))

    def _begin_document(self, _: Any) -> None:
        self._nodes += 1
        # An anchor is known in its own document only.
        self._anchors = {}

    def _scalar(self, event: Any) -> None:
        text: str = event.value
        if self._lines is not None:
            self._line = event.start_mark.line + 1
        self._nodes += 1
        self._characters += len(text)
        is_plain, is_quoted = event.implicit
        value: Any
        if is_plain:
            opened = self._open[-1] if self._open else None
            if text == _MERGE and opened is not None and opened.key is _NO_KEY and type(opened.items) is dict:
                opened.key = _MERGED
                return
            value = self._dialect.plain(text)
        else:
            value = text if is_quoted else self._tagged(event.tag, text)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1, len(text))
        self._place(value)

    def _tagged(self, tag: str, text: str) -> Any:
        """Return the value of a scalar with a tag of its own."""
        kind = tag.removeprefix(_TAG)
        if kind == "str":
            return text
        if kind == "null":
            return None
        value = self._dialect.plain(text)
        if kind == "bool" and isinstance(value, bool):
            return value
        if kind in ("int", "float") and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value) if kind == "float" else int(value)
        if kind in ("bool", "int", "float"):
            raise ValueError(f"{_quoted(text)} is not of the type !!{kind}")
        raise ValueError(f"{_tag(tag)}: a value that JSON has expected")

    def _alias(self, event: Any) -> None:
        known = self._anchors.get(event.anchor)
        if known is None:
            raise ValueError(f"no anchor {_quoted(event.anchor)} before this alias")
        if isinstance(known, _Open):
            raise ValueError("an alias that contains itself")
        value, nodes, characters = known
        self._nodes += nodes
        self._characters += characters
        self._place(value)

    def _begin_map(self, event: Any) -> None:
        if event.tag not in (None, "!", f"{_TAG}map"):
            raise ValueError(f"{_tag(event.tag)}: a value that JSON has expected")
        self._begin({}, event.anchor)

    def _begin_list(self, event: Any) -> None:
        if event.tag not in (None, "!", f"{_TAG}seq"):
            raise ValueError(f"{_tag(event.tag)}: a value that JSON has expected")
        self._begin([], event.anchor)

    def _begin(self, items: dict[str, Any] | list[Any], anchor: str | None) -> None:
        opened = _Open(items, anchor, self._nodes, self._characters)
        self._nodes += 1
        self._open.append(opened)
        if anchor is not None:
            self._anchors[anchor] = opened

    def _end(self, _: Any) -> None:
        opened = self._open.pop()
        value: Any = opened.items
        if opened.merged is not None:
            value = _with_merged(opened.merged, value)
        # Another anchor of this name may have been set within.
        if opened.anchor is not None and self._anchors[opened.anchor] is opened:
            self._anchors[opened.anchor] = (value, self._nodes - opened.nodes, self._characters - opened.characters)
        self._place(value)

    def _place(self, value: Any) -> None:
        """Put a complete value where it belongs."""
        if not self._open:
            self._found.append(value)
            return
        opened = self._open[-1]
        items = opened.items
        if type(items) is list:
            items.append(value)
            return
        assert type(items) is dict
        key = opened.key
        if key is _NO_KEY:
            if isinstance(value, dict | list):
                raise ValueError("a text expected as a key")
            opened.key = key = value if type(value) is str else self._dialect.key(value)
            if key in items and self._dialect.is_repeated_key_refused:
                raise ValueError(f"key {_quoted(key)} given twice")
            if self._lines is not None:
                self._lines.note(items, key, self._line)
            return
        opened.key = _NO_KEY
        if key is not _MERGED:
            items[key] = value
        elif opened.merged is None:
            opened.merged = _to_merge(value)
        else:
            opened.merged += _to_merge(value)


def _to_merge(value: Any) -> list[Any]:
    """Return the maps of a merge key; an earlier one in its list replaces the keys of a later one."""
    maps = value[::-1] if isinstance(value, list) else [value]
    if not all(isinstance(each, dict) for each in maps):
        raise ValueError(f"a map, or a list of maps, expected with {_MERGE}")
    return maps


def _with_merged(maps: list[Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return a map with the merged keys first; its own ones replace them."""
    found: dict[str, Any] = {}
    for each in maps:
        found.update(each)
    found.update(own)
    return found


def _place(event: Any) -> dict[str, int]:
    return {"line": event.start_mark.line + 1, "column": event.start_mark.column + 1}


def _quoted(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."


def _tag(tag: str) -> str:
    return _quoted(f"!!{tag.removeprefix(_TAG)}" if tag.startswith(_TAG) else tag)
