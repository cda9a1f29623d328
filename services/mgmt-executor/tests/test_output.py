"""Collected output has no secrets, in whatever pieces the bytes arrive."""

from __future__ import annotations

from pathlib import Path

import pytest
from kubevnfm_mgmt_executor.domain.output import AFTER_FAILURE, HEAD_CHARS, LONGEST_LINE, TAIL_CHARS, CollectedOutput
from kubevnfm_secrets import Mask


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_a_secret_in_pieces_is_masked(size: int) -> None:
    output = CollectedOutput(Mask(["s3cret"]))
    data = b"one s3cret\r\ntwo\nthree s3cret"
    for start in range(0, len(data), size):
        output.add(data[start : start + size])
    assert output.text() == "one ***\ntwo\nthree ***"


@pytest.mark.parametrize("before", range(LONGEST_LINE - 8, LONGEST_LINE + 2))
def test_a_secret_where_an_endless_line_is_cut_is_masked(before: int) -> None:
    output = CollectedOutput(Mask(["s3cret"]))
    for start in range(0, 4 * LONGEST_LINE, 1000):
        text = (b"." * before + b"s3cret" + b"." * 4 * LONGEST_LINE)[start : start + 1000]
        output.add(text)
    assert "s3cret" not in output.text().replace("\n", "")


def test_long_output_keeps_its_beginning_and_its_end() -> None:
    output = CollectedOutput(Mask())
    for number in range(100_000):
        output.add(f"line {number}\n".encode())
    text = output.text()
    assert len(text) < HEAD_CHARS + TAIL_CHARS + 1000
    assert text.startswith("line 0\n")
    assert text.endswith("line 99999")
    assert "characters left out]" in text


def test_the_last_lines_skip_empty_ones() -> None:
    output = CollectedOutput(Mask())
    output.add(b"\n".join(b"line %d" % number for number in range(30)) + b"\n\n  \nlast")
    assert output.last_lines().splitlines()[-1] == "last"
    assert len(output.last_lines().splitlines()) == 12


def test_the_end_of_output_has_so_many_bytes_and_no_half_character() -> None:
    """CR-009: an error quotes 4 KiB of a script's stderr."""
    output = CollectedOutput(Mask(["sesame"]))
    output.add("first\näß sesame\n\n".encode())
    assert output.end(4096) == "first\näß ***"
    assert output.end(7) == "ß ***", "not the half of a character"


def test_the_last_lines_end_where_a_script_shows_the_machine() -> None:
    output = CollectedOutput(Mask())
    output.add(b"the cause\n" + AFTER_FAILURE.encode() + b"\n---- pods\nmany\n")
    assert output.last_lines() == "the cause"
    assert "many" in output.text()
    script = Path(__file__).parents[1] / "kubevnfm_mgmt_executor/files/install_k8s_cluster.sh"
    assert AFTER_FAILURE in script.read_text()


def test_bytes_that_are_not_text_are_replaced() -> None:
    output = CollectedOutput(Mask())
    output.add(b"\xff\xfe\x00ok")
    assert output.text().endswith("ok")
