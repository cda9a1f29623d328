"""Processes that tests start, identified by pid and start time: a reused pid is never mistaken for the process."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from servers.warm_python import WARM, Forked

PROJECT = Path(__file__).parents[3]
_STOP_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class ProcessId:
    """The identity of one process on this machine, valid only while it runs."""

    pid: int
    started_at: int
    """Clock ticks after boot (proc(5), field 22 of /proc/<pid>/stat)."""

    @classmethod
    def find(cls, pid: int) -> ProcessId | None:
        """Return the process that has the pid now; None if there is none or it is a zombie."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in {"Z", "X"} else cls(pid, int(fields[19]))

    @property
    def is_alive(self) -> bool:
        return ProcessId.find(self.pid) == self

    def end(self, *, group: bool = False) -> None:
        """Send SIGTERM, then SIGKILL if the process does not end. Does nothing if it has ended already."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self.is_alive:
                return
            (os.killpg if group else os.kill)(self.pid, number)
            deadline = time.monotonic() + _STOP_TIMEOUT_S
            while self.is_alive and time.monotonic() < deadline:
                time.sleep(0.02)


class Process:
    """A program whose output goes to a file; ``start``, ``kill`` and ``stop`` may be called repeatedly."""

    are_forked: ClassVar = False
    """Whether modules of Python are forked from `WARM`, which has imported them."""

    def __init__(self, name: str, command: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> None:
        self.name, self.log = name, log
        self._command, self._environment = list(command), dict(environment)
        self._running: subprocess.Popen[bytes] | Forked | None = None

    @property
    def pid(self) -> int:
        assert self._running is not None, f"{self.name} does not run"
        return self._running.pid

    def start(self) -> None:
        """Start the process; do not wait until it is ready."""
        assert self._running is None, f"{self.name} runs already"
        # The settings of the user's shell must not reach the process; its own settings are environment variables.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("KUBEVNFM_")}
        environment = inherited | self._environment
        with self.log.open("ab") as log:
            if Process.are_forked and self._command[:2] == [sys.executable, "-m"]:
                self._running = WARM.start(self._command[2:], environment, log.fileno())
                return
            self._running = subprocess.Popen(
                self._command, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> None:
        """Kill the process (SIGKILL), like a power cut."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop the process in an orderly way (SIGTERM)."""
        self._end(signal.SIGTERM)

    def check(self) -> None:
        """Raise AssertionError with the end of its log if the process has ended by itself."""
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


def await_answer(
    url: str, process: Process, *, timeout_s: float = 300.0, context: ssl.SSLContext | None = None
) -> None:
    """Return when GET answers 200. Raises AssertionError if the process ends first, or at the timeout."""
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
