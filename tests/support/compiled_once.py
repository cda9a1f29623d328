"""A pytest plugin: before several workers start, what has no byte code yet is compiled, each file once, on all cores.

In a clean clone each worker would otherwise compile all modules and rewrite the assertions of all tests, at the same time as the others.
That takes it as long as to collect the tests.
"""

from __future__ import annotations

import compileall
import os
import sys
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import pytest
from _pytest.assertion import rewrite

PROJECT: Final = Path(__file__).parents[2]
_MEMBERS: Final = ("proto-events", "libs/*", "services/*", "deploy/*")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Compile what the workers import."""
    if sys.dont_write_bytecode:
        return
    modules = [path for member in _MEMBERS for path in PROJECT.glob(f"{member}/kubevnfm*/**/*.py")]
    tests = [path for member in (*_MEMBERS, ".") for path in PROJECT.glob(f"{member}/tests/**/*.py")]
    files = [*modules, *(path for path in tests if "fixtures" not in path.parts)]
    count = os.cpu_count() or 1
    # A forked process has the configuration, by which assertions are rewritten.
    parts = [get_context("fork").Process(target=_compile, args=(config, files[n::count])) for n in range(count)]
    for part in parts:
        part.start()
    for part in parts:
        part.join()


def _compile(config: pytest.Config, files: Sequence[Path]) -> None:
    """Do what an import does, but for the run of the module. A file with errors is left to its import, which reports them."""
    for path in files:
        if path.name != "conftest.py" and not path.name.startswith("test_"):
            compileall.compile_file(path, quiet=2)
            continue
        folder = rewrite.get_cache_dir(path)
        cached = folder / f"{path.stem}{rewrite.PYC_TAIL}"
        if not cached.exists() and rewrite.try_makedirs(folder):
            try:
                digest, code = rewrite._rewrite_test(path, config)
            except SyntaxError:
                continue
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, digest, cached)
