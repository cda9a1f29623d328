"""A pytest plugin: ``--leave-out-unchanged`` leaves out tests of other programs if nothing that they use has changed.

Other programs are those that are not the product itself, or attack it. Changed is what differs from the branch's base on ``origin/main``.
In doubt a test runs: if git does not answer, on ``main`` itself, which does not say what was tested last, and after each change of a
file that is neither a module nor a text for readers, or is gone. The summary names the files that were left out.
"""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
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
_SUPPORT: Final = PROJECT / "tests/support"
_MEMBERS: Final = tuple(sorted(one.parent for folder in PRODUCT for one in (PROJECT / folder).rglob("pyproject.toml")))
_PACKAGES: Final = frozenset(one.parent for member in _MEMBERS for one in member.glob("kubevnfm*/__init__.py"))
_STARTER: Final = _SUPPORT / "processes.py"
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
    if not all(_has_known_use(path) for path in relevant):
        return frozenset()
    is_product_changed = any(path.relative_to(PROJECT).parts[0] in PRODUCT for path in relevant)
    return {
        test
        for folder in OTHER_PROGRAMS
        for test in (PROJECT / folder).rglob("test_*.py")
        if not (used := used_by(test)) & relevant and not (is_product_changed and _STARTER in used)
    }


def _has_known_use(path: Path) -> bool:
    """Return whether imports say which tests use the file. Python code is data too, for example in packages of VNFs."""
    if path.suffix != ".py" or not path.exists():
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
    return {
        file for node in _statements(ast.parse(path.read_bytes())) for name in _names(node) for file in _files(name)
    }


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements below the node, and not their expressions, which are nine in ten nodes."""
    for field in ("body", "handlers", "orelse", "finalbody", "cases"):
        for child in getattr(node, field, ()):
            yield child
            yield from _statements(child)


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (one.name for one in node.names)
    elif isinstance(node, ast.ImportFrom):
        # The project has no relative imports.
        yield from (f"{node.module}.{one.name}" for one in node.names)


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
    return {_SUPPORT / f"{name}.py" for name in re.findall(r"-p (\w+)", options["addopts"])}
