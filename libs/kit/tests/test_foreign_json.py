"""JSON of others: what later code could not walk, store or hold in memory is refused."""

from __future__ import annotations

import json

import pytest
from kubevnfm_kit.foreign_json import DEEPEST, MOST_NODES, read_foreign
from kubevnfm_kit.printable import printable


def nested(levels: int) -> bytes:
    return b'{"a":[' * (levels // 2) + b"]}" * (levels // 2)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"NaN",
        b'{"a": -Infinity}',
        b'"\xff"',
        b'{"\\ud800": 1}',
        b'["\\uDFFF"]',
        nested(DEEPEST + 4),
        nested(900),
        nested(1_000_000),
        b"[" + b"{}," * MOST_NODES + b"{}]",
        b"9" * 10_000,
    ],
    ids=range(12),
)
def test_what_cannot_be_used_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError):
        read_foreign(raw)


@pytest.mark.parametrize("value", [None, 7, "\U0001f600", {"a": [1, {"b": "\\ud800"}]}, [[]] * 1000])
def test_what_can_be_used_is_read(value: object) -> None:
    assert read_foreign(json.dumps(value).encode()) == value


def test_nesting_up_to_the_limit_is_read() -> None:
    assert read_foreign(nested(DEEPEST))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain: ä\t1\n2", "plain: ä\t1\n2"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07a\x1b]2;b\x1b\\c", "ac"),
        ("\x1bcreset\x1b(B", "reset"),
        ("a\x08b\x00\x9b\u202e", "a\ufffdb\ufffd\ufffd\ufffd"),
    ],
)
def test_control_characters_are_removed_or_shown(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"18446744073709551616", "64 bits"),
        (b"-9223372036854775809", "64 bits"),
        (b"[1e999]", "range of a double"),
        (b"[-1e999]", "range of a double"),
        (b"1" * 100_000, "64 bits"),
        ('{"a":1}'.encode("utf-16"), "utf-8"),
        (b'"\xed\xa0\x80"', "utf-8"),
        ('"\ud800"', "utf-8"),
        (nested(DEEPEST + 2), "nested deeper than"),
        (nested(30_000), "nested deeper than"),
        (nested(30_000).decode(), "nested deeper than"),
    ],
    ids=range(11),
)
def test_numbers_encodings_and_depth_are_named(raw: bytes | str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_foreign(raw)


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63), 2**63, 1e308, 1234567890123456789])
def test_numbers_up_to_the_limits_are_read(number: float) -> None:
    assert read_foreign(json.dumps(number)) == number


def test_a_caller_may_have_other_limits() -> None:
    assert read_foreign(nested(DEEPEST + 2), deepest=DEEPEST + 2)
    with pytest.raises(ValueError, match="more than 3 objects"):
        read_foreign(b"[[],[],[]]", most_nodes=3)
