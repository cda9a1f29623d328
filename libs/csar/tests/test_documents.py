"""YAML becomes plain JSON data, or is refused."""

from __future__ import annotations

import pytest
from kubevnfm_csar.documents import parse_heat_yaml, parse_vnfd_yaml
from kubevnfm_csar.errors import PackageRefused


def test_dates_stay_texts_and_keys_become_texts() -> None:
    assert parse_heat_yaml("heat_template_version: 2013-05-23\n2: x\ntrue: y\n", name="a") == {
        "heat_template_version": "2013-05-23",
        "2": "x",
        "true": "y",
    }


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("a: [1", "line 2, column 1"),
        ("- a\n", "is not a mapping"),
        ("", "is not a mapping"),
        ("a: !!python/object/apply:os.system [ls]\n", "a value that JSON has expected"),
        ("a: !!binary aGVsbG8=\n", "a value that JSON has expected"),
        ("a: &x [*x]\n", "an alias that contains itself"),
        ("a: 1\n---\nb: 2\n", "but found another document"),
        ("a: {b: 1, c: 2, b: 3}\n", "line 1, column 17: key b given twice"),
        ("a: " + "[" * 200 + "]" * 200, "deep"),
        ("a: " + "[" * 200_000, ""),
    ],
)
def test_what_is_not_plain_data_is_refused_with_the_place(text: str, rule: str) -> None:
    with pytest.raises(PackageRefused) as caught:
        parse_vnfd_yaml(text, name="Definitions/x.yaml")
    assert caught.value.file == "Definitions/x.yaml"
    assert rule in caught.value.rule


def test_aliases_that_explode_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(PackageRefused, match="aliases"):
        parse_vnfd_yaml("\n".join(lines), name="x")
