"""The table of the errors that the multi-cloud API describes is complete, and its tests exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

from callers.documented import an_app, documents
from contracts.named_tests import docstrings
from kubevnfm_lcm_api.http.routes import ROUTES

PREFIX: Final = "/multicloud/v1"
METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})


@cache
def lines() -> list[list[str]]:
    """Return the cells of each row of both tables."""
    text = Path(__file__).with_name("multicloud_errors.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|-")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def own_rows() -> dict[tuple[str, str, int], tuple[list[str], str]]:
    """Return by method, path and status the tests, and the note."""
    of_routes = [row for row in lines() if row[0] in METHODS]
    return {
        (method, PREFIX + path.strip("`"), int(status)): (re.findall("`([^`]+)`", tests), note)
        for method, path, status, tests, note in of_routes
    }


def described() -> dict[tuple[str, str], set[int]]:
    """Return the errors that the document describes, by method and path."""
    paths = documents()[PREFIX]["paths"]
    return {
        (method.upper(), path): {int(each) for each in operation["responses"] if each.isdigit() and int(each) >= 400}
        for path, methods in paths.items()
        for method, operation in methods.items()
    }


def test_each_described_error_is_in_the_table_with_a_test_or_a_reason() -> None:
    """MC-128."""
    of_all = {int(status) for row in lines() if row[0][:1].isdigit() for status in row[0].split(", ")}
    routes = {key: route for key, route in an_app()[ROUTES].items() if key[1].startswith(PREFIX)}
    assert routes.keys() == described().keys()
    own = {
        (method, path, status)
        for (method, path), route in routes.items()
        for status in {*route.refusals, *([412] if route.conditions else [])}
    }
    assert own_rows().keys() == own
    assert {status for found in described().values() for status in found} - of_all == {409, 412, 422}
    for (method, path), statuses in described().items():
        assert {each for each in statuses - of_all if (method, path, each) not in own} == set(), path
    assert [key for key, (tests, note) in own_rows().items() if not (tests or note)] == []


def test_reads_alone_are_described_to_answer_304() -> None:
    """MC-128."""
    paths = documents()[PREFIX]["paths"]
    known = {
        method for methods in paths.values() for method, operation in methods.items() if "304" in operation["responses"]
    }
    assert known == {"get"}


def test_the_tests_of_the_table_exist() -> None:
    named = [test for row in lines() for test in re.findall(r"`(\S+::\w+)`", " ".join(row))]
    assert len(named) > 50
    assert [test for test in named if test not in docstrings()] == []
