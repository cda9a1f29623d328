"""Pages for users of other systems: every row of their tables names tests that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from contracts.named_tests import docstrings

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGES: Final = ("tacker.md", "onap.md")
COLUMNS: Final = 3


def rows(page: str) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each row, without those of headings and the lines below them."""
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("|") and not re.match(r"\|(-+\||.*\| shown by \|$)", line):
            yield tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])


def named_in(cell: str) -> list[str]:
    """Return the tests of a cell; the name of a further test in the same file stands alone."""
    found: list[str] = []
    for text in re.findall(r"`([^`]+)`", cell):
        found.append(text if "::" in text else f"{found[-1].split('::')[0]}::{text}")
    return found


@pytest.mark.parametrize("page", PAGES)
def test_there_are_rows_of_three_cells(page: str) -> None:
    every = list(rows(page))
    assert len(every) > 30
    assert [row for row in every if len(row) != COLUMNS] == []


@pytest.mark.parametrize("page", PAGES)
def test_each_row_is_shown_by_tests_that_exist(page: str) -> None:
    shown = {row: named_in(row[-1]) for row in rows(page)}
    assert [row for row, tests in shown.items() if not tests] == []
    assert [test for tests in shown.values() for test in tests if test not in docstrings()] == []
