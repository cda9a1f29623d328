"""Compiles and evaluates expressions in a process of their own, which can be killed while the library runs."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from kubevnfm_kit.child_process import ChildProcess

LARGEST_OBJECT: Final = 2 * 2**20
"""Bytes of its JSON. The API server takes objects of at most 1.5 MiB."""
_LONGEST_S: Final = 30.0
"""Until a process that does not answer is killed; the limit of an expression is the process's own (`worker`)."""
_CHILD: Final = "kubevnfm_csar.cel.worker"
_MEMORY_MIB: Final = 512
_ANSWER_BYTES: Final = 65_536
_LONGEST_PROBLEM: Final = 200
_PLACE: Final = re.compile(r"<input>:(\d+):(\d+): (.*)")
_STATUS: Final = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_STOPPED: Final = "takes more than 100 ms"
_FAILED: Final = "takes too much memory"
_SILENT: Final = f"was not evaluated within {_LONGEST_S:.0f} s"


@dataclass(frozen=True)
class Evaluated:
    """The result of an expression for an object."""

    holds: bool
    error: str = ""
    """Why the expression has no result; a field that it names may not exist yet."""


class CelProcess:
    """The process, from the first question to the end of the block. Calls wait, and one thread at a time may make them."""

    def __init__(self) -> None:
        self._process: ChildProcess | None = None

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
        answer = self._answer_of_one(text)
        # The process may have ended for what others have asked it before.
        return self._answer_of_one(text) if answer == _Stopped(_FAILED) else answer

    def _answer_of_one(self, text: bytes) -> Any:
        if self._process is None:
            self._process = ChildProcess.start(_CHILD, memory_mib=_MEMORY_MIB)
        try:
            return json.loads(self._process.ask_and_wait(text, limit_bytes=_ANSWER_BYTES, within_s=_LONGEST_S))
        except TimeoutError:
            self._end()
            return _Stopped(_SILENT)
        except (EOFError, OSError):
            status = self._process.end()
            self._end()
            return _Stopped(_STOPPED if status == -signal.SIGPROF else _FAILED)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.end()


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
