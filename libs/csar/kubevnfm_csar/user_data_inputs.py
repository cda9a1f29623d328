"""Finds in the source of user data, without running it, which names of additionalParams it reads."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_kit.python_source import syntax_tree

LARGEST: Final = 64 * 1024
"""Bytes of a module that is read."""
_PARAMETERS: Final = frozenset({"additional_params", "additionalParams"})
_MOST: Final = 100


def inputs_of(source: bytes) -> Mapping[str, Any]:
    """Return the names that are read from additionalParams, with the default that the source has for each; None: none is seen.

    Names that are made while the module runs are not found.
    """
    try:
        tree = syntax_tree(source[:LARGEST])
        return dict(list(_found(tree).items())[:_MOST])
    # The last two: a source that is nested deeper than the parser goes.
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _found(tree: ast.Module) -> Mapping[str, Any]:
    constants = {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    nodes = list(ast.walk(tree))
    named = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and _is_parameters(node.value, frozenset())
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: dict[str, Any] = {}
    for node in nodes:
        if isinstance(node, ast.Subscript) and _is_parameters(node.value, named):
            name, default = _text(node.slice), None
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "get"
            and node.args
            and _is_parameters(node.func.value, named)
        ):
            name, default = _text(node.args[0]), _value(node.args[1], constants) if len(node.args) > 1 else None
        else:
            continue
        if name is not None and found.get(name) is None:
            found[name] = default
    return found


def _is_parameters(node: ast.expr, named: frozenset[str] | set[str]) -> bool:
    """Return whether an expression is additionalParams: an attribute or member of that name, or a variable that has it."""
    match node:
        case ast.Name(id=name):
            return name in named
        case ast.Attribute(attr=name):
            return name in _PARAMETERS
        case ast.Subscript(slice=inner):
            return _text(inner) in _PARAMETERS
        case ast.Call(func=ast.Attribute(attr="get"), args=[first, *_]):
            return _text(first) in _PARAMETERS
        case ast.BoolOp(values=[first, *_]):
            return _is_parameters(first, named)
    return False


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _value(node: ast.expr, constants: Mapping[str, Any]) -> Any:
    value = (
        node.value if isinstance(node, ast.Constant) else constants.get(node.id) if isinstance(node, ast.Name) else None
    )
    return value if isinstance(value, str | int | float | bool) else None
