"""Compares what a command asked for with what the infrastructure shows after it: ports, and servers.

Heat reports a stack as complete also if its template has left out what the request says. Then the step fails, and its error
names both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events.stacks import PortFacts, ServerFacts, StackResources
from kubevnfm_sol.connection_points import AskedPoint, AskedPort, asked_points, canonical

from kubevnfm_infra_openstack.domain.hot import PORT
from kubevnfm_infra_openstack.domain.quota import Flavor

_MOST_NAMED = 5
"""So many differences are named in one error; the others are only counted."""


@dataclass(frozen=True)
class AskedStack:
    """The parts of a request and its grant that ports and servers show."""

    points: Mapping[str, AskedPoint] = field(default_factory=dict)
    network_ids: Mapping[str, str] = field(default_factory=dict)
    """The id of each network that a connection point names; without those that the VIM does not show."""
    subnet_ids: Mapping[str, str] = field(default_factory=dict)
    """The ids of the subnets that entries of cpConfig name by another text."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Machines by VDU; without VDUs for which no number is asked."""
    flavors: Mapping[str, str] = field(default_factory=dict)
    """Nova flavor by VDU, by id or name."""
    images: Mapping[str, str] = field(default_factory=dict)
    """Glance id by VDU."""
    zones: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Zones by VDU."""


def differences(
    asked: AskedStack,
    shown: StackResources,
    vnfd: Flavour,
    flavors: Mapping[str, Flavor],
    *,
    is_changed: Callable[[ServerFacts], bool] = lambda _: True,
) -> Sequence[str]:
    """Return a sentence for each difference. ``flavors``: Nova's, by id and name.

    ``is_changed``: which servers already are as asked; a rolling update changes some with each of its steps.
    """
    done = shown.model_copy(update={"servers": tuple(filter(is_changed, shown.servers))})
    return [
        *_number_differences(asked, shown, vnfd),
        *_server_differences(asked, done, flavors),
        *(text for point in asked.points.values() for text in _port_differences(point, asked, done, vnfd)),
    ]


def as_before(
    before: StackResources,
    links: Sequence[Mapping[str, Any]],
    flavors: Mapping[str, Flavor],
    *,
    redefined: Collection[str] = (),
) -> AskedStack:
    """Return what a stack that is to be as it was has to show. ``links``: its extVirtualLinks; ``flavors``: Nova's.

    Flavors that do not exist any more were made by the stack, which makes others. ``redefined``: servers in whose places others
    come that a class, or a package that came by a modification, defines: VDUs of these may get other images and flavors.
    """
    by_vdu: dict[str, list[ServerFacts]] = {}
    # A server whose replacement failed was shown beside it: both have one place.
    for server in {(one.stack_id, one.name): one for one in before.servers}.values():
        by_vdu.setdefault(server.vdu_id, []).append(server)
    counts = {vdu: len(servers) for vdu, servers in by_vdu.items()}
    by_vdu = {vdu: servers for vdu, servers in by_vdu.items() if not any(s.server_id in redefined for s in servers)}
    flavor_by_vdu = {vdu: _of_all(one.flavor for one in servers) for vdu, servers in by_vdu.items()}
    # A machine that was reverted to a VNF snapshot has the image of that, and the one in its place has the stack's.
    image_by_vdu = {
        vdu: _of_all(one.image_id for one in servers if not one.is_reverted) for vdu, servers in by_vdu.items()
    }
    return AskedStack(
        points=asked_points(links),
        counts=counts,
        flavors={vdu: one for vdu, one in flavor_by_vdu.items() if one is not None and one in flavors},
        images={vdu: one for vdu, one in image_by_vdu.items() if one is not None},
    )


def shown_before(asked: AskedStack, before: StackResources, vnfd: Flavour) -> AskedStack:
    """Return the same without the connection points that were not as asked before the operation, whatever the reason."""
    points = {
        name: point for name, point in asked.points.items() if not any(_port_differences(point, asked, before, vnfd))
    }
    return replace(asked, points=points)


def _of_all(values: Iterable[str | None]) -> str | None:
    found = set(values)
    return next(iter(found)) if len(found) == 1 else None


def in_one(found: Sequence[str]) -> str:
    """Return the differences as one text."""
    more = f" (and {len(found) - _MOST_NAMED} more)" if len(found) > _MOST_NAMED else ""
    return "; ".join(found[:_MOST_NAMED]) + more


def _number_differences(asked: AskedStack, shown: StackResources, vnfd: Flavour) -> Iterator[str]:
    present = Counter(server.vdu_id for server in shown.servers)
    # A template may give its servers names of their own. Then they are of one of the VDUs, and it is not known of which.
    unnamed = sum(amount for vdu_id, amount in present.items() if vdu_id not in vnfd.vdus)
    for vdu_id, wanted in asked.counts.items():
        if not present[vdu_id] <= wanted <= present[vdu_id] + unnamed:
            yield f"VDU {vdu_id}: asked for {wanted} machines, shown {present[vdu_id]}"


def _server_differences(asked: AskedStack, shown: StackResources, flavors: Mapping[str, Flavor]) -> Iterator[str]:
    for server in shown.servers:
        name = f"machine {server.server_name or server.name} of VDU {server.vdu_id}"
        flavor = asked.flavors.get(server.vdu_id)
        if flavor is not None and server.flavor is not None and not _is_flavor(flavor, server.flavor, flavors):
            yield f"{name}: asked for flavor {flavor}, shown {server.flavor}"
        image = asked.images.get(server.vdu_id)
        # A machine that was reverted to a VNF snapshot has the image of that, until it is replaced.
        if image is not None and server.image_id not in (None, image) and not server.is_reverted:
            yield f"{name}: asked for image {image}, shown {server.image_id}"
        zones = asked.zones.get(server.vdu_id) or ()
        # `zone:host` is a host of the zone.
        if zones and server.zone is not None and server.zone not in [zone.partition(":")[0] for zone in zones]:
            yield f"{name}: asked for zone {' or '.join(dict.fromkeys(zones))}, shown {server.zone}"


def _is_flavor(asked: str, shown: str, flavors: Mapping[str, Flavor]) -> bool:
    # A flavor is asked for by id or by name, and shown by either.
    return asked == shown or (asked in flavors and flavors[asked] == flavors.get(shown))


def _port_differences(point: AskedPoint, asked: AskedStack, shown: StackResources, vnfd: Flavour) -> Iterator[str]:
    cp = vnfd.cps.get(point.cpd_id)
    servers = [one for one in shown.servers if cp is None or cp.vdu_id in (None, one.vdu_id)]
    every = [(server, port) for server in servers for port in server.ports if port.resource_type == PORT]
    given = {one.port_id for one in point.ports}
    own = [pair for pair in every if pair[1].cpd_id == point.cpd_id or pair[1].resource_id in given]
    # A template may give its ports names of their own. Then it is not known how many are the connection point's.
    ports = own or every
    if not ports:
        return
    network_id = asked.network_ids.get(point.network)
    for server, port in own:
        if network_id is not None and port.network_id not in (None, network_id):
            yield f"{point.cpd_id} of {server.name}: asked for network {point.network}, shown {port.network_id}"
    shared = [one for one in point.ports if not one.is_for_one]
    if len(point.ports) == len(shared) == 1:
        wrong = [pair for pair in own if not _fits(shared[0], pair[1], asked)]
        if wrong or (not own and not any(_fits(shared[0], port, asked) for _, port in every)):
            yield _sentence(point, shared[0], wrong or every)
        return
    left = list(ports)
    missed: list[AskedPort] = []
    for one in (*(port for port in point.ports if port.is_for_one), *shared):
        found = next((pair for pair in left if _fits(one, pair[1], asked)), None)
        if found is None:
            missed.append(one)
        else:
            left.remove(found)
    # Entries for machines that a later scaling makes are for no port yet.
    waiting = max(0, len(point.ports) - len(own)) if own else 0
    for one in missed[: len(missed) - waiting] if waiting else missed:
        yield _sentence(point, one, left or ports)


def _fits(asked: AskedPort, port: PortFacts, stack: AskedStack) -> bool:
    if asked.port_id is not None:
        return port.resource_id == asked.port_id
    if asked.mac is not None and (port.mac or "").lower() != asked.mac:
        return False
    addresses = {canonical(one) for one in port.addresses}
    if not set(asked.fixed) <= addresses:
        return False
    for is_ipv6 in (False, True):
        wanted = sum(one.amount for one in asked.addresses if one.is_ipv6 is is_ipv6)
        if sum((":" in one) is is_ipv6 for one in addresses) < wanted:
            return False
    for one in asked.addresses:
        if one.within is not None and not any(map(one.is_within, addresses)):
            return False
        subnet_id = stack.subnet_ids.get(one.subnet_id or "", one.subnet_id)
        if subnet_id is not None and subnet_id not in port.subnet_ids:
            return False
    return True


def _sentence(point: AskedPoint, asked: AskedPort, shown: Sequence[tuple[ServerFacts, PortFacts]]) -> str:
    wanted = [
        *([f"port {asked.port_id}"] if asked.port_id is not None else []),
        *([f"MAC {asked.mac}"] if asked.mac is not None else []),
        *asked.fixed,
        *(f"{one.within[0]} to {one.within[1]}" for one in asked.addresses if one.within is not None),
        *(
            f"{one.dynamic} {'IPv6' if one.is_ipv6 else 'IPv4'} addresses"
            + (f" of subnet {one.subnet_id}" if one.subnet_id is not None else "")
            for one in asked.addresses
            if one.dynamic
        ),
    ]
    ports = [
        f"port {port.resource_id} of {server.name} with MAC {port.mac} and {', '.join(port.addresses) or 'no address'}"
        for server, port in shown[:_MOST_NAMED]
    ]
    return f"{point.cpd_id} ({asked.config_id}): asked for {', '.join(wanted)}; shown {' and '.join(ports)}"
