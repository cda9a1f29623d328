"""Compares the networks, subnets, ports and addresses that a request or grant names with those that the VIM shows.

A command does so before it makes anything: Heat would refuse them after minutes, with an error that does not name the place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any, Final, Protocol

import structlog
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_sol.connection_points import AskedAddresses, AskedPort, asked_points

from kubevnfm_infra_openstack.domain.asked_ports import NetworkView, SubnetView
from kubevnfm_infra_openstack.domain.errors import VimRefused, VimUnavailable
from kubevnfm_infra_openstack.domain.request import SolObject

log = structlog.get_logger()

LIMIT_S: Final = 10.0
"""How long the VIM is waited for. Without its answer the operation goes on, and Heat decides."""
_LINKS: Final = "extVirtualLinks"
_MANAGED: Final = "extManagedVirtualLinks"


class Networks(Protocol):
    """The networks and ports of a tenant."""

    async def find(self, name_or_id: str) -> NetworkView | None: ...
    async def network_of_port(self, port_id: str) -> str | None: ...


@dataclass(frozen=True)
class _Named:
    """A port that a link asks for."""

    place: str
    network: str
    cpd_id: str
    port: AskedPort


async def check_networks(networks: Networks, request: SolObject, grant: SolObject, *, limit_s: float = LIMIT_S) -> None:
    """Raise Unprocessable for the first network, subnet, port or address that the VIM does not have, with its place."""
    try:
        async with asyncio.timeout(limit_s):
            await _check(networks, request, grant)
    except (VimUnavailable, VimRefused, TimeoutError) as error:
        log.info("networks_not_checked", reason=str(error) or f"no answer in {limit_s:g} s")


async def _check(networks: Networks, request: SolObject, grant: SolObject) -> None:
    ports = list(_named_ports(request, grant))
    places = {network: place for place, network in reversed(list(_named_networks(request, grant)))}
    found = dict(zip(places, await asyncio.gather(*map(networks.find, places)), strict=True))
    for name, place in places.items():
        if found[name] is None:
            raise Unprocessable(place, f"the VIM shows no network {name}")
    for one in ports:
        network = found[one.network]
        assert network is not None
        if one.port.port_id is not None:
            own = await networks.network_of_port(one.port.port_id)
            if own is None:
                raise Unprocessable(f"{one.place}/linkPortId", f"the VIM shows no port {one.port.port_id}")
            if own != network.network_id:
                reason = f"port {one.port.port_id} is on network {own}; one on {one.network} expected"
                raise Unprocessable(f"{one.place}/linkPortId", reason)
        # The subnets of a network of others may be hidden from a tenant.
        elif network.subnets:
            for addresses in one.port.addresses:
                _check_addresses(addresses, one, network.subnets)


def _named_networks(request: SolObject, grant: SolObject) -> Iterator[tuple[str, str]]:
    """Yield the networks with their places."""
    for place, link in _links(request, grant):
        if link.get("extCps"):
            yield f"{place}/resourceId", str(link["resourceId"])
    for prefix, source in (("grant/", grant), ("", request)):
        for index, link in enumerate(source.get(_MANAGED) or ()):
            yield f"{prefix}{_MANAGED}[{index}]/resourceId", str(link["resourceId"])


def _named_ports(request: SolObject, grant: SolObject) -> Iterator[_Named]:
    for place, link in _links(request, grant):
        for number, cp in link["extCps"]:
            for point in asked_points([{**link, "extCps": [cp]}]).values():
                for port in point.ports:
                    at = f"{place}/extCps[{number}]/cpConfig/{port.config_id}"
                    yield _Named(at, point.network, point.cpd_id, port)


def _links(request: SolObject, grant: SolObject) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the external links with their numbered connection points; those of a grant take the place of the request's."""
    granted: Collection[str] = {
        str(cp.get("cpdId")) for link in grant.get(_LINKS) or () for cp in link.get("extCps") or ()
    }
    for prefix, source, without in (("grant/", grant, ()), ("", request, granted)):
        links: Sequence[Mapping[str, Any]] = source.get(_LINKS) or ()
        for index, link in enumerate(links):
            numbered = [(n, cp) for n, cp in enumerate(link.get("extCps") or ()) if str(cp.get("cpdId")) not in without]
            yield f"{prefix}{_LINKS}[{index}]", {**link, "extCps": numbered}


def _check_addresses(asked: AskedAddresses, one: _Named, subnets: Sequence[SubnetView]) -> None:
    place = f"{one.place}/cpProtocolData[0]/ipOverEthernet/ipAddresses"
    all_of = ", ".join(f"{each.name or each.subnet_id} ({each.cidr})" for each in subnets)
    if asked.subnet_id is not None:
        named = [each for each in subnets if asked.subnet_id in (each.subnet_id, each.name)]
        if not named:
            reason = f"network {one.network} has no subnet {asked.subnet_id}; it has {all_of}"
            raise Unprocessable(f"{place}/subnetId", reason)
        subnets = named
    ranges = [ip_network(each.cidr) for each in subnets]
    for address in asked.fixed:
        if not any(ip_address(address) in each for each in ranges):
            expected = " or ".join(map(str, ranges))
            raise Unprocessable(f"{place}/fixedAddresses", f"{address} is not in {expected}, of network {one.network}")
    if asked.within is not None:
        first, last = map(ip_address, asked.within)
        same = [each for each in ranges if each.version == first.version]
        if not any(
            int(first) <= int(each.broadcast_address) and int(each.network_address) <= int(last) for each in same
        ):
            reason = f"{first} to {last} has no address of {' or '.join(map(str, ranges))}, of network {one.network}"
            raise Unprocessable(f"{place}/addressRange", reason)
    if asked.dynamic and not any(each.is_ipv6 == asked.is_ipv6 for each in subnets):
        kind = "IPv6" if asked.is_ipv6 else "IPv4"
        raise Unprocessable(place, f"network {one.network} has no {kind} subnet; it has {all_of}")
