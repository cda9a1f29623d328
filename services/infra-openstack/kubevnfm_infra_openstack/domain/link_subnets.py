"""The subnets of networks that a VNF's stack makes: as the VNFD says, else with ranges that none of its networks has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

from kubevnfm_csar.vnfd.model import Flavour, LinkSubnet
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_infra_openstack.domain.hot import SUBNET, Template, properties_of, resources_of

_Network = IPv4Network | IPv6Network
_Resource = dict[str, object]
_POOLS: Final[Mapping[bool, _Network]] = {False: IPv4Network("10.10.0.0/16"), True: IPv6Network("fd00:10::/56")}
"""Where ranges are chosen, by whether they are of IPv6; each has 256 of them."""
_LENGTH: Final[Mapping[bool, int]] = {False: 24, True: 64}


def needs_ranges(vnfd: Flavour, managed: Collection[str], present: Mapping[str, str]) -> bool:
    """Return whether a range has to be chosen. ``present``: the ranges that the subnets of the stack have already."""
    return any(
        one.cidr is None and name not in present
        for link in vnfd.virtual_links
        if link not in managed
        for name, one in _named(link, vnfd, present)
    )


def link_subnets(
    vnfd: Flavour, managed: Collection[str], used: Iterable[str], present: Mapping[str, str]
) -> Mapping[str, Mapping[str, _Resource]]:
    """Return the subnets of each link that the stack makes, by link and by resource name.

    ``used``: ranges of the other networks of the VNF. ``present``: the ranges of the stack's subnets by resource name,
    which stay where the VNFD gives none. Raises Unprocessable if every range is used.
    """
    named = {link: list(_named(link, vnfd, present)) for link in vnfd.virtual_links if link not in managed}
    every = [pair for pairs in named.values() for pair in pairs]
    cidrs = {name: cidr for name, one in every if (cidr := one.cidr or present.get(name)) is not None}
    taken = [network for text in (*cidrs.values(), *used) for network in _read(text)]
    for name, one in every:
        if name not in cidrs:
            chosen = _free(one, name, taken)
            taken.append(chosen)
            cidrs[name] = str(chosen)
    return {link: {name: _resource(link, one, cidrs[name]) for name, one in pairs} for link, pairs in named.items()}


def present_cidrs(template: Template) -> Mapping[str, str]:
    """Return the ranges of a stack's subnets by resource name."""
    return {
        name: cidr
        for name, one in resources_of(template).items()
        if one.get("type") == SUBNET and isinstance(cidr := properties_of(one).get("cidr"), str)
    }


def _named(link: str, vnfd: Flavour, present: Mapping[str, str]) -> Iterator[tuple[str, LinkSubnet]]:
    """Yield the subnets of a link, each with the name of the present one that it is: the order in the VNFD may change.

    Neutron has no second subnet of a range in a network, so a subnet that changed its name could not be made, nor made again.
    """
    subnets: Sequence[LinkSubnet] = vnfd.virtual_links[link].subnets or (LinkSubnet(),)
    base = f"{link}_subnet"
    names = [base, *(f"{base}_{number}" for number in range(2, len(subnets) + len(present) + 2))]
    there = {name: network for name in names if name in present for network in _read(present[name])}
    found: dict[int, str] = {}
    for is_same_range in (True, False):
        for index, one in enumerate(subnets):
            fitting = (
                name
                for name, network in there.items()
                if name not in found.values()
                and network.version == (6 if one.is_ipv6 else 4)
                and (not is_same_range or present[name] == one.cidr)
            )
            if index not in found and (name := next(fitting, None)) is not None:
                found[index] = name
    free = (name for name in names if name not in there)
    for index, one in enumerate(subnets):
        yield found.get(index) or next(free), one


def _read(text: str) -> Iterator[_Network]:
    try:
        yield ip_network(text, strict=False)
    except ValueError:
        return  # Neutron refuses it


def _free(subnet: LinkSubnet, name: str, taken: Sequence[_Network]) -> _Network:
    pool, length = _POOLS[subnet.is_ipv6], _LENGTH[subnet.is_ipv6]
    for one in pool.subnets(new_prefix=length):
        if not any(_overlap(one, other) for other in taken):
            return one
    raise Unprocessable("vnfd", f"a cidr for {name} expected: the networks of the VNF use all of {pool}")


def _overlap(one: _Network, other: _Network) -> bool:
    if one.version != other.version:
        return False
    first, last = int(other.network_address), int(other.broadcast_address)
    return int(one.network_address) <= last and first <= int(one.broadcast_address)


def _resource(link: str, subnet: LinkSubnet, cidr: str) -> _Resource:
    properties: _Resource = {
        "network": {"get_resource": link},
        "cidr": cidr,
        "ip_version": 6 if subnet.is_ipv6 else 4,
        "enable_dhcp": subnet.dhcp_enabled is not False,
    }
    if subnet.gateway is not None:
        properties["gateway_ip"] = subnet.gateway
    if subnet.pools:
        properties["allocation_pools"] = [{"start": first, "end": last} for first, last in subnet.pools]
    if subnet.is_ipv6 and subnet.ipv6_address_mode is not None:
        properties |= {"ipv6_address_mode": subnet.ipv6_address_mode, "ipv6_ra_mode": subnet.ipv6_address_mode}
    return {"type": SUBNET, "properties": properties}
