"""The table of the scenarios of the multi-cloud API is complete, and each has tests on the lab and on a real API server."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

from contracts.named_tests import docstrings

PROJECT: Final = Path(__file__).parents[2]
REAL: Final = ("tests/kubernetes/", "services/infra-k8s/tests/either/")
"""The tests that `make test-kubernetes` runs."""


@cache
def rows() -> dict[int, tuple[list[str], list[str], str]]:
    """Return by scenario the tests on the lab, those on a real API server, and the note on what is not shown."""
    lines = Path(__file__).with_name("multicloud_scenarios.md").read_text(encoding="utf-8").splitlines()
    found = [line.strip("|").split("|") for line in lines if re.match(r"\| \d+ \|", line)]
    return {
        int(number): (re.findall("`([^`]+)`", lab), re.findall("`([^`]+)`", real), note.strip())
        for number, lab, real, note in found
    }


def test_the_table_has_the_scenarios_of_the_specification() -> None:
    text = (PROJECT / "docs/specification/multicloud.md").read_text(encoding="utf-8")
    chapter = text.partition("## 17. Scenarios")[2].partition("\n## ")[0]
    assert list(rows()) == [int(each) for each in re.findall(r"^(\d+)\. ", chapter, re.MULTILINE)]


def test_each_scenario_is_driven_on_the_lab_and_on_a_real_api_server() -> None:
    assert [number for number, (lab, _, _) in rows().items() if not lab] == []
    assert [number for number, (_, real, note) in rows().items() if not (real or note)] == []


def test_the_tests_exist_and_run_where_the_table_says() -> None:
    every = [(number, test) for number, (lab, real, _) in rows().items() for test in [*lab, *real]]
    assert [(number, test) for number, test in every if test not in docstrings()] == []
    assert [test for _, real, _ in rows().values() for test in real if not test.startswith(REAL)] == []
    assert [test for lab, _, _ in rows().values() for test in lab if test.startswith("tests/kubernetes/")] == []
