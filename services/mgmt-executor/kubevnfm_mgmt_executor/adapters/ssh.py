"""Machines over SSH and SFTP (asyncssh): the only module that knows the library."""

from __future__ import annotations

import asyncio
import shlex
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, TypeVar

import asyncssh
from asyncssh.constants import OPEN_ADMINISTRATIVELY_PROHIBITED
from kubevnfm_clients.vnf_networks import PeersUnresolved, VnfAddressRefused, VnfNetworks
from kubevnfm_kit.printable import printable
from kubevnfm_secrets import Mask

from kubevnfm_mgmt_executor.domain.errors import (
    AddressRefused,
    CommandTimedOut,
    ConnectionLost,
    ForwardingRefused,
    HostKeyChanged,
    LoginRefused,
    NodeUnreachable,
    SudoMissing,
    SudoRefused,
    TransferRefused,
    UploadDamaged,
)
from kubevnfm_mgmt_executor.domain.output import CollectedOutput
from kubevnfm_mgmt_executor.domain.ports import Address, HostKeys, Login, Machine, Output

FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 15.0
CONNECT_WITHIN_S: Final = 15.0
"""For one try: a host that is up answers far sooner, and one that drops packets would block the try for minutes."""
SETTLE_S: Final = 60.0
"""How long a refused login is tried again on a machine that was seen booting: its sshd may listen before cloud-init
has set the password. A machine that was up from the start is given up at once."""
# A command such as an installation of packages is silent for minutes, so silence alone proves nothing. A machine that
# answers no keepalive for a minute is lost.
KEEPALIVE_S: Final = 15.0
KEEPALIVE_TRIES: Final = 4
CIPHERS: Final = "^aes*-gcm@openssh.com"
"""AES-GCM before the others: asyncssh's own first choice, ChaCha20, costs it five times as much processor time for each packet."""
COMMAND_S: Final = 60.0
"""For the adapter's own small commands and file transfers."""
LONGEST_REASON: Final = 1000
TRANSFER_CHUNK: Final = 256 * 1024
FIRST_READ: Final = 32 * 1024
"""Bytes that are read of a file at first. The library asks at once for all that a read may return, in blocks of the server's
size: 64 requests for 16 MiB from OpenSSH, and results of tasks have a few hundred bytes."""
KILL_GRACE_S: Final = 10
"""timeout(1) on the machine sends KILL this long after TERM."""
TIMED_OUT: Final = 124
"""timeout(1)'s exit code when it ended the command."""
NOT_FOUND: Final = 127
"""The exit code of a shell for a program that it does not find (POSIX 2.8.2); sudo never returns it for a refusal."""
KILLED: Final = 128 + 9
"""The exit code that a shell, or sudo, returns for a command that KILL ended."""
LIFELINE: Final = """trap : TERM
exec 8<&0 </dev/null
{ while read -r _ <&8; do :; done; kill -TERM 0; } >/dev/null 2>&1 &
exec 8<&-
"$@"
code=$?
kill "$!" 2>/dev/null
exit "$code"
"""
"""Ends the command when its standard input ends, that is, with the channel or the connection.

sshd itself kills no process, and its signals reach neither a command under sudo nor one of a root login. TERM goes to
the process group: under timeout(1) that is the command with all processes that it started, and nothing else. The shell
itself survives TERM until the command ends: otherwise timeout(1) would end with it and send no KILL to a command that
ignores TERM. Once the command has ended there is no KILL: a process that it started, and that ignores TERM, stays.
"""
# The parameters of a task contain proxy passwords and join tokens, and the machine may have other users.
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600

T = TypeVar("T")


class SshMachines:
    """Opens sessions; ``port`` is that of the machines whose address names none."""

    def __init__(self, host_keys: HostKeys, networks: VnfNetworks, *, port: int = 22) -> None:
        self._host_keys, self._networks, self._port = host_keys, networks, port

    async def reach(self, address: Address, login: Login, *, within_s: float) -> Machine:
        """Return a session once the machine accepts the login; its host key is pinned on first contact."""
        until = time.monotonic() + within_s
        pause_s = FIRST_PAUSE_S
        booting = False
        settle_until: float | None = None
        while True:
            try:
                return await self._connect(address, login)
            # AddressRefused, HostKeyChanged, ForwardingRefused and SudoRefused pass both clauses: waiting changes none of them.
            except LoginRefused:
                now = time.monotonic()
                # Counted from the first refusal: how long the machine booted before does not shorten it.
                if settle_until is None:
                    settle_until = now + SETTLE_S if booting else now
                if now >= min(settle_until, until):
                    raise
            # asyncssh lets its parsers' ValueError through: for a packet or a text that is not as SSH has it.
            except (OSError, asyncssh.Error, ValueError, ConnectionLost, PeersUnresolved) as error:
                # Refused and unanswered connections are usual until sshd listens, so none of them is final before
                # `until`.
                booting = True
                if time.monotonic() + pause_s >= until:
                    place = f"{address.host} port {address.port or self._port}"
                    raise NodeUnreachable(
                        f"no SSH session with {place} within {within_s:.0f} s: {_plain(error)}", node=address.node
                    ) from error
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.6, LONGEST_PAUSE_S)

    async def _connect(self, address: Address, login: Login) -> Machine:
        bastion = await self._bastion(address) if address.bastion is not None else None
        connection: asyncssh.SSHClientConnection | None = None
        try:
            port = address.port or self._port
            place = _Place("the machine", address.host, port, pinned_as=address.vnfc_id)
            connection = await self._open(place, login, address, through=bastion)
            machine = SshMachine(connection, address.node, login, bastion)
            await machine.find_way_to_root()
        # Also when cancelled: the caller has no machine yet that it could close.
        except BaseException:
            for opened in (connection, bastion):
                if opened is not None:
                    opened.abort()
            raise
        return machine

    async def _bastion(self, address: Address) -> asyncssh.SSHClientConnection:
        bastion = address.bastion
        assert bastion is not None
        name = f"bastion {bastion.host}"
        place = _Place(name, bastion.host, bastion.port, pinned_as=f"{name} {bastion.port}")
        try:
            return await self._open(place, bastion.login, address)
        except (OSError, asyncssh.Error, ValueError) as error:
            raise _BastionUnreachable(f"no session with {name} port {bastion.port}: {_plain(error)}") from error

    async def _open(
        self,
        place: _Place,
        login: Login,
        address: Address,
        *,
        through: asyncssh.SSHClientConnection | None = None,
    ) -> asyncssh.SSHClientConnection:
        """Return a connection to a machine or bastion whose host key is the pinned one.

        Raises AddressRefused, LoginRefused, HostKeyChanged, PeersUnresolved, and what the library raises.
        """
        instance, node = address.vnf_instance_id, address.node
        # None turns off authentication by key; asyncssh would otherwise try the keys in this account's home.
        keys = _client_keys(place, login, node)
        expected = _ExpectedKey(await self._host_keys.pinned(instance, place.pinned_as))
        # A machine behind a bastion is reached from the bastion's network, so it is the bastion's address that is judged.
        connected = await self._connected(place, node) if through is None else None
        try:
            # Without the SSH configuration and the agent of the account that runs this service: neither may choose
            # hosts or keys. With PasswordAuthentication off, an sshd may still read the password as
            # keyboard-interactive (RFC 4256).
            connection = await asyncssh.connect(
                place.host,
                place.port,
                tunnel=through,
                sock=connected,
                username=login.username,
                password=login.password,
                client_keys=keys,
                client_factory=lambda: expected,
                known_hosts=([], [], []),  # no host is known in advance: the callback below decides
                config=None,
                agent_path=None,
                encryption_algs=CIPHERS,
                connect_timeout=CONNECT_WITHIN_S,
                login_timeout=CONNECT_WITHIN_S,
                keepalive_interval=KEEPALIVE_S,
                keepalive_count_max=KEEPALIVE_TRIES,
                preferred_auth="publickey,password,keyboard-interactive" if keys else "password,keyboard-interactive",
            )
        except asyncssh.HostKeyNotVerifiable as error:
            raise HostKeyChanged(
                f"{place.shown} shows another host key than on first contact; nothing was sent to it", node=node
            ) from error
        except asyncssh.PermissionDenied as error:
            raise LoginRefused(f"user {login.username}: {place.name} refuses the login", node=node) from error
        except asyncssh.ChannelOpenError as error:
            # Any other code: the machine did not answer the bastion (RFC 4254, 5.1).
            if error.code != OPEN_ADMINISTRATIVELY_PROHIBITED:
                raise
            reason = f"the bastion accepts the login, but does not forward connections to {place.host}"
            raise ForwardingRefused(reason, node=node) from error
        try:
            shown = connection.get_server_host_key()
            assert shown is not None  # every session has one
            line = _line(shown)
            # Two workers may see a host for the first time at once. The key that is stored decides, so both must
            # have seen the same one.
            if await self._host_keys.pin(instance, place.pinned_as, line) != line:
                raise HostKeyChanged(f"{place.shown} shows two host keys at the same time", node=node)
        except BaseException:
            connection.abort()
            raise
        return connection

    async def _connected(self, place: _Place, node: str) -> socket.socket:
        """Return a socket that is connected to a judged address of the host. Raises AddressRefused, PeersUnresolved, OSError."""
        try:
            addresses = await self._networks.granted(place.host, place.port)
        except VnfAddressRefused as error:
            raise AddressRefused(f"no SSH to {place.shown}: {error}", node=node) from error
        for address in addresses[:-1]:
            with suppress(OSError):
                return await _connect_to(address, place.port)
        return await _connect_to(addresses[-1], place.port)


async def _connect_to(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        async with asyncio.timeout(CONNECT_WITHIN_S):
            await asyncio.get_running_loop().sock_connect(sock, (address, port))
    except BaseException:
        sock.close()
        raise
    return sock


@dataclass(frozen=True)
class _Place:
    """A host whose sshd is asked for a login."""

    name: str
    """For errors: the machine, or which bastion."""
    host: str
    port: int
    pinned_as: str
    """The id under which its host key is pinned for the instance."""

    @property
    def shown(self) -> str:
        """Its name and address, for errors."""
        return self.name if self.host in self.name else self.host


class _BastionUnreachable(OSError):
    """No session with the bastion; as with the machine, waiting may help."""


def _client_keys(place: _Place, login: Login, node: str) -> Sequence[asyncssh.SSHKey] | None:
    if login.private_key is None:
        return None
    try:
        # Without the test of an RSA key's mathematics, which takes up to 5 s for each machine.
        return [asyncssh.import_private_key(login.private_key, unsafe_skip_rsa_key_validation=True)]
    except asyncssh.KeyImportError as error:
        reason = f"user {login.username}: the private key for {place.name} cannot be read"
        raise LoginRefused(reason, node=node) from error


class _ExpectedKey(asyncssh.SSHClient):
    """Accepts the pinned key only; any key while none is pinned."""

    def __init__(self, pinned: str | None) -> None:
        self._pinned = pinned

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        return self._pinned is None or self._pinned == _line(key)


def _line(key: asyncssh.SSHKey) -> str:
    algorithm, data = key.export_public_key("openssh").decode().split()[:2]  # the comment is no part of it
    return f"{algorithm} {data}"


def _plain(error: BaseException) -> str:
    # A server words the reason of its own disconnect.
    return printable(str(error))[:LONGEST_REASON] or type(error).__name__


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
        self._sftp: asyncssh.SFTPClient | None = None
        self._private: set[str] = set()
        """Folders that this connection created or made private."""
        self._opening = asyncio.Lock()

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
        printed = CollectedOutput(Mask([self._login.password] if self._login.password else []))
        code = await self.run(["true"], task="", timeout_s=COMMAND_S, output=printed.add, as_root=True)
        text = " ".join(printed.last_lines().split())
        return code, f"; it printed: {text}" if text else ""

    async def run(
        self, argv: Sequence[str], *, task: str, timeout_s: float, output: Output | None = None, as_root: bool = False
    ) -> int | None:
        """Run a command under a lifeline and a deadline on the machine itself; both signal all processes that it started."""
        guarded = ["timeout", f"--kill-after={KILL_GRACE_S}", f"{timeout_s:g}", "bash", "-c", LIFELINE, "bash", *argv]
        command = shlex.join([*self._as_root, *guarded] if as_root else guarded)
        began = time.monotonic()
        opening = asyncio.timeout(COMMAND_S)
        try:
            async with opening, self._translated(task):
                # Bytes: programs on the machine need not print UTF-8. Standard input stays open, because its end ends the
                # command.
                process = await self._connection.create_process(command, encoding=None)
        except TimeoutError as error:
            if not opening.expired():
                raise
            raise ConnectionLost(
                f"the machine opened no channel within {COMMAND_S:.0f} s", node=self._node, task=task
            ) from error
        try:
            # timeout(1) on the machine comes first, with its own grace. This one is for a machine that no longer
            # answers.
            async with asyncio.timeout(timeout_s + 2 * KILL_GRACE_S), self._translated(task):
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
            process.close()
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
        sftp = await self._transfer()
        if folder not in self._private:
            await self._timed(self._make_private(sftp, folder))
            self._private.add(folder)
        for name, content in files.items():
            path = f"{folder}/{name}"
            # A large file is only sent if another is there. To send a small one takes no longer than to look.
            if len(content) >= FIRST_READ and await self._has(path, content):
                continue
            if not await self._timed(self._write(sftp, path, content)) and not await self._has(path, content):
                raise UploadDamaged(f"{name}: its SHA-256 on the machine differs from the one sent", node=self._node)

    async def _has(self, path: str, content: bytes) -> bool:
        # One byte more than sent is read, so a longer file differs.
        return await self.read(path, limit=len(content) + 1) == content

    async def _make_private(self, sftp: asyncssh.SFTPClient, folder: str) -> None:
        await sftp.makedirs(folder, asyncssh.SFTPAttrs(permissions=PRIVATE_FOLDER), exist_ok=True)
        for part in (PurePosixPath(folder), *PurePosixPath(folder).parents):
            if str(part) != ".":  # an older folder, or one whose mode the server's umask changed
                await sftp.chmod(str(part), PRIVATE_FOLDER)

    async def _write(self, sftp: asyncssh.SFTPClient, path: str, content: bytes) -> bool:
        """Write the file; return whether it is known to be whole, as it is if one read shows all of it."""
        async with sftp.open(path, "w+b", asyncssh.SFTPAttrs(permissions=PRIVATE_FILE)) as file:
            await file.setstat(asyncssh.SFTPAttrs(permissions=PRIVATE_FILE))  # before there is anything to read
            if not content:
                return True  # opening it has truncated it
            await file.write(content)
            there: bytes = await file.read(len(content), 0) if len(content) < FIRST_READ else b""
            return there == content

    async def read(self, path: str, *, limit: int) -> bytes:
        sftp = await self._transfer()

        async def content() -> bytes:
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

        return await self._timed(content())

    async def remove(self, folder: str) -> None:
        # Not by SFTP: a machine could list files without end.
        code = await self.run(["rm", "-rf", "--", folder], task="", timeout_s=COMMAND_S)
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

    async def _transfer(self) -> asyncssh.SFTPClient:
        # Tasks on one node run side by side. Each would open a channel of its own, and sshd limits them (MaxSessions).
        async with self._opening:
            if self._sftp is None:
                self._sftp = await self._timed(self._connection.start_sftp_client())
            return self._sftp

    async def _timed(self, work: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(COMMAND_S), self._translated(""):
                return await work
        except TimeoutError as error:
            raise ConnectionLost(f"file transfer: no answer within {COMMAND_S:.0f} s", node=self._node) from error

    @asynccontextmanager
    async def _translated(self, task: str) -> AsyncIterator[None]:
        """Translate the library's errors, except that of a file that does not exist."""
        try:
            yield
        # TimeoutError is an OSError, but the callers give it a meaning of their own.
        except (asyncssh.SFTPNoSuchFile, TimeoutError):
            raise
        # Apart from other SFTP errors: a broken connection is worth a repeat, a refusal by the server is not.
        except (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection) as error:
            raise ConnectionLost(_plain(error), node=self._node, task=task) from error
        except asyncssh.SFTPError as error:
            raise TransferRefused(f"file transfer: {_plain(error)}", node=self._node, task=task) from error
        except BaseExceptionGroup as errors:
            # From the TaskGroup in `run`. A bug or a cancellation in the group must not look like a lost connection.
            known, other = errors.split((OSError, asyncssh.Error))
            if other is not None or known is None:
                raise
            raise ConnectionLost(_plain(known.exceptions[0]), node=self._node, task=task) from errors
        except (OSError, asyncssh.Error) as error:
            raise ConnectionLost(_plain(error), node=self._node, task=task) from error


async def _drain(reader: asyncssh.SSHReader[bytes], output: Output | None) -> None:
    while data := await reader.read(TRANSFER_CHUNK):
        if output is not None:
            output(data)
