"""The tests of the project, by the names that documents give them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final

_PROJECT: Final = Path(__file__).parents[3]
_FOLDERS: Final = ("services/*/tests", "libs/*/tests", "deploy/*/tests", "tests")


@cache
def docstrings() -> Mapping[str, str]:
    """Return the docstring of every test function, by ``file::test``; the file's path begins at the project's root."""
    return dict(_tests())


def _tests() -> Iterator[tuple[str, str]]:
    for path in chain.from_iterable(_PROJECT.glob(f"{folder}/**/test_*.py") for folder in _FOLDERS):
        name = path.relative_to(_PROJECT)
        for test in _functions(ast.parse(path.read_bytes())):
            yield f"{name}::{test.name}", ast.get_docstring(test) or ""


def _functions(scope: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the test functions of a module or class. Statements inside of functions are not visited."""
    for node in scope.body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node
