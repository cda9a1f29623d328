"""An open SSH connection to a machine: its commands and its files."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import asyncssh
from kubevnfm_kit import live_spans
from kubevnfm_secrets import Mask

from kubevnfm_mgmt_executor.adapters import ssh_channels
from kubevnfm_mgmt_executor.adapters.ssh_channels import Channels
from kubevnfm_mgmt_executor.adapters.ssh_files import CHUNK, SshFiles
from kubevnfm_mgmt_executor.domain.errors import (
    CommandTimedOut,
    ConnectionLost,
    SudoMissing,
    SudoRefused,
    TransferRefused,
)
from kubevnfm_mgmt_executor.domain.output import CollectedOutput
from kubevnfm_mgmt_executor.domain.ports import Login, Output

KILL_GRACE_S: Final = 10
"""timeout(1) on the machine sends KILL this long after TERM."""
TIMED_OUT: Final = 124
"""timeout(1)'s exit code when it ended the command."""
NOT_FOUND: Final = 127
"""The exit code of a shell for a program that it does not find (POSIX 2.8.2); sudo never returns it for a refusal."""
KILLED: Final = 128 + 9
"""The exit code that a shell, or sudo, returns for a command that KILL ended."""
LIFELINE: Final = """over=
trap over=1 TERM
exec 8<&0 </dev/null
{ while read -r _ <&8; do :; done; kill -TERM 0; } >/dev/null 2>&1 &
exec 8<&-
code=143
if [ -z "$over" ]; then "$@"; code=$?; fi
kill "$!" 2>/dev/null
exit "$code"
"""
"""Ends the command when its standard input ends, that is, with the channel or the connection.

sshd itself kills no process, and its signals reach neither a command under sudo nor one of a root login. TERM goes to
the process group: under timeout(1) that is the command with all processes that it started, and nothing else. The shell
itself survives TERM until the command ends: otherwise timeout(1) would end with it and send no KILL to a command that
ignores TERM. After TERM no command begins, since it would not get it. Once the command has ended there is no KILL: a
process that it started, and that ignores TERM, stays.
"""


class SshMachine:
    """One connection, perhaps through a bastion; the sessions and the SFTP channel of a phase go through it."""

    def __init__(
        self,
        connection: asyncssh.SSHClientConnection,
        node: str,
        login: Login,
        bastion: asyncssh.SSHClientConnection | None,
    ) -> None:
        self._connection, self._node, self._login, self._bastion = connection, node, login, bastion
        self._as_root: Sequence[str] = ()
        self._sudo_reads_password = False
        self._channels = Channels(connection, node)
        self._mask = Mask([login.password] if login.password else [])
        self._files = SshFiles(self._channels, self._printed, self._mask)

    async def find_way_to_root(self) -> None:
        """Find out how the user becomes root: it is root, or sudo needs no password, or sudo reads it on standard input."""
        if self._login.username == "root":
            return
        # Without a password first: where the sudoers file has NOPASSWD, the password is then never sent.
        self._as_root = ("sudo", "-n")
        code, said = await self._try_sudo()
        if code == 0:
            return
        user = self._login.username
        if code == NOT_FOUND:
            raise SudoMissing(f"user {user} cannot become root: sudo is not installed{said}", node=self._node)
        # An empty prompt (-p), because sudo writes it to standard error, which is collected as the task's output.
        self._as_root, self._sudo_reads_password = ("sudo", "-S", "-p", ""), True
        if self._login.password is not None:
            code, said = await self._try_sudo()
            if code == 0:
                return
        raise SudoRefused(f"user {user} cannot become root with sudo{said}", node=self._node)

    async def _try_sudo(self) -> tuple[int | None, str]:
        """Return the exit code of a command that does nothing, and what sudo printed, as the end of an error's text."""
        return await self._said(["true"], as_root=True)

    async def _printed(self) -> str:
        """Return what the machine prints beside the output of a command, as the end of an error's text."""
        return (await self._said(["true"], as_root=False))[1]

    async def _said(self, argv: Sequence[str], *, as_root: bool) -> tuple[int | None, str]:
        printed = CollectedOutput(self._mask)
        code = await self.run(argv, task="", timeout_s=ssh_channels.COMMAND_S, output=printed.add, as_root=as_root)
        # Each line once: a ~/.bashrc is read by each shell of the command.
        text = " ".join(" ".join(dict.fromkeys(printed.last_lines().splitlines())).split())[
            : ssh_channels.LONGEST_REASON
        ]
        return code, f"; it printed: {text}" if text else ""

    async def run(
        self, argv: Sequence[str], *, task: str, timeout_s: float, output: Output | None = None, as_root: bool = False
    ) -> int | None:
        """Run a command under a lifeline and a deadline on the machine itself; both signal all processes that it started."""
        facts: dict[str, live_spans.Value] = {"kubevnfm.node": self._node, "kubevnfm.task": task}
        with live_spans.span(f"ssh {task}".rstrip(), "client", facts) as span:
            code = await self._run(argv, task=task, timeout_s=timeout_s, output=output, as_root=as_root)
            if code is not None:
                span.note("process.exit.code", code)
            return code

    async def _run(
        self, argv: Sequence[str], *, task: str, timeout_s: float, output: Output | None, as_root: bool
    ) -> int | None:
        guarded = ["timeout", f"--kill-after={KILL_GRACE_S}", f"{timeout_s:g}", "bash", "-c", LIFELINE, "bash", *argv]
        command = shlex.join([*self._as_root, *guarded] if as_root else guarded)
        began = 0.0

        def start() -> Awaitable[asyncssh.SSHClientProcess[bytes]]:
            nonlocal began
            began = time.monotonic()  # not after the machine's timeout(1), or an end by it would come too early
            # Bytes: programs on the machine need not print UTF-8. Standard input stays open, because its end ends the command.
            return self._connection.create_process(command, encoding=None)

        process = await self._channels.open(start, task=task)
        try:
            # timeout(1) on the machine comes first, with its own grace. This one is for a machine that no longer
            # answers.
            async with asyncio.timeout(timeout_s + 2 * KILL_GRACE_S), self._channels.translated(task):
                if as_root and self._sudo_reads_password:
                    process.stdin.write(f"{self._login.password}\n".encode())
                async with asyncio.TaskGroup() as group:  # both at once, so that neither fills its window and blocks
                    group.create_task(_drain(process.stdout, output))
                    group.create_task(_drain(process.stderr, output))
                await process.wait_closed()
        except TimeoutError as error:
            raise self._timed_out(task, timeout_s) from error
        finally:
            # If the command is still running, because this task was cancelled, the closed channel ends it by its
            # lifeline.
            self._channels.end(process)
        # sshd sends an exit status or a signal for every command that ends (RFC 4254, 6.10); a channel without one
        # broke.
        if process.exit_status is None:
            raise ConnectionLost("the session ended before the command did", node=self._node, task=task)
        # A command may have such an end of its own, but hardly after exactly its full time. A command that ignores TERM
        # is ended by KILL, and timeout(1) with it, so its own exit code is lost.
        was_killed = process.exit_signal is not None or process.exit_status in (TIMED_OUT, KILLED)
        if was_killed and time.monotonic() - began >= timeout_s:
            raise self._timed_out(task, timeout_s)
        return process.exit_status if process.exit_signal is None else None

    def _timed_out(self, task: str, timeout_s: float) -> CommandTimedOut:
        return CommandTimedOut(f"task {task}: not done after {timeout_s:g} s, and killed", node=self._node, task=task)

    async def upload(self, folder: str, files: Mapping[str, bytes]) -> None:
        await self._files.upload(folder, files)

    async def read(self, path: str, *, limit: int) -> bytes:
        return await self._files.read(path, limit=limit)

    async def remove(self, folder: str) -> None:
        # Not by SFTP: a machine could list files without end.
        code = await self.run(["rm", "-rf", "--", folder], task="", timeout_s=ssh_channels.COMMAND_S)
        if code != 0:
            raise TransferRefused(f"{folder} cannot be deleted: rm ended with {code}", node=self._node)

    async def close(self) -> None:
        # A broken connection cannot be closed properly, and a machine without power never confirms. Neither is an
        # error: the session is not used again.
        connections = [each for each in (self._connection, self._bastion) if each is not None]
        for connection in connections:
            connection.close()
        with suppress(OSError, asyncssh.Error, TimeoutError):
            async with asyncio.timeout(5):
                for connection in connections:
                    await connection.wait_closed()


async def _drain(reader: asyncssh.SSHReader[bytes], output: Output | None) -> None:
    while data := await reader.read(CHUNK):
        if output is not None:
            output(data)
