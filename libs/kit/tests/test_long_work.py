"""Work on large values leaves the event loop to others."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from kubevnfm_kit.long_work import LARGE_TEXT, aside_if_large, is_large, json_text
from pydantic import BaseModel

LARGE: dict[str, Any] = {"a": {f"ü{n}": [n, "x", None, {"b": 1.5}] for n in range(1000)}, "text": 'q"\\' * 100, "e": {}}


class Model(BaseModel):
    values: Any


async def test_work_on_a_large_value_is_not_done_by_the_thread_of_the_loop() -> None:
    """MC-140: a request may have megabytes."""
    assert await aside_if_large(LARGE, threading.get_ident) != threading.get_ident()
    assert await aside_if_large({"a": [1, 2]}, threading.get_ident) == threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        await aside_if_large(LARGE, lambda: 1 // 0)


@pytest.mark.parametrize(
    "value", [LARGE, [LARGE], Model(values=LARGE), "x" * 10 * LARGE_TEXT, [[]] * 2000, b"x" * 10**6]
)
def test_what_is_large(value: object) -> None:
    """MC-140: by its nodes or by its texts."""
    assert is_large(value)


@pytest.mark.parametrize("value", [None, 1, "text", {}, {"a": [{"b": "c"}] * 20}, Model(values=[1])])
def test_what_is_small(value: object) -> None:
    """MC-140: to hand it to a thread would take longer than the work."""
    assert not is_large(value)


@pytest.mark.parametrize("value", [LARGE, [LARGE, 1, "x"], {1: [0] * 5000}, [], {}, {"a": [[1], []]}])
def test_json_written_in_pieces_is_that_written_at_once(value: Any) -> None:
    """MC-140: also with names that are no texts."""
    assert json_text(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
