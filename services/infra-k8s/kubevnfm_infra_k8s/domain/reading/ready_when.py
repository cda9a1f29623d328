"""The annotation ``kubevnfm.io/ready-when``, with which a manifest defines its own readiness (capi.md CR-028).

There are two forms: ``condition=Type`` (or ``condition=Type=Status``), and ``path == value`` with a path of names and
indexes in JSONPath's notation: ``status.phase``, ``{.status.parts[0].state}``, ``status['a.b']``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from kubevnfm_csar.json_path import as_text, parse_path, value_at

from kubevnfm_infra_k8s.domain.objects import Body, condition

Rule = Callable[[Body], bool]
_CONDITION: Final = re.compile(r"condition=([A-Za-z0-9./-]+)(?:=(\w+))?")


def parse(expression: str) -> Rule:
    """Return the rule. Raises ValueError with the expected form."""
    text = expression.strip()
    of_condition = _CONDITION.fullmatch(text)
    if of_condition is not None:
        name, status = of_condition.group(1), of_condition.group(2) or "True"
        return lambda body: str((condition(body, name) or {}).get("status", "")).lower() == status.lower()
    path, equals, value = text.partition("==")
    steps = parse_path(path)
    wanted = value.strip().strip("'\"")
    if not equals or not wanted:
        raise ValueError(f"'path == value' or 'condition=Type' expected, got {expression!r}")
    return lambda body: as_text(value_at(body, steps)) == wanted
