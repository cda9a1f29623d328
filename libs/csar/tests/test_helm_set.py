"""Values as ``helm --set`` has them."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_csar.helm_set import assignments, set_value


def read(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in assignments(text):
        set_value(found, key, value)
    return found


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("service.port=8081", {"service": {"port": 8081}}),
        ("a=true,b=false,c=null,d=", {"a": True, "b": False, "c": None, "d": ""}),
        ("a=1.5,b=007,c=-3,d=True", {"a": "1.5", "b": "007", "c": -3, "d": "True"}),
        ("a={x,y,2},b=z", {"a": ["x", "y", 2], "b": "z"}),
        (r"a=x\,y,node\.name=n", {"a": "x,y", "node.name": "n"}),
        ("a=b=c", {"a": "b=c"}),
        ("a={}", {"a": []}),
        ("a=x{y,b=}z{,c=1", {"a": "x{y", "b": "}z{", "c": 1}),
        (r"a={x\},y},b=1", {"a": ["x}", "y"], "b": 1}),
    ],
)
def test_assignments_are_read_as_helm_reads_them(text: str, values: dict[str, Any]) -> None:
    """CR-005a."""
    assert read(text) == values


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "=1",
        "a=1,,b=2",
        "a=1,b",
        "a[0]=1",
        "a..b=1",
        "a=1,a=2",
        "a=1,a.b=2",
        "a={x,b=1",
        "a={x}y",
        "x=" + "y" * 70_000,
    ],
)
def test_what_is_no_assignment_is_refused_without_its_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|given twice|value of its own") as refused:
        read(text)
    assert "yyy" not in str(refused.value)
