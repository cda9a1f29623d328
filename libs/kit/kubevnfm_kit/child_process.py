"""Asks a process that can be killed: what it computes may cost any time and memory. `child_main` is its side.

A question and its answer are bytes with their length before them, on the socket that is the standard input of the process.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, Self

from kubevnfm_kit.child_main import LENGTH

_MIB: Final = 1024 * 1024
_REAP_S: Final = 5.0


class ChildProcess:
    """One process, and this end of its socket."""

    def __init__(self, process: subprocess.Popen[bytes], connection: socket.socket) -> None:
        self._process, self._connection = process, connection

    @classmethod
    def start(cls, module: str, *, memory_mib: int) -> Self:
        """Start a module that serves questions (`child_main.serve`). Blocks for some milliseconds."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            process = subprocess.Popen(  # noqa: S603  # the modules are ours
                [sys.executable, "-P", "-m", module],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                # No secret of the operator's environment; PATH is for programs that the module runs.
                env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PATH": os.environ.get("PATH", os.defpath)},
                # A group of its own: killed together with a program that it runs, and not by a terminal's Ctrl-C.
                start_new_session=True,
            )
        size = memory_mib * _MIB
        resource.prlimit(process.pid, resource.RLIMIT_AS, (size, size))
        return cls(process, ours)

    def is_running(self) -> bool:
        """Return whether the process has not ended."""
        return self._process.poll() is None

    async def ask(self, question: bytes, *, limit_bytes: int) -> bytes:
        """Return the answer. Raises EOFError or OSError if the process ends without one, or answers more than ``limit_bytes``."""
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self._connection, LENGTH.pack(len(question)) + question)
        (length,) = LENGTH.unpack(await self._receive(LENGTH.size))
        if length > limit_bytes:
            raise EOFError
        return await self._receive(length)

    def ask_and_wait(self, question: bytes, *, limit_bytes: int, within_s: float) -> bytes:
        """As `ask`, in a thread that may wait; a process is asked in one of the two ways. Raises also TimeoutError."""
        self._connection.settimeout(within_s)
        self._connection.sendall(LENGTH.pack(len(question)) + question)
        (length,) = LENGTH.unpack(self._receive_and_wait(LENGTH.size))
        if length > limit_bytes:
            raise EOFError
        return self._receive_and_wait(length)

    def _receive_and_wait(self, size: int) -> bytes:
        content = bytearray()
        while len(content) < size:
            chunk = self._connection.recv(min(size - len(content), _MIB))
            if not chunk:
                raise EOFError
            content += chunk
        return bytes(content)

    async def _receive(self, size: int) -> bytes:
        loop = asyncio.get_running_loop()
        content = bytearray()
        while len(content) < size:
            chunk = await loop.sock_recv(self._connection, min(size - len(content), _MIB))
            if not chunk:
                raise EOFError
            content += chunk
        return bytes(content)

    def kill(self) -> None:
        """End the process and what it has started, now."""
        self._connection.close()
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> int:
        """Wait for the process to end, kill it if it does not; return its exit status."""
        try:
            self._process.wait(_REAP_S)
        except subprocess.TimeoutExpired:
            self.kill()
        return self._process.wait()


@dataclass
class Lent:
    """A process that one question has for itself."""

    process: ChildProcess
    is_reusable: bool = False
    """Whether it has answered, so that it takes another question; otherwise it is killed."""


class ChildProcesses:
    """Processes of one module: one that is idle takes the next question, because a start takes longer than most answers."""

    def __init__(self, module: str, *, memory_mib: int, most_idle: int) -> None:
        self._module, self._memory_mib, self._most_idle = module, memory_mib, most_idle
        self._idle: list[ChildProcess] = []

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[Lent]:
        """Yield a process for one question."""
        lent = Lent(await self._idle_or_new())
        try:
            yield lent
        finally:
            if lent.is_reusable and len(self._idle) < self._most_idle:
                self._idle.append(lent.process)
            else:
                # Without a wait: this may be a cancelled task. The next start or the end of this process collects it.
                lent.process.kill()

    def end_idle(self) -> None:
        """End the processes that wait for a question."""
        while self._idle:
            self._idle.pop().kill()

    async def _idle_or_new(self) -> ChildProcess:
        while self._idle:
            process = self._idle.pop()
            if process.is_running():
                return process
            process.kill()
        return await asyncio.to_thread(partial(ChildProcess.start, self._module, memory_mib=self._memory_mib))
