"""kubectl's JSONPath templates: fields, indexes, slices, wildcards, simple filters, range, quoted text.

Source: kubernetes.io, "JSONPath Support".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

_STEP: Final = re.compile(
    r"""
    \.\.(?P<deep>[\w-]+)
    | \.?\[\?\(\s*@(?P<filter>[^=!<>)]*?)\s*(?P<operator>==|!=)\s*(?P<wanted>"[^"]*"|'[^']*'|[\w.-]+)\s*\)\]
    | \.?\[['"](?P<quoted>[^'"]+)['"]\]
    | \.?\[(?P<index>-?\d+)\]
    | \.?\[(?P<slice>-?\d*:-?\d*)\]
    | \.?\[\*\] | \.\*
    | \.(?P<field>(?:\\.|[\w/-])+)
    """,
    re.VERBOSE,
)
_BLOCK: Final = re.compile(r"\{((?:\"[^\"]*\"|'[^']*'|[^{}])*)\}")
_ESCAPES: Final = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


class BadTemplate(Exception):
    """A template cannot be read; the text is the one that kubectl prints."""


def render(template: str, document: Any) -> str:
    """Return a template's output for a document; raise BadTemplate."""
    text = template if "{" in template else "{" + template + "}"
    output, rest = _render(_tokens(text), 0, document, document)
    if rest != -1:
        raise BadTemplate("error: error parsing jsonpath: unexpected end")
    return output


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens, at = [], 0
    for block in _BLOCK.finditer(text):
        tokens.append(("text", text[at : block.start()]))
        tokens.append(("block", block.group(1).strip()))
        at = block.end()
    tokens.append(("text", text[at:]))
    return [token for token in tokens if token[1]]


def _render(tokens: Sequence[tuple[str, str]], at: int, document: Any, current: Any) -> tuple[str, int]:
    """Render from a token on until the end (-1) or the end of a range (the index after it)."""
    output = ""
    while at < len(tokens):
        kind, text = tokens[at]
        at += 1
        if kind == "text":
            output += text
        elif text == "end":
            return output, at
        elif text.startswith("range "):
            behind = at
            for item in _values(text.removeprefix("range ").strip(), document, current):
                part, behind = _render(tokens, at, document, item)
                output += part
            # A range over nothing renders no token of its block, so its end has to be found without rendering.
            at = behind if behind != at else _after_range(tokens, at)
        elif text[:1] in "\"'":
            output += re.sub(r"\\(.)", lambda match: _ESCAPES.get(match.group(1), match.group(1)), text[1:-1])
        else:
            output += " ".join(_text(value) for value in _values(text, document, current))
    return output, -1


def _after_range(tokens: Sequence[tuple[str, str]], at: int) -> int:
    depth = 1
    while at < len(tokens) and depth:
        kind, text = tokens[at]
        depth += (kind == "block" and text.startswith("range ")) - (kind == "block" and text == "end")
        at += 1
    return at


def _values(path: str, document: Any, current: Any) -> list[Any]:
    start = document if path.startswith("$") else current
    values = [start]
    rest = path.lstrip("$@")
    if rest and rest[0] not in ".[":
        rest = f".{rest}"
    at = 0
    while at < len(rest) and rest[at:] != ".":
        step = _STEP.match(rest, at)
        if step is None:
            raise BadTemplate(
                f"error: error parsing jsonpath {{{path}}}, unrecognized character in action: {rest[at:]}"
            )
        values = [found for value in values for found in _step(step, value)]
        at = step.end()
    return values


def _step(step: re.Match[str], value: Any) -> Iterator[Any]:
    parts = step.groupdict()
    name = parts["quoted"] or (parts["field"] or "").replace("\\", "")
    if name:
        if isinstance(value, dict) and name in value:
            yield value[name]
    elif parts["deep"]:
        yield from _deep(parts["deep"], value)
    elif parts["filter"] is not None:
        wanted = parts["wanted"].strip("\"'")
        for item in value if isinstance(value, list) else []:
            found = _values(parts["filter"], item, item)
            if (bool(found) and _text(found[0]) == wanted) == (parts["operator"] == "=="):
                yield item
    elif parts["index"] is not None:
        if isinstance(value, list) and -len(value) <= int(parts["index"]) < len(value):
            yield value[int(parts["index"])]
    elif parts["slice"] is not None:
        low, high = (int(end) if end else None for end in parts["slice"].split(":"))
        yield from value[low:high] if isinstance(value, list) else []
    elif isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _deep(name: str, value: Any) -> Iterator[Any]:
    children = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if isinstance(value, dict) and name in value:
        yield value[name]
    for child in children:
        yield from _deep(name, child)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"))
