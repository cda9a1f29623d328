"""A real sshd (Debian's ``openssh-server``) for tests, with its own configuration, host key and port on loopback."""

from __future__ import annotations

import asyncio
import getpass
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh
from needs import cannot_have

from servers.ports import PortTaken, free_port

_TRIES = 5
"""How many ports are tried, if programs outside of the tests take one after the other."""


@dataclass
class OpenSsh:
    """A running sshd that accepts the current user with one key."""

    folder: Path
    port: int
    username: str
    private_key: str = field(repr=False)
    process: asyncio.subprocess.Process | None = None

    def configure(self, *, forwards: bool, settings: str = "", sftp: bool = True) -> None:
        """Write the configuration file. ``forwards``: whether it can be a bastion; ``settings``: further lines."""
        folder = self.folder
        (folder / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host_key\nPidFile none\n"
            f"AuthorizedKeysFile {folder}/authorized_keys\nStrictModes no\nPermitRootLogin prohibit-password\n"
            f"AllowTcpForwarding {'yes' if forwards else 'no'}\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\n"
            f"{'Subsystem sftp internal-sftp' if sftp else ''}\n{settings}"
            # Bash reads ~/.bashrc for commands over SSH: the output of the developer's own is not the command's.
            f"SetEnv HOME={folder}\n"
        )

    async def start(self) -> None:
        """Start, and wait until it listens. Raises PortTaken."""
        program = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
        if program is None:
            cannot_have("OpenSSH's sshd is missing: apt-get install openssh-server")
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd requires it regardless of its configuration
        log = self.folder / "sshd.log"
        with log.open("wb") as output:
            self.process = await asyncio.create_subprocess_exec(
                program, "-D", "-e", "-f", str(self.folder / "sshd_config"), stderr=output
            )
        async with asyncio.timeout(300):
            # Its own line, because a connection could reach the server of another program that took the port.
            while b"Server listening on" not in log.read_bytes():
                if self.process.returncode is not None:
                    said = log.read_text()
                    raise (PortTaken if "Address already in use" in said else AssertionError)(f"sshd ended: {said}")
                await asyncio.sleep(0.02)

    async def stop(self) -> None:
        """Stop sshd and its sessions."""
        if self.process is not None and self.process.returncode is None:
            self.cut()
            self.process.terminate()
            await self.process.wait()

    def cut(self) -> None:
        """Kill the processes that serve the sessions, to simulate a lost network."""
        assert self.process is not None
        for child in _descendants(self.process.pid):
            with suppress(OSError):
                if "sshd" in Path(f"/proc/{child}/comm").read_text():
                    os.kill(child, signal.SIGKILL)

    def new_host_key(self) -> None:
        """Create another host key, which is used from the next start on."""
        path = self.folder / "host_key"
        asyncssh.generate_private_key("ssh-ed25519").write_private_key(path)
        path.chmod(0o600)


def _descendants(pid: int) -> list[int]:
    try:
        children = [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
        return []
    return [descendant for child in children for descendant in (*_descendants(child), child)]


@asynccontextmanager
async def openssh(
    folder: Path,
    *,
    forwards: bool = True,
    settings: str = "",
    sftp: bool = True,
    choose_port: Callable[[], int] = free_port,
) -> AsyncIterator[OpenSsh]:
    """Yield a running sshd whose files are in ``folder``; the others are those of `OpenSsh.configure`.

    If another program takes the chosen port before sshd listens, sshd gets another port.
    """
    folder.mkdir(parents=True, exist_ok=True)
    key = asyncssh.generate_private_key("ssh-ed25519")
    (folder / "authorized_keys").write_bytes(key.export_public_key())
    for tries_left in reversed(range(_TRIES)):
        server = OpenSsh(folder, choose_port(), getpass.getuser(), key.export_private_key().decode())
        server.configure(forwards=forwards, settings=settings, sftp=sftp)
        server.new_host_key()
        try:
            await server.start()
            break
        except PortTaken:
            if not tries_left:
                raise
    try:
        yield server
    finally:
        await server.stop()
