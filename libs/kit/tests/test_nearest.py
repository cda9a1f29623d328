"""The nearest known name."""

from __future__ import annotations

import pytest
from kubevnfm_kit.nearest import nearest, shown


@pytest.mark.parametrize(
    ("name", "found"),
    [("colur", "colour"), ("VDUCP", "VduCp"), ("flavourID", "flavourId"), ("zzz", None), ("colour" * 20, None)],
)
def test_the_nearest_name_is_found_case_aside(name: str, found: str | None) -> None:
    assert nearest(name, ("colour", "VduCp", "flavourId", "x" * 1_000_000)) == found


def test_names_of_megabytes_are_neither_compared_nor_shown() -> None:
    assert nearest("a" * 3_000_000, ("a" * 3_000_000, "aspectId")) is None
    assert len(shown("a" * 3_000_000)) < 200
    assert shown("colour") == "colour"
