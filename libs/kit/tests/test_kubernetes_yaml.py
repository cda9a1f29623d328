"""YAML values as kubectl 1.32 reads them (``kubectl create --dry-run=client --validate=false -o json``)."""

from __future__ import annotations

import json

import pytest
from kubevnfm_kit.foreign_yaml.kubernetes import read_kubernetes_yaml
from kubevnfm_kit.foreign_yaml.reader import YamlRefused

AS_KUBECTL: list[tuple[str, object]] = [
    ("yes", True),
    ("no", False),
    ("on", True),
    ("off", False),
    ("Yes", True),
    ("NO", False),
    ("On", True),
    ("oFF", "oFF"),
    ("y", True),
    ("n", False),
    ("Y", True),
    ("N", False),
    ("true", True),
    ("True", True),
    ("TRUE", True),
    ("tRue", "tRue"),
    ("false", False),
    ("null", None),
    ("Null", None),
    ("NULL", None),
    ("~", None),
    ("52:54:00:12:34:56", "52:54:00:12:34:56"),
    ("22:30", "22:30"),
    ("1:30:00", "1:30:00"),
    ("190:20:30.15", "190:20:30.15"),
    ("0777", 511),
    ("0o777", 511),
    ("0o17", 15),
    ("0x1F", 31),
    ("0b101", 5),
    ("1_000", 1000),
    ("1__0", 10),
    ("+1", 1),
    ("-1", -1),
    ("+0x1", 1),
    ("-0o7", -7),
    ("1.", 1),
    (".5", 0.5),
    ("-.5", -0.5),
    ("1e3", 1000),
    ("12e3", 12000),
    ("1E3", 1000),
    ("1e+3", 1000),
    ("1.5e3", 1500),
    ("1.5e+3", 1500),
    ("2001-12-14", "2001-12-14"),
    ("2001-12-14t21:59:43.10-05:00", "2001-12-14t21:59:43.10-05:00"),
    ("08", 8),
    ("09", 9),
    ("0", 0),
    ("00", 0),
    ("010", 8),
    ("-010", -8),
    ("0x", "0x"),
    ("1e", "1e"),
    ("123456789012345678901234567890", 1.2345678901234568e29),
    ("18446744073709551615", 18446744073709552000.0),
    ("9223372036854775808", 9223372036854776000.0),
    ("-9223372036854775809", -9223372036854776000.0),
    ("1.2.3", "1.2.3"),
    ("1,000", "1,000"),
    ("0.1", 0.1),
    ("1_0.5", 10.5),
    ("0_1", 1),
    ("_1", "_1"),
    ("1_", 1),
    ("0b12", "0b12"),
    ("0o8", "0o8"),
    ("0xG", "0xG"),
    ("+", "+"),
    (".", "."),
    ("e3", "e3"),
    ("inf", "inf"),
    ("NaN", "NaN"),
    ("0.0", 0),
    ("-0", 0),
    ("-0.0", 0),
    ("1.0", 1),
    ("100.0", 100),
    ("1e21", 1e21),
    ("1e20", 100000000000000000000),
    ("5.0e-324", 5e-324),
    ("12e03", 12000),
    ("685_230.15", 685230.15),
    ("0b1010_0111", 167),
    ("0x_0A", 10),
    ("6.8523015e+5", 685230.15),
    ("190:20:30", "190:20:30"),
]


@pytest.mark.parametrize(("text", "value"), AS_KUBECTL)
def test_a_plain_scalar_has_the_value_that_kubectl_reads(text: str, value: object) -> None:
    assert read_kubernetes_yaml(f"v: {text}") == [{"v": value}]
    assert type(read_kubernetes_yaml(f"v: {text}")[0]["v"]) is type(value)


@pytest.mark.parametrize("text", ["yes", "22:30", "0o17", "1e3", "~"])
def test_a_quoted_scalar_is_a_text(text: str) -> None:
    assert read_kubernetes_yaml(f'v: "{text}"') == [{"v": text}]


@pytest.mark.parametrize(
    ("text", "key"),
    [("1", "1"), ("yes", "true"), ("1.5", "1.5"), ("0x10", "16"), ("22:30", "22:30"), ("2001-01-01",) * 2],
)
def test_a_key_is_a_text(text: str, key: str) -> None:
    assert read_kubernetes_yaml(f"{text}: x") == [{key: "x"}]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: 2\na: 3", "key a given twice"),
        ("yes: 1\ntrue: 2", "key true given twice"),
        ("null: x", "a text expected as a key"),
        ("? [1]\n: x", "a text expected as a key"),
        ("v: .inf", "a number that JSON has expected"),
        ("v: 1e400", "a number that JSON has expected"),
        ("v: !!binary aGVsbG8=", "a value that JSON has expected"),
        ("v: !!set {a}", "a value that JSON has expected"),
    ],
)
def test_values_that_json_does_not_have_and_second_keys_are_refused(text: str, says: str) -> None:
    """CR-016: a key given twice is an error of the manifest."""
    with pytest.raises(YamlRefused, match=says):
        read_kubernetes_yaml(text)


def test_a_merged_map_yields_to_the_keys_of_its_own() -> None:
    text = "a: &a {x: 1, y1: 2}\nb: {<<: *a, x: 3}"
    assert json.dumps(read_kubernetes_yaml(text)[0]["b"], sort_keys=True) == '{"x": 3, "y1": 2}'
