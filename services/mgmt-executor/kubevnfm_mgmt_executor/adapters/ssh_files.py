"""The files of a machine, by SFTP; by commands where its sshd offers none."""

from __future__ import annotations

import asyncio
import hashlib
import shlex
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Final, TypeVar

import asyncssh
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.printable import printable
from kubevnfm_secrets import Mask

from kubevnfm_mgmt_executor.adapters import ssh_channels
from kubevnfm_mgmt_executor.adapters.ssh_channels import LONGEST_REASON, Channels, plain
from kubevnfm_mgmt_executor.domain.errors import ConnectionLost, SessionRefused, TransferRefused, UploadDamaged

T = TypeVar("T")

CHUNK: Final = 256 * 1024
FIRST_READ: Final = 32 * 1024
"""Bytes that are read of a file at first. The library asks at once for all that a read may return, in blocks of the server's
size: 64 requests for 16 MiB from OpenSSH, and results of tasks have a few hundred bytes."""
# The parameters of a task contain proxy passwords and join tokens, and the machine may have other users.
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
_MAKE_PRIVATE: Final = """set -e
umask 077
mkdir -p -- "$1"
part=$1
while [[ $part != . && $part != / ]]; do
  chmod 700 -- "$part"
  part=$(dirname -- "$part")
done
"""
_WRITE: Final = """set -e
umask 077
: >>"$1"
chmod 600 -- "$1"
cat >"$1"
"""
_READ: Final = 'if [[ -e $1 ]]; then head -c "$2" -- "$1"; fi\n'
_SHA256: Final = 'if [[ -e $1 ]]; then sha256sum <"$1" | cut -c -64; fi\n'
_MARKED: Final = "printf '%s\\n' \"$0\"\n"
"""Before the output of each command: what a login shell prints first is no part of it."""
_MOST_SAID: Final = 64 * 1024


class SshFiles:
    """Reads and writes files through the channels of a connection; relative paths begin in the login's home."""

    def __init__(self, channels: Channels, printed: Callable[[], Awaitable[str]], mask: Mask) -> None:
        """``printed``: returns what the machine prints when a command begins, masked, as the end of an error's text."""
        self._channels, self._printed, self._mask = channels, printed, mask
        self._sftp: asyncssh.SFTPClient | None = None
        self._has_sftp = True
        self._private: set[str] = set()
        """Folders that this connection created or made private."""
        self._opening = asyncio.Lock()

    async def upload(self, folder: str, files: Mapping[str, bytes]) -> None:
        """As the port says."""
        sftp = await self._transfer()
        if folder not in self._private:
            if sftp is None:
                await self._command(_MAKE_PRIVATE, folder)
            else:
                await self._written(sftp, _make_private(sftp, folder))
            self._private.add(folder)
        for name, content in files.items():
            path = f"{folder}/{name}"
            # A large file is only sent if another is there. To send a small one takes no longer than to look.
            if len(content) >= FIRST_READ and await self._has(path, content):
                continue
            if sftp is None:
                await self._command(_WRITE, path, given=content)
                is_whole = False
            else:
                is_whole = await self._written(sftp, _write(sftp, path, content))
            if not is_whole and not await self._has(path, content):
                reason = f"{name}: its SHA-256 on the machine differs from the one sent"
                raise UploadDamaged(reason, node=self._channels.node)

    async def _written(self, sftp: asyncssh.SFTPClient, work: Awaitable[T]) -> T:
        """Return the result of a transfer to the machine; OpenSSH says that one failed, and not why."""
        try:
            return await self._channels.timed(work)
        except TransferRefused as refused:
            if not await self._is_full(sftp):
                raise
            reason = "file transfer: No space left on device in the home folder of the login"
            raise TransferRefused(reason, node=self._channels.node) from refused

    async def _is_full(self, sftp: asyncssh.SFTPClient) -> bool:
        """Return whether the home folder has no space left; False if the machine does not say."""
        with suppress(asyncssh.SFTPError, ConnectionLost, TransferRefused):
            home = await self._channels.timed(sftp.statvfs("."))
            return home.bavail == 0 or (home.files > 0 and home.favail == 0)
        return False

    async def read(self, path: str, *, limit: int) -> bytes:
        """As the port says."""
        sftp = await self._transfer()
        if sftp is None:
            return await self._command(_READ, path, str(limit), limit=limit)
        return await self._channels.timed(_read(sftp, path, limit))

    async def _has(self, path: str, content: bytes) -> bool:
        if await self._transfer() is None:
            return (await self._command(_SHA256, path)).strip() == hashlib.sha256(content).hexdigest().encode()
        # One byte more than sent is read, so a longer file differs.
        return await self.read(path, limit=len(content) + 1) == content

    async def _transfer(self) -> asyncssh.SFTPClient | None:
        """Return the SFTP client; None if sshd offers no SFTP."""
        # Tasks on one node run side by side. Each would open a channel of its own, and sshd limits them (MaxSessions).
        async with self._opening:
            if self._sftp is None and self._has_sftp:
                try:
                    self._sftp = await self._channels.open(self._channels.connection.start_sftp_client, lasts=True)
                except SessionRefused as refused:
                    if not refused.is_of_purpose:
                        raise
                    self._has_sftp = False
                except asyncssh.SFTPError as error:
                    reason = f"file transfer: the machine does not answer as SFTP does: {plain(error)}"
                    raise TransferRefused(reason + await self._printed(), node=self._channels.node) from error
            return self._sftp

    async def _command(self, script: str, *arguments: str, given: bytes = b"", limit: int = _MOST_SAID) -> bytes:
        """Return what a script prints, at most ``limit`` bytes. Raises ConnectionLost, TransferRefused."""
        marker = new_id()
        argv = ["timeout", f"{ssh_channels.COMMAND_S:g}", "bash", "-c", _MARKED + script, marker, *arguments]
        process = await self._channels.open(
            lambda: self._channels.connection.create_process(shlex.join(argv), encoding=None)
        )
        try:
            said, complaint = await self._channels.timed(_talk(process, given, limit + _MOST_SAID))
        finally:
            self._channels.end(process)
        if process.exit_status is None and process.exit_signal is None:
            raise ConnectionLost("the session ended before the command did", node=self._channels.node)
        _, found, output = said.partition(marker.encode() + b"\n")
        if process.exit_status != 0 or not found:
            text = complaint.decode("utf-8", "replace").strip() or f"a command ended with {process.exit_status}"
            # Printable first: a control character within a secret would hide it from the mask.
            reason = self._mask(printable(text))[:LONGEST_REASON]
            raise TransferRefused(f"file transfer: {reason}{await self._printed()}", node=self._channels.node)
        return output[:limit]


async def _talk(process: asyncssh.SSHClientProcess[bytes], given: bytes, limit: int) -> tuple[bytes, bytes]:
    """Return what the command prints on its two outputs, each up to a limit."""

    async def give() -> None:
        # A command that ends before it has read everything says why by its exit status.
        try:
            for begin in range(0, len(given), CHUNK):
                process.stdin.write(given[begin : begin + CHUNK])
                await process.stdin.drain()
            process.stdin.write_eof()
        except (BrokenPipeError, ConnectionResetError):
            pass

    async def heard(reader: asyncssh.SSHReader[bytes]) -> bytes:
        text = bytearray()
        while data := await reader.read(CHUNK):
            text += data[: limit - len(text)]
        return bytes(text)

    async with asyncio.TaskGroup() as group:
        group.create_task(give())
        output, errors = group.create_task(heard(process.stdout)), group.create_task(heard(process.stderr))
    await process.wait_closed()
    return output.result(), errors.result()


async def _make_private(sftp: asyncssh.SFTPClient, folder: str) -> None:
    await sftp.makedirs(folder, asyncssh.SFTPAttrs(permissions=PRIVATE_FOLDER), exist_ok=True)
    for part in (PurePosixPath(folder), *PurePosixPath(folder).parents):
        if str(part) != ".":  # an older folder, or one whose mode the server's umask changed
            await sftp.chmod(str(part), PRIVATE_FOLDER)


async def _write(sftp: asyncssh.SFTPClient, path: str, content: bytes) -> bool:
    """Write the file; return whether it is known to be whole, as it is if one read shows all of it."""
    async with sftp.open(path, "w+b", asyncssh.SFTPAttrs(permissions=PRIVATE_FILE)) as file:
        await file.setstat(asyncssh.SFTPAttrs(permissions=PRIVATE_FILE))  # before there is anything to read
        if not content:
            return True  # opening it has truncated it
        await file.write(content)
        there: bytes = await file.read(len(content), 0) if len(content) < FIRST_READ else b""
        return there == content


async def _read(sftp: asyncssh.SFTPClient, path: str, limit: int) -> bytes:
    # A server returns all that was asked for, or all up to the end of a regular file (draft-ietf-secsh-filexfer-02, 6.4).
    # By default the library asks once more, to learn that it is the end.
    asked = min(limit, FIRST_READ)
    try:
        async with sftp.open(path, "rb", block_size=0) as file:
            first: bytes = await file.read(asked)
        if len(first) < asked or asked == limit:
            return first
        async with sftp.open(path, "rb") as file:
            rest: bytes = await file.read(limit - len(first), len(first))
            return first + rest
    except asyncssh.SFTPNoSuchFile:
        return b""
