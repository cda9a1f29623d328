"""``override-values``: texts by dotted names, as Helm's ``--set`` reads them (multicloud.md MC-130)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.json_pointer import escaped

MEMBER: Final = "override-values"
_MOST: Final = 1000
_LONGEST_NAME: Final = 1024
_LONGEST_TEXT: Final = 64 * 1024
_MOST_MEMBERS: Final = 10_000
"""All lists together have at most so many: a short name such as ``a[100][100]`` makes 202."""
_HIGHEST_INDEX: Final = 100
_DEEPEST: Final = 20
_PART: Final = re.compile(r"((?:[^\\.\[\]=,]|\\.)+)((?:\[\d{1,4}\])*)")
_WHOLE: Final = re.compile(r"-?(0|[1-9]\d{0,17})")
_WORDS: Final = {"true": True, "false": False, "null": None}


def nested(given: Mapping[str, str]) -> dict[str, Any]:
    """Return values for a chart. Raises Unprocessable that names the wrong one, never with a value."""
    if len(given) > _MOST or any(len(name) > _LONGEST_NAME for name in given):
        raise Unprocessable(
            MEMBER, f"at most {_MOST} members, with names of at most {_LONGEST_NAME} characters, expected"
        )
    found: dict[str, Any] = {}
    left = _MOST_MEMBERS
    for name, text in given.items():
        place, path = f"{MEMBER}/{escaped(name)}", _path(name)
        if len(text) > _LONGEST_TEXT:
            raise Unprocessable(place, f"a text of at most {_LONGEST_TEXT} characters expected")
        value = _typed(text)
        left -= sum(each + 1 for each in path if isinstance(each, int)) + (len(value) if isinstance(value, list) else 0)
        if left < 0:
            raise Unprocessable(MEMBER, f"lists of at most {_MOST_MEMBERS} members together expected")
        try:
            _put(found, path, value)
        except (TypeError, IndexError):
            raise Unprocessable(place, "it contradicts another one") from None
    return found


def flat(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts that make these values; their names are sorted."""
    return dict(sorted(_flat(values, "")))


def _path(name: str) -> list[str | int]:
    """Return the members and positions that a name leads through."""
    place = f"{MEMBER}/{escaped(name)}"
    path: list[str | int] = []
    at = 0
    while at < len(name) or not path:
        part = _PART.match(name, at)
        if part is None or part.end() == len(name) - 1 or name[part.end() : part.end() + 1] not in ("", "."):
            raise Unprocessable(place, "a name as of Helm's --set expected: a.b or a.b[0]; a dot in a name is \\.")
        path.append(re.sub(r"\\(.)", r"\1", part[1]))
        path += [int(each) for each in re.findall(r"\d+", part[2])]
        at = part.end() + 1
    if len(path) > _DEEPEST or any(isinstance(each, int) and each > _HIGHEST_INDEX for each in path):
        raise Unprocessable(place, f"at most {_DEEPEST} levels, and positions up to {_HIGHEST_INDEX}, expected")
    return path


def _put(values: dict[str, Any], path: list[str | int], value: Any) -> None:
    """Set a value. Raises TypeError or IndexError if another one is in its way."""
    node: Any = values
    for step, following in zip(path, [*path[1:], None], strict=True):
        new: Any = value if following is None else [] if isinstance(following, int) else {}
        if isinstance(step, int):
            if not isinstance(node, list):
                raise TypeError
            node += [None] * (step + 1 - len(node))
            if following is None or node[step] is None:
                node[step] = new
        else:
            if not isinstance(node, dict):
                raise TypeError
            if following is None or node.get(step) is None:
                node[step] = new
        node = node[step]
        if following is not None and isinstance(node, list) != isinstance(following, int):
            raise TypeError


def _typed(text: str) -> Any:
    """Return the value of a text: a number, a truth value, null, a list in braces, or the text."""
    if text.startswith("{") and text.endswith("}"):
        inner = text[1:-1]
        return [_typed_scalar(each) for each in inner.split(",")] if inner else []
    return _typed_scalar(text)


def _typed_scalar(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _WHOLE.fullmatch(text) else text


def _flat(node: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, Mapping):
        for each, value in node.items():
            part = re.sub(r"([.\\\[\]=,])", r"\\\1", each)
            yield from _flat(value, f"{name}.{part}" if name else part)
    elif isinstance(node, list | tuple):
        for index, value in enumerate(node):
            yield from _flat(value, f"{name}[{index}]")
    else:
        words: dict[Any, str] = {True: "true", False: "false", None: "null"}
        yield name, words[node] if node is None or isinstance(node, bool) else str(node)
