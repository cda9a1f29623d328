"""docs/tacker.md: every row of its tables names tests that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from contracts.named_tests import docstrings

PAGE: Final = Path(__file__).parents[2] / "docs/tacker.md"
COLUMNS: Final = 3


def rows() -> Iterator[tuple[str, ...]]:
    """Yield the cells of each row, without those of headings and the lines below them."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("|") and not re.match(r"\|(-+\||.*\| shown by \|$)", line):
            yield tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])


def named_in(cell: str) -> list[str]:
    """Return the tests of a cell; the name of a further test in the same file stands alone."""
    found: list[str] = []
    for text in re.findall(r"`([^`]+)`", cell):
        found.append(text if "::" in text else f"{found[-1].split('::')[0]}::{text}")
    return found


def test_there_are_rows_of_three_cells() -> None:
    every = list(rows())
    assert len(every) > 30
    assert [row for row in every if len(row) != COLUMNS] == []


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: row[0])
def test_each_row_is_shown_by_tests_that_exist(row: tuple[str, ...]) -> None:
    shown = named_in(row[-1])
    assert shown, "no test"
    assert [test for test in shown if test not in docstrings()] == []
