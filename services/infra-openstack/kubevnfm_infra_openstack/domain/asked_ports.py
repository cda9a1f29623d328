"""The ports that request and grant ask for, as Heat's OS::Neutron::Port takes them: network, MAC, addresses."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address, ip_network
from typing import Any

from kubevnfm_kit.errors import Unprocessable
from kubevnfm_sol.connection_points import AskedAddresses, AskedPoint, AskedPort, asked_points, assigned

from kubevnfm_infra_openstack.domain.request import SolObject

FixedIp = Mapping[str, str]
"""An entry of ``fixed_ips``: ``subnet`` and ``ip_address``, or one of them."""
_LINKS = "extVirtualLinks"


@dataclass(frozen=True)
class SubnetView:
    """A subnet as Neutron shows it."""

    subnet_id: str
    cidr: str
    gateway: str | None = None
    name: str = ""

    @property
    def is_ipv6(self) -> bool:
        """The version of its addresses."""
        return ":" in self.cidr


@dataclass(frozen=True)
class NetworkView:
    """A network, with the addresses of it that are known to be used."""

    network_id: str
    subnets: Sequence[SubnetView] = ()
    used: Collection[str] = ()


@dataclass(frozen=True)
class AskedPorts:
    """The wanted ports of each connection point."""

    points: Mapping[str, AskedPoint]
    networks: Mapping[str, NetworkView] = field(default_factory=dict)
    """By the name or id that the request has; only those in which addresses have to be chosen."""
    config_by_instance: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """The entry of cpConfig that an instance has already, by connection point and number of the machine."""

    @classmethod
    def from_documents(cls, grant: SolObject, request: SolObject, instance: SolObject) -> AskedPorts:
        """Read grant and request; the grant's links take precedence. ``instance``: VnfInstance before the operation."""
        points = asked_points(grant.get(_LINKS) or (), request.get(_LINKS) or ())
        return cls(points, config_by_instance=dict(_present_configs(instance)))

    @property
    def networks_to_choose_in(self) -> Collection[str]:
        """The networks whose subnets must be known."""
        return {point.network for point in self.points.values() if any(_is_to_be_chosen(port) for port in point.ports)}

    def in_networks(self, networks: Mapping[str, NetworkView]) -> AskedPorts:
        """Return the same with the networks that `networks_to_choose_in` names."""
        return replace(self, networks=networks)

    def ports_of(self, cpd_id: str, numbers: Sequence[int]) -> Mapping[int, AskedPort]:
        """Return the entry of each machine with these numbers that has one; ``numbers``: those of all machines."""
        point = self.points.get(cpd_id)
        if point is None:
            return {}
        known = {n: name for n in numbers if (name := self.config_by_instance.get((cpd_id, n))) is not None}
        return assigned(point.ports, numbers, known)

    def port_of(self, cpd_id: str, number: int) -> AskedPort | None:
        """Return the entry of one machine, where the others are not known: those before it, and those that have entries."""
        known = {n for cp, n in self.config_by_instance if cp == cpd_id}
        return self.ports_of(cpd_id, sorted({*range(number + 1), *known})).get(number)

    def fixed_ips(self, cpd_id: str, port: AskedPort, present: Sequence[FixedIp], taken: set[str]) -> list[FixedIp]:
        """Return ``fixed_ips``; empty: the VIM chooses. ``present``: those of the port now, which stay where they fit.

        ``taken``: addresses that other ports of the stack get; those that are chosen here are added.
        Raises Unprocessable if a network has no subnet or no free address that fits.
        """
        if port.is_plain:
            return []
        asked = port.addresses
        network = self.networks.get(self.points[cpd_id].network, NetworkView(""))
        found: list[FixedIp] = []
        for one in asked:
            subnet = {"subnet": one.subnet_id} if one.subnet_id is not None else {}
            found += [{**subnet, "ip_address": address} for address in one.fixed]
            if one.within is not None:
                address = _of_range(one, cpd_id, network, present, taken)
                taken.add(address)
                found.append({**subnet, "ip_address": address})
            if one.dynamic:
                place = subnet or {"subnet": _subnet_for(one, cpd_id, network)}
                found += [place] * one.dynamic
        return found


def _is_to_be_chosen(port: AskedPort) -> bool:
    """Return whether the addresses can be named only with knowledge of the network."""
    return not port.is_plain and any(
        one.within is not None or (one.dynamic and one.subnet_id is None) for one in port.addresses
    )


def _subnet_for(asked: AskedAddresses, cpd_id: str, network: NetworkView) -> str:
    found = next((one.subnet_id for one in network.subnets if one.is_ipv6 == asked.is_ipv6), None)
    if found is None:
        kind = "IPv6" if asked.is_ipv6 else "IPv4"
        raise Unprocessable(_LINKS, f"the network of {cpd_id} has no {kind} subnet for numDynamicAddresses")
    return found


def _of_range(
    asked: AskedAddresses, cpd_id: str, network: NetworkView, present: Sequence[FixedIp], taken: Collection[str]
) -> str:
    for one in present:
        address = one.get("ip_address", "")
        if address and address not in taken and asked.is_within(address):
            return address
    assert asked.within is not None
    reserved = {*network.used, *taken, *(one.gateway for one in network.subnets if one.gateway)}
    ranges = list(_usable(asked, network))
    for first, last in ranges:
        # From a place by chance: an address may be used by a port that the tenant cannot see, and a retry needs another.
        start = first + secrets.randbelow(last - first + 1)
        for begin, end in ((start, last), (first, start - 1)):
            # One of so many numbers is free, however long the range is.
            for number in range(begin, min(end, begin + len(reserved)) + 1):
                address = str(ip_address(number) if not asked.is_ipv6 else ip_address(number.to_bytes(16, "big")))
                if address not in reserved:
                    return address
    raise Unprocessable(
        _LINKS,
        f"no free address of {asked.within[0]} to {asked.within[1]} in the subnets of the network of {cpd_id}: "
        f"{', '.join(one.cidr for one in network.subnets) or 'none'}",
    )


def _usable(asked: AskedAddresses, network: NetworkView) -> Iterator[tuple[int, int]]:
    """Yield the parts of the range that the subnets have, without their network and broadcast addresses."""
    assert asked.within is not None
    first, last = (int(ip_address(end)) for end in asked.within)
    for subnet in network.subnets:
        if subnet.is_ipv6 != asked.is_ipv6 or asked.subnet_id not in (None, subnet.subnet_id, subnet.name):
            continue
        cidr = ip_network(subnet.cidr)
        edge = 1 if cidr.num_addresses > 2 else 0
        low = max(first, int(cidr.network_address) + edge)
        high = min(last, int(cidr.broadcast_address) - edge)
        if low <= high:
            yield low, high


def _present_configs(instance: SolObject) -> Iterator[tuple[tuple[str, int], str]]:
    info: Mapping[str, Any] = instance.get("instantiatedVnfInfo") or {}
    instance_by_cp: dict[str, tuple[str, int]] = {}
    for vnfc in info.get("vnfcResourceInfo") or ():
        number = (vnfc.get("metadata") or {}).get("vdu_idx")
        for cp in vnfc.get("vnfcCpInfo") or ():
            instance_by_cp[str(cp.get("id"))] = (str(cp.get("cpdId")), int(number or 0))
    for external in info.get("extCpInfo") or ():
        # Not the name of the external connection point's own descriptor: requests and templates have that of the machine's.
        owner = str(external.get("associatedVnfcCpId"))
        if owner in instance_by_cp and external.get("cpConfigId"):
            yield instance_by_cp[owner], str(external["cpConfigId"])
