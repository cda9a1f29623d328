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
