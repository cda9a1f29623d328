"""A pytest plugin: the workers of pytest-xdist are forked from one process that has collected all tests.

Otherwise each worker imports the product and collects the same tests, 7 s of processor time each. The process that collects
(`collecting_process`) is started with the arguments of the run. pytest-xdist starts a small program (`worker_start.py`) in place of a worker's
Python. That passes its standard streams on to the process that collects, which forks a worker for them. If it cannot, the program becomes an
ordinary worker, which collects for itself, and says so.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from types import ModuleType
from typing import Final

import execnet
import pytest

_PROGRAM: Final = """\
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from plugins import collecting_process
collecting_process.main(int(sys.argv[2]))
"""


# Before other plugins decide, so that both are done at the same time.
@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Begin where workers are led; pytest-xdist has read its options."""
    led = config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput")
    if led and not config.option.collectonly:
        config.pluginmanager.register(ForkedWorkers(config))


@dataclass
class CollectingNode:
    """A stand-in for a worker: other plugins give it the input that each worker gets."""

    workerinput: dict[str, object] = field(default_factory=dict)


class ForkedWorkers:
    """The process that collects, and the workers that are to be forked from it."""

    def __init__(self, config: pytest.Config) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="kubevnfm-workers-"))
        self._socket = self._folder / "socket"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self._socket))
            listener.listen()
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, json.dumps(sys.path), str(listener.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
            )
        self._send([str(one) for one in config.invocation_params.args])

    def pytest_xdist_setupnodes(self, config: pytest.Config, specs: Sequence[execnet.XSpec]) -> None:
        """Have the tests collected, and each worker of this machine started by our program."""
        node = CollectingNode({"workerid": "collecting", "workercount": len(specs), "testrunuid": "collecting"})
        config.hook.pytest_configure_node(node=node)
        self._send(node.workerinput)
        start = Path(__file__).with_name("worker_start.py")
        for spec in specs:
            if spec.popen and not spec.python and not spec.chdir:
                spec.python = " ".join(quote(str(part)) for part in (sys.executable, "-I", "-S", start, self._socket))

    def pytest_xdist_getremotemodule(self) -> ModuleType:
        """Name the module that a worker begins with."""
        from plugins import worker_begin

        return worker_begin

    def pytest_unconfigure(self) -> None:
        """End the process that collects, after the workers."""
        self._process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _send(self, what: object) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(what).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            # Each worker says that it collects for itself.
            return
