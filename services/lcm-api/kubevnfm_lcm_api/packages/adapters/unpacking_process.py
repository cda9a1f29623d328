"""Checks and unpacks packages in processes that can be killed: what a package contains may cost any time and memory.

A process that is idle takes the next package, so that a small package costs no start of Python (0.4 s).
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Final, Self

import structlog
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_kit.errors import OutsideUnavailable
from pydantic import ValidationError

from kubevnfm_lcm_api.packages.adapters.signatures import SignatureRefused
from kubevnfm_lcm_api.packages.adapters.unpacking import CONTENT, drop_scratch
from kubevnfm_lcm_api.packages.adapters.unpacking_child import ANSWER_BYTES, LENGTH, Answer, Request
from kubevnfm_lcm_api.packages.domain.ports import OnboardedFiles

log = structlog.get_logger()

_CHILD: Final = "kubevnfm_lcm_api.packages.adapters.unpacking_child"
_MIB: Final = 1024 * 1024
_MEMORY_MIB: Final = 2048
_PARALLEL: Final = 4
_KEPT_IDLE: Final = 2
_WALL_FACTOR, _WALL_S = 10, 60
"""Time by the clock: so many times the processor time, and so much more. The disk may be slow, the machine busy."""
_REAP_S: Final = 5.0


class StorageFailed(OutsideUnavailable, code="storage-failed", title="Storage failed"):
    """The disk rejects the write: it is full, missing or read-only."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the package cannot be stored: {reason}")


class PackageUnreadable(PackageRefused, code="package-unreadable"):
    """The process that read the package ended, or was ended: the package costs too much time or memory."""


@dataclass(frozen=True)
class UnpackingRules:
    """The signers that are trusted, and the limit of what one package may cost."""

    anchors: Path | None = None
    is_signature_required: bool = False
    cpu_s: int = 30
    """Processor time for one package, beside one second for each MiB of the archive."""


class UnpackingProcesses:
    """Checks packages, at most four at the same time."""

    def __init__(self, rules: UnpackingRules) -> None:
        self._rules = rules
        self._places = asyncio.Semaphore(_PARALLEL)

    async def unpack(self, folder: Path) -> OnboardedFiles:
        """Check and unpack the CSAR in this folder.

        Raises: PackageRefused with the file and the rule; PackageUnreadable; StorageFailed.
        """
        try:
            archive_bytes = (await asyncio.to_thread((folder / CONTENT).stat)).st_size
        except OSError as error:
            raise StorageFailed(error.strerror or type(error).__name__) from error
        rules = self._rules
        request = Request(
            folder=folder,
            anchors=rules.anchors,
            is_signature_required=rules.is_signature_required,
            cpu_s=rules.cpu_s + archive_bytes // _MIB,
        )
        async with self._places:
            try:
                answer = await _asked(request)
            except PackageUnreadable:
                await asyncio.to_thread(drop_scratch, folder)
                raise
        for entry in answer.logged:
            facts = dict(entry)
            getattr(log, str(facts.pop("level")))(str(facts.pop("event")), **facts)
        return _found(answer)


def _found(answer: Answer) -> OnboardedFiles:
    if answer.found is not None:
        return answer.found
    if answer.refused is not None:
        kind = SignatureRefused if answer.refused.code == SignatureRefused.code else PackageRefused
        raise kind(answer.refused.rule, file=answer.refused.file)
    if answer.disk:
        raise StorageFailed(answer.disk)
    if answer.is_out_of_memory:
        raise PackageUnreadable(f"reading it needs more than the {_MEMORY_MIB} MiB of memory allowed")
    log.error("package_reader_failed", traceback=answer.bug)
    raise PackageUnreadable("reading it failed with an error that is not expected; the log has the details")


async def _asked(request: Request) -> Answer:
    process = await _idle_or_new()
    is_reusable = False
    limit_s = request.cpu_s * _WALL_FACTOR + _WALL_S
    try:
        async with asyncio.timeout(limit_s):
            answer = await process.ask(request)
        is_reusable = answer.is_reusable
        return answer
    except TimeoutError as error:
        raise PackageUnreadable(f"not read within {limit_s} s") from error
    except (EOFError, OSError) as error:
        status = await asyncio.to_thread(process.end)
        if status == -signal.SIGXCPU:
            raise PackageUnreadable(
                f"reading it needs more than the {request.cpu_s} s of processor time allowed"
            ) from error
        raise PackageUnreadable(f"the process that read it ended with status {status}") from error
    finally:
        if is_reusable and len(_idle()) < _KEPT_IDLE:
            _idle().append(process)
        else:
            # Without a wait: this may be a cancelled task. The next end() or the end of this process collects it.
            process.kill()


@cache
def _idle() -> list[_Process]:
    """Idle processes, for every `UnpackingProcesses` of this process: they keep no state between two packages.

    They end with this process, which closes their sockets.
    """
    return []


async def _idle_or_new() -> _Process:
    while _idle():
        process = _idle().pop()
        if process.is_running():
            return process
    return await asyncio.to_thread(_Process.start)


class _Process:
    """One process, and this end of its socket."""

    def __init__(self, process: subprocess.Popen[bytes], connection: socket.socket) -> None:
        self._process, self._connection = process, connection

    @classmethod
    def start(cls) -> Self:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            process = subprocess.Popen(  # noqa: S603  # fixed arguments
                [sys.executable, "-P", "-m", _CHILD],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                # No secret of the operator's environment; PATH is for openssl.
                env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PATH": os.environ.get("PATH", os.defpath)},
                # A group of its own: killed together with an openssl that it runs, and not by a terminal's Ctrl-C.
                start_new_session=True,
            )
        size = _MEMORY_MIB * _MIB
        resource.prlimit(process.pid, resource.RLIMIT_AS, (size, size))
        return cls(process, ours)

    def is_running(self) -> bool:
        return self._process.poll() is None

    async def ask(self, request: Request) -> Answer:
        """Return the answer. Raises EOFError or OSError if the process ends without one."""
        loop = asyncio.get_running_loop()
        raw = request.model_dump_json().encode()
        await loop.sock_sendall(self._connection, LENGTH.pack(len(raw)) + raw)
        (length,) = LENGTH.unpack(await self._receive(LENGTH.size))
        if length > 2 * ANSWER_BYTES:
            raise EOFError
        answer = await self._receive(length)
        try:
            return await asyncio.to_thread(partial(Answer.model_validate_json, answer))
        except ValidationError as error:
            raise EOFError from error

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
