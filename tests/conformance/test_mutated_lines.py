"""`tests/mutations` runs seldom, so whether it still can change its lines, and has their tests, is held here."""

from __future__ import annotations

from pathlib import Path

import pytest
from contracts.mutated_lines import MUTATIONS, Mutation

PROJECT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.line)
def test_the_line_stands_once_in_its_package_and_its_tests_exist(mutation: Mutation) -> None:
    assert len(mutation.places(PROJECT / mutation.package)) == 1
    assert mutation.becomes != mutation.line
    assert [test for test in mutation.tests.split() if not (PROJECT / test.split("::")[0]).exists()] == []


def test_each_service_and_lib_has_a_line() -> None:
    members = {path.parent for folder in ("libs", "services") for path in (PROJECT / folder).glob("*/pyproject.toml")}
    members.add(PROJECT / "proto-events")
    assert {(PROJECT / mutation.package).parent for mutation in MUTATIONS} == members
