"""Attribute names in a database that does not accept every name: characters that it would misread become ``%XX``.

Each database has an ``Alphabet`` of the characters that it cannot hold in a name. The empty name is a lone ``%``. Arrays directly
inside arrays, which some servers refuse, can be wrapped (``wrap_arrays``); no path leads into them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubevnfm_kit.json_types import JsonObject

_ESCAPE = "%"
_WRAPPED = "%["
"""Sole key of the object that stands for an array inside an array; no escaped name looks like it."""
_ESCAPED = re.compile(r"%([0-9a-f]{2})")


@dataclass(frozen=True)
class Alphabet:
    """The characters that a database cannot hold in a name."""

    unsafe: re.Pattern[str]
    """Matches each single character to escape; must match ``%``."""
    wrap_arrays: bool = False

    def written(self, name: str) -> str:
        """Return the name as the database holds it."""
        if not name:
            return _ESCAPE
        return self.unsafe.sub(lambda found: f"%{ord(found.group()):02x}", name)

    def tree(self, node: Any) -> Any:
        """Return a JSON tree with every name in its written form."""
        if isinstance(node, Mapping):
            return {self.written(name): self.tree(value) for name, value in node.items()}
        if isinstance(node, list | tuple):
            return [self._element(value) for value in node]
        return node

    def _element(self, node: Any) -> Any:
        inner = self.tree(node)
        return {_WRAPPED: inner} if self.wrap_arrays and isinstance(inner, list) else inner


def read_name(written: str) -> str:
    """Return the name of a written form."""
    if _ESCAPE not in written:
        return written
    return "" if written == _ESCAPE else _ESCAPED.sub(lambda found: chr(int(found.group(1), 16)), written)


def read_tree(node: Any) -> Any:
    """Undo ``Alphabet.tree``."""
    if isinstance(node, dict):
        return read_object(node) if len(node) == 1 else {read_name(k): read_tree(v) for k, v in node.items()}
    if isinstance(node, list):
        return [read_tree(value) for value in node]
    return node


def read_object(node: JsonObject) -> Any:
    """Undo ``Alphabet.tree`` for an object with a single attribute, which may be a wrapped array."""
    [(name, value)] = node.items()
    return read_tree(value) if name == _WRAPPED else {read_name(name): read_tree(value)}
