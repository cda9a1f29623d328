"""Checks of subnets, gateways and ranges of addresses (MC-091). No I/O."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from itertools import accumulate

from kubevnfm_kit.json_types import JsonMapping

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


def read_network(text: str) -> Network:
    """Return the network. Raises ValueError."""
    try:
        if "/" not in text:
            raise ValueError
        return ip_network(text)
    except ValueError as error:
        raise ValueError("a subnet without host bits expected, such as 10.1.0.0/24") from error


def read_address(text: str, network: Network, what: str = "an address") -> Address:
    """Return the address of the network; a prefix length may follow it. Raises ValueError."""
    try:
        address = ip_address(text.partition("/")[0])
    except ValueError as error:
        raise ValueError(f"{what} expected") from error
    if address not in network:
        raise ValueError(f"{what} inside {network} expected")
    return address


def read_ranges(text: str, network: Network) -> None:
    """Check addresses and ranges: ``10.1.0.2 10.1.0.5..10.1.0.9``. Raises ValueError."""
    for part in text.split():
        read_range(part, network)


def read_range(text: str, network: Network) -> None:
    """Check one address or range. Raises ValueError."""
    first, dots, last = text.partition("..")
    begin = read_address(first, network, "an address or first..last")
    if dots:
        end = read_address(last, network, "an address or first..last")
        if int(end) < int(begin):
            raise ValueError(f"a range whose end is not before its start expected, got {text}")


def overlaps_with(networks: Sequence[tuple[str, Network]], others: Sequence[Network]) -> Iterator[tuple[str, Network]]:
    """Yield the place of each network that overlaps with another one, and that one; in time n log n for n of both."""
    for version in (4, 6):
        taken = sorted((each for each in others if each.version == version), key=_first)
        firsts = [_first(each) for each in taken]
        # The one that ends last of those that begin before an address.
        longest = list(accumulate(taken, _longer))
        for place, network in networks:
            begun = bisect_right(firsts, _last(network)) if network.version == version else 0
            if begun and _last(longest[begun - 1]) >= _first(network):
                yield place, longest[begun - 1]


def _longer(one: Network, other: Network) -> Network:
    return other if _last(other) > _last(one) else one


def _first(network: Network) -> int:
    return int(network[0])


def _last(network: Network) -> int:
    return int(network[-1])


def overlaps_among(networks: Sequence[tuple[str, Network]]) -> Iterator[tuple[str, str]]:
    """Yield places of networks that overlap with an earlier one, none of them twice; in time n log n."""
    found: dict[int, int] = {}
    for version in (4, 6):
        ordered = sorted(
            (index for index, (_, network) in enumerate(networks) if network.version == version),
            key=lambda index: _first(networks[index][1]),
        )
        # The one that ends last of those before it in the order of addresses.
        longest = -1
        for index in ordered:
            if longest >= 0 and _first(networks[index][1]) <= _last(networks[longest][1]):
                found.setdefault(max(index, longest), min(index, longest))
            if longest < 0 or _last(networks[index][1]) > _last(networks[longest][1]):
                longest = index
    for index, earlier in sorted(found.items()):
        other_place, other = networks[earlier]
        yield networks[index][0], f"overlaps with {other} of {other_place}"


def ipam_networks(ipam: JsonMapping, place: str) -> Sequence[tuple[str, Network]]:
    """Return the valid subnets of a CNI configuration of addresses (host-local, whereabouts)."""
    found: list[tuple[str, Network]] = []
    for around, holder, member in _ipam_subnets(ipam, place):
        with suppress(ValueError):
            found.append((f"{around}/{member}", _ipam_network(holder.get(member))))
    return found


def ipam_faults(ipam: JsonMapping, place: str) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a CNI configuration of addresses."""
    kind = ipam.get("type")
    if not isinstance(kind, str) or not kind:
        yield f"{place}/type", "the name of a plug-in expected, such as host-local"
        return
    if not isinstance(ipam.get("routes", []), list):
        yield f"{place}/routes", "a list expected"
    if kind == "host-local":
        ranges = ipam.get("ranges", [])
        if not isinstance(ranges, list) or not all(
            isinstance(group, list) and all(isinstance(one, Mapping) for one in group) for group in ranges
        ):
            yield f"{place}/ranges", "a list of lists of ranges expected"
            return
        if "subnet" not in ipam and not ranges:
            yield f"{place}/subnet", "a subnet or ranges expected"
    for around, holder, member in _ipam_subnets(ipam, place):
        try:
            network = _ipam_network(holder.get(member))
        except ValueError as error:
            yield f"{around}/{member}", str(error)
            continue
        for name in ("gateway", "rangeStart", "rangeEnd"):
            if name in holder:
                try:
                    read_address(str(holder[name]), network)
                except ValueError as error:
                    yield f"{around}/{name}", str(error)


def ipam_gateways(ipam: JsonMapping | None) -> Sequence[str]:
    """Return the gateways that a CNI configuration of addresses names."""
    if ipam is None:
        return ()
    addresses = ipam.get("addresses") if ipam.get("type") == "static" else None
    holders = [holder for _, holder, _ in _ipam_subnets(ipam, "")]
    holders += [each for each in (addresses if isinstance(addresses, list) else []) if isinstance(each, Mapping)]
    return list(dict.fromkeys(str(each["gateway"]) for each in [ipam, *holders] if each.get("gateway")))


def in_ranges(address: Address, ranges: Sequence[str]) -> bool:
    """Return whether an address is among checked ranges: ``a``, ``a..b``."""
    for text in ranges:
        first, _, last = text.partition("..")
        begin, end = ip_address(first), ip_address(last or first)
        if begin.version == address.version and int(begin) <= int(address) <= int(end):
            return True
    return False


def _ipam_subnets(ipam: JsonMapping, place: str) -> Iterator[tuple[str, JsonMapping, str]]:
    """Yield each place with a subnet: the place, the object there, and the member that has the subnet."""
    if ipam.get("type") == "whereabouts" and "range" in ipam:
        yield place, ipam, "range"
    if ipam.get("type") != "host-local":
        return
    if "subnet" in ipam:
        yield place, ipam, "subnet"
    ranges = ipam.get("ranges")
    for group_index, group in enumerate(ranges if isinstance(ranges, list) else []):
        for index, one in enumerate(group if isinstance(group, list) else []):
            if isinstance(one, Mapping):
                yield f"{place}/ranges[{group_index}][{index}]", one, "subnet"


def _ipam_network(given: object) -> Network:
    """Return a subnet; whereabouts also has ``10.1.0.5-10.1.0.9/24``. Raises ValueError."""
    if not isinstance(given, str):
        raise ValueError("a subnet expected, such as 10.1.0.0/24")
    first, dash, rest = given.partition("-")
    if not dash:
        return read_network(given)
    # The prefix length follows the last address.
    return ip_network(f"{first}/{rest.rpartition('/')[2]}", strict=False)
