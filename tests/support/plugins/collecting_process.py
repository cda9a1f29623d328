"""The process that collects all tests once, and forks the workers of pytest-xdist: `forked_workers` explains it.

After the collection it has no thread but this one, no event loop and no open connection, so that a fork is a whole worker. In a worker, execnet
talks to the controller (the process that schedules the tests) in a thread of its own, and the main thread continues the session of pytest after
the collection.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import threading
from collections.abc import Callable, Generator
from io import FileIO
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final
from warnings import WarningMessage

import execnet
import pytest
from _pytest.capture import CaptureManager
from _pytest.config import _prepareconfig
from _pytest.tmpdir import TempPathFactory

if TYPE_CHECKING:
    from xdist.remote import WorkerInteractor


def main(listening: int) -> None:
    """Collect the tests that the arguments on standard input name; fork a worker for each caller at a socket, until standard input ends."""
    with socket.socket(fileno=listening) as listener:
        listener.set_inheritable(False)
        # pytest takes standard input away from tests.
        control = FileIO(os.dup(0))
        config = _prepareconfig(json.loads(control.readline()), None)
        # Not at the top: pytest rewrites the assertions of its plugins when they are imported first.
        from xdist.remote import setup_config

        setup_config(config, None)
        if not (given := control.readline()):
            # The controller has ended before it had workers.
            return
        vars(config).update(workerinput=json.loads(given), workeroutput={})
        config.pluginmanager.register(Workers(listener, control))
        config.hook.pytest_cmdline_main(config=config)
        LINE.end()


class Line:
    """The channel from execnet's thread to the session."""

    def __init__(self) -> None:
        self._channels: SimpleQueue[execnet.Channel] = SimpleQueue()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self) -> execnet.Channel:
        """Run what execnet sends to a new Python, and return the channel to the controller."""
        bootstrap = b""
        while not bootstrap.endswith(b"\n"):
            bootstrap += os.read(0, 1)
        source = eval(bootstrap)
        self._thread = threading.Thread(target=lambda: exec(source, {}), name="execnet")
        self._thread.start()
        return self._channels.get()

    def lead(self, channel: execnet.Channel) -> None:
        """Hand the channel over, in execnet's thread, and keep it open until the session has ended."""
        self._channels.put(channel)
        self._ended.wait()

    @pytest.hookimpl(tryfirst=True)
    def pytest_unconfigure(self) -> None:
        """Close the channel: all is reported. The controller interrupts a worker that keeps it open for some seconds more."""
        self._ended.set()

    def end(self) -> None:
        """Wait for execnet's thread, which ends with the connection."""
        if self._thread is not None:
            self._thread.join()


LINE: Final = Line()


class Workers:
    """A plugin of the collecting session: goes on in a worker where the collection has ended."""

    def __init__(self, listener: socket.socket, control: FileIO) -> None:
        self._listener = listener
        self._control = control
        self._collected: list[Callable[[WorkerInteractor], None]] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep the report of what was not collected, for each worker."""
        if not report.passed:
            self._collected.append(lambda worker: worker.pytest_collectreport(report))

    def pytest_warning_recorded(
        self, warning_message: WarningMessage, when: str, nodeid: str, location: tuple[str, int, str] | None
    ) -> None:
        """Keep a warning, for each worker."""
        self._collected.append(lambda worker: worker.pytest_warning_recorded(warning_message, when, nodeid, location))

    # The first: heap and warnings are as they stay.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> Generator[None, object, object]:
        """Collect, then return in each worker. The process that collects does not return."""
        result = yield
        if len(list(Path("/proc/self/task").iterdir())) > 1:
            sys.stderr.write(
                f"forked_workers: not used, as the collection has started threads: {threading.enumerate()}\n"
            )
            os._exit(1)
        capture: CaptureManager = session.config.pluginmanager.getplugin("capturemanager")
        capture.stop_global_capturing()
        sys.stdout.flush()
        self._fork_workers()
        self._begin(session, capture)
        return result

    def _fork_workers(self) -> None:
        """Return in each worker."""
        while True:
            ready, _, _ = select.select([self._listener.fileno(), self._control.fileno()], [], [])
            if self._control.fileno() in ready:
                self._end()
            caller, _ = self._listener.accept()
            _, streams, _, _ = socket.recv_fds(caller, 16, 3)
            if streams and os.fork() == 0:
                for number, stream in enumerate(streams):
                    os.dup2(stream, number)
                    os.close(stream)
                self._listener.close()
                self._control.close()
                # Stays open until this worker ends.
                os.write(caller.detach(), b"+")
                return
            caller.close()
            for stream in streams:
                os.close(stream)

    def _end(self) -> None:
        """Wait for the workers, and end without what belongs to the end of a session."""
        try:
            while True:
                os.wait()
        except ChildProcessError:
            os._exit(0)

    def _begin(self, session: pytest.Session, capture: CaptureManager) -> None:
        """Make this process a worker, as `xdist.remote` does, and report what was collected."""
        config = session.config
        channel = LINE.open()
        # Not before: execnet has the first standard output, tests have another.
        capture.start_global_capturing()
        capture.suspend_global_capture()
        given, _, options, _ = channel.receive()
        os.environ["PYTEST_XDIST_TESTRUNUID"] = given["testrunuid"]
        os.environ["PYTEST_XDIST_WORKER"] = given["workerid"]
        os.environ["PYTEST_XDIST_WORKER_COUNT"] = str(given["workercount"])
        config.option.basetemp = options.get("basetemp")
        vars(config).update(workerinput=given, _tmp_path_factory=TempPathFactory.from_config(config, _ispytest=True))
        from xdist import remote

        worker = remote.WorkerInteractor(config, channel)
        # As in the module that is run for an ordinary worker, which reports internal errors by it.
        vars(remote)["interactor"] = worker
        worker.pytest_sessionstart(session)
        worker.pytest_collection_modifyitems(config, session.items)
        for report in self._collected:
            report(worker)
        worker.pytest_collection_finish(session)
        # The worker itself reports warnings of tests.
        config.pluginmanager.unregister(self)
        config.pluginmanager.register(LINE)
