"""A pytest plugin: the processor time of each test file, with the programs that it starts.

``pytest --processor-time FILE`` writes a line for each file: seconds in the test process, seconds in programs that it started, number of
tests, path. A fixture of the session counts for the test that needs it first.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

TICKS = os.sysconf("SC_CLK_TCK")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--processor-time", metavar="FILE", help="write the processor time of each test file to FILE")


def pytest_configure(config: pytest.Config) -> None:
    """Measure where tests run, and sum up where reports arrive."""
    if config.getoption("--processor-time"):
        config.pluginmanager.register(Measured())
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(Summed(Path(config.getoption("--processor-time"))))


class Measured:
    """Each phase of a test reports the processor time since the phase before it."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Begin where the tests do: a worker that is forked after the collection has its own processor time."""
        self._own, self._programs = time.process_time(), programs_seconds(os.getpid())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add both figures to the report."""
        report = yield
        own, programs = time.process_time(), programs_seconds(os.getpid())
        report.user_properties.append(("processor_time", (own - self._own, programs - self._programs)))
        self._own, self._programs = own, programs
        return report


class Summed:
    """The sums by file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._own: defaultdict[str, float] = defaultdict(float)
        self._programs: defaultdict[str, float] = defaultdict(float)
        self._tests: defaultdict[str, int] = defaultdict(int)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a phase."""
        name = report.nodeid.partition("::")[0]
        self._tests[name] += report.when == "call"
        for what, figures in report.user_properties:
            if what == "processor_time" and isinstance(figures, (tuple, list)):
                self._own[name] += figures[0]
                self._programs[name] += figures[1]

    def pytest_sessionfinish(self) -> None:
        """Write the table, the most expensive file first."""
        names = sorted(self._own, key=lambda name: self._own[name] + self._programs[name], reverse=True)
        self._path.write_text(
            "".join(f"{self._own[n]:8.1f} {self._programs[n]:8.1f} {self._tests[n]:5} {n}\n" for n in names),
            encoding="utf-8",
        )


def programs_seconds(pid: int) -> float:
    """The processor time of the programs that this process started, running or ended, and of those that they started."""
    children = [child for thread in _threads(pid) for child in _children(thread)]
    return _ticks(pid, 13, 14) + sum(_ticks(child, 11, 12) + programs_seconds(child) for child in children)


def _threads(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []


def _children(thread: Path) -> list[int]:
    try:
        return [int(child) for child in (thread / "children").read_text().split()]
    except OSError:
        return []


def _ticks(pid: int, *fields: int) -> float:
    """Fields of ``/proc/PID/stat`` in seconds; 0 for a process that has ended."""
    try:
        found = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(int(found[field]) for field in fields) / TICKS
