"""Makes a Heat template from the VNFD's own topology (SOL001), for packages without one (sequences.md 1.9, A1t).

A VDU becomes a server with a port for each of its connection points, an internal virtual link a network with a subnet,
a block storage a volume, a rule for the placement on hosts a server group. Several instances of a VDU are clones named
``<vdu>-<index>``, as are their ports and volumes.
SOL001 cannot describe a router or load balancer; VNFs that need one contain a base HOT.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import Final

from kubevnfm_csar.vnfd.clones import node_of, number_of, numbered
from kubevnfm_csar.vnfd.model import Cp, Flavour, Vdu
from kubevnfm_csar.vnfd.placement import placement_groups
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_sol.connection_points import AskedPort

from kubevnfm_infra_openstack.domain import machine_flavors, quota
from kubevnfm_infra_openstack.domain.asked_ports import FixedIp
from kubevnfm_infra_openstack.domain.grant import (
    Granted,
    capacity_of,
    flavor_of,
    image_of,
    managed_links,
    network_of,
    zones_of,
)
from kubevnfm_infra_openstack.domain.hot import (
    NETWORK,
    PORT,
    SERVER,
    SERVER_GROUP,
    SUBNET,
    VOLUME,
    Template,
    properties_of,
    resources_of,
)
from kubevnfm_infra_openstack.domain.link_subnets import link_subnets

_VERSION: Final = "2018-08-31"
_GIB: Final = 1024**3

_Section = dict[str, object]
_Resources = dict[str, _Section]


def template_of(
    vnfd: Flavour,
    given: Granted,
    flavors: Mapping[str, quota.Flavor],
    indexes: Mapping[str, Sequence[int]] | None = None,
    present: Template | None = None,
    named: Collection[str] = (),
) -> Template:
    """Return the complete template, which has no parameters. ``flavors`` are Nova's, by id and by name.

    ``indexes``: the instances of each VDU, for a stack that is changed; without it, those of the instantiation level,
    numbered from 0. ``present``: the template of a stack whose machines and volumes stay as they are, and their ports, unless they
    are of the connection points ``named``.
    Raises Unprocessable if a connection point has no network, and if two parts of the VNFD would get one name; PlacementUnsupported
    for a new stack.
    """
    resources: _Resources = {}
    if indexes is None:  # a stack that exists may never come to the number that collides
        _check_names(vnfd)
    before = resources_of(present) if present is not None else {}
    # Zones are for the NFVO to choose. An existing stack keeps its machines, whatever rule its package has.
    groups = placement_groups(vnfd, has_zones=indexes is not None or bool(given.grant.get("zones")))
    group_by_vdu = {vdu_id: f"{group.name}_{group.kind}" for group in groups for vdu_id in group.vdu_ids}
    for group in groups:
        resources[f"{group.name}_{group.kind}"] = {"type": SERVER_GROUP, "properties": {"policies": [group.kind]}}
    managed = managed_links(given)
    subnets_by_link: dict[str, Sequence[str]] = {}
    for name, subnets in link_subnets(vnfd, managed, given.used_cidrs, given.present_cidrs).items():
        resources[name] = {"type": NETWORK}
        # A network that is there keeps its subnets: with another one its ports would get addresses that nothing asks for.
        own = {one: made for one, made in subnets.items() if name not in before or one in before}
        resources |= own
        subnets_by_link[name] = list(own)
    taken: set[str] = set()
    suffixes_by_vdu: dict[str, Sequence[str]] = {}
    for vdu in vnfd.vdus.values():
        amount = capacity_of(vdu.vdu_id, vnfd, given) or 0
        wanted = range(amount) if indexes is None else indexes.get(vdu.vdu_id, ())
        # If a VDU can have a second instance later, the first one is numbered too: a renamed resource would make Heat
        # replace the running server.
        is_numbered = vnfd.max_count(vdu.vdu_id) > 1 or amount > 1
        suffixes = suffixes_by_vdu[vdu.vdu_id] = [f"-{index}" if is_numbered else "" for index in wanted]
        ports = _ports_of(vdu, vnfd, given, wanted)
        zones = iter(zones_of(vdu.vdu_id, given))
        flavor = _present_flavor(vdu, suffixes, before)
        for index, suffix in zip(wanted, suffixes, strict=True):
            _check_free(resources, vdu, vnfd, suffix)
            is_kept = vdu.vdu_id + suffix in before
            flavor = _add_server(
                resources, vdu, suffix, vnfd, given, flavors, flavor=flavor, zone=None if is_kept else next(zones, None),
                group=group_by_vdu.get(vdu.vdu_id), ports=ports[index], taken=taken, subnets=subnets_by_link,
            )  # fmt: skip
    template = {"heat_template_version": _VERSION, "resources": resources}
    if present is None:
        return template
    servers = {vdu.vdu_id + suffix: vdu for vdu in vnfd.vdus.values() for suffix in suffixes_by_vdu[vdu.vdu_id]}
    staying = {name for name, one in before.items() if one.get("type") in (SERVER, VOLUME, NETWORK, SUBNET)}
    parts = dict(before)
    for name, vdu in servers.items():
        if before.get(name, {}).get("type") == SERVER:
            parts[name] = _with_wanted_ports(before[name], resources[name], _in_order(vdu, vnfd), named)
            suffix = name.removeprefix(vdu.vdu_id)
            staying |= {cp.cp_id + suffix for cp in _in_order(vdu, vnfd) if cp.cp_id not in named} & before.keys()
    return _with_kept(template, parts, staying)


def _with_wanted_ports(present: Template, wanted: Template, cps: Sequence[Cp], named: Collection[str]) -> Template:
    """Return a server with the wanted ports at the named connection points: Nova attaches and detaches ports of a running server."""
    old, new = (properties_of(one).get("networks") for one in (present, wanted))
    if not isinstance(old, list) or not isinstance(new, list) or not len(old) == len(new) == len(cps):
        return {**present, "properties": {**properties_of(present), "networks": new}}
    networks = [new[n] if cp.cp_id in named else old[n] for n, cp in enumerate(cps)]
    return {**present, "properties": {**properties_of(present), "networks": networks}}


def _in_order(vdu: Vdu, vnfd: Flavour) -> Sequence[Cp]:
    """Return the VDU's connection points as its machines have their ports (SOL001: order of the NICs)."""
    cps = [cp for cp in vnfd.cps.values() if cp.kind == "vdu" and cp.vdu_id == vdu.vdu_id]
    return sorted(cps, key=lambda cp: (cp.order is None, cp.order, cp.cp_id))


def _ports_of(vdu: Vdu, vnfd: Flavour, given: Granted, numbers: Sequence[int]) -> Mapping[int, Mapping[str, AskedPort]]:
    """Return what is asked for the ports of each machine, by connection point."""
    found: dict[int, dict[str, AskedPort]] = {number: {} for number in numbers}
    for cp in vnfd.cps.values():
        if cp.kind == "vdu" and cp.vdu_id == vdu.vdu_id:
            for number, port in given.ports.ports_of(cp.cp_id, numbers).items():
                found[number][cp.cp_id] = port
    return found


def _check_names(vnfd: Flavour) -> None:
    """Raise Unprocessable if an instance of a VDU can get the name of another part: ``db`` and ``db-1``.

    By these names its machines are found later.
    """
    owner_by_name = {name: vdu.vdu_id for vdu in vnfd.vdus.values() for name in _parts_of(vdu, vnfd)}
    for vdu_id, vdu in vnfd.vdus.items():
        most = vnfd.max_count(vdu_id)
        for name in sorted(_parts_of(vdu, vnfd)) if most > 1 else ():
            # By the names that there are: the number of instances is any that the VNFD gives.
            taken = next((other for other in sorted(owner_by_name) if _is_instance(other, name, most)), None)
            if taken is not None:
                raise _same_name(name, taken, f"VDU {owner_by_name[taken]}")


def _is_instance(name: str, of: str, most: int) -> bool:
    """Return whether the name is that of one of so many instances of a part."""
    number = number_of(name, of)
    return number is not None and number < most and name == f"{of}-{number}"


def _check_free(resources: Mapping[str, object], vdu: Vdu, vnfd: Flavour, suffix: str) -> None:
    for name in sorted(_parts_of(vdu, vnfd)):
        if name + suffix in resources:
            raise _same_name(name, name + suffix, "another part")


def _same_name(name: str, taken: str, owner: str) -> Unprocessable:
    return Unprocessable(
        "vnfd", f"different names expected: an instance of {name} would be the resource {taken}, which {owner} has"
    )


def _present_flavor(vdu: Vdu, suffixes: Sequence[str], before: Mapping[str, Template]) -> object:
    """Return the flavor of the VDU's present machines: one that is added has the same; None if there is none."""
    present = (properties_of(before[vdu.vdu_id + suffix]) for suffix in suffixes if vdu.vdu_id + suffix in before)
    return next((properties["flavor"] for properties in present if "flavor" in properties), None)


def _with_kept(template: Template, before: Mapping[str, Template], names: Collection[str]) -> Template:
    """Return the template with those of its resources as they were, and with what these refer to."""
    resources = {name: before[name] if name in names else resource for name, resource in resources_of(template).items()}
    waiting = [name for name in resources if name in names]
    while waiting:
        for name in _references(resources[waiting.pop()]):
            if name not in resources and name in before:
                resources[name] = before[name]
                waiting.append(name)
    return {**template, "resources": resources}


def _references(node: object) -> Iterator[str]:
    """Yield the names of the resources to which a part of a template refers."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key == "get_resource":
                yield str(value)
            elif key == "depends_on":
                yield from [value] if isinstance(value, str) else map(str, value)
            else:
                yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def indexes_after(
    template: Template, vnfd: Flavour, counts: Mapping[str, int], leaving: Collection[str] = ()
) -> dict[str, list[int]]:
    """Return the instances of each VDU at ``counts``: the present ones without those that leave, and new ones.

    ``leaving``: resource names of servers. If there are still too many, the highest numbers are removed.
    """
    there: dict[str, list[int]] = {vdu_id: [] for vdu_id in vnfd.vdus}
    for name, resource in resources_of(template).items():
        if resource.get("type") != SERVER or name in leaving:
            continue
        vdu_id, number = numbered(name)
        # The first instance of a VDU that can have others is numbered too, so it does not have the VDU's own name.
        if name in there and not (vdu_id in there and vnfd.max_count(name) > 1):
            there[name].append(0)
        elif vdu_id in there:
            there[vdu_id].append(number or 0)
    found: dict[str, list[int]] = {}
    for vdu_id, indexes in there.items():
        wanted = counts.get(vdu_id, len(indexes))
        staying = sorted(indexes)[:wanted]
        free = (number for number in count() if number not in staying)
        found[vdu_id] = staying + [next(free) for _ in range(wanted - len(staying))]
    return found


def with_present_vdus(template: Template, present: Template, vnfd: Flavour, changed: Collection[str]) -> Template:
    """Return the template with the present machines, ports and volumes of all VDUs except the changed ones."""
    vdu_by_part = {name: vdu.vdu_id for vdu in vnfd.vdus.values() for name in _parts_of(vdu, vnfd)}
    before = resources_of(present)
    owners = {name: vdu_by_part.get(node_of(name, vdu_by_part) or "") for name in before}
    return _with_kept(
        template, before, {name for name, vdu in owners.items() if vdu is not None and vdu not in changed}
    )


def _parts_of(vdu: Vdu, vnfd: Flavour) -> set[str]:
    """Return the names of a VDU's server, ports and volumes, without the number of the instance."""
    return {vdu.vdu_id, *vdu.storages, *(cp.cp_id for cp in vnfd.cps.values() if cp.vdu_id == vdu.vdu_id)}


def _add_server(
    resources: _Resources,
    vdu: Vdu,
    suffix: str,
    vnfd: Flavour,
    given: Granted,
    flavors: Mapping[str, quota.Flavor],
    *,
    flavor: object,
    zone: str | None,
    group: str | None,
    ports: Mapping[str, AskedPort],
    taken: set[str],
    subnets: Mapping[str, Sequence[str]],
) -> object:
    """Add one machine with its parts; return its flavor. ``flavor``: None if none is known; ``group``: a server group.

    ``ports``: what is asked for its ports, by connection point; ``taken``: as in `AskedPorts.fixed_ips`; ``subnets``: names of
    resources by virtual link.
    """
    flavor = flavor_of(vdu.vdu_id, vnfd, given) or flavor or machine_flavors.fitting(vdu, flavors)
    if flavor is None:
        name, made = machine_flavors.made(vdu)
        resources[name] = made
        flavor = {"get_resource": name}
    in_order = _in_order(vdu, vnfd)
    port_by_cp: dict[str, object] = {}
    for cp in in_order:
        asked = ports.get(cp.cp_id)
        name = cp.cp_id + suffix
        if asked is not None and asked.port_id is not None:
            port_by_cp[cp.cp_id] = asked.port_id
            continue
        port_by_cp[cp.cp_id] = {"get_resource": name}
        resources[name] = _port(cp, vnfd, given, asked, given.present_ips.get(name, ()), taken, subnets)
    volumes = _volumes(resources, vdu, suffix, vnfd, given)
    properties: _Section = {
        "name": vdu.name or vdu.vdu_id,
        "flavor": flavor,
        "networks": [{"port": port_by_cp[cp.cp_id]} for cp in in_order],
    }
    image = image_of(vdu.vdu_id, vnfd, given)
    if image:
        properties["image"] = image
    if zone:
        properties["availability_zone"] = zone
    if group is not None:
        properties["scheduler_hints"] = {"group": {"get_resource": group}}
    if volumes:
        properties["block_device_mapping_v2"] = volumes
    resources[vdu.vdu_id + suffix] = {"type": SERVER, "properties": properties}
    return flavor


def _port(
    cp: Cp,
    vnfd: Flavour,
    given: Granted,
    asked: AskedPort | None,
    present: Sequence[FixedIp],
    taken: set[str],
    subnets: Mapping[str, Sequence[str]],
) -> _Section:
    properties: _Section = {}
    link = cp.virtual_link
    if link is not None and link in vnfd.virtual_links:
        managed = managed_links(given).get(link)
        properties["network"] = managed or {"get_resource": link}
    else:
        properties["network"] = network_of(cp.cp_id, vnfd, given)
        if properties["network"] is None:
            raise Unprocessable("extVirtualLinks", f"a virtual link for connection point {cp.cp_id} expected")
    addresses = given.ports.fixed_ips(cp.cp_id, asked, present, taken) if asked is not None else []
    if addresses:
        properties["fixed_ips"] = addresses
    if asked is not None and asked.mac is not None:
        properties["mac_address"] = asked.mac
    # `virtio` is SOL001's name for Neutron's default.
    if cp.vnic_type not in ("normal", "virtio"):
        properties["binding:vnic_type"] = cp.vnic_type
    resource: _Section = {"type": PORT, "properties": properties}
    if isinstance(properties["network"], Mapping):
        # The port gets addresses from the subnets, but refers only to the network.
        names = subnets.get(link or "", ())
        resource["depends_on"] = names[0] if len(names) == 1 else list(names)
    return resource


def _volumes(resources: _Resources, vdu: Vdu, suffix: str, vnfd: Flavour, given: Granted) -> list[_Section]:
    mappings: list[_Section] = []
    for storage in (vnfd.storages[name] for name in vdu.storages if name in vnfd.storages):
        if storage.kind != "block":
            continue
        properties: _Section = {"size": max(1, -(-storage.size_bytes // _GIB))}
        image = image_of(storage.storage_id, vnfd, given)
        if image:
            properties["image"] = image
        resources[storage.storage_id + suffix] = {"type": VOLUME, "properties": properties}
        # -1: not bootable. The volume boots the server only if the VDU has no image of its own.
        boots = bool(image) and vdu.image is None
        mappings.append({"volume_id": {"get_resource": storage.storage_id + suffix}, "boot_index": 0 if boots else -1})
    return mappings
