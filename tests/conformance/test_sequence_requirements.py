"""The table of the sequences' requirements is complete and agrees with the tests and with the specification."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from named_tests import docstrings

PROJECT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("sequence_requirements.md")
SPECIFICATION = PROJECT / "docs/specification/sequences.md"
_REQUIREMENT = re.compile(r"^- (SEQ-\d{3}) (.*)$")
_ROW = re.compile(r"^\| (SEQ-\d{3}) \| (.*?) \| (.*?) \| (.*?) \|$")
_LIST = re.compile(r"SEQ-\d{3}(?:(?:,| to| and| or)\s+(?:SEQ-)?\d{3}\b)*")


def ids(text: str) -> Iterator[str]:
    """Yield the requirements that a text names, also those of ``SEQ-001, 002, 009 to 012`` and those within a range."""
    for found in _LIST.findall(text):
        last = 0
        for joint, number in re.findall(r"(to\s+)?(?:SEQ-)?(\d{3})", found):
            first = last + 1 if joint else int(number)
            last = int(number)
            yield from (f"SEQ-{each:03}" for each in range(first, last + 1))


def specified() -> dict[str, str]:
    """Return what each requirement asks for, by id."""
    lines = SPECIFICATION.read_text(encoding="utf-8").splitlines()
    return {fits[1]: fits[2] for line in lines if (fits := _REQUIREMENT.match(line))}


def rows() -> dict[str, tuple[str, list[str], str]]:
    """Return by id the requirement, its tests, and the note on what is not tested."""
    found = [fits for line in TABLE.read_text(encoding="utf-8").splitlines() if (fits := _ROW.match(line))]
    return {fits[1]: (fits[2], re.findall(r"`([^`]+::[^`]+)`", fits[3]), fits[4].strip()) for fits in found}


@cache
def named() -> dict[str, set[str]]:
    """Return the ids that each test names in its docstring, by ``file::test``."""
    return {test: set(ids(docstring)) for test, docstring in docstrings().items()}


def test_lists_and_ranges_of_requirements_are_read() -> None:
    assert list(ids("SEQ-001, 009 to 011, W-06; SEQ-118 to SEQ-120 and 194: as SEQ-002.")) == [
        f"SEQ-{number:03}" for number in (1, 9, 10, 11, 118, 119, 120, 194, 2)
    ]


def test_the_table_has_the_requirements_of_the_specification() -> None:
    assert {requirement: row[0] for requirement, row in rows().items()} == specified()


def test_there_are_rows() -> None:
    found = list(rows())
    assert found == sorted(found)
    assert (found[0], found[-1]) == ("SEQ-001", "SEQ-195")


@pytest.mark.parametrize("requirement", rows())
def test_each_requirement_has_tests_that_name_it_or_a_reason(requirement: str) -> None:
    _, tests, reason = rows()[requirement]
    assert tests or reason, "neither a test nor a reason"
    for test in tests:
        assert test in named(), f"{test} does not exist"
        assert requirement in named()[test], f"{test} does not name {requirement}"


def test_what_is_named_by_tests_alone_is_in_the_table_with_a_test() -> None:
    """A requirement that a test names is not listed as one without any."""
    table = rows()
    driven = set().union(*named().values()) & set(table)
    assert not sorted(requirement for requirement in driven if not table[requirement][1])
