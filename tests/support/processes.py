"""Processes that tests start: told by pid and start time, so that nobody ends a stranger that got the same number."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[2]
_STOP_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class ProcessId:
    """A process of this machine, for as long as it lives and no longer."""

    pid: int
    started_at: int
    """Clock ticks after boot (proc(5), field 22 of /proc/<pid>/stat)."""

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """Return who runs under the number now; None when nobody does, or only its unread exit code is left."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in {"Z", "X"} else cls(pid, int(fields[19]))

    @property
    def is_alive(self) -> bool:
        return ProcessId.of(self.pid) == self

    def end(self, *, group: bool = False) -> None:
        """SIGTERM, and SIGKILL to who does not go; nothing when the process is gone already."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self.is_alive:
                return
            (os.killpg if group else os.kill)(self.pid, number)
            deadline = time.monotonic() + _STOP_TIMEOUT_S
            while self.is_alive and time.monotonic() < deadline:
                time.sleep(0.02)


class Process:
    """A program that writes its output to a file; ``start``, ``kill`` and ``stop`` may follow one another."""

    def __init__(self, name: str, command: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> None:
        self.name, self.log = name, log
        self._command, self._environment = list(command), dict(environment)
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._running is not None, f"{self.name} does not run"
        return self._running.pid

    def start(self) -> None:
        """Start it; nothing is waited for."""
        assert self._running is None, f"{self.name} runs already"
        # A setting of the person who runs the tests is none of the process's; its own go by environment, not argv.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("KUBEVNFM_")}
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(
                self._command, env=inherited | self._environment, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> None:
        """End it as a power cut would (SIGKILL)."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in good order."""
        self._end(signal.SIGTERM)

    def check(self) -> None:
        """Raise AssertionError with the end of its log when it has ended by itself."""
        if self._running is not None and self._running.poll() is not None:
            raise AssertionError(f"{self.name} ended with {self._running.returncode}:\n{self.tail()}")

    def tail(self, characters: int = 3000) -> str:
        """Return the end of its log."""
        return self.log.read_text(errors="replace")[-characters:] if self.log.exists() else ""

    def _end(self, number: signal.Signals) -> None:
        if self._running is None:
            return
        self._running.send_signal(number)
        try:
            self._running.wait(timeout=_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._running.kill()
            self._running.wait(timeout=_STOP_TIMEOUT_S)
        self._running = None


def await_answer(url: str, process: Process, *, timeout_s: float = 60.0, context: ssl.SSLContext | None = None) -> None:
    """Return when GET gives 200. Raises AssertionError when the process ends, or the time does."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        process.check()
        try:
            with urllib.request.urlopen(url, timeout=5, context=context) as response:
                if response.status == 200:
                    return
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            pass
        time.sleep(0.02)
    raise AssertionError(f"{process.name}: no 200 from {url} within {timeout_s} s:\n{process.tail()}")
