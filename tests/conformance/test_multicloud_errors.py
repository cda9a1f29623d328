"""The tables of the errors that the documents of multi-cloud and of ONAP's paths describe are complete, and their tests exist."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from callers.documented import an_onap_app, documents, onap_document
from contracts.named_tests import docstrings
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_lcm_api.http.documents import Document, document_of
from kubevnfm_lcm_api.http.routes import ROUTES
from kubevnfm_lcm_api.multicloud.services import DOCUMENT as MULTICLOUD
from kubevnfm_lcm_api.onap.answers import DOCUMENT as ONAP

METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True)
class Described:
    """A document, and the table of its errors."""

    table: str
    about: Document
    prefix: str
    """The beginning of all paths, which the table leaves out."""
    own: frozenset[int]
    """The errors that routes alone describe."""

    def lines(self) -> list[list[str]]:
        """Return the cells of each row of both tables."""
        return lines(self.table)

    def rows(self) -> dict[tuple[str, str, int], tuple[list[str], str]]:
        """Return by method, path and status the tests, and the note."""
        of_routes = [row for row in self.lines() if row[0] in METHODS]
        return {
            (method, self.prefix + path.strip("`"), int(status)): (re.findall("`([^`]+)`", tests), note)
            for method, path, status, tests, note in of_routes
        }

    def paths(self) -> JsonMapping:
        """Return the paths of the document."""
        found: JsonMapping = (onap_document() if self.about == ONAP else documents()[self.about.prefix])["paths"]
        return found

    def errors(self) -> dict[tuple[str, str], set[int]]:
        """Return the errors that the document describes, by method and path."""
        return {
            (method.upper(), path): {
                int(each) for each in operation["responses"] if each.isdigit() and int(each) >= 400
            }
            for path, methods in self.paths().items()
            for method, operation in methods.items()
        }


OURS: Final = Described("multicloud_errors.md", MULTICLOUD, MULTICLOUD.prefix, frozenset({409, 412, 422}))
ONAPS: Final = Described("onap_errors.md", ONAP, "", frozenset({400, 409}))


@cache
def lines(table: str) -> list[list[str]]:
    text = Path(__file__).with_name(table).read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|-")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


@pytest.mark.parametrize("document", [OURS, ONAPS], ids=["ours", "onap"])
def test_each_described_error_is_in_the_table_with_a_test_or_a_reason(document: Described) -> None:
    """MC-128."""
    of_all = {int(status) for row in document.lines() if row[0][:1].isdigit() for status in row[0].split(", ")}
    app, described = an_onap_app(), document.errors()
    routes = {key: route for key, route in app[ROUTES].items() if document_of(app, key[1]) == document.about}
    assert routes.keys() == described.keys()
    own = {
        (method, path, status)
        for (method, path), route in routes.items()
        for status in {*route.refusals, *([412] if route.conditions else [])}
    }
    assert document.rows().keys() == own
    assert {status for found in described.values() for status in found} - of_all == document.own
    for (method, path), statuses in described.items():
        assert {each for each in statuses - of_all if (method, path, each) not in own} == set(), path
    assert [key for key, (tests, note) in document.rows().items() if not (tests or note)] == []


def test_reads_alone_are_described_to_answer_304() -> None:
    """MC-128."""
    known = {
        method
        for methods in OURS.paths().values()
        for method, operation in methods.items()
        if "304" in operation["responses"]
    }
    assert known == {"get"}


@pytest.mark.parametrize("document", [OURS, ONAPS], ids=["ours", "onap"])
def test_the_tests_of_the_table_exist(document: Described) -> None:
    named = [test for row in document.lines() for test in re.findall(r"`(\S+::\w+)`", " ".join(row))]
    assert len(named) > 50
    assert [test for test in named if test not in docstrings()] == []
