"""Compiles and evaluates expressions in a process of their own, which can be killed while the library runs."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from select import select
from typing import IO, Any, Final, Self

LARGEST_OBJECT: Final = 2 * 2**20
"""Bytes of its JSON. The API server takes objects of at most 1.5 MiB."""
_LONGEST_S: Final = 30.0
"""Until a process that does not answer is killed; the limit of an expression is the process's own (`worker`)."""
_LONGEST_LINE: Final = 65_536
_LONGEST_PROBLEM: Final = 200
_PLACE: Final = re.compile(r"<input>:(\d+):(\d+): (.*)")
_STATUS: Final = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_STOPPED: Final = "takes more than 100 ms"
_FAILED: Final = "takes too much memory"


@dataclass(frozen=True)
class Evaluated:
    """The result of an expression for an object."""

    holds: bool
    error: str = ""
    """Why the expression has no result; a field that it names may not exist yet."""


class CelProcess:
    """The process, from the first question to the end of the block. Calls wait, and one thread at a time may make them."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def problem_of(self, expression: str) -> str:
        """Return why an expression cannot be used, with line and column in it; "" if it can."""
        answer = self._answer({"expression": expression})
        return f"the expression {answer.why}" if isinstance(answer, _Stopped) else _short(str(answer))

    def evaluate(self, expression: str, body: Mapping[str, Any]) -> Evaluated:
        """Return the result of an expression for an object."""
        answer = self._answer({"expression": expression, "object": body})
        if isinstance(answer, _Stopped):
            return Evaluated(False, f"the expression {answer.why}")
        holds, error = answer
        return Evaluated(holds, _short(error))

    def _answer(self, asked: Mapping[str, Any]) -> Any:
        text = json.dumps(asked).encode()
        if len(text) > LARGEST_OBJECT:
            return _Stopped(f"is not evaluated for an object of more than {LARGEST_OBJECT} bytes")
        stdin, stdout = self._pipes()
        # The pipe is closed if the process has ended; that there is no answer says it too.
        with suppress(BrokenPipeError):
            stdin.write(text + b"\n")
            stdin.flush()
        line = stdout.readline(_LONGEST_LINE) if select([stdout], [], [], _LONGEST_S)[0] else b""
        if not line:
            return _Stopped(_STOPPED if self._end() == -signal.SIGPROF else _FAILED)
        return json.loads(line)

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process is None:
            # The command is fixed: an expression reaches the process by its pipe alone.
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-I", str(Path(__file__).with_name("worker.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def _end(self) -> int | None:
        """Kill the process, unless it has ended; return its exit status."""
        process, self._process = self._process, None
        if process is None:
            return None
        # A process that is ending keeps the status that says why.
        if process.stdout is None or not select([process.stdout], [], [], 0)[0]:
            process.kill()
        with suppress(BrokenPipeError):
            process.communicate()
        return process.returncode


@dataclass(frozen=True)
class _Stopped:
    """There is no answer."""

    why: str


def _short(text: str) -> str:
    """Return an error of the library without what repeats the expression."""
    found = _PLACE.search(text)
    first = _STATUS.sub("", text.partition("\n")[0])
    said = f"{found[1]}:{found[2]}: {found[3]}" if found is not None else first
    return said.removesuffix(" (in container '')")[:_LONGEST_PROBLEM]
