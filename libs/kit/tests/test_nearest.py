"""The nearest known name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kubevnfm_kit.nearest import Work, nearest, shown


@pytest.mark.parametrize(
    ("name", "found"),
    [("colur", "colour"), ("VDUCP", "VduCp"), ("flavourID", "flavourId"), ("zzz", None), ("colour" * 20, None)],
)
def test_the_nearest_name_is_found_case_aside(name: str, found: str | None) -> None:
    assert nearest(name, ("colour", "VduCp", "flavourId", "x" * 1_000_000)) == found


def test_the_work_is_bounded_and_short_names_are_all_compared() -> None:
    """A Base HOT chooses both names and parameters: 300 of 97 letters `a` and `b` took a fifth of a second each."""
    looked_at = []

    def hostile() -> Iterator[str]:
        for number in range(100_000):
            looked_at.append(number)
            yield f"{'ab' * 47}{number:03}"

    nearest("ba" * 48, hostile())
    assert len(looked_at) < 50
    work = Work()
    assert nearest("colur", ("colour",), work) == "colour"
    for _ in range(3):
        nearest("ba" * 48, hostile(), work)
    assert nearest("colur", ("colour",), work) is None, "those of one request are bounded together"
    many = [*(f"parameter_{number}" for number in range(800)), "colour_of_it", *("x" * 90 for _ in range(800))]
    assert nearest("color_of_it", many) == "colour_of_it"


def test_names_of_megabytes_are_neither_compared_nor_shown() -> None:
    assert nearest("a" * 3_000_000, ("a" * 3_000_000, "aspectId")) is None
    assert len(shown("a" * 3_000_000)) < 200
    assert shown("colour") == "colour"
