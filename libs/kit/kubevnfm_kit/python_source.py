"""Reads the source of Python modules, in any thread."""

from __future__ import annotations

import ast
from threading import Lock
from typing import Final

_LOCK: Final = Lock()


def syntax_tree(source: str | bytes) -> ast.Module:
    """Return the syntax tree of a module. Raises what `ast.parse` raises.

    One at a time: Python 3.11 counts the depth of the trees that it makes in one place for all threads, and raises
    SystemError if another thread has made a part of its own tree meanwhile.
    """
    with _LOCK:
        return ast.parse(source)
