"""Paths of names and indexes in JSONPath's notation, as ``kubectl wait`` reads them (capi.md CR-028).

``status.phase``, ``{.status.parts[0].state}``, ``status['a.b']``. Without filters and wildcards, so a path has one value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

LONGEST: Final = 1000
"""Characters of a path."""
_STEP: Final = re.compile(r"""\.?([A-Za-z_$][\w$-]*)|\[(\d{1,9})\]|\[['"]([^'"]+)['"]\]""")

Path = Sequence[str | int]


def parse_path(text: str) -> Path:
    """Return the steps of a path. Raises ValueError with the expected form."""
    stripped = text.strip()
    inner = stripped[1:-1].strip() if stripped.startswith("{") and stripped.endswith("}") else stripped
    steps: list[str | int] = []
    place = 0
    while place < len(inner):
        found = _STEP.match(inner, place)
        if found is None or len(inner) > LONGEST:
            raise ValueError(f"a path such as status.phase or status.parts[0].state expected, got {text[:100]!r}")
        name, index, quoted = found.groups()
        steps.append(int(index) if index is not None else name or quoted)
        place = found.end()
    if not steps:
        raise ValueError("a path such as status.phase expected")
    return steps


def value_at(node: object, path: Path) -> object:
    """Return the value at a path; None if there is none."""
    for step in path:
        if isinstance(step, int):
            node = node[step] if isinstance(node, list) and step < len(node) else None
        else:
            node = node.get(step) if isinstance(node, Mapping) else None
    return node


def as_text(value: object) -> str | None:
    """Return a value as it is compared; None if there is none."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)
