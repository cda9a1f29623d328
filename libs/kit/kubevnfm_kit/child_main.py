"""The side of the process that `child_process` starts. It imports little: it is started for what may take less than its start."""

from __future__ import annotations

import math
import os
import queue
import resource
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

LENGTH: Final = struct.Struct("!Q")


def serve(answer: Callable[[bytes], bytes]) -> None:
    """Answer questions, one after the other, until the parent closes the socket.

    The process then ends, in the middle of an answer too: its parent has given it up, or is dead.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A container may have less memory than its processes may take together: the kernel then ends this one, not the service.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    connection = socket.socket(fileno=0)
    questions: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, questions), daemon=True).start()
    while True:
        raw = answer(questions.get())
        connection.sendall(LENGTH.pack(len(raw)) + raw)


def close_output() -> None:
    """Print nothing from now on: native code prints what it fails with, which may have values, to the service's own output."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stderr.fileno())
    os.close(nothing)


def limit_processor_time(limit_s: int) -> None:
    """End this process by SIGXCPU if it uses more processor time from now on."""
    # The limit counts from the start of the process.
    limit = math.ceil(time.process_time()) + limit_s
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))


def _receive(connection: socket.socket, questions: queue.SimpleQueue[bytes]) -> None:
    with connection.makefile("rb") as stream:
        while head := stream.read(LENGTH.size):
            questions.put(stream.read(LENGTH.unpack(head)[0]))
    # The whole group, which is this process's own: programs may run for it.
    os.killpg(0, signal.SIGKILL)
