"""Reads YAML that a user gives, within limits of bytes, depth and nodes, and records where each value stands.

`kubevnfm_kit.foreign_yaml` is not used: its distribution brings the libraries of the services, which this wheel does without, and
errors about a file of a user show line and column of every value. Values of scalars without quotes are those of YAML 1.2 (10.3),
as in VNF descriptors: ``no`` and ``12:30`` are texts. So is ``.inf``, which JSON does not have.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml
from yaml._yaml import CParser

LARGEST: Final = 4 * 1024 * 1024
"""Bytes of one text."""
DEEPEST: Final = 60
"""Levels of maps and lists."""
MOST_NODES: Final = 100_000
"""Documents, scalars, maps and lists, with each alias counted as a copy."""
MOST_CHARACTERS: Final = 2 * LARGEST
"""Characters of all scalars, with each alias counted as a copy."""
MOST_DIRECTIVES: Final = 100
"""``%TAG`` directives: libyaml compares each of them with all others."""
_SHOWN: Final = 60
_LONGEST_NUMBER: Final = 400
_TAG: Final = "tag:yaml.org,2002:"
_WORDS: Final[Mapping[str, bool | None]] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
_INTEGER: Final = re.compile(r"(?:([-+]?[0-9]+)|0o([0-7]+)|0x([0-9a-fA-F]+))")
_BASES: Final = (10, 8, 16)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_KEY: Final = object()
_MERGE: Final = object()

Path = tuple[str | int, ...]
"""The names and indexes that lead to a value."""


class YamlRefused(ValueError):
    """The text is not YAML, has a value that is not JSON, or exceeds a limit."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        """``line``, ``column``: from 1; 0 if the fault has no place."""
        super().__init__(problem)
        self.problem, self.line, self.column = problem, line, column


@dataclass
class YamlDocument:
    """One document: its value, and where the parts of it stand."""

    value: Any = None
    places: dict[Path, tuple[int, int]] = field(default_factory=dict)
    """Line and column, from 1, of each key of a map and each item of a list, by their path."""

    def place_of(self, path: Path) -> tuple[int, int]:
        """Return line and column of a value, or of the nearest one around it whose place is known."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return 1, 1


def read_yaml(text: str) -> list[YamlDocument]:
    """Return the documents of a text; those without content are left out. Raises YamlRefused."""
    if len(text) > LARGEST or len(text.encode(errors="replace")) > LARGEST:
        raise YamlRefused(f"larger than {LARGEST} bytes")
    if text.count("%TAG") > MOST_DIRECTIVES:
        raise YamlRefused(f"more than {MOST_DIRECTIVES} %TAG directives")
    try:
        return _Reader(CParser(text)).documents()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise YamlRefused(error.problem or "not YAML", *((mark.line + 1, mark.column + 1) if mark else ())) from None
    except (yaml.YAMLError, UnicodeError) as error:
        problem = getattr(error, "reason", None) or "not YAML"
        raise YamlRefused(f"{problem}: UTF-8 without control characters expected") from None


class _Open:
    """A map or list whose end was not read yet."""

    def __init__(
        self, items: dict[str, Any] | list[Any], path: Path, anchor: str | None, size: tuple[int, int]
    ) -> None:
        self.items, self.path, self.anchor, self.size = items, path, anchor, size
        self.key: Any = _NO_KEY
        self.merged: list[dict[str, Any]] = []


class _Reader:
    """One text. Nothing is composed first: libyaml's composer recurses in C, and deep nesting would end the process."""

    def __init__(self, parser: CParser) -> None:
        self._parser = parser
        self._nodes = self._characters = 0
        self._open: list[_Open] = []
        self._documents: list[YamlDocument] = []
        self._anchors: dict[str, tuple[Any, int, int] | None] = {}
        """By name: value, nodes and characters; None while the end of the value was not read."""

    def documents(self) -> list[YamlDocument]:
        """Return all documents."""
        while (event := self._parser.get_event()) is not None:
            mark: Any = event.start_mark
            place = (mark.line + 1, mark.column + 1)
            try:
                self._handle(event, place)
                self._check_limits()
            except ValueError as error:
                raise YamlRefused(str(error), *place) from None
        return [each for each in self._documents if each.value is not None]

    def _check_limits(self) -> None:
        if len(self._open) > DEEPEST:
            raise ValueError(f"nested more than {DEEPEST} deep")
        if self._nodes > MOST_NODES:
            raise ValueError(f"more than {MOST_NODES} values once aliases are written out")
        if self._characters > MOST_CHARACTERS:
            raise ValueError(f"more than {MOST_CHARACTERS} characters once aliases are written out")

    def _handle(self, event: Any, place: tuple[int, int]) -> None:
        match event:
            case yaml.ScalarEvent():
                self._scalar(event, place)
            case yaml.AliasEvent():
                self._alias(str(event.anchor), place)
            case yaml.MappingStartEvent():
                self._begin({}, event, "map", place)
            case yaml.SequenceStartEvent():
                self._begin([], event, "seq", place)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._end(place)
            case yaml.DocumentStartEvent():
                self._nodes += 1
                # An anchor is known in its own document only.
                self._anchors = {}
                self._documents.append(YamlDocument())

    def _scalar(self, event: Any, place: tuple[int, int]) -> None:
        text: str = event.value
        self._nodes += 1
        self._characters += len(text)
        is_plain, is_quoted = event.implicit
        around = self._open[-1] if self._open else None
        if is_plain and text == "<<" and around is not None and around.key is _NO_KEY and type(around.items) is dict:
            around.key = _MERGE
            return
        is_key = around is not None and around.key is _NO_KEY and type(around.items) is dict
        value: Any
        if is_key:
            value = text
        elif is_plain:
            value = plain_value(text)
        else:
            value = text if is_quoted else _tagged(event.tag, text)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1, len(text))
        self._put(value, place)

    def _alias(self, anchor: str, place: tuple[int, int]) -> None:
        if anchor not in self._anchors:
            raise ValueError(f"no anchor {_short(anchor)} before this alias")
        known = self._anchors[anchor]
        if known is None:
            raise ValueError("an alias that contains itself")
        value, nodes, characters = known
        self._nodes += nodes
        self._characters += characters
        self._put(value, place)

    def _begin(self, items: dict[str, Any] | list[Any], event: Any, kind: str, place: tuple[int, int]) -> None:
        if event.tag not in (None, "!", f"{_TAG}{kind}"):
            raise ValueError(f"{_short(event.tag)}: a value that JSON has expected")
        path = self._next_path(place)
        self._open.append(_Open(items, path, event.anchor, (self._nodes, self._characters)))
        self._nodes += 1
        if event.anchor is not None:
            self._anchors[event.anchor] = None

    def _end(self, place: tuple[int, int]) -> None:
        closed = self._open.pop()
        value: Any = closed.items
        if closed.merged:
            assert isinstance(value, dict)
            merged: dict[str, Any] = {}
            for each in closed.merged:
                merged.update(each)
            value = {**merged, **value}
        if closed.anchor is not None:
            nodes, characters = closed.size
            self._anchors[closed.anchor] = (value, self._nodes - nodes, self._characters - characters)
        self._put(value, place, is_noted=True)

    def _next_path(self, place: tuple[int, int]) -> Path:
        """Return the path of the value that begins, and record its place."""
        if not self._open:
            self._documents[-1].places[()] = place
            return ()
        around = self._open[-1]
        if type(around.items) is list:
            path = (*around.path, len(around.items))
            self._documents[-1].places[path] = place
            return path
        if around.key is _NO_KEY:
            raise ValueError("a text expected as a key")
        # The place of a map's value is that of its key, which has been recorded.
        return (*around.path, "<<" if around.key is _MERGE else around.key)

    def _put(self, value: Any, place: tuple[int, int], *, is_noted: bool = False) -> None:
        """Put a complete value where it belongs."""
        if not self._open:
            self._documents[-1].value = value
            self._documents[-1].places.setdefault((), place)
            return
        around = self._open[-1]
        items = around.items
        if type(items) is list:
            if not is_noted:
                self._documents[-1].places[(*around.path, len(items))] = place
            items.append(value)
            return
        assert type(items) is dict
        if around.key is _NO_KEY:
            if not isinstance(value, str):
                raise ValueError("a text expected as a key")
            if value in items:
                raise ValueError(f"{_short(value)} is given twice")
            around.key = value
            self._documents[-1].places[(*around.path, value)] = place
            return
        if around.key is _MERGE:
            around.merged += _to_merge(value)
        else:
            items[around.key] = value
        around.key = _NO_KEY


def plain_value(text: str) -> Any:
    """Return the value of a scalar without quotes. Raises ValueError."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "-+.0123456789":
        return text
    whole = _INTEGER.fullmatch(text)
    if whole is None and _FLOAT.fullmatch(text) is None:
        return text
    if len(text) > _LONGEST_NUMBER:
        raise ValueError(f"a number of at most {_LONGEST_NUMBER} characters expected; put a text in quotes")
    if whole is not None:
        return next(int(each, base) for each, base in zip(whole.groups(), _BASES, strict=True) if each is not None)
    value = float(text)
    return value if math.isfinite(value) else text


def _tagged(tag: str, text: str) -> Any:
    """Return the value of a scalar with a tag of its own. Raises ValueError."""
    kind = tag.removeprefix(_TAG)
    if kind == "str":
        return text
    if kind == "null":
        return None
    value = plain_value(text)
    if (kind == "bool" and isinstance(value, bool)) or (kind == "int" and type(value) is int):
        return value
    if kind == "float" and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise ValueError(f"{_short(tag)}: a value that JSON has expected")


def _to_merge(value: Any) -> list[dict[str, Any]]:
    """Return the maps of a merge key; an earlier one in its list replaces the keys of a later one."""
    maps = value[::-1] if isinstance(value, list) else [value]
    if not all(isinstance(each, dict) for each in maps):
        raise ValueError("a map, or a list of maps, expected with <<")
    return maps


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."
