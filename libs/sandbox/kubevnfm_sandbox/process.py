"""Sandbox: runs code of a package in a confined process (launcher.py, runner.py), and says whether it can."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import structlog
from kubevnfm_kit.json_types import JsonObject
from pydantic import Field

from kubevnfm_sandbox.answers import ANSWER_BYTES, Answer, AnswerRefused, FailedAnswer, read_answer, read_plain
from kubevnfm_sandbox.launcher import GUARD_DEADLINE, OUT_OF_TIME, UNCONFINED
from kubevnfm_sandbox.launcher_config import launcher_config
from kubevnfm_sandbox.runs import (
    Ended,
    Limits,
    Program,
    SandboxState,
    SandboxUnavailable,
    Script,
    ScriptEnded,
    ScriptRefused,
)

log = structlog.get_logger()

_HERE: Final = Path(__file__).parent
_LONGEST_OF_SCRIPT: Final = ANSWER_BYTES - 64 * 1024
"""Largest stdout of a script with the object that was read from it, in base64; the rest is for what says so."""
_LONGEST_TEXT_OF_SCRIPT: Final = 1024 * 1024
"""Characters of each text in the object that a script returns: it becomes a part of the instance, or of the next script's input."""
_STDERR_BYTES: Final = 64 * 1024
_LONGEST_CUT: Final = 4 * 1024
"""Bytes that are dropped of a line whose beginning is missing: the longest secret in one line, such as a token, with room."""
_PRINTED_BYTES: Final = 256 * 1024
_GRACE_S: Final = 1.0
"""Time between closing stdin, on which the guard kills its child, and killing the guard."""
_UNPRIVILEGED: Final = 65534
"""The user that `launcher` makes of root."""
_REPORT_BYTES: Final = 4096
"""Largest report of the launcher; a pipe holds it without a reader."""
_SCRIPT_NATIVE: Final = frozenset(
    {"_asyncio", "_posixsubprocess", "_ssl", "fcntl", "grp", "mmap", "resource", "termios"}
)
"""Libraries for connections, such as paramiko, import these. The kernel confines scripts, not an audit hook."""


class _ScriptAnswer(Answer):
    """The answer of ``kubevnfm_script``."""

    status: Annotated[int, Field(ge=0, le=255)]
    stdout: str
    value: str = ""
    unreadable: Annotated[str, Field(max_length=8192)] = ""


class Sandbox:
    """Starts one process for each run, at most ``limits.parallel`` at the same time."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._places = asyncio.Semaphore(limits.parallel)

    async def run(self, program: Program, document: bytes) -> Ended:
        """Run the program with the input (JSON). Raises SandboxUnavailable."""
        async with self._places:
            return await self._run(program, document, self._limits.timeout_s, said=bytearray())

    async def run_script(
        self, script: Script, *, when_cancelled: Callable[[ScriptEnded], None] | None = None
    ) -> ScriptEnded:
        """Run the script; the whole of its stdout is kept, or its beginning if it is too long.

        ``when_cancelled`` gets what the script has said until the caller is cancelled.
        Raises: SandboxUnavailable; ScriptRefused if the package has no such file.
        """
        program = Program(
            entry="kubevnfm_script",
            shim=_HERE / "script",
            package=script.package,
            modules=script.modules,
            watched=False,
            native=_SCRIPT_NATIVE | script.native,
            reach=script.reach,
            imports=script.shim,
            folders=script.folders,
        )
        if not (script.package / script.file).is_file():
            raise ScriptRefused(f"{script.file}: no such file in the package")
        limit_s = self._limits.timeout_s if script.timeout_s is None else script.timeout_s
        said = bytearray()
        async with self._places:
            with in_memory("printed") as printed, _filled(script.private_files) as files:
                given = {
                    "file": script.file,
                    "stdin": base64.b64encode(script.stdin).decode(),
                    "pickled": script.given,
                    "longest": _LONGEST_OF_SCRIPT,
                    "via": script.via,
                    "printed": printed,
                    "files": files,
                    "names": {name: list(at) for name, at in script.names.items()},
                }
                document = json.dumps(given).encode()
                try:
                    ended = await self._run(program, document, limit_s, said=said, passed=(printed, *files.values()))
                except asyncio.CancelledError:
                    if when_cancelled is not None:
                        killed = -signal.SIGKILL
                        written = _without_cut_line(bytes(said), _STDERR_BYTES)
                        when_cancelled(ScriptEnded(killed, _end_of(printed), written, timed_out=False))
                    raise
                last_printed = _end_of(printed)
        # In a thread, because an answer has megabytes if the package wants it so.
        return await asyncio.to_thread(script_ended, ended, last_printed)

    async def state(self) -> tuple[SandboxState, str]:
        """Try the sandbox; return its state, and the reason if it is not CONFINED."""
        try:
            ended = await Sandbox(Limits(without=self._limits.without)).run(_PROBE, b"{}")
        except SandboxUnavailable as error:
            state = SandboxState.TRUSTED if self._limits.trust_packages else SandboxState.REFUSED
            return state, error.reason
        if ended.answer != _PROBE_ANSWER:
            said = ended.said.decode(errors="replace").strip()[-200:]
            return SandboxState.REFUSED, f"its test program ended with status {ended.status}: {said or 'no output'}"
        return SandboxState.CONFINED, ""

    async def reported_state(self, what: str) -> SandboxState:
        """Try the sandbox, and log if ``what`` is not run or not confined; return the state. A trial takes some 60 ms."""
        state, reason = await self.state()
        if state is SandboxState.REFUSED:
            log.warning("package_code_refused", what=what, reason=reason, see="docs/security.md")
        elif state is SandboxState.TRUSTED:
            log.warning("package_code_not_confined", what=what, reason=reason, allowed_by="trust_packages")
        return state

    async def _run(
        self, program: Program, document: bytes, limit_s: float, *, said: bytearray, passed: tuple[int, ...] = ()
    ) -> Ended:
        """See run; ``said`` gets the end of stderr as it arrives, ``passed`` are descriptors for the program."""
        with tempfile.TemporaryDirectory(prefix="kubevnfm-room-") as room, tempfile.TemporaryDirectory() as spare:
            raw, status, timed_out = b"", GUARD_DEADLINE, True
            began = time.monotonic()
            with _report() as (read_report, to):
                config = json.dumps(self._config(program, room, spare, limit_s, report=to))
                async with _launched(config, (*passed, to), said) as process:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(limit_s + _GRACE_S):
                            raw, status = await _converse(process, document, said)
                            # Without a guard the kernel ends the process; code may send itself the same signal earlier.
                            is_late = time.monotonic() - began >= limit_s
                            timed_out = is_late and status in (-signal.SIGALRM, 128 + signal.SIGALRM)
                report = read_report()
        if report.startswith(UNCONFINED):
            raise SandboxUnavailable(report.removeprefix(UNCONFINED).decode(errors="replace"))
        return Ended(
            raw, _without_cut_line(bytes(said), _STDERR_BYTES), status, timed_out=timed_out or report == OUT_OF_TIME
        )

    def _config(self, program: Program, room: str, spare: str, limit_s: float, *, report: int) -> JsonObject:
        return launcher_config(program, self._limits, room=room, spare=spare, limit_s=limit_s, report=report)


_PROBE: Final = Program(entry="kubevnfm_probe", shim=_HERE / "probe", package=_HERE / "probe")
_PROBE_ANSWER: Final = b'{"confined": true}'


@contextmanager
def in_memory(name: str) -> Iterator[int]:
    """Yield the descriptor of an empty file in memory: unlike a pipe, it does not wait for a reader."""
    fd = os.memfd_create(name)
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def _report() -> Iterator[tuple[Callable[[], bytes], int]]:
    """Yield what reads the launcher's report, once the process has ended, and the descriptor that the report is written to."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)

    def read() -> bytes:
        try:
            return os.read(reading, _REPORT_BYTES)
        except BlockingIOError:
            return b""

    try:
        yield read, writing
    finally:
        os.close(reading)
        os.close(writing)


@contextmanager
def _filled(contents: Mapping[str, bytes]) -> Iterator[dict[str, int]]:
    """Yield the descriptors of files in memory with these contents, which only the script's user may open."""
    # In memory: if this service is killed, no process is left that would delete a file on a disk.
    with ExitStack() as files:
        found = {name: files.enter_context(in_memory("private")) for name in contents}
        for name, fd in found.items():
            os.fchmod(fd, 0o600)
            if os.getuid() == 0:
                os.fchown(fd, _UNPRIVILEGED, _UNPRIVILEGED)
            view = memoryview(contents[name])
            while view:
                view = view[os.write(fd, view) :]
        yield found


def script_ended(ended: Ended, last_printed: bytes) -> ScriptEnded:
    """Return how a script ended; what its process has answered is judged here."""
    unanswered = ScriptEnded(ended.status, last_printed, ended.said, ended.timed_out)
    # A process that is killed, or ends itself with another status, answers nothing.
    if ended.timed_out or (ended.status != 0 and not ended.answer):
        return unanswered
    try:
        answer = read_answer(ended.answer, _ScriptAnswer, longest=ANSWER_BYTES)
        if isinstance(answer, FailedAnswer):
            # An exception outside of the script. As a part of the output, its text is masked and marked as foreign.
            said = ended.said + b"\n" + answer.error.encode()
            end = _without_cut_line(said[-_STDERR_BYTES:], _STDERR_BYTES)
            return replace(unanswered, status=ended.status or 1, stderr=end)
        stdout = _decoded("stdout", answer.stdout)
    except AnswerRefused as refusal:
        return replace(unanswered, refused=str(refusal))
    found = ScriptEnded(answer.status, stdout, ended.said, timed_out=False, unreadable=answer.unreadable)
    if not answer.value:
        return found
    try:
        value = read_plain(_decoded("value", answer.value), longest=_LONGEST_TEXT_OF_SCRIPT)
    except AnswerRefused as refusal:
        return replace(found, refused=str(refusal))
    return replace(found, value=value)


def _decoded(field: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise AnswerRefused(f"{field}: base64 expected") from None


def _end_of(fd: int) -> bytes:
    """Return the end of what a script has printed. The descriptors share one position, so that is left alone."""
    end = os.pread(fd, _PRINTED_BYTES, max(0, os.fstat(fd).st_size - _PRINTED_BYTES))
    return _without_cut_line(end, _PRINTED_BYTES)


def _without_cut_line(end: bytes, most: int) -> bytes:
    """Return the end of an output, of which at most ``most`` bytes were kept, from the start of a line.

    A line of which the beginning is missing can begin within a secret, which no mask would recognise.
    """
    if len(end) < most:
        return end
    line_end = end.find(b"\n", 0, _LONGEST_CUT)
    return end[line_end + 1 if line_end >= 0 else _LONGEST_CUT :]


@asynccontextmanager
async def _launched(config: str, passed: tuple[int, ...], said: bytearray) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start the launcher without environment and with no open files but ``passed``, in a session of its own.

    Leaving ends it; ``said`` gets what is left of its stderr.
    """
    process = await _started(config, passed)
    assert process.stderr is not None
    try:
        yield process
    finally:
        if process.stdin is not None:
            process.stdin.close()  # on this the guard kills its child
        with suppress(TimeoutError):
            try:
                async with asyncio.timeout(_GRACE_S):
                    await process.wait()
            finally:
                # Late, or cancelled here: a process that is not waited for stays a zombie, and its pipes stay open.
                if process.returncode is None:
                    # The whole group: without a guard, the parent of a script with granted addresses is its connector.
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    await process.wait()
        # Its last output may be unread. The time is for a process that inherited the descriptor.
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                await _read(process.stderr, said, last=_STDERR_BYTES)


async def _started(config: str, passed: tuple[int, ...]) -> asyncio.subprocess.Process:
    """Start the launcher; if cancelled, end it with all that it has started.

    asyncio alone would kill the launcher, and wait for ever for the end of pipes that the script still holds.
    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            str(_HERE / "launcher.py"),
            config,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={},
            cwd="/",
            pass_fds=passed,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # By a callback: also if cancelled once more, while it starts.
        starting.add_done_callback(_kill_started)
        await asyncio.wait({starting})
        if not starting.cancelled() and starting.exception() is None:
            await starting.result().wait()
        raise


def _kill_started(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        with suppress(ProcessLookupError):
            os.killpg(starting.result().pid, signal.SIGKILL)


async def _converse(process: asyncio.subprocess.Process, document: bytes, said: bytearray) -> tuple[bytes, int]:
    """Send the input; return the answer and the exit status. ``said`` gets the end of stderr as it arrives.

    An answer that is too long is cut after the first byte above the limit.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None

    async def send(stdin: asyncio.StreamWriter) -> None:
        stdin.write(f"{len(document)}\n".encode() + document)
        try:
            await stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            return  # the process ended before it had read everything; status and stderr contain the reason

    raw = bytearray()
    await asyncio.gather(
        send(process.stdin),
        _read(process.stdout, raw, first=ANSWER_BYTES + 1),
        _read(process.stderr, said, last=_STDERR_BYTES),
    )
    return bytes(raw), await process.wait()


async def _read(stream: asyncio.StreamReader, content: bytearray, *, first: int = 0, last: int = 0) -> None:
    """Read to the end; keep the first or the last bytes, as many as given."""
    # All is read even if it is dropped, because a process that cannot write never ends.
    while chunk := await stream.read(1 << 16):
        if last:
            content[:] = (content + chunk)[-last:]
        else:
            content += chunk[: first - len(content)]
