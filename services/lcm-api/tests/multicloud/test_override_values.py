"""``override-values`` of ONAP (multicloud.md MC-130)."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_lcm_api.onap.override_values import flat, nested


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ({"a": "x", "b.c": "1", "b.d": "true"}, {"a": "x", "b": {"c": 1, "d": True}}),
        ({"a[1].b": "x", "a[0]": "y"}, {"a": ["y", {"b": "x"}]}),
        ({r"n.kubernetes\.io/os": "linux"}, {"n": {"kubernetes.io/os": "linux"}}),
        ({"a": "{1,b}", "b": "{}"}, {"a": [1, "b"], "b": []}),
        ({"a": "007", "b": "-5", "c": "null", "d": "", "e": "1,2", "f": "1.5"}, {"a": "007", "b": -5, "c": None, "d": "", "e": "1,2", "f": "1.5"}),
    ],
)  # fmt: skip
def test_names_and_texts_are_read_as_by_helm(given: dict[str, str], values: dict[str, Any]) -> None:
    """MC-130: and what is shown of the values gives the same values again."""
    assert nested(given) == values
    assert nested(flat(values)) == {name: value for name, value in values.items() if value != []}


@pytest.mark.parametrize(
    "given",
    [
        {"": "x"}, {".a": "x"}, {"a.": "x"}, {"a..b": "x"}, {"a[x]": "x"}, {"a[0": "x"}, {"a[101]": "x"}, {"a,b": "x"}, {"a=b": "x"},
        {"a": "1", "a.b": "2"}, {"a.b": "1", "a[0]": "2"}, {"a[0]": "1", "a.b": "2"}, {"a[0].b": "1", "a[0][1]": "x"}, {"a\\": "x"},
        {".".join("a" * 21): "x"}, {"a" + "[0]" * 5000: "x"}, {f"n{each}": "x" for each in range(1001)},
        {"a" * 1025: "x"}, {"a": "x" * 70_000}, {"a": "{" + "1," * 10_000 + "1}"}, {f"n{each}[100]": "x" for each in range(100)},
    ],
)  # fmt: skip
def test_what_helm_would_not_read_is_refused_without_its_value(given: dict[str, str]) -> None:
    """MC-130."""
    with pytest.raises(Unprocessable, match="override-values"):
        nested(given)
