"""The rule for addresses that a package chooses: scripts, machines, and clusters of VNFs may have some, others never.

A package's template makes networks with any addresses and reports them as those of its machines. So an address proves
nothing: what counts is that an operator has named its network (setting ``vnf_networks``), and that it is no address of
kubevnfm itself or of a server that kubevnfm uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

from kubevnfm_clients.outbound import Address, Network, forms_of, is_decided_by_embedded

SETTING: Final = "vnf_networks"
REMEDY: Final = f"add its network to the setting {SETTING}, restart, and retry"
_LOOPBACK: Final[tuple[Network, ...]] = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_NEVER: Final[Mapping[Network, str]] = {
    IPv4Network("0.0.0.0/8"): "an address of this host (RFC 1122)",
    IPv6Network("::/128"): "an address of this host (RFC 4291)",
    IPv4Network("169.254.0.0/16"): "link-local, as metadata services of clouds are",
    IPv6Network("fe80::/10"): "link-local",
    IPv4Network("224.0.0.0/4"): "multicast",
    IPv6Network("ff00::/8"): "multicast",
    IPv4Network("240.0.0.0/4"): "reserved",
    IPv6Network("fd00:ec2::254/128"): "the metadata service of a cloud (AWS)",
    IPv6Network("fd00:ec2::23/128"): "the metadata service of a cloud (AWS)",
    IPv6Network("fd20:ce::254/128"): "the metadata service of a cloud (Google)",
    IPv4Network("100.100.100.200/32"): "the metadata service of a cloud (Alibaba)",
    IPv4Network("192.0.0.192/32"): "the metadata service of a cloud (Oracle)",
    IPv4Network("168.63.129.16/32"): "the metadata service of a cloud (Azure)",
}
"""Networks that are never granted, whatever the setting says, and why."""


_EVERY_NETWORK: Final[Sequence[Network]] = (IPv4Network("0.0.0.0/0"), IPv6Network("::/0"))


def read_networks(text: str) -> tuple[Network, ...]:
    """Read networks separated by commas: ``10.20.0.0/16, fd12::/16``.

    Raises ValueError that names one that is invalid, or of which no address could be granted.
    """
    networks = tuple(ip_network(each.strip()) for each in text.split(",") if each.strip())
    for network in networks:
        if _is_inside(network, _MAPPED):
            raise ValueError(f"{network}: the IPv4 network expected")
        for never, reason in _NEVER.items():
            if _is_inside(network, never):
                raise ValueError(f"{network} is never granted: it is {reason}")
    return networks


def _is_inside(network: Network, other: Network) -> bool:
    return other.version == network.version and network[0] in other and network[-1] in other


@dataclass(frozen=True)
class VnfAddressRules:
    """The rule with the facts of one moment."""

    networks: Sequence[Network]
    """Those that the operator has named."""
    own: frozenset[Address] = frozenset()
    """The addresses of this host's interfaces, loopback or not."""
    peers: Mapping[Address, str] = field(default_factory=dict)
    """The addresses of the servers that kubevnfm uses, with the setting that names each; loopback or not."""
    excluded: Sequence[Network] = ()
    """Networks that the operator has excluded."""
    taken_ports: frozenset[int] = frozenset()
    """Ports of loopback addresses at which this process or a peer listens."""

    def refusal(self, address: str, port: int | None = None) -> str:
        """Return why no connection to this address is granted, with a remedy; empty: it is.

        ``port``: None for any port, which a loopback address never has.
        """
        try:
            forms = forms_of(address)
        except ValueError:
            return f"{address} is no IP address in its usual form"
        for form in forms:
            reason = self._refusal(form, port)
            if reason:
                return f"{address} {reason}"
        return ""

    def is_unnamed(self, address: str, port: int | None = None) -> bool:
        """Return whether an address is refused only because an operator has not named its network."""
        whole = replace(self, networks=(*_LOOPBACK, *_EVERY_NETWORK))
        return bool(self.refusal(address, port)) and not whole.refusal(address, port)

    def _refusal(self, form: Address, port: int | None) -> str:
        for network, reason in _NEVER.items():
            if form in network:
                return f"is never granted: it is {reason}"
        if any(form in network for network in self.excluded):
            return "is excluded by the setting vnf_networks_except"
        if _is_loopback(form):
            return self._refusal_of_loopback(form, port)
        if form in self.own:
            return "is an address of this host, which code and clusters of packages may not reach"
        if form in self.peers:
            return f"is an address of {self.peers[form]}, which code and clusters of packages may not reach"
        if is_decided_by_embedded(form) or any(form in network for network in self.networks):
            return ""
        return f"is in none of the networks of VNFs ({self._named()}): {REMEDY}"

    def _refusal_of_loopback(self, form: Address, port: int | None) -> str:
        # A network such as 0.0.0.0/0 does not name it.
        named = [one for one in self.networks if any(_is_inside(one, loopback) for loopback in _LOOPBACK)]
        if not any(form in network for network in named):
            return f"is a loopback address, which needs a network inside {_LOOPBACK[0]} or ::1 in {SETTING}"
        if port is None:
            return "is a loopback address, of which single ports are granted only"
        if port in self.taken_ports:
            return f"port {port} is a port of kubevnfm, or of a server that it uses"
        return ""

    def _named(self) -> str:
        return f"{SETTING}: {', '.join(map(str, self.networks))}" if self.networks else f"{SETTING} is empty"


def is_loopback(address: str) -> bool:
    """Return whether a connection to the address stays on this host, in whatever form it is written."""
    try:
        return any(_is_loopback(form) for form in forms_of(address))
    except ValueError:
        return False


def _is_loopback(form: Address) -> bool:
    return any(form in network for network in _LOOPBACK)


def plain_addresses(texts: Iterable[str]) -> Iterable[Address]:
    """Yield the addresses and the IPv4 addresses in them; texts that are none are left out."""
    for text in texts:
        try:
            yield from forms_of(text)
        except ValueError:
            continue
