"""A pytest plugin: ``--leave-out-unchanged`` leaves out tests of other programs if nothing that they use has changed.

Other programs are those that are not the product itself, or attack it. Changed is what differs from the branch's base on ``origin/main``.
In doubt a test runs: if git does not answer, on ``main`` itself, which does not say what was tested last, and after each change of a
file that is neither Python nor a text for readers. The summary names the files that were left out.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator, Set
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from xdist.workermanage import WorkerController

PROJECT: Final = Path(__file__).parents[2]
OTHER_PROGRAMS: Final = ("deploy/lab/tests", "libs/sandbox/tests", "tests/attack", "tests/fuzz")
"""Folders of tests that are left out where unchanged."""
PRODUCT: Final = ("proto-events", "libs", "services", "deploy")
_ROOTS: Final = (
    *sorted(one.parent for folder in PRODUCT for one in (PROJECT / folder).rglob("pyproject.toml")),
    PROJECT / "tests/support",
)
_STARTER: Final = PROJECT / "tests/support/processes.py"
"""A test that imports it, directly or not, starts programs, so it uses the whole product. So do tests that name the types of fixtures."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--leave-out-unchanged", action="store_true", help="leave out unchanged tests of other programs")


def pytest_configure(config: pytest.Config) -> None:
    """Decide before tests are collected."""
    if not config.getoption("--leave-out-unchanged"):
        return
    decided = getattr(config, "workerinput", {}).get("left_out")
    if decided is not None:
        config.pluginmanager.register(LeftOut({PROJECT / name for name in decided}))
    elif (changes := changed_files()) is not None:
        config.pluginmanager.register(LeftOut(left_out(changes)))


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
            terminalreporter.section("LEFT OUT, because nothing that they use has changed; `deep` runs have them")
            for path in sorted(self._files):
                terminalreporter.line(f"LEFT OUT {path.relative_to(PROJECT)}")


def changed_files() -> Set[Path] | None:
    """Return what has changed since the base, with files that git does not know yet; None if git does not say."""
    try:
        head, base = _git("rev-parse", "HEAD"), _git("merge-base", "HEAD", "origin/main")
        if base == head:
            return None
        names = _git("diff", "--name-only", "--no-renames", base[0])
        return {PROJECT / name for name in [*names, *_git("ls-files", "--others", "--exclude-standard")]}
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*command: str) -> list[str]:
    done = subprocess.run(["git", *command], cwd=PROJECT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def left_out(changes: Set[Path]) -> Set[Path]:
    """Return the test files of other programs that use nothing of the changes."""
    relevant = {path for path in changes if path.suffix != ".md"}
    if any(path.suffix != ".py" for path in relevant):
        return frozenset()
    is_product_changed = any(path.relative_to(PROJECT).parts[0] in PRODUCT for path in relevant)
    return {
        test
        for folder in OTHER_PROGRAMS
        for test in (PROJECT / folder).rglob("test_*.py")
        if not (used := used_by(test)) & relevant and not (is_product_changed and _STARTER in used)
    }


def used_by(test: Path) -> Set[Path]:
    """Return the project's modules that a test file imports, directly or not, with the fixtures of its folders."""
    fixtures = {folder / "conftest.py" for folder in test.parents if PROJECT in folder.parents}
    # The fixtures of all tests start programs; tests that use them import their types.
    own = [path for path in fixtures - {PROJECT / "tests/conftest.py"} if path.exists()]
    found, waiting = set(fixtures), [test, *own]
    while waiting:
        path = waiting.pop()
        found.add(path)
        waiting += [each for each in _imported(path) if each not in found]
    return found


@cache
def _imported(path: Path) -> Set[Path]:
    """Return the project's modules that a module imports, inside functions too."""
    tree = ast.parse(path.read_bytes())
    return {file for node in ast.walk(tree) for name in _names(node) for file in _files(name)}


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (one.name for one in node.names)
    elif isinstance(node, ast.ImportFrom):
        # The project has no relative imports.
        yield from (f"{node.module}.{one.name}" for one in node.names)


@cache
def _files(name: str) -> Set[Path]:
    """Return the files that an import of the dotted name runs."""
    parts = name.split(".")
    paths = [root.joinpath(*parts[:length]) for length in range(1, len(parts) + 1) for root in _ROOTS]
    return {file for path in paths for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()}
