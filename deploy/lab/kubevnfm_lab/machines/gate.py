"""The connection of stand-in programs to the lab: one TCP socket on 127.0.0.1, a secret, NUL-separated words.

A stand-in is a few lines of bash with ``/dev/tcp``: about 1.5 ms of CPU per run, where a Python client costs 10 ms and
a node's installation needs dozens. The secret is in the scripts, which only the lab's user can read.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import itertools
import secrets
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubevnfm_lab.machines.machine import Machine
from kubevnfm_lab.machines.programs.call import Call, Exit, Failed, Program, World
from kubevnfm_lab.machines.wordlist import words
from kubevnfm_lab.ports import ConnectionDropped, FaultInjected, Faults, Ledger

REQUEST_LIMIT = 8 * 1024 * 1024
INLINE_LIMIT = 512
"""Bytes of output that the script reads itself; bash reads sockets byte by byte, so more is read by cat."""

WITH_VERB = frozenset(
    words("kubeadm kubectl apt-get apt apt-mark systemctl hostnamectl docker cloud-init containerd ctr ip modprobe")
)
"""Programs that faults and counters name with their first argument, which is a command or a name."""

OPTIONS_WITH_VALUE = frozenset(("--kubeconfig", "-n", "--namespace", "-o", "-a", "--address", "-c", "--config", "-t"))


@dataclass(frozen=True)
class _Request:
    program: str
    path: str
    root: str
    cwd: str
    args: list[str]
    env: dict[str, str]


class Gate:
    """Runs stand-in programs on behalf of the scripts; the end of a script cancels its run."""

    def __init__(
        self,
        *,
        find: Callable[[str, str], Machine | None],
        world: World,
        programs: Callable[[str], Program | None],
        faults: Faults,
        ledger: Ledger,
    ) -> None:
        self._find, self._world, self._programs = find, world, programs
        self._faults, self._ledger = faults, ledger
        self._secret = secrets.token_hex(16)
        self._inputs: dict[str, asyncio.Future[bytes]] = {}
        self._ids = itertools.count(1)
        self._server: asyncio.Server | None = None
        self._handlers: set[asyncio.Task[Any]] = set()

    @property
    def secret(self) -> str:
        """The first word that a script must send."""
        return self._secret

    async def open(self) -> int:
        """Listen; return the port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=REQUEST_LIMIT)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Stop listening and cancel all runs."""
        if self._server:
            self._server.close()
        for task in list(self._handlers):
            task.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            # The port is open to every local user; the secret keeps others from running programs as root of a machine.
            if hmac.compare_digest(await _word(reader), self._secret):
                await self._answer(reader, writer)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass  # the script was killed; there is no reader for an answer
        finally:
            self._handlers.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await _word(reader) == "stdin":
            waiting = self._inputs.pop(await _word(reader), None)
            content = await reader.read()
            if waiting and not waiting.done():
                # The reader may have given up meanwhile.
                waiting.set_result(content)
            return
        request = await _request(reader)
        machine = self._find(request.path, request.root)
        # A script of a machine that was destroyed or powered off sees its connection close.
        if machine is None or not machine.powered:
            return
        await _unless_gone(reader, self._run(request, machine, writer))

    async def _run(self, request: _Request, machine: Machine, writer: asyncio.StreamWriter) -> None:
        async def read_stdin() -> bytes:
            number = str(next(self._ids))
            waiting = self._inputs[number] = asyncio.get_running_loop().create_future()
            writer.write(f"stdin {number}\n".encode())
            try:
                content: bytes = await waiting
                return content
            finally:
                self._inputs.pop(number, None)

        env = request.env
        call = Call(request.program, request.args, machine, self._world, Path(request.cwd), env, read_stdin)
        try:
            _write_exit(writer, await self._exit_of(call))
            await writer.drain()
        except ConnectionDropped:
            return  # the script sees the connection end and reports a killed program

    async def _exit_of(self, call: Call) -> Exit:
        verb = _verb(call.program, call.args)
        # The password check is an implementation detail of sudo, not a program that tests count.
        if call.program != "sudo-password":
            self._ledger.count("program", verb, node=call.machine.name)
            call.machine.calls[verb] += 1
            call.machine.command_lines.append(" ".join([call.program, *call.args]))
        program = self._programs(call.program)
        if program is None:
            return Exit(127, stderr=f"bash: {call.program}: command not found\n")
        try:
            await self._faults.check("program", verb, node=call.machine.name)
            seconds = self._world.settings.seconds_of(verb)
            if seconds:
                await asyncio.sleep(seconds)
            return await program(call)
        except FaultInjected as fault:
            return Exit(fault.status if 0 < fault.status < 256 else 1, stderr=f"{fault.message}\n")
        except Failed as failed:
            message = failed.message if failed.message.endswith("\n") or not failed.message else f"{failed.message}\n"
            return Exit(failed.code, failed.stdout, message)


async def _word(reader: asyncio.StreamReader) -> str:
    return (await reader.readuntil(b"\0"))[:-1].decode("utf-8", "surrogateescape")


async def _request(reader: asyncio.StreamReader) -> _Request:
    path, root, cwd, count = [await _word(reader) for _ in range(4)]
    args = [await _word(reader) for _ in range(int(count))]
    # Only set variables are sent, and an empty word ends the list.
    env: dict[str, str] = {}
    while pair := await _word(reader):
        name, _, value = pair.partition("=")
        if value:
            env[name] = value
    return _Request(path.rsplit("/", 1)[-1], path, root, cwd, args, env)


async def _unless_gone(reader: asyncio.StreamReader, run: Coroutine[Any, Any, None]) -> None:
    """Run until the program ends or the script's connection is closed."""
    running = asyncio.ensure_future(run)
    # The script sends nothing more, so a readable socket means that it has ended.
    gone = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait({running, gone}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await running
    finally:
        for task in (running, gone):
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        if gone.done() and not gone.cancelled():
            gone.exception()  # a reset counts as an end of the connection


def _verb(program: str, args: Sequence[str]) -> str:
    """Return the program, with its first argument where that is a command: ``kubeadm join``, ``kubeadm init phase``."""
    if program not in WITH_VERB:
        return program
    skip, names = False, [program]
    for arg in args:
        if skip:
            skip = False
        elif arg in OPTIONS_WITH_VALUE:
            skip = True
        elif not arg.startswith("-"):
            names.append(arg)
    # A single phase has its own name, apart from the whole command.
    return " ".join(names[:3] if names[2:3] == ["phase"] else names[:2])


def _write_exit(writer: asyncio.StreamWriter, ended: Exit) -> None:
    output = ended.stdout.encode("utf-8", "surrogateescape") if isinstance(ended.stdout, str) else ended.stdout
    # bash cannot hold NUL bytes in the variable that it reads errors into.
    errors = ended.stderr.encode("utf-8", "surrogateescape").replace(b"\0", b"")
    # bash drops NUL bytes, so output that contains any is read by cat.
    inline = len(output) <= INLINE_LIMIT and b"\0" not in output
    sizes = f"{len(errors)} {len(output) if inline else 0} {0 if inline else 1}"
    writer.write(f"exit {ended.code} {sizes}\n".encode() + errors + output)
