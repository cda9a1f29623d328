"""A pytest plugin: ``--leave-out-unchanged`` leaves out tests of other programs that passed with all that they use as it is now.

Other programs are those that are not the product itself, or attack it. `RECORD` has, for each file whose tests all ran and passed, a
digest of what they use; ``--record-passed`` writes it. In doubt a test runs: if git does not answer, and after each change of a file that
is neither a module nor a text for readers. The summary names the files that were left out.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from xdist.workermanage import WorkerController

PROJECT: Final = Path(__file__).parents[3]
OTHER_PROGRAMS: Final = ("deploy/lab/tests", "libs/sandbox/tests", "tests/attack", "tests/fuzz")
"""Folders of tests that are left out where unchanged."""
RECORD: Final = PROJECT / "tests/passed.json"
"""The digest of each file of tests that passed, by its path."""
PRODUCT: Final = ("proto-events", "libs", "services", "deploy")
_SUPPORT: Final = PROJECT / "tests/support"
_MEMBERS: Final = tuple(sorted(one.parent for folder in PRODUCT for one in (PROJECT / folder).rglob("pyproject.toml")))
_PACKAGES: Final = frozenset(one.parent for member in _MEMBERS for one in member.glob("kubevnfm*/__init__.py"))
_IMPORTS: Final = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>[\w.]+)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n]+)|import[ \t]+(?P<modules>[^\n]+))",
    re.MULTILINE,
)
"""An import statement, or a line of a text that looks like one: a test that uses too much runs too often. To parse all modules takes 3 s."""
_STARTER: Final = _SUPPORT / "servers/processes.py"
"""A test that imports it, directly or not, starts programs, so it uses the whole product. So do tests that name the types of fixtures."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    parser.addoption("--leave-out-unchanged", action="store_true", help="leave out unchanged tests of other programs")
    parser.addoption("--record-passed", action="store_true", help="record which tests of other programs have passed")


def pytest_configure(config: pytest.Config) -> None:
    """Decide before tests are collected."""
    asked = config.getoption("--record-passed") or config.getoption("--leave-out-unchanged")
    decided = getattr(config, "workerinput", {}).get("left_out")
    if decided is not None:
        config.pluginmanager.register(LeftOut({PROJECT / name for name in decided}))
    elif not asked or hasattr(config, "workerinput") or (found := contents()) is None:
        return
    elif config.getoption("--record-passed"):
        if config.getoption("keyword"):
            raise pytest.UsageError("--record-passed: without -k expected, which leaves out tests of a file")
        config.pluginmanager.register(Passed(found))
    elif RECORD.exists():
        config.pluginmanager.register(LeftOut(left_out(found, json.loads(RECORD.read_bytes()))))


class LeftOut:
    """The files that are left out."""

    def __init__(self, files: Set[Path]) -> None:
        self._files = files

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: WorkerController) -> None:
        """Pass the decision on to a worker."""
        node.workerinput["left_out"] = [str(path.relative_to(PROJECT)) for path in self._files]

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave the file out."""
        return True if collection_path in self._files else None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the files."""
        if self._files:
            terminalreporter.section("LEFT OUT, because they passed with what they use; `deep` runs have them")
            for path in sorted(self._files):
                terminalreporter.line(f"LEFT OUT {path.relative_to(PROJECT)}")


class Passed:
    """The files whose tests have all passed; a skipped test has proven nothing."""

    def __init__(self, found: Mapping[Path, str]) -> None:
        self._found = found
        self._outcomes: dict[str, set[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of a part of a test."""
        self._outcomes.setdefault(report.nodeid.split("::")[0], set()).add(report.outcome)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the record, unless the run was ended before all tests had run."""
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            RECORD.write_text(json.dumps(self.record(), indent=0, sort_keys=True) + "\n", encoding="utf-8")

    def record(self) -> Mapping[str, str]:
        """Return the digests of the files of other programs that passed whole."""
        passed = {PROJECT / name for name, outcomes in self._outcomes.items() if outcomes == {"passed"}}
        digests = digests_of(self._found)
        return {name: digest for name, digest in digests.items() if PROJECT / name in passed}


def contents() -> Mapping[Path, str] | None:
    """Return the digest of each file of the project; None if git does not say which they are."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    paths = (PROJECT / name for name in done.stdout.splitlines())
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths if path.is_file()}


def left_out(found: Mapping[Path, str], recorded: Mapping[str, str]) -> Set[Path]:
    """Return the files of tests that passed with these contents."""
    return {PROJECT / name for name, digest in digests_of(found).items() if recorded.get(name) == digest}


def digests_of(found: Mapping[Path, str]) -> Mapping[str, str]:
    """Return, for each file of tests of other programs, the digest of all that it uses."""
    programs = {path: digest for path, digest in found.items() if path.suffix != ".md" and path != RECORD}
    always = {path for path in programs if not _has_known_use(path)}
    product = {path for path in programs if path.relative_to(PROJECT).parts[0] in PRODUCT}
    # Sorted and written once for all tests, as most of them use most of the files.
    lines = [(path, f"{path.relative_to(PROJECT)} {programs[path]}") for path in sorted(programs)]
    digests = {}
    for test in (test for folder in OTHER_PROGRAMS for test in (PROJECT / folder).rglob("test_*.py")):
        used = always | (used_by(test) & programs.keys())
        if _STARTER in used:
            used |= product
        text = [_machine(), *(line for path, line in lines if path in used)]
        digests[str(test.relative_to(PROJECT))] = hashlib.sha256("\n".join(text).encode()).hexdigest()
    return digests


@cache
def _machine() -> str:
    """Return what tests prove more or less on: the Python, and whether processes can be confined."""
    # Not at the top: the modules of workers' tests are imported after their plugins, with rewritten assertions.
    from contracts.sandbox_kernel import refusal

    return f"{platform.python_version()} {refusal()}"


@cache
def _has_known_use(path: Path) -> bool:
    """Return whether imports say which tests use the file. Python code is data too, for example in packages of VNFs."""
    if path.suffix != ".py":
        return False
    is_test = path.name == "conftest.py" or path.name.startswith("test_")
    return is_test or _SUPPORT in path.parents or not _PACKAGES.isdisjoint(path.parents)


@cache
def used_by(test: Path) -> Set[Path]:
    """Return the project's modules that a test file imports, directly or not, with its plugins and the fixtures of its folders.

    It uses all modules of a package that it imports: some are programs, or are imported under another name in a program.
    """
    fixtures = {folder / "conftest.py" for folder in test.parents if PROJECT in folder.parents}
    # The fixtures of all tests start programs; tests that use them import their types.
    own = [path for path in fixtures - {PROJECT / "tests/conftest.py"} if path.exists()]
    found, waiting = set(fixtures), {test, *own, *_plugins()}
    while waiting:
        path = waiting.pop()
        found.add(path)
        waiting |= _imported(path) - found
    return found


@cache
def _imported(path: Path) -> Set[Path]:
    """Return the project's modules that a module imports, inside functions too."""
    text = path.read_text(encoding="utf-8")
    return {file for found in _IMPORTS.finditer(text) for name in _names(found) for file in _files(name)}


def _names(found: re.Match[str]) -> Iterator[str]:
    # The project has no relative imports. Other names in the match, those after `as` and of comments, are no modules.
    if found["module"]:
        yield from (f"{found['module']}.{one}" for one in re.findall(r"\w+", found["names"]))
    else:
        yield from re.findall(r"[\w.]+", found["modules"])


@cache
def _files(name: str) -> Set[Path]:
    """Return the files that an import of the dotted name may run."""
    parts = name.split(".")
    for member in _MEMBERS:
        if (package := member / parts[0]) in _PACKAGES:
            return _modules(package)
    paths = [_SUPPORT.joinpath(*parts[:length]) for length in range(1, len(parts) + 1)]
    return {file for path in paths for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()}


@cache
def _modules(package: Path) -> Set[Path]:
    return frozenset(package.rglob("*.py"))


@cache
def _plugins() -> Set[Path]:
    """Return the plugins that pytest loads for each test."""
    options = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    return {file for name in re.findall(r"-p ([\w.]+)", options["addopts"]) for file in _files(name)}
