"""The basic form of kubectl's JSONPath: ``{.items[*].id}``, ``{.a['b.c'][0]}{"\\n"}``, text between braces.

Filters, ranges, unions and recursion are refused by name: `jq` reads `-o json`.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from kubevnfm_cli.faults import UsageFault

_PART: Final = re.compile(r"\{([^{}]*)\}|([^{}]+)")
_STEP: Final = re.compile(
    r"""\.?\[(?P<index>-?\d+)\]|\.?\[\*\]|\.\*|\.?\[(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\]|\.(?P<name>[\w-]+)"""
)
_TEXT: Final = re.compile(r"""(['"])(.*)\1""", re.DOTALL)
_ESCAPES: Final = {r"\n": "\n", r"\t": "\t", r"\\": "\\"}


def evaluate(expression: str, value: object) -> str:
    """Return the text of an expression for a value: what it finds, separated by spaces. Raises UsageFault."""
    if "{" not in expression:
        expression = f"{{{expression if expression.startswith(('.', '[', '$')) else '.' + expression}}}"
    pieces, end = [], 0
    for found in _PART.finditer(expression):
        if found.start() != end:
            break
        end = found.end()
        inside, literal = found.groups()
        pieces.append(_unescaped(literal) if inside is None else _piece(inside.strip(), value))
    if end != len(expression):
        raise UsageFault(f"jsonpath: {expression[end:][:40]!r}: pairs of braces expected")
    return "".join(pieces)


def _piece(path: str, value: object) -> str:
    text = _TEXT.fullmatch(path)
    if text is not None:
        return _unescaped(text.group(2))
    return " ".join(_text(one) for one in found(path, value))


def found(path: str, value: object) -> list[Any]:
    """Return what a path without braces finds. Raises UsageFault."""
    found, rest = [value], path.removeprefix("$").removeprefix("@")
    if rest == ".":
        rest = ""
    while rest:
        step = _STEP.match(rest)
        if step is None:
            raise UsageFault(
                f"jsonpath: {rest[:40]!r} is not understood: .name, ['name'], [0] and [*] expected; use -o json with jq"
            )
        found = [inner for one in found for inner in _inner(one, step)]
        rest = rest[step.end() :]
    return found


def _inner(value: Any, step: re.Match[str]) -> list[Any]:
    if step["index"] is not None:
        index = int(step["index"])
        return [value[index]] if isinstance(value, list) and -len(value) <= index < len(value) else []
    name = step["name"] if step["quoted"] is None else step["quoted"]
    if name is None:
        return value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    return [value[name]] if isinstance(value, dict) and name in value else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _unescaped(text: str) -> str:
    return re.sub(r"\\[nt\\]", lambda found: _ESCAPES[found.group()], text)
