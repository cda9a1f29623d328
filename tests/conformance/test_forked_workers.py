"""Workers of pytest-xdist that are forked after one collection do and report what ordinary workers do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

from plugins.unchanged import PROJECT

TESTS = """
import os, sys, threading
from pathlib import Path
import pytest

with open("collections", "a") as file:
    file.write("once ")

if os.environ.get("WITH_THREAD"):
    threading.Thread(target=threading.Event().wait, daemon=True).start()

def test_folders_and_names(tmp_path, worker_id):
    assert f"popen-{worker_id}" in tmp_path.parts and worker_id == os.environ["PYTEST_XDIST_WORKER"]

def test_standard_streams(capfd):
    print("to standard output")
    print("to standard error", file=sys.stderr)
    os.system("echo of a program")
    assert os.read(0, 1) == b"" and capfd.readouterr() == ("to standard output\\nof a program\\n", "to standard error\\n")
    assert threading.current_thread() is threading.main_thread()

def test_a_failure_shows_its_values():
    print("printed before")
    found = 2
    assert found + 1 == 4

def test_an_end_of_the_worker():
    os._exit(3)

@pytest.mark.parametrize("number", range(8))
def test_others(number):
    print(f"number {number}")
"""


def run(folder: Path, **environment: str) -> tuple[str, dict[str, tuple[str, str]]]:
    """Run these tests in two workers; return what is printed, and for each test its outcome and what the report says of it."""
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_forked.py").write_text(TESTS)
    (folder / "test_not_collected.py").write_text("import no_such_module\n")
    (folder / "test_skipped.py").write_text("import pytest\npytest.skip('no server', allow_module_level=True)\n")
    (folder / "test_warning.py").write_text("import warnings\nwarnings.warn('seen once')\n")
    plugins = ("-p", "xdist", "-p", "plugins.forked_workers", "-n", "2")
    reports = ("-rs", "--junitxml", "report.xml", "-o", "junit_logging=all", "--continue-on-collection-errors")
    ours = {"PYTHONPATH": str(PROJECT / "tests/support"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    others = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", *plugins, *reports]
    done = subprocess.run(
        command,
        check=False,
        cwd=folder,
        env={**others, **ours, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    outcomes = {}
    for case in ET.parse(folder / "report.xml").iter("testcase"):
        kinds = {part.tag for part in case} & {"failure", "error", "skipped"}
        outcomes[case.attrib["name"]] = ("".join(kinds) or "passed", "".join(case.itertext()))
    return done.stdout + done.stderr, outcomes


def test_workers_are_forked_after_one_collection_and_report_as_ordinary_workers(tmp_path: Path) -> None:
    printed, outcomes = run(tmp_path / "forked")
    assert (tmp_path / "forked/collections").read_text() == "once "
    assert "forked_workers: " not in printed
    kinds = {name: kind for name, (kind, _) in outcomes.items()}
    assert kinds == {
        "test_folders_and_names": "passed",
        "test_standard_streams": "passed",
        "test_a_failure_shows_its_values": "failure",
        "test_an_end_of_the_worker": "error",
        **{f"test_others[{number}]": "passed" for number in range(8)},
        "test_not_collected": "error",
        "test_skipped": "skipped",
    }
    assert "assert (2 + 1) == 4" in outcomes["test_a_failure_shows_its_values"][1]
    assert "printed before" in outcomes["test_a_failure_shows_its_values"][1]
    assert all(f"number {number}\n" in outcomes[f"test_others[{number}]"][1] for number in range(8))
    assert "no_such_module" in outcomes["test_not_collected"][1]
    assert "no server" in outcomes["test_skipped"][1]

    # The process that collects has a thread, which a fork would not have.
    printed_then, outcomes_then = run(tmp_path / "ordinary", WITH_THREAD="yes")
    assert printed_then.count("forked_workers: not used, as the collection has started threads") == 1
    assert printed_then.count("this worker collects for itself") == 3
    assert (tmp_path / "ordinary/collections").read_text() == "once " * 4
    assert {name: kind for name, (kind, _) in outcomes_then.items()} == kinds
    assert printed.count("seen once") == printed_then.count("seen once") > 0
