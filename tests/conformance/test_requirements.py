"""The tables of requirements are complete and agree with the tests and with the specification."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from contracts.named_tests import docstrings

PROJECT = Path(__file__).parents[2]
NUMBER = r"\d{3}[a-z]?\b"
"""The number of a requirement. A letter: it has been added between two others."""


@dataclass(frozen=True)
class Table:
    """A table of requirements: the prefix of their ids, its file, and the page of the specification they come from."""

    prefix: str
    file: str
    specification: str
    last: str


@cache
def rows(table: Table) -> dict[str, tuple[str, list[str], str]]:
    """Return by id the requirement, its tests, and the note on what is not tested."""
    cell = r" ((?:\\\||[^|])*?) \|"
    row = re.compile(rf"^\| ({table.prefix}-{NUMBER}) \|{cell * 3}$")
    lines = Path(__file__).with_name(table.file).read_text(encoding="utf-8").splitlines()
    found = [fits for line in lines if (fits := row.match(line))]
    assert all(one[1] < other[1] for one, other in pairwise(found)), "the rows are in the order of their ids"
    return {
        fits[1]: (fits[2].replace(r"\|", "|"), re.findall(r"`([^`]+::[^`]+)`", fits[3]), fits[4].strip())
        for fits in found
    }


def specified(table: Table) -> dict[str, str]:
    """Return what each requirement asks for, by id."""
    requirement = re.compile(rf"^- ({table.prefix}-{NUMBER}) (.*)$")
    lines = (PROJECT / "docs/specification" / table.specification).read_text(encoding="utf-8").splitlines()
    return {fits[1]: fits[2] for line in lines if (fits := requirement.match(line))}


@cache
def named(table: Table) -> dict[str, set[str]]:
    """Return the ids that each test names in its docstring, by ``file::test``."""
    return {test: set(ids(table.prefix, docstring)) for test, docstring in docstrings().items()}


TABLES = [
    Table("API", "api_requirements.md", "api.md", last="API-261"),
    Table("SEQ", "sequence_requirements.md", "sequences.md", last="SEQ-195"),
    Table("CR", "capi_requirements.md", "capi.md", last="CR-127"),
    Table("MC", "multicloud_requirements.md", "multicloud.md", last="MC-142"),
]
BY_PREFIX = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.prefix)


def ids(prefix: str, text: str) -> Iterator[str]:
    """Yield the requirements that a text names, also those of ``SEQ-001, 002, 009 to 012`` and those within a range."""
    for found in re.findall(rf"\b{prefix}-{NUMBER}(?:(?:,| to| and| or)\s+(?:{prefix}-)?{NUMBER})*", text):
        last = 0
        for joint, number in re.findall(rf"(to\s+)?(?:{prefix}-)?({NUMBER})", found):
            between = range(last + 1 if joint else int(number[:3]), int(number[:3]))
            yield from (f"{prefix}-{each:03}" for each in between)
            yield f"{prefix}-{number}"
            last = int(number[:3])


def test_lists_and_ranges_of_requirements_are_read() -> None:
    assert list(ids("SEQ", "SEQ-001, 009 to 011, W-06; SEQ-118 to SEQ-120 and 194: as SEQ-002.")) == [
        f"SEQ-{number:03}" for number in (1, 9, 10, 11, 118, 119, 120, 194, 2)
    ]
    assert list(ids("MC", "MC-106, 106a and MC-106d; MC-106b")) == ["MC-106", "MC-106a", "MC-106d", "MC-106b"]


@BY_PREFIX
def test_the_table_has_the_requirements_of_the_specification(table: Table) -> None:
    assert {requirement: row[0] for requirement, row in rows(table).items()} == specified(table)


@BY_PREFIX
def test_there_are_rows(table: Table) -> None:
    found = list(rows(table))
    assert (found[0], found[-1]) == (f"{table.prefix}-001", table.last)


@BY_PREFIX
def test_each_requirement_has_tests_that_name_it_or_a_reason(table: Table) -> None:
    found = rows(table)
    assert [
        f"{one}: neither a test nor a reason" for one, (_, tests, reason) in found.items() if not (tests or reason)
    ] == []
    pairs = [(one, test) for one, (_, tests, _) in found.items() for test in tests]
    assert [f"{one}: {test} does not exist" for one, test in pairs if test not in named(table)] == []
    assert [f"{test} does not name {one}" for one, test in pairs if one not in named(table)[test]] == []


@BY_PREFIX
def test_what_is_named_by_tests_alone_is_in_the_table_with_a_test(table: Table) -> None:
    """A requirement that a test names is not listed as one without any."""
    found = rows(table)
    driven = set().union(*named(table).values()) & set(found)
    assert not sorted(requirement for requirement in driven if not found[requirement][1])


@BY_PREFIX
def test_no_test_names_an_unknown_requirement(table: Table) -> None:
    known = set(rows(table))
    unknown = {test: found - known for test, found in named(table).items() if found - known}
    assert not unknown
