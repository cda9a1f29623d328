"""SFTP into a machine's root folder, starting in the user's home."""

from __future__ import annotations

import posixpath
from typing import Any

import asyncssh
from asyncssh import SFTPAttrs, SFTPServer

from kubevnfm_lab.machines.machine import Machine
from kubevnfm_lab.ports import ConnectionDropped, FaultInjected, Faults, Ledger


class RootfsSftp(SFTPServer):
    """One sftp session. Relative paths start in the home, absolute ones at the machine's root."""

    def __init__(
        self, channel: asyncssh.SSHServerChannel[bytes], machine: Machine, home: str, *, faults: Faults, ledger: Ledger
    ) -> None:
        machine.lay_out()
        super().__init__(channel, chroot=str(machine.root).encode())
        self._machine, self._home, self._faults = machine, home.encode(), faults
        self._ledger = ledger
        ledger.count("ssh", "sftp", node=machine.name)
        machine.calls["ssh sftp"] += 1

    def map_path(self, path: bytes) -> bytes:
        """See SFTPServer; links on the machine that begin with its root keep their target."""
        return super().map_path(posixpath.join(self._home, path))

    def exit(self) -> None:
        """End the session with a status of 0, without which OpenSSH's scp takes it for a failure."""
        if not self.channel.is_closing():
            self.channel.exit(0)

    async def open(self, path: bytes, pflags: int, attrs: SFTPAttrs) -> object:
        """Open a file, unless a fault prevents it."""
        self._ledger.count("sftp", "open", node=self._machine.name)
        try:
            await self._faults.check("ssh", "sftp", node=self._machine.name)
            await self._faults.check("sftp", "open", node=self._machine.name)
        except FaultInjected as fault:
            raise asyncssh.SFTPFailure(fault.message) from fault
        except ConnectionDropped as dropped:
            self.connection.abort()
            raise asyncssh.SFTPConnectionLost("dropped") from dropped
        return super().open(path, pflags, _without_owner(attrs))

    def setstat(self, path: bytes, attrs: SFTPAttrs) -> Any:
        """Set attributes, except the owner, which only root could change."""
        return super().setstat(path, _without_owner(attrs))

    def lsetstat(self, path: bytes, attrs: SFTPAttrs) -> Any:
        """Set attributes of a link, except the owner."""
        return super().lsetstat(path, _without_owner(attrs))

    def fsetstat(self, file_obj: object, attrs: SFTPAttrs) -> Any:
        """Set attributes of an open file, except the owner."""
        return super().fsetstat(file_obj, _without_owner(attrs))


def _without_owner(attrs: SFTPAttrs) -> SFTPAttrs:
    # The lab's own user owns every file and may not give any away; scp -p would fail without this.
    attrs.uid = attrs.gid = attrs.owner = attrs.group = None
    return attrs
