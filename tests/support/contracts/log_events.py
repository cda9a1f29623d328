"""The events that product code writes into the log, read from its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from servers.processes import PROJECT

LEVELS: Final = {"debug": "debug", "info": "info", "warning": "warning", "error": "error", "exception": "error"}
_PASSES_ON: Final = "libs/kit/kubevnfm_kit/outages.py"
"""Its logger of debug lines gets names as arguments."""
_WRITES_LINES: Final = "libs/kit/kubevnfm_kit/logging.py"
"""It writes one line without a logger."""
_OUTSIDE: Final = frozenset({"tests", "tacker_shim"})
"""The shim stands for a library of OpenStack in the sandbox, without our log."""


@dataclass(frozen=True)
class Said:
    """One call of a logger."""

    place: str
    level: str
    event: str | None
    """None: it is no constant text."""


def said() -> Iterator[Said]:
    """Yield each call of a logger in product code: of `log`, of a `say` that is one of its methods, of `unless_said`.

    The lab and the demos are none: they print for people.
    """
    for folder in ("libs", "services", "deploy/single", "proto-events"):
        for path in sorted((PROJECT / folder).rglob("*.py")):
            if not _OUTSIDE & {*path.parts} and not path.name.startswith("demo"):
                yield from _said_in(path)


def _said_in(path: Path) -> Iterator[Said]:
    place = str(path.relative_to(PROJECT))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Dict) and place == _WRITES_LINES:
            facts = {ast.literal_eval(k): v for k, v in zip(node.keys, node.values, strict=True) if k is not None}
            if isinstance(name := facts.get("event"), ast.Constant):
                yield Said(f"{place}:{node.lineno}", ast.literal_eval(facts["level"]), str(name.value))
        for level in _levels(node):
            assert isinstance(node, ast.Call)
            first = node.args[0] if node.args else None
            event = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None
            if event is None and place == _PASSES_ON:
                continue
            yield Said(f"{place}:{node.lineno}", level, event)


def _levels(node: ast.AST) -> Iterator[str]:
    if not isinstance(node, ast.Call):
        return
    match node.func:
        case ast.Attribute(value=ast.Name(id="log"), attr=method) if method in LEVELS:
            yield LEVELS[method]
        case ast.Attribute(value=ast.Call(func=ast.Name(id="unless_said")), attr=method):
            yield from (LEVELS[method], "debug")
        case ast.Name(id="say"):
            yield "chosen"
