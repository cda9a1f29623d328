"""Machines over SSH: opens connections (asyncssh). Beside the three modules of an open one, this one alone knows the library."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import asyncssh
from asyncssh.constants import OPEN_ADMINISTRATIVELY_PROHIBITED
from kubevnfm_clients.vnf_networks import PeersUnresolved, VnfAddressRefused, VnfNetworks

from kubevnfm_mgmt_executor.adapters.ssh_channels import plain
from kubevnfm_mgmt_executor.adapters.ssh_machine import SshMachine
from kubevnfm_mgmt_executor.domain.errors import (
    AddressRefused,
    ConnectionLost,
    ForwardingRefused,
    HostKeyChanged,
    LoginRefused,
    NodeUnreachable,
)
from kubevnfm_mgmt_executor.domain.ports import Address, HostKeys, Login, Machine, Waits

FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 15.0
CONNECT_WITHIN_S: Final = 15.0
"""For one try: a host that is up answers far sooner, and one that drops packets would block the try for minutes."""
BOOTS_S: Final = 20.0
"""How long a machine that does not answer is taken for one that boots, of which there is nothing to say."""
SETTLE_S: Final = 60.0
"""How long a refused login is tried again on a machine that was seen booting: its sshd may listen before cloud-init
has set the password. A machine that was up from the start is given up at once."""
# A command such as an installation of packages is silent for minutes, so silence alone proves nothing. A machine that
# answers no keepalive for a minute is lost.
KEEPALIVE_S: Final = 15.0
KEEPALIVE_TRIES: Final = 4
CIPHERS: Final = "^aes*-gcm@openssh.com"
"""AES-GCM before the others: asyncssh's own first choice, ChaCha20, costs it five times as much processor time for each packet."""


class SshMachines:
    """Opens sessions; ``port`` is that of the machines whose address names none."""

    def __init__(self, host_keys: HostKeys, networks: VnfNetworks, *, port: int = 22) -> None:
        self._host_keys, self._networks, self._port = host_keys, networks, port

    async def reach(self, address: Address, login: Login, *, within_s: float, waits: Waits | None = None) -> Machine:
        """Return a session once the machine accepts the login; its host key is pinned on first contact."""
        began = time.monotonic()
        until, said = began + within_s, ""
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
                lacks, reason = f"no SSH session with {address.host} port {address.port or self._port}", plain(error)
                if time.monotonic() + pause_s >= until:
                    raise NodeUnreachable(f"{lacks} within {within_s:.0f} s: {reason}", node=address.node) from error
                if waits is not None and reason != said and time.monotonic() - began >= BOOTS_S:
                    said = reason
                    await waits(f"{lacks} yet: {reason}")
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
            raise _BastionUnreachable(f"no session with {name} port {bastion.port}: {plain(error)}") from error

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
