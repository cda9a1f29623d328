"""Driver classes for Tacker's v1 API: which class of a file it is, and whether it can be run (sequences.md 6.6, 6.7)."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Final

from kubevnfm_sandbox.shim import SCRIPT_MODULES, missing_imports

_BASE: Final = "VnflcmMgmtAbstractDriver"
_ALIAS: Final = "mgmt_call"
_NOT_ANSWERED: Final = ("stacks.template", "stacks.create", "stacks.delete", "stacks.update")
"""Calls of Tacker's Heat client that the sandbox does not answer."""


def driver_class(tree: ast.Module, phase: str, beside: Collection[str]) -> tuple[str, str]:
    """Return the name of the file's driver class, empty if it has none, and why the file cannot run the phase.

    ``beside``: names of the modules in the file's folder. A file that is run as a script (``if __name__``) is one.
    """
    if any(isinstance(node, ast.If) and "__main__" in ast.unparse(node.test) for node in tree.body):
        return "", unanswered_import(tree, beside)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    drivers: dict[str, ast.ClassDef] = {}
    for name, node in classes.items():
        if {_BASE, *drivers} & {_last(base) for base in node.bases}:
            drivers[name] = node
    if not drivers:
        return "", unanswered_import(tree, beside)
    inherited = {_last(base) for node in drivers.values() for base in node.bases}
    last = [name for name in drivers if name not in inherited]
    if len(last) != 1:
        return last[0], f"it defines several driver classes of Tacker's v1, and one is expected: {', '.join(last)}"
    name = last[0]
    missing = next(missing_imports(tree, beside), None)
    if missing is not None:
        return name, f"its driver class {name} needs {missing}, which management drivers of packages do not have"
    methods, is_known = _methods(classes, name)
    if is_known and not {phase, _ALIAS} & methods:
        return name, f"its driver class {name} has no method {phase}"
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    refused = next((call for call in _NOT_ANSWERED if any(f".{one}".endswith(f".{call}") for one in used)), None)
    if refused is not None:
        return name, f"its driver class {name} calls {refused}, which is not answered to drivers of packages"
    return name, ""


def unanswered_import(
    tree: ast.Module, beside: Collection[str], *, libraries: Collection[str] = SCRIPT_MODULES, kind: str = "scripts"
) -> str:
    """Return why code ends at an import that the sandbox does not answer; empty if it answers all."""
    missing = next(missing_imports(tree, beside, libraries), None)
    return f"it imports {missing}, which {kind} of packages do not have" if missing is not None else ""


def _last(base: ast.expr) -> str:
    return ast.unparse(base).rpartition(".")[2]


def _methods(classes: dict[str, ast.ClassDef], name: str) -> tuple[set[str], bool]:
    """Return the methods of a class with those of its bases, and whether all bases are known."""
    found, is_known, waiting = set[str](), True, [name]
    for one in waiting:
        node = classes[one]
        found |= {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        found |= {
            t.id for item in node.body if isinstance(item, ast.Assign) for t in item.targets if isinstance(t, ast.Name)
        }
        for base in map(_last, node.bases):
            if base in classes and base not in waiting:
                waiting.append(base)
            elif base not in classes and base not in (_BASE, "object"):
                is_known = False
    return found, is_known
