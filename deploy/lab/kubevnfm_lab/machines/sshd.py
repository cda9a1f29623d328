"""A machine's sshd: its sockets, logins, and shells with real processes behind them."""

from __future__ import annotations

import asyncio
import hmac
import logging
import signal
import socket
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import asyncssh
from asyncssh.constants import MSG_IGNORE
from asyncssh.packet import SSHPacketLogger

from kubevnfm_lab.machines.cloud_init import Account
from kubevnfm_lab.machines.machine import Machine
from kubevnfm_lab.machines.sftp import RootfsSftp
from kubevnfm_lab.ports import ConnectionDropped, FaultInjected, Faults, Ledger

LOGIN_GRACE_S = 120
TERM_GRACE_S = 2.0
"""How long a shell may take after SIGTERM, once its channel is closed, before it is killed."""
CHUNK = 64 * 1024

log = logging.getLogger(__name__)


class Sshd:
    """Listens on every address of a machine that can be reached; an idle machine costs its sockets only."""

    def __init__(
        self, machine: Machine, *, port: int, shell: str, path: Sequence[str], faults: Faults, ledger: Ledger
    ) -> None:
        self._machine, self._port, self._shell, self._path = machine, port, shell, path
        self._faults, self._ledger = faults, ledger
        self._sockets: list[socket.socket] = []
        self._options: asyncssh.SSHServerConnectionOptions | None = None

    def listen(self) -> None:
        """Open the sockets; raise OSError if an address is not one of this host or is taken."""
        loop = asyncio.get_running_loop()
        try:
            for address in self._machine.listening_addresses:
                listener = socket.create_server((address, self._port), backlog=128)
                self._sockets.append(listener)
                listener.setblocking(False)
                # A reader callback instead of a server per machine: a lab has hundreds of idle machines.
                loop.add_reader(listener, self._accept, listener)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Close the sockets, drop the connections and kill their processes."""
        loop = asyncio.get_running_loop()
        for listener in self._sockets:
            loop.remove_reader(listener)
            listener.close()
        self._sockets.clear()
        for task in list(self._machine.tasks):
            task.cancel()
        for connection in list(self._machine.connections):
            connection.abort()
        self._machine.processes.end_all(self._machine.root)

    def _accept(self, listener: socket.socket) -> None:
        with suppress(BlockingIOError, ConnectionError):
            accepted, _ = listener.accept()
            accepted.setblocking(False)
            task = asyncio.get_running_loop().create_task(self._serve_connection(accepted))
            self._machine.tasks.add(task)
            task.add_done_callback(self._machine.tasks.discard)

    async def _serve_connection(self, accepted: socket.socket) -> None:
        machine = self._machine
        self._ledger.count("ssh", "connect", node=machine.name)
        machine.calls["ssh connect"] += 1
        refuse_all = False
        try:
            try:
                await self._faults.check("ssh", "connect", node=machine.name)
            except FaultInjected:
                refuse_all = True
            except ConnectionDropped:
                # A linger time of 0 s makes the kernel send a reset instead of an orderly end.
                accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                accepted.close()
                return
            await self._log_in(accepted, refuse_all=refuse_all)
        except (OSError, asyncssh.Error) as error:
            log.debug("ssh login on %s ended: %s", machine.name, error)
        except asyncio.CancelledError:
            accepted.close()
            raise

    async def _log_in(self, accepted: socket.socket, *, refuse_all: bool) -> None:
        loop, options = asyncio.get_running_loop(), self._options_for(refuse_all=refuse_all)
        # The connection takes the future from its options, which other connections of the machine share.
        options.waiter = waiter = loop.create_future()
        connection = _Connection(loop, options, wait="auth")
        try:
            await loop.connect_accepted_socket(lambda: connection, accepted)
            await waiter
        except (Exception, asyncio.CancelledError):
            connection.abort()
            raise

    def _options_for(self, *, refuse_all: bool) -> asyncssh.SSHServerConnectionOptions:
        # Building the options costs milliseconds, so they are kept per machine.
        if self._options is None or refuse_all:
            options = asyncssh.SSHServerConnectionOptions(
                server_factory=partial(_Login, self._machine, refuse_all=refuse_all),
                server_host_keys=[self._machine.host_key],
                process_factory=self._start,
                sftp_factory=self._sftp,
                allow_scp=True,
                encoding=None,
                config=None,
                login_timeout=LOGIN_GRACE_S,
                line_editor=False,
            )
            if refuse_all:
                return options
            self._options = options
        return self._options

    def _sftp(self, channel: asyncssh.SSHServerChannel[bytes]) -> RootfsSftp:
        account = self._machine.config.accounts[channel.get_extra_info("username")]
        return RootfsSftp(channel, self._machine, account.home, faults=self._faults, ledger=self._ledger)

    async def _start(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        machine = self._machine
        self._ledger.count("ssh", "exec", node=machine.name)
        machine.calls["ssh exec"] += 1
        machine.command_lines.append(process.command or "")
        try:
            await self._faults.check("ssh", "exec", node=machine.name)
        except FaultInjected as fault:
            process.stderr.write(f"{fault.message}\n".encode())
            process.exit(fault.status if 0 < fault.status < 256 else 255)
            return
        except ConnectionDropped:
            process.channel.get_connection().abort()
            return
        # Most machines never see a login, so their files are created at the first one.
        machine.lay_out()
        account = machine.config.accounts[process.get_extra_info("username")]
        await self._run_shell(process, account)

    async def _run_shell(self, process: asyncssh.SSHServerProcess[bytes], account: Account) -> None:
        home = self._machine.root / account.home.lstrip("/")
        # bash must not read the host's profile, which would set a host's environment.
        arguments = ["-c", process.command] if process.command is not None else ["--noprofile", "--norc"]
        loop = asyncio.get_running_loop()
        # Not by `create_subprocess_exec`, which keeps the transport to itself: its pipes must not outlive the session.
        transport, protocol = await loop.subprocess_exec(
            lambda: asyncio.subprocess.SubprocessStreamProtocol(limit=CHUNK, loop=loop),
            self._shell,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=home if home.is_dir() else self._machine.root,
            env=self._environment(process, account),
            # A process group of its own, so that the whole command can be signalled.
            start_new_session=True,
        )
        shell = asyncio.subprocess.Process(transport, protocol, loop)
        groups = self._machine.processes
        groups.add(shell)
        try:
            await self._until_either_ends(process, shell)
        finally:
            try:
                # The client has disconnected; a real sshd sends SIGHUP to the session.
                if shell.returncode is None:
                    await _end_group(self._machine, shell)
            finally:
                groups.shell_ended(shell.pid)
                # Also when the end of the event loop has cancelled the line above.
                transport.close()
        code = shell.returncode
        assert code is not None
        if code >= 0:
            process.exit(code)
        else:
            process.exit_with_signal(signal.Signals(-code).name.removeprefix("SIG"))

    def _environment(self, process: asyncssh.SSHServerProcess[bytes], account: Account) -> Mapping[str, str]:
        machine = self._machine
        system = [str(machine.root / "usr" / place) for place in ("local/sbin", "local/bin", "sbin", "bin")]
        # Like a distribution's sshd_config: AcceptEnv LANG LC_*; anything else a client sends is dropped.
        sent = {name: value for name, value in process.env.items() if name == "LANG" or name.startswith("LC_")}
        return {
            "HOME": str(machine.root / account.home.lstrip("/")),
            "USER": account.name,
            "LOGNAME": account.name,
            "SHELL": self._shell,
            "LANG": "C.UTF-8",
            "TERM": process.term_type or "dumb",
            "PATH": ":".join([*system, *self._path]),
            "KUBEVNFM_SYSROOT": str(machine.root),
            **sent,
        }

    async def _until_either_ends(
        self, process: asyncssh.SSHServerProcess[bytes], shell: asyncio.subprocess.Process
    ) -> None:
        """Copy bytes until the shell and its output have ended, or the client has disconnected."""
        assert shell.stdout is not None
        assert shell.stderr is not None
        feeding = asyncio.create_task(self._feed(process, shell))
        gone = asyncio.create_task(process.wait_closed())
        ended = asyncio.gather(_copy(shell.stdout, process.stdout), _copy(shell.stderr, process.stderr), shell.wait())
        try:
            watched: set[asyncio.Future[Any]] = {gone, ended}
            await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (feeding, gone, ended):
                task.cancel()
            await asyncio.gather(feeding, gone, ended, return_exceptions=True)

    async def _feed(self, process: asyncssh.SSHServerProcess[bytes], shell: asyncio.subprocess.Process) -> None:
        assert shell.stdin is not None
        while True:
            try:
                data = await process.stdin.read(CHUNK)
            except asyncssh.TerminalSizeChanged:
                continue
            except asyncssh.BreakReceived:
                self._machine.processes.signal(shell.pid, signal.SIGINT)
                continue
            except asyncssh.SignalReceived as received:
                # RFC 4254 sends signals by name, without "SIG".
                number = getattr(signal, f"SIG{received.signal}", None)
                if isinstance(number, signal.Signals):
                    self._machine.processes.signal(shell.pid, number)
                continue
            if not data:
                shell.stdin.close()
                return
            try:
                shell.stdin.write(data)
                await shell.stdin.drain()
            except ConnectionError:
                return  # the program closed its input; further input is discarded


async def _copy(source: asyncio.StreamReader, target: asyncssh.SSHWriter[bytes]) -> None:
    while data := await source.read(CHUNK):
        target.write(data)
        try:
            await target.drain()
        except (ConnectionError, asyncssh.Error):
            return


async def _end_group(machine: Machine, shell: asyncio.subprocess.Process) -> None:
    machine.processes.signal(shell.pid, signal.SIGTERM)
    with suppress(TimeoutError):
        try:
            async with asyncio.timeout(TERM_GRACE_S):
                await shell.wait()
        finally:
            # Also when it is cancelled here, as the end of the event loop does.
            machine.processes.signal(shell.pid, signal.SIGKILL)
            await shell.wait()


class _Connection(asyncssh.SSHServerConnection):
    """Sends no empty message before each packet: the library does, against an attack on CBC; OpenSSH has none of it with AES-GCM."""

    def send_packet(self, pkttype: int, *args: bytes, handler: SSHPacketLogger | None = None) -> None:
        if pkttype != MSG_IGNORE:
            super().send_packet(pkttype, *args, handler=handler)


class _Login(asyncssh.SSHServer):
    """Decides about the logins of one connection."""

    def __init__(self, machine: Machine, *, refuse_all: bool) -> None:
        self._machine, self._refuse_all = machine, refuse_all
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._machine.connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._connection:
            self._machine.connections.discard(self._connection)

    def begin_auth(self, username: str) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return self._machine.config.password_login

    def validate_password(self, username: str, password: str) -> bool:
        account = self._account(username)
        return (
            account is not None
            and account.password is not None
            and hmac.compare_digest(account.password.encode(), password.encode())
        )

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        account = self._account(username)
        if account is None:
            return False
        lines = list(account.public_keys)
        with suppress(OSError):
            lines += (self._machine.root / account.home.lstrip("/") / ".ssh/authorized_keys").read_text().splitlines()
        return any(_is_key(line, key) for line in lines)

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        """Forward connections, as OpenSSH does unless AllowTcpForwarding is off: a machine can be a bastion."""
        return True

    def _account(self, username: str) -> Account | None:
        return None if self._refuse_all else self._machine.config.accounts.get(username)


def _is_key(line: str, key: asyncssh.SSHKey) -> bool:
    try:
        return asyncssh.import_public_key(line).public_data == key.public_data
    except asyncssh.KeyImportError:
        return False
