"""Reads JSON of servers that callers name: what later code cannot store or walk is refused here."""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

DEEPEST: Final = 100
"""Levels of objects and arrays. The deepest documents that are known are schemas of Kubernetes, with some 40."""

MOST_NODES: Final = 500_000
"""Objects and arrays. An empty one has two bytes in the text and sixty in memory; a list of 1,000 pods has some 200,000."""


def read_foreign(raw: bytes) -> Any:
    """Return the value of a JSON text.

    Raises ValueError for what is not JSON (RFC 8259), is nested deeper than `DEEPEST`, has more than `MOST_NODES`, or
    has a text that is not Unicode.
    """
    nodes = raw.count(b"[") + raw.count(b"{")
    if nodes > MOST_NODES:
        raise ValueError(f"more than {MOST_NODES} objects and arrays")
    try:
        value = json.loads(raw, parse_constant=_refuse_constant)
        # A half of a surrogate pair can be read, but neither stored nor sent.
        if b"\\ud" in raw or b"\\uD" in raw:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    # A document with fewer brackets than that is not too deep; most are spared the walk.
    if nodes > DEEPEST:
        _check_depth(value)
    return value


_TOO_DEEP: Final = f"nested deeper than {DEEPEST} levels"


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise ValueError(_TOO_DEEP)


def _refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python reads."""
    raise ValueError(name)
