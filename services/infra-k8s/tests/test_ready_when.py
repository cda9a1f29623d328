"""The annotation kubevnfm.io/ready-when."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_infra_k8s.domain.reading.ready_when import parse

BODY: dict[str, Any] = {
    "status": {
        "phase": "Running",
        "count": 3,
        "done": True,
        "parts": [{"state": "up"}],
        "a.b": {"c": "x"},
        "conditions": [{"type": "Up", "status": "True"}, {"type": "Bad", "status": "False"}],
    }
}


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("status.phase == Running", True),
        ("status.phase=='Running'", True),
        ("{.status.phase} == Starting", False),
        ("{.status.phase}==Running", True),
        ("status.count == 3", True),
        ("status.done == true", True),
        ("status.parts[0].state == up", True),
        ("status.parts[5].state == up", False),
        ("status['a.b'].c == x", True),
        ("status.nothing.there == x", False),
        ("condition=Up", True),
        ("condition=Bad", False),
        ("condition=Bad=False", True),
        ("condition=bad=False", False),
        ("condition=None", False),
    ],
)
def test_an_expression_holds_or_not(expression: str, *, holds: bool) -> None:
    assert parse(expression)(BODY) is holds


@pytest.mark.parametrize(
    "expression", ["", "status.phase", "status.phase == ", "== x", "status..phase == x", "a b == c", "condition="]
)
def test_an_invalid_expression_is_rejected(expression: str) -> None:
    with pytest.raises(ValueError, match=r"expected|no path"):
        parse(expression)
