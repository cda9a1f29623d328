"""The annotation ``kubevnfm.io/ready-when``, with which a manifest defines its own readiness (capi.md CR-028).

There are two forms: ``condition=Type`` (or ``condition=Type=Status``), and ``path == value`` with a path of names and
indexes in JSONPath's notation: ``status.phase``, ``{.status.parts[0].state}``, ``status['a.b']``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

from kubevnfm_infra_k8s.domain.objects import Body, condition

Rule = Callable[[Body], bool]
_CONDITION: Final = re.compile(r"condition=([A-Za-z0-9./-]+)(?:=(\w+))?")
_STEP: Final = re.compile(r"""\.?([A-Za-z_$][\w$-]*)|\[(\d+)\]|\[['"]([^'"]+)['"]\]""")


def parse(expression: str) -> Rule:
    """Return the rule. Raises ValueError with the expected form."""
    text = expression.strip()
    of_condition = _CONDITION.fullmatch(text)
    if of_condition is not None:
        name, status = of_condition.group(1), of_condition.group(2) or "True"
        return lambda body: str((condition(body, name) or {}).get("status", "")).lower() == status.lower()
    path, equals, value = text.partition("==")
    steps = _steps(path.strip())
    wanted = value.strip().strip("'\"")
    if not equals or not wanted:
        raise ValueError(f"'path == value' or 'condition=Type' expected, got {expression!r}")
    return lambda body: _text(_at(body, steps)) == wanted


def _steps(path: str) -> list[str | int]:
    inner = path[1:-1].strip() if path.startswith("{") and path.endswith("}") else path
    steps: list[str | int] = []
    place = 0
    while place < len(inner):
        found = _STEP.match(inner, place)
        if found is None:
            raise ValueError(f"a path such as status.phase or status.parts[0].state expected, got {path!r}")
        name, index, quoted = found.groups()
        steps.append(int(index) if index is not None else name or quoted)
        place = found.end()
    if not steps:
        raise ValueError("a path before '==' expected")
    return steps


def _at(node: object, steps: list[str | int]) -> object:
    for step in steps:
        if isinstance(step, int):
            node = node[step] if isinstance(node, list) and step < len(node) else None
        else:
            node = node.get(step) if isinstance(node, Mapping) else None
    return node


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)
