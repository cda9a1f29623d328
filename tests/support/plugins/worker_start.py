"""The program that pytest-xdist starts in place of a worker's Python; `forked_workers` explains it. It imports nothing of the project.

Its arguments are the socket of the process that collects, and those that the worker's Python would have.
"""

from __future__ import annotations

import os
import signal
import socket
import sys


def main(path: str, arguments: list[str]) -> None:
    """Have a worker forked for the standard streams, and wait for its end; or become the worker."""
    # Ctrl-C ends this program without a traceback; the worker has its own.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with socket.socket(socket.AF_UNIX) as process:
        try:
            process.connect(path)
            socket.send_fds(process, [b"worker"], [0, 1, 2])
            forked = process.recv(1)
        except OSError:
            forked = b""
        if forked:
            # Only the worker holds them now, so that the controller sees its end.
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, 0)
            os.dup2(nothing, 1)
            process.recv(1)
            return
    sys.stderr.write("forked_workers: no process that has collected; this worker collects for itself\n")
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *arguments])


main(sys.argv[1], sys.argv[2:])
