"""Texts of errors have a limit, wherever they are stored, published or logged."""

from __future__ import annotations

import json

import pytest
import structlog
from kubevnfm_kit.error_text import ERROR_BYTES, bounded
from kubevnfm_kit.errors import InvalidInput, VnfmError
from kubevnfm_kit.logging import FACT_BYTES, configure_logging


@pytest.mark.parametrize("text", ["", "x" * ERROR_BYTES, "ä" * (ERROR_BYTES // 2)])
def test_a_text_within_the_limit_is_left_alone(text: str) -> None:
    assert bounded(text) == text


@pytest.mark.parametrize("sign", ["x", "ä", "€", "😀"])
def test_a_longer_text_is_cut_between_characters_and_says_so(sign: str) -> None:
    text = bounded(sign * 5_000_000)
    assert ERROR_BYTES - 4 < len(text.encode()) <= ERROR_BYTES
    assert text.endswith(f" [cut: {len(sign.encode()) * 5_000_000} bytes]")
    assert text.startswith(sign * 900)
    assert "\ufffd" not in text
    assert bounded(text) == text


def test_every_error_of_ours_is_bounded() -> None:
    assert len(str(VnfmError("x" * 5_000_000))) == ERROR_BYTES
    assert len(str(InvalidInput("field", "x" * 5_000_000))) == ERROR_BYTES
    assert str(VnfmError("short")) == "short"


def test_the_facts_of_a_log_line_are_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    before = structlog.get_config()
    configure_logging("a-service")
    try:
        log = structlog.get_logger()
        log.info("said", text="x" * 5_000_000, parts={"deep": ["y" * 5_000_000]}, count=3)
        try:
            raise ValueError("z" * 5_000_000)
        except ValueError:
            log.exception("broke")
    finally:
        structlog.configure(**before)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert lines[0]["count"] == 3
    assert len(lines[0]["text"]) == FACT_BYTES
    assert all(len(json.dumps(line)) < 4 * FACT_BYTES for line in lines)
    assert "ValueError: zzz" in lines[1]["exception"]
