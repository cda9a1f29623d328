"""The table of requirements is complete and agrees with the tests and with the specification."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from named_tests import docstrings

PROJECT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("api_requirements.md")
SPECIFICATION = PROJECT / "docs/specification/api.md"
_REQUIREMENT = re.compile(r"^- (API-\d{3}) (.*)$")
_ROW = re.compile(r"^\| (API-\d{3}) \| (.*?) \| (.*?) \| (.*?) \|$")


def rows() -> dict[str, tuple[str, list[str], str]]:
    """Return by id the requirement, its tests, and the note on what is not tested."""
    found = [fits for line in TABLE.read_text(encoding="utf-8").splitlines() if (fits := _ROW.match(line))]
    return {fits[1]: (fits[2], re.findall(r"`([^`]+)`", fits[3]), fits[4].strip()) for fits in found}


@cache
def named() -> dict[str, set[str]]:
    """Return the ids that each test names in its docstring, by ``file::test``."""
    return {test: set(re.findall(r"API-\d{3}", docstring)) for test, docstring in docstrings().items()}


def test_the_table_has_the_requirements_of_the_specification() -> None:
    lines = SPECIFICATION.read_text(encoding="utf-8").splitlines()
    specified = {fits[1]: fits[2] for line in lines if (fits := _REQUIREMENT.match(line))}
    assert {requirement: row[0] for requirement, row in rows().items()} == specified


def test_there_are_rows() -> None:
    ids = list(rows())
    assert ids == sorted(ids)
    assert (ids[0], ids[-1]) == ("API-001", "API-159")


@pytest.mark.parametrize("requirement", rows())
def test_each_requirement_has_tests_that_name_it_or_a_reason(requirement: str) -> None:
    asks, tests, reason = rows()[requirement]
    assert asks
    assert tests or reason, "neither a test nor a reason"
    for test in tests:
        assert test in named(), f"{test} does not exist"
        assert requirement in named()[test], f"{test} does not name {requirement}"


def test_no_test_names_an_unknown_requirement() -> None:
    known = set(rows())
    unknown = {test: ids - known for test, ids in named().items() if ids - known}
    assert not unknown
