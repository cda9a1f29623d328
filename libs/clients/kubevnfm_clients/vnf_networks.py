"""Connections to addresses that a package chooses: each address is judged when the connection is made.

`VnfAddressRules` has the rule. This module supplies its facts: the addresses of the own interfaces, which can change while
a service runs, and those of the peers, whose names are resolved again.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Self
from urllib.parse import urlsplit

import aiohttp
import psutil
import structlog
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.tracing import Trace
from kubevnfm_kit.client_session import client_session
from kubevnfm_kit.errors import OutsideUnavailable, VnfmError
from kubevnfm_kit.http_client import HttpConnector

from kubevnfm_clients.names import NameResolver
from kubevnfm_clients.outbound import Address, AddressNotAllowed, Network
from kubevnfm_clients.peers import Peer, own_ports, peer_at, peers_of, ports_of
from kubevnfm_clients.vnf_addresses import VnfAddressRules, plain_addresses
from kubevnfm_clients.vnf_network_settings import VnfNetworkSettings

log = structlog.get_logger()

_RESOLVED_FOR_S: Final = 30.0
"""How long the addresses of peers are used before they are resolved again."""

Resolve = Callable[[str], Awaitable[tuple[str, ...]]]
"""The addresses of a name. Raises OSError."""


class VnfAddressRefused(VnfmError, code="vnf-address-refused", title="Address not allowed"):
    """A package has chosen an address that it may not have."""


class AddressNotNamed(AddressNotAllowed):
    """The address would be granted if the setting named its network."""


class PeersUnresolved(OutsideUnavailable, code="peers-unresolved", title="Name resolution failed"):
    """The name of a server that kubevnfm uses cannot be resolved now, so no address can be compared with it."""


async def addresses_of(host: str) -> tuple[str, ...]:
    """Return the addresses of a name; an address is its own. Raises OSError."""
    # Text of a package: the codec `idna` raises UnicodeError for some names.
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise OSError(f"{host} is no host name") from error
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


def own_addresses() -> frozenset[Address]:
    """Return the addresses of this host's interfaces now; in a container, those of the container."""
    texts = (each.address for found in psutil.net_if_addrs().values() for each in found)
    return frozenset(plain_addresses(texts))


class VnfNetworks:
    """Judges and connects. One for each process."""

    def __init__(
        self,
        networks: Sequence[Network],
        peers: Iterable[Peer] = (),
        *,
        excluded: Sequence[Network] = (),
        taken_ports: Iterable[int] = (),
        resolve: Resolve = addresses_of,
        own: Callable[[], frozenset[Address]] = own_addresses,
    ) -> None:
        """``taken_ports``: those of the own listeners, beside those of the peers."""
        self._networks, self._peers, self._excluded = networks, tuple(peers), excluded
        self._taken_ports = frozenset({*taken_ports, *ports_of(self._peers)})
        self._resolve, self._own = resolve, own
        self._known: dict[str, tuple[str, ...]] = {}
        self._known_until = 0.0
        self._resolving = asyncio.Lock()

    @classmethod
    def from_settings(cls, settings: VnfNetworkSettings, *listeners: str) -> Self:
        """Return the networks with all peers that the settings name; logs a warning if no network is named.

        ``listeners``: URLs of the own listeners that the settings do not name.
        """
        if not settings.vnf_networks.strip():
            log.warning(
                "vnf_networks_empty",
                setting="vnf_networks",
                meaning="no SSH to machines, no script with a network and no cluster of a VNF, until it names their networks",
            )
        own = (peer for url in listeners for peer in peer_at(url, setting="this service"))
        names = (Peer("vnf_networks_except", name, None) for name in settings.excluded_names)
        return cls(
            settings.named_networks,
            (*peers_of(settings), *own, *names),
            excluded=settings.excluded_networks,
            taken_ports=own_ports(settings),
        )

    async def rules(self) -> VnfAddressRules:
        """Return the rule with the facts of now. Raises PeersUnresolved."""
        await self.resolve_peers()
        return self._rules_now()

    def _rules_now(self) -> VnfAddressRules:
        """Return the rule with the interfaces of now and the addresses of peers that were resolved last."""
        at = {
            address: f"the setting {peer.setting} ({peer.host})"
            for peer in self._peers
            for address in plain_addresses(self._known.get(peer.host, ()))
        }
        return VnfAddressRules(self._networks, self._own(), at, self._excluded, self._taken_ports)

    async def granted(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host to which connections are granted, at least one.

        Raises VnfAddressRefused, PeersUnresolved; OSError if the name cannot be resolved.
        """
        found = await self._resolve(host)
        rules = await self.rules()
        refusals = {each: rules.refusal(each, port) for each in found}
        granted = [each for each, refusal in refusals.items() if not refusal]
        if not granted:
            raise VnfAddressRefused(_all_refused(host, refusals.values()))
        return granted

    async def check_url(self, url: str) -> None:
        """Raise VnfAddressRefused unless an address of the URL's host is granted. Raises as `granted`."""
        parts = urlsplit(url)
        await self.granted(parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443))

    def connector(self, **options: Any) -> HttpConnector:
        """Return a connector whose connections are all judged; ``options`` are those of TCPConnector.

        Refused ones fail with ClientConnectorError, whose ``os_error`` is AddressNotAllowed.
        """
        return _Connector(self, **options)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[aiohttp.ClientSession]:
        """Yield a session of such connections."""
        async with client_session(connector=self.connector(), judge=self.through_proxy) as session:
            yield session

    async def through_proxy(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host to which a proxy may connect. Raises AddressNotAllowed, PeersUnresolved, OSError."""
        return [each["host"] for each in await _Resolver(self).resolve(host, port, socket.AF_UNSPEC)]

    def opened(self, info: Any) -> socket.socket:
        """Return a socket for a resolved address. Raises AddressNotAllowed."""
        family, kind, protocol, _, address = info
        rules, host, port = self._rules_now(), str(address[0]), int(address[1])
        refusal = rules.refusal(host, port)
        if refusal:
            raise AddressNotNamed(refusal) if rules.is_unnamed(host, port) else AddressNotAllowed(refusal)
        return socket.socket(family, kind, protocol)

    async def resolve_peers(self) -> None:
        """Look the addresses of the peers up if it is time to. Raises PeersUnresolved."""
        async with self._resolving:
            if time.monotonic() < self._known_until:
                return
            hosts = list(dict.fromkeys(peer.host for peer in self._peers if peer.host))
            await asyncio.gather(*(self._resolve_peer(host) for host in hosts))
            # A name that does not exist yet, as that of a container that starts, is looked up again at every judgement.
            if all(self._known.get(host) for host in hosts):
                self._known_until = time.monotonic() + _RESOLVED_FOR_S

    async def _resolve_peer(self, host: str) -> None:
        try:
            self._known[host] = await self._resolve(host)
        except OSError as error:
            # The addresses of the last time stay.
            if host in self._known:
                return
            if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
                raise PeersUnresolved(
                    f"the name {host} of the settings cannot be resolved now: no address of a VNF can be compared with it"
                ) from error
            log.warning("peer_unknown", host=host, meaning="no address of VNFs is compared with it", reason=str(error))
            self._known[host] = ()


def _all_refused(host: str, refusals: Iterable[str]) -> str:
    text = "; ".join(dict.fromkeys(refusals)) or f"{host} has no address"
    return text if text.startswith(host) else f"{host}: {text}"


class _Connector(HttpConnector):
    """Judges each address with which a socket is made: no look-up comes in between."""

    def __init__(self, networks: VnfNetworks, **options: Any) -> None:
        super().__init__(resolver=_Resolver(networks), socket_factory=networks.opened, **options)
        self._vnf_networks = networks

    async def _create_connection(
        self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        # Here, because the socket factory cannot wait for a look-up; and not for a request over a connection that is open.
        try:
            await self._vnf_networks.resolve_peers()
        except PeersUnresolved as error:
            raise aiohttp.ClientConnectionError(str(error)) from error
        return await super()._create_connection(req, traces, timeout)


class _Resolver(AbstractResolver):
    """Leaves out addresses that are not granted, so that a name with several gives one error."""

    def __init__(self, networks: VnfNetworks) -> None:
        self._networks, self._inner = networks, NameResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        rules = await self._networks.rules()
        refusals = [rules.refusal(each["host"], port) for each in found]
        if all(refusals):
            is_unnamed = any(rules.is_unnamed(each["host"], port) for each in found)
            text = _all_refused(host, refusals)
            raise AddressNotNamed(text) if is_unnamed else AddressNotAllowed(text)
        return [each for each, refusal in zip(found, refusals, strict=True) if not refusal]

    async def close(self) -> None:
        await self._inner.close()
