"""The command line, run in a thread of the test's process, so that a gateway in the same process can answer it."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kubevnfm_cli.json_types import read_json
from kubevnfm_cli.main import Streams, run


@dataclass(frozen=True)
class Ran:
    """A command that has ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Return its output's JSON."""
        return read_json(self.out, "standard output")


class Output(io.StringIO):
    """A stream of a command."""

    def __init__(self, *, is_terminal: bool = False, heard: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self._is_terminal = is_terminal
        self._heard = heard

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str) -> int:
        written = super().write(text)
        self._heard()
        return written


class Running:
    """A command that runs in a thread."""

    def __init__(self, *words: str, environment: Mapping[str, str], is_terminal: bool = False) -> None:
        loop, self._heard = asyncio.get_running_loop(), asyncio.Event()

        def heard() -> None:
            loop.call_soon_threadsafe(self._heard.set)

        self.out = Output(is_terminal=is_terminal, heard=heard)
        self.err = Output(is_terminal=is_terminal, heard=heard)
        self._ended = asyncio.create_task(asyncio.to_thread(_run, words, environment, self.out, self.err))

    async def says(self, text: str) -> None:
        """Wait until one of its streams has the text."""
        async with asyncio.timeout(120):
            while text not in self.out.getvalue() + self.err.getvalue():
                assert not self._ended.done(), (text, self.out.getvalue(), self.err.getvalue())
                self._heard.clear()
                # The end of the command is heard too.
                hearing = asyncio.create_task(self._heard.wait())
                await asyncio.wait({hearing, self._ended}, return_when=asyncio.FIRST_COMPLETED)
                hearing.cancel()

    async def end(self) -> Ran:
        """Wait for its end."""
        return await asyncio.wait_for(asyncio.shield(self._ended), 120)


def run_here(*words: str, environment: Mapping[str, str] | None = None, is_terminal: bool = False) -> Ran:
    """Run a command in this thread; its environment is only what is given."""
    return _run(words, environment or {}, Output(is_terminal=is_terminal), Output(is_terminal=is_terminal))


async def kubevnfm(url: str, *words: str, environment: Mapping[str, str] | None = None, **more: Any) -> Ran:
    """Run a command for the gateway at a URL."""
    given = {"KUBEVNFM_URL": url, **(environment or {})}
    return await asyncio.to_thread(run_here, *words, environment=given, **more)


def _run(words: tuple[str, ...], environment: Mapping[str, str], out: Output, err: Output) -> Ran:
    code = run(words, {"HOME": os.devnull, **environment}, Streams(out, err))
    return Ran(code, out.getvalue(), err.getvalue())
