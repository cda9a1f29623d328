"""The names by which the gateway is reached: protection from DNS rebinding and from pages of other sites.

A page in a browser can let its own name resolve to a loopback address. Its requests then come from this machine, and the
browser lets it read the answers; only the ``Host`` header shows the foreign name. Without authentication such a page
would have every permission.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from kubevnfm_kit.errors import VnfmError

_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")
"""RFC 9110 7.2, without the signs that no name of a machine has: the value stands in links."""


class AuthenticationOff(VnfmError, code="authentication-off", title="Authentication is off", status=403):
    """Without authentication only callers on this machine are answered."""


class UnknownHost(VnfmError, code="unknown-host", title="Misdirected request", status=421):
    """The request is for a host that this gateway does not serve (RFC 9110 15.5.20)."""


def name_of(host: str) -> str | None:
    """Return the name or address in ``host[:port]``, in lower case and without brackets; None for another form."""
    fits = _HOST.fullmatch(host)
    return fits[1].strip("[]").lower().rstrip(".") if fits else None


def is_loopback(name: str) -> bool:
    """Return whether a name or address leads to this machine only."""
    return name == "localhost" or is_loopback_address(name)


@lru_cache(maxsize=1024)
def is_loopback_address(text: str) -> bool:
    """Return whether the text is an address of this machine's loopback; a name is none, whatever it resolves to."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    # A listener on all IPv6 addresses sees IPv4 callers at mapped addresses.
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


@dataclass(frozen=True)
class KnownHosts:
    """Loopback names, the address that a request came in at, and the names that an operator has configured."""

    names: frozenset[str] = frozenset()

    def admits(self, host: str, *, local_address: str | None) -> bool:
        """Return whether ``host[:port]`` is known. ``local_address``: the connection's address at this end.

        An address is safe as a ``Host``: a browser sends the one that it has connected to, and no name can be rebound.
        """
        name = name_of(host)
        return name is not None and (
            name in self.names or is_loopback(name) or (local_address is not None and _is_same(name, local_address))
        )


def hosts_of(*given: str | None) -> frozenset[str]:
    """Return the names in hosts and URLs, without those that stand for every address (``""``, ``0.0.0.0``, ``::``)."""
    texts = [urlsplit(text).netloc.rpartition("@")[2] if text and "://" in text else text for text in given]
    # A setting has an IPv6 address without brackets.
    bracketed = [f"[{text}]" if text and text.count(":") > 1 and text[0] != "[" else text for text in texts]
    names = {name_of(text) for text in bracketed if text}
    return frozenset(name for name in names if name is not None and name not in {"0.0.0.0", "::"})


def _is_same(name: str, address: str) -> bool:
    try:
        first, second = ip_address(name), ip_address(address.partition("%")[0])
    except ValueError:
        return False
    # A listener on all IPv6 addresses sees IPv4 callers at mapped addresses.
    mapped = second.ipv4_mapped if isinstance(second, IPv6Address) else None
    return first in {second, mapped}
