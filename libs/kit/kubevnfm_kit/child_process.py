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
