"""Which proxy leads to a URL: by ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY`` (docs/proxies.md)."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Self
from urllib.parse import quote, unquote, urlsplit

_SCHEMES: Final[Mapping[str, int]] = {"http": 80, "https": 443}
"""The schemes of calls, with their ports."""
_SHOWN: Final = 80
"""Characters of a wrong text in an error."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class ProxyFault(ValueError):
    """A proxy, or an exception from it, is not readable; the text names where it is given, and shows no login."""


@dataclass(frozen=True)
class Proxy:
    """A proxy that speaks HTTP."""

    host: str
    port: int
    login: str | None = field(default=None, repr=False)
    """``user:password``."""

    @classmethod
    def read(cls, text: str, named: str, login: str | None = None) -> Self:
        """Read ``http://[USER:PASSWORD@]HOST[:PORT]``, or that without the scheme. ``named``: where it is given. Raises ProxyFault."""
        try:
            parts = urlsplit(text if "://" in text else f"http://{text}")
            port = parts.port
        except ValueError:
            raise ProxyFault(f"{named}: http://HOST:PORT expected") from None
        is_bare = parts.path in ("", "/") and not parts.query and not parts.fragment
        if parts.scheme != "http":
            raise ProxyFault(
                f"{named}: http://HOST:PORT expected; proxies of other kinds ({_printable(parts.scheme)}) are not used"
            )
        if not parts.hostname or port == 0 or not is_bare or not text.isprintable() or " " in text:
            raise ProxyFault(f"{named}: http://HOST:PORT expected")
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        return cls(parts.hostname, port or 80, login)

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers for the proxy itself."""
        if self.login is None:
            return {}
        return {"Proxy-Authorization": f"Basic {base64.b64encode(self.login.encode()).decode()}"}

    @property
    def url(self) -> str:
        """Its URL, without its login."""
        return f"http://{_in_url(self.host)}:{self.port}"

    @property
    def url_with_login(self) -> str:
        """Its URL for libraries that take the login from it; it is a secret."""
        if self.login is None:
            return self.url
        user, _, password = self.login.partition(":")
        return f"http://{quote(user, safe='')}:{quote(password, safe='')}@{_in_url(self.host)}:{self.port}"

    def __str__(self) -> str:
        return f"proxy {_printable(_in_url(self.host))}:{self.port}"


@dataclass(frozen=True)
class _Exception:
    """One entry of ``NO_PROXY``."""

    name: str = ""
    """A host, and the hosts in its domain."""
    network: Network | None = None
    """A network, or an address alone."""
    port: int | None = None
    is_all: bool = False

    def holds(self, host: str, address: Address | None, port: int) -> bool:
        if self.is_all:
            return True
        if self.port is not None and self.port != port:
            return False
        if address is not None:
            return self.network is not None and address in self.network
        return bool(self.name) and (host == self.name or host.endswith(f".{self.name}"))


@dataclass(frozen=True)
class Proxies:
    """The rule. Without any proxy it leads to none, and is false."""

    by_scheme: Mapping[str, Proxy] = field(default_factory=dict)
    """The proxies to URLs of ``http`` and ``https``."""
    named: Mapping[str, str] = field(default_factory=dict)
    """The variable that each of them is from, by its scheme."""
    exceptions: Sequence[_Exception] = ()
    direct: frozenset[tuple[str, int]] = frozenset()
    """Hosts and ports that no proxy leads to: those of our own services."""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Read the variables, each in lower case before upper case. Raises ProxyFault with the faults of all."""
        by_scheme, named, faults = {}, {}, []
        for scheme in _SCHEMES:
            name = _given(environment, f"{scheme}_proxy")
            if name is None:
                continue
            try:
                by_scheme[scheme], named[scheme] = Proxy.read(environment[name], name), name
            except ProxyFault as fault:
                faults.append(str(fault))
        exceptions: list[_Exception] = []
        name = _given(environment, "no_proxy")
        for one in environment[name].split(",") if name is not None and by_scheme else ():
            try:
                if one.strip():
                    exceptions.append(_exception(one.strip().lower(), str(name)))
            except ProxyFault as fault:
                faults.append(str(fault))
        if faults:
            raise ProxyFault("; ".join(faults))
        return cls(by_scheme, named, tuple(exceptions))

    def __bool__(self) -> bool:
        return bool(self.by_scheme)

    def to(self, url: str) -> Proxy | None:
        """Return the proxy that leads to a URL; None: none does, or it is no URL of HTTP with a host."""
        if not self.by_scheme:
            return None
        try:
            parts = urlsplit(url)
            proxy, port = self.by_scheme.get(parts.scheme), parts.port or _SCHEMES.get(parts.scheme, 0)
        except ValueError:
            return None
        host = (parts.hostname or "").rstrip(".").lower()
        if proxy is None or not host or (host, port) in self.direct:
            return None
        address = address_of(host)
        if is_loopback(host, address) or any(one.holds(host, address, port) for one in self.exceptions):
            return None
        return proxy

    def without(self, *urls: str | None) -> Self:
        """Return the rule with servers that no proxy leads to, whatever the environment says."""
        more = set(self.direct)
        for url in urls:
            parts = urlsplit(url or "")
            if parts.hostname:
                more.add((parts.hostname.rstrip(".").lower(), parts.port or _SCHEMES.get(parts.scheme, 0)))
        return replace(self, direct=frozenset(more))


def address_of(host: str) -> Address | None:
    """Return the address that a host is, without its zone; None: it is a name."""
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return found if found.version == 4 else found.ipv4_mapped or found


def is_loopback(host: str, address: Address | None) -> bool:
    """Return whether a host in lower case, and its address if it is one, is this machine itself."""
    if address is not None:
        return address.is_loopback or address.is_unspecified
    return host == "localhost" or host.endswith(".localhost")


def _given(environment: Mapping[str, str], name: str) -> str | None:
    return next((each for each in (name, name.upper()) if environment.get(each, "").strip()), None)


def _exception(text: str, named: str) -> _Exception:
    """Read an entry: ``*``, a name, a domain, an address or a network, the last four with or without a port. Raises ProxyFault."""
    if text == "*":
        return _Exception(is_all=True)
    if (network := _network(text)) is not None:
        return _Exception(network=network)
    host, colon, digits = text.rpartition(":")
    port = None
    if colon and digits.isascii() and digits.isdecimal() and len(digits) <= 5:
        port = int(digits)
        if (network := _network(host)) is not None:
            return _Exception(network=network, port=port)
    name = (text if port is None else host).removeprefix("*").strip(".")
    if not name or not all(each.isalnum() or each in "-_." for each in name):
        raise ProxyFault(
            f"{named}: {_printable(text)}: a name, a domain (.example), an address or a network expected, "
            "each with or without :PORT, or *"
        )
    return _Exception(name=name, port=port)


def _network(text: str) -> Network | None:
    """Return the network of ``10.0.0.0/8``, ``10.0.0.7``, ``fd00::/8`` or ``[fd00::7]``."""
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        found = ipaddress.ip_network(bare, strict=False)
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Network) and found.prefixlen >= 96:
        mapped = found.network_address.ipv4_mapped
        if mapped is not None:
            return ipaddress.ip_network(f"{mapped}/{found.prefixlen - 96}", strict=False)
    return found


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _printable(text: str) -> str:
    shown = text[:_SHOWN]
    return "".join(each if each.isprintable() else "?" for each in shown)
