"""Judges the subnets of internal virtual links before a stack is made of them. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

from kubevnfm_csar.vnfd.model import LinkSubnet

_MODES: Final = ("slaac", "dhcpv6-stateful", "dhcpv6-stateless")


def subnet_problem(subnet: LinkSubnet) -> str | None:
    """Return why a network cannot have the subnet, by the attribute of ``l3_protocol_data``; None if it can."""
    version = 6 if subnet.is_ipv6 else 4
    network = None
    if subnet.cidr is not None:
        try:
            network = ip_network(subnet.cidr, strict=False)
        except ValueError:
            return f"cidr {subnet.cidr[:64]}: a range of IPv{version} expected"
        if network.version != version:
            return f"cidr {subnet.cidr}: a range of IPv{version} expected"
    if subnet.gateway is not None and _address(subnet.gateway, version) is None:
        return f"gateway_ip {subnet.gateway[:64]}: an IPv{version} address expected"
    if subnet.pools and network is None:
        return "ip_allocation_pools: a cidr expected with them"
    for texts in subnet.pools:
        first, last = (_address(text, version) for text in texts)
        is_range = first is not None and last is not None and int(first) <= int(last)
        if not is_range or network is None or first not in network or last not in network:
            return f"ip_allocation_pools {texts[0][:64]} to {texts[1][:64]}: a range of addresses in {network} expected"
    if subnet.ipv6_address_mode is not None and subnet.ipv6_address_mode not in _MODES:
        return f"ipv6_address_mode {subnet.ipv6_address_mode[:64]}: {', '.join(_MODES)} expected"
    return None


def _address(text: str, version: int) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return found if found.version == version else None
