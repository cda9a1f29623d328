"""The command line, run in a thread of the test's process, so that a gateway in the same process can answer it."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from kubevnfm_cli.json_types import read_json
from kubevnfm_cli.main import run


@dataclass(frozen=True)
class Ran:
    """A command that has ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Return its output's JSON."""
        return read_json(self.out, "standard output")


class Terminal(io.StringIO):
    """A stream that is a terminal of 80 columns."""

    def isatty(self) -> bool:
        return True


def run_here(*words: str, environment: Mapping[str, str] | None = None, is_terminal: bool = False) -> Ran:
    """Run a command in this thread; its environment is only what is given."""
    out, err = (Terminal(), Terminal()) if is_terminal else (io.StringIO(), io.StringIO())
    given = {"HOME": os.devnull, **(environment or {})}
    with redirect_stdout(out), redirect_stderr(err):
        code = run(words, given)
    return Ran(code, out.getvalue(), err.getvalue())


async def kubevnfm(url: str, *words: str, environment: Mapping[str, str] | None = None, **more: Any) -> Ran:
    """Run a command for the gateway at a URL."""
    given = {"KUBEVNFM_URL": url, **(environment or {})}
    return await asyncio.to_thread(run_here, *words, environment=given, **more)
