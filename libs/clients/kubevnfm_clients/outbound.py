"""HTTP to addresses that callers name: call-backs of subscribers, packages to fetch.

This module prevents server-side request forgery (SSRF): a caller could name machines that only kubevnfm reaches, such
as its own services, a management network or a cloud's metadata service. So calls go to public addresses, and to the
internal networks that an operator has allowed. The rule is applied to the address of each connection, after names were
resolved: neither DNS rebinding nor a redirect gets around it. A proxy is asked to connect to the address that was judged.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from socket import inet_aton, inet_ntoa, socket
from typing import Any, Final, Self

import aiohttp
from kubevnfm_kit.client_session import client_session, proxy_failure
from kubevnfm_kit.http_client import HttpConnector
from kubevnfm_proxies.rule import Proxies

from kubevnfm_clients.names import resolved

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
"""IANA assigns public IPv6 addresses from this block only (RFC 4291 2.4). Other ones are of a site or unassigned, such as
``fec0::/10`` (RFC 3879), which Python's ``is_global`` takes for public."""
_NAT64: Final = IPv6Network("64:ff9b::/96")
"""IPv6 addresses that a translator (NAT64) turns into the IPv4 address in their last four bytes (RFC 6052)."""
_LOCAL_NAT64: Final = IPv6Network("64:ff9b:1::/48")
"""The same for one site (RFC 8215): where the IPv4 address is in them depends on the length of the translator's prefix."""
_COMPATIBLE: Final = IPv6Network("::/96")
"""Deprecated by RFC 4291; some systems still use the IPv4 address in them."""


class AddressNotAllowed(OSError):
    """The connection would lead to an address that is not allowed.

    The text is the same for every address, so that a name with several addresses gives one error.
    """

    def __init__(
        self, reason: str = "its address is in a network that calls may not go to (setting allowed_networks)"
    ) -> None:
        super().__init__(reason)


@dataclass(frozen=True)
class AddressRules:
    """Public addresses, and the further networks that an operator has allowed."""

    allowed: tuple[Network, ...] = ()
    proxy_resolves: bool = False
    """Whether a proxy resolves the names that it is asked to connect to, and judges their addresses."""

    @classmethod
    def from_text(cls, networks: str, *, proxy_resolves: bool = False) -> Self:
        """Read networks separated by commas: ``127.0.0.0/8, fd00::/8``. Raises ValueError that names an invalid one."""
        return cls(tuple(ip_network(each.strip()) for each in networks.split(",") if each.strip()), proxy_resolves)

    def admits(self, address: str) -> bool:
        """Return whether a connection to this address is allowed; never if the text is not an address."""
        try:
            return all(self._admits(each) for each in forms_of(address))
        except ValueError:
            return False

    def _admits(self, address: Address) -> bool:
        if any(address in network for network in self.allowed):
            return True
        if is_decided_by_embedded(address):
            return True
        if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
            return False
        return address.is_global and not address.is_multicast and not address.is_reserved


@lru_cache(maxsize=1024)
def forms_of(address: str) -> Sequence[Address]:
    """Return an address, without its zone, and the IPv4 addresses that are embedded in it; a rule must hold for each.

    Raises ValueError for a text that is no address, such as an octal or decimal form.
    """
    given = ip_address(address)
    if isinstance(given, IPv6Address):
        # Addresses with and without a zone (``%eth0``) are not equal.
        given = IPv6Address(int(given))
    return (given, *embedded_in(given))


def embedded_in(address: Address) -> Sequence[IPv4Address]:
    """Return the IPv4 addresses that are embedded in an IPv6 address."""
    if isinstance(address, IPv4Address):
        return ()
    last = IPv4Address(int(address) & 0xFFFF_FFFF)
    is_other_way = address in _NAT64 or address in _LOCAL_NAT64 or (address in _COMPATIBLE and int(address) > 1)
    teredo = address.teredo
    found = (address.ipv4_mapped, address.sixtofour, *(teredo or ()), last if is_other_way else None)
    return tuple(each for each in found if each is not None)


def is_decided_by_embedded(address: Address) -> bool:
    """Return whether an address leads where the IPv4 addresses in it lead, so that it is judged by them alone."""
    return bool(embedded_in(address)) and address not in _LOCAL_NAT64


class NameNotResolved(aiohttp.ClientConnectionError):
    """The name cannot be resolved here, so that no address can be judged before a proxy connects to it."""

    def __init__(self) -> None:
        super().__init__("its name cannot be resolved, so its address cannot be judged (setting proxy_resolves)")


@asynccontextmanager
async def outbound_session(
    rules: AddressRules, *, tls: ssl.SSLContext | None = None, proxies: Proxies | None = None
) -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a session that connects to allowed addresses only. ``tls``: the trusted CAs.

    Other connections fail with aiohttp's ClientConnectorError, whose ``os_error`` is ``AddressNotAllowed``. ``proxies``: None: those of the
    environment.
    """

    def opened(info: Any) -> socket:
        # aiohttp asks for the socket with the resolved address that it then connects to: no look-up comes in between.
        family, kind, protocol, _, address = info
        if not rules.admits(address[0]):
            raise AddressNotAllowed
        return socket(family, kind, protocol)

    connector = HttpConnector(ssl=tls or True, socket_factory=opened)
    # Without decompression the limits on answers count what arrives. Cookies of answers would be kept without limit.
    async with client_session(
        connector=connector,
        proxies=proxies,
        judge=partial(_through_proxy, rules),
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:
        yield session


async def _through_proxy(rules: AddressRules, host: str, port: int) -> Sequence[str]:
    """Return the allowed addresses of a host, none if the proxy judges its name. Raises AddressNotAllowed, NameNotResolved."""
    literal = written_address(host)
    if literal is None and rules.proxy_resolves:
        return ()
    try:
        found = [literal] if literal is not None else await resolved(host, port)
    except OSError as error:
        raise NameNotResolved from error
    allowed = [each for each in found if rules.admits(each)]
    if not allowed:
        raise AddressNotAllowed
    return allowed


def written_address(host: str) -> str | None:
    """Return the address that a host is, also in the forms that the C library reads, such as one decimal number; None: it is a name."""
    try:
        return str(ip_address(host))
    except ValueError:
        pass
    try:
        return inet_ntoa(inet_aton(host))
    except OSError:
        return None


def refused_in(error: BaseException) -> AddressNotAllowed | None:
    """Return the refusal of a failed call's address; None: the call failed for another reason."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return cause if isinstance(cause, AddressNotAllowed) else None


def refusal_in(error: BaseException) -> str | None:
    """Return why the address of a failed call is not allowed; None: the call failed for another reason."""
    return None if (refused := refused_in(error)) is None else str(refused)


def trouble(error: Exception) -> str:
    """Return the cause of a failed call as a text for the caller that named the address, without its query or secrets."""
    if (reason := refusal_in(error) or proxy_failure(error)) is not None:
        return reason
    if isinstance(error, NameNotResolved):
        return str(error)
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        return "its certificate was not accepted"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name cannot be resolved"
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "it broke off before the end"
    return f"it did not answer ({type(error).__name__})"
