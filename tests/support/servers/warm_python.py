"""Services of tests are forked from one Python that has imported them: to import one takes 1.3 s of processor time, and a run starts 60.

``python warm_python.py FD`` answers at the socket ``FD``. A request is a JSON object ``{"arguments": ["<module>", ..], "environment": {..}, "folder": ".."}``
with two descriptors: that of the log, and a pipe. The answer is the pid of the new process, which is as after ``python -m <module> ..`` except for its
command line. Its exit code is written to the pipe when it ends. A module is imported at the first request for it, before the fork.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

_MOST_BYTES: Final = 1 << 20
_SSH: Final = "kubevnfm_mgmt_executor.adapters.ssh"
_LATE: Final = {
    "kubevnfm.cli": ("kubevnfm.single", "openstack", _SSH),
    "kubevnfm_infra_openstack": ("openstack",),
    "kubevnfm_mgmt_executor": (_SSH,),
}
"""The modules that a program imports when it runs."""


class WarmPython:
    """The Python that is forked, started when the first process is; and the process that asks it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._line: socket.socket | None = None
        self._owner = 0

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], log: int) -> Forked:
        """Start ``python -m <arguments>``."""
        ends, end = os.pipe()
        try:
            asked = json.dumps(
                {"arguments": list(arguments), "environment": dict(environment), "folder": str(Path.cwd())}
            )
            with self._lock:
                line = self._connected()
                socket.send_fds(line, [asked.encode()], [log, end])
                answer = line.recv(_MOST_BYTES)
        except BaseException:
            os.close(ends)
            raise
        finally:
            os.close(end)
        assert answer, "the process that is forked has ended"
        return Forked(int(answer), ends)

    def _connected(self) -> socket.socket:
        # A fork of this process has the socket too, and would read the answers of the other.
        if self._line is None or self._owner != os.getpid():
            self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._owner = os.getpid()
            inherited = {name: value for name, value in os.environ.items() if not name.startswith("KUBEVNFM_")}
            with theirs:
                process = subprocess.Popen(
                    [sys.executable, __file__, str(theirs.fileno())],
                    env=inherited, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True,
                )  # fmt: skip
            atexit.register(self._end, process, self._line)
        return self._line

    @staticmethod
    def _end(process: subprocess.Popen[bytes], line: socket.socket) -> None:
        line.close()
        # A test that failed may have left processes, which it waits for.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)


WARM: Final = WarmPython()


class Forked:
    """A process of `WarmPython`, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, pid: int, ends: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ends = ends

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once it has ended. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            ready, _, _ = select.select([self._ends], [], [], timeout)
            if not ready:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            self.returncode = int(os.read(self._ends, _MOST_BYTES))
            os.close(self._ends)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


# --- the Python that is forked ----------------------------------------------------------------------------------------


def main(line: socket.socket) -> Sequence[str]:
    """Return in each new process what it is to run. Ends with the process that asks, after all that were forked."""
    woken, wakes = os.pipe()
    for end in (woken, wakes):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    ends: dict[int, int] = {}
    is_asked = True
    while is_asked or ends:
        ready, _, _ = select.select([woken, line.fileno()] if is_asked else [woken], [], [])
        if woken in ready:
            os.read(woken, _MOST_BYTES)
            _report(ends)
        if line.fileno() not in ready:
            continue
        asked, descriptors, _, _ = socket.recv_fds(line, _MOST_BYTES, 2)
        if not asked:
            is_asked = False
            continue
        log, end = descriptors
        wanted = json.loads(asked)
        _imported(wanted["arguments"][0])
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for descriptor in (woken, wakes, line.detach(), end, *ends.values()):
                os.close(descriptor)
            _begin(wanted, log)
            return list(wanted["arguments"])
        os.close(log)
        ends[pid] = end
        line.send(str(pid).encode())
    sys.exit()


def _report(ends: dict[int, int]) -> None:
    while ends:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        # The one who waits may have gone.
        with contextlib.suppress(BrokenPipeError):
            os.write(ends[pid], str(os.waitstatus_to_exitcode(status)).encode())
        os.close(ends.pop(pid))


def _imported(module: str) -> None:
    """Import a program, and leave it to be run; its parts stay imported."""
    if module != "kubevnfm.cli":
        importlib.import_module(f"{module}.__main__")
        del sys.modules[f"{module}.__main__"]
    for late in _LATE.get(module, ()):
        importlib.import_module(late)
    gc.freeze()
    assert len(list(Path("/proc/self/task").iterdir())) == 1, f"{module} starts threads when it is imported"


def _begin(wanted: Mapping[str, Any], log: int) -> None:
    os.setsid()
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    os.chdir(wanted["folder"])
    os.environ.clear()
    os.environ.update(wanted["environment"])
    time.tzset()


if __name__ == "__main__":
    # As `python -m` has the working directory there, and not the folder of this file.
    sys.path[0] = str(Path.cwd())
    sys.argv = list(main(socket.socket(fileno=int(sys.argv[1]))))
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
