"""Values of a Helm chart as ``helm --set`` has them: ``image.tag=1.27,login.enabled=true``. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

MOST_PARTS: Final = 20
"""Each part of a key is a level, and no database or message holds an object that is nested deeper than some hundred."""
_LONGEST: Final = 65_536
_KEY: Final = re.compile(r"(?:[^.\[\]\\]|\\.)+")
"""A part of a key; a backslash takes the meaning of a dot."""
_PIECE: Final = re.compile(r"(?:[^\\,]|\\.)+", re.DOTALL)
_LIST: Final = re.compile(r"\{(?:[^\\}]|\\.)*\}", re.DOTALL)
_WHOLE: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_WORDS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None}


def set_value(values: dict[str, Any], key: str, value: Any) -> None:
    """Set a value by its key: ``image.tag`` is ``tag`` in ``image``. Raises ValueError that says what was expected."""
    parts = [part.replace("\\", "") for part in _KEY.findall(key)]
    if not parts or ".".join(_KEY.findall(key)) != key:
        raise ValueError("a key of the chart's values expected, parts joined by dots, without an index")
    if len(parts) > MOST_PARTS:
        raise ValueError(f"a key of at most {MOST_PARTS} parts expected, got {len(parts)}")
    node = values
    for part in parts[:-1]:
        node = node.setdefault(part, {})
        if not isinstance(node, dict):
            raise ValueError(f"{part} has a value of its own already")
    if parts[-1] in node:
        raise ValueError("given twice")
    node[parts[-1]] = dict(value) if isinstance(value, Mapping) else value


def assignments(text: str) -> Iterator[tuple[str, Any]]:
    """Yield key and value of each assignment of a text; what has no quotes in YAML is a number, a truth value or null.

    Raises ValueError, never with the text, which may be a secret.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"a text of at most {_LONGEST} characters expected")
    for piece in _pieces(text):
        key, sign, value = piece.partition("=")
        if not sign or not key.strip():
            raise ValueError("key=value expected, several separated by commas")
        yield key.strip(), _read(value)


def _pieces(text: str) -> Iterator[str]:
    """Yield the parts between commas; a comma in a list, or after a backslash, is none of them.

    A list begins with a brace right after the sign, and ends with the next one: braces elsewhere are of a text, such as a password.
    """
    begin = at = 0
    is_value = is_list = False
    while at < len(text):
        char = text[at]
        at += 2 if char == "\\" else 1
        if char == "=" and not is_value:
            is_value, is_list = True, text[at : at + 1] == "{"
        elif char == "}":
            is_list = False
        elif char == "," and not is_list:
            yield text[begin : at - 1]
            begin, is_value = at, False
    if text[begin:]:
        yield text[begin:]


def _read(value: str) -> Any:
    if value.startswith("{"):
        if not _LIST.fullmatch(value):
            raise ValueError("a list expected that ends with its first closing brace: {a,b}")
        return [_plain(each) for each in _PIECE.findall(value[1:-1])]
    return _plain(value)


def _plain(value: str) -> Any:
    if value in _WORDS:
        return _WORDS[value]
    return int(value) if _WHOLE.fullmatch(value) and value != "-0" else re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL)
