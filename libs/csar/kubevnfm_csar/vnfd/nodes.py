"""VDUs, storages, connection points and virtual links of a topology."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import Any, Final, Literal, cast

from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_csar.files import external_path, is_uri, locate
from kubevnfm_csar.manifest import lists_external
from kubevnfm_csar.vnfd import types
from kubevnfm_csar.vnfd.model import (
    Checksum,
    ComputeDemand,
    Cp,
    InterfaceRequirement,
    LinkSubnet,
    SoftwareImage,
    Storage,
    Vdu,
    VirtualLink,
)
from kubevnfm_csar.vnfd.topology import Node, Topology
from kubevnfm_csar.vnfd.values import boolean, mapping, resolve, sequence, text

_IP: Final = ("ipv4", "ipv6")


def vdu_names(topologies: Iterable[Topology]) -> frozenset[str]:
    """Return the names of the VDUs of several flavours."""
    kinds = types.COMPUTE, types.CONTAINER
    return frozenset(node.name for each in topologies for kind in kinds for node in each.of_type(kind))


def vdus(topology: Topology) -> dict[str, Vdu]:
    """Return the VDUs by node name. Raises PackageRefused when a profile contradicts itself."""
    found = {}
    for kind, ancestor in (("compute", types.COMPUTE), ("container", types.CONTAINER)):
        for node in topology.of_type(ancestor):
            found[node.name] = _vdu(topology, node, cast("Literal['compute', 'container']", kind))
    return found


def _vdu(topology: Topology, node: Node, kind: Literal["compute", "container"]) -> Vdu:
    profile = mapping(node.properties.get("vdu_profile"))
    what = f"{node.name}.vdu_profile"
    least = topology.whole_number(profile.get("min_number_of_instances"), f"{what}.min_number_of_instances")
    most = profile.get("max_number_of_instances")
    limit = None if most is None else topology.whole_number(most, f"{what}.max_number_of_instances")
    if limit is not None and limit < least:
        raise topology.refused(f"{what}: min_number_of_instances {least} exceeds the maximum {limit}")
    return Vdu(
        vdu_id=node.name,
        kind=kind,
        name=text(node.properties.get("name")) or node.name,
        description=text(node.properties.get("description")),
        min_instances=least,
        max_instances=limit,
        image=_image(topology, node),
        compute=_demand(topology, node),
        storages=tuple(node.requirements("virtual_storage")),
    )


def _demand(topology: Topology, node: Node) -> ComputeDemand:
    capability = mapping(mapping(node.body.get("capabilities")).get("virtual_compute"))
    asked = mapping(resolve(mapping(capability.get("properties")), topology.inputs))
    memory, cpu = mapping(asked.get("virtual_memory")), mapping(asked.get("virtual_cpu"))
    wishes = asked.get("requested_additional_capabilities")
    name = None
    for wish in mapping(wishes).values():
        name = mapping(wish).get("requested_additional_capability_name") or name
    what = f"{node.name}.virtual_compute"
    disks = sequence(asked.get("virtual_local_storage"))
    return ComputeDemand(
        capability_name=text(name) or None,
        vcpus=topology.whole_number(cpu.get("num_virtual_cpu"), f"{what}.num_virtual_cpu"),
        memory_bytes=topology.size_bytes(memory.get("virtual_mem_size"), f"{what}.virtual_mem_size"),
        disk_bytes=sum(
            topology.size_bytes(mapping(disk).get("size_of_storage"), f"{what}.size_of_storage") for disk in disks
        ),
    )


def _image(topology: Topology, node: Node) -> SoftwareImage | None:
    data = mapping(node.properties.get("sw_image_data"))
    artifact = next(
        (
            mapping(body)
            for body in mapping(node.body.get("artifacts")).values()
            if topology.tree.is_a(mapping(body).get("type"), types.SW_IMAGE)
        ),
        None,
    )
    if not data and artifact is None:
        return None
    reference = text(artifact.get("file")) if artifact is not None else ""
    path = locate(topology.files, reference, beside=topology.file)
    is_external = is_uri(reference)
    if path is None and is_external and lists_external(topology.files, reference):
        path = external_path(reference)
    name = text(data.get("name")) or posixpath.splitext(posixpath.basename(reference))[0]
    if not name:
        raise topology.refused(f"{node.name}.sw_image_data: the name is missing")

    def size(key: str) -> int:
        return topology.size_bytes(data.get(key), f"{node.name}.sw_image_data.{key}")

    return SoftwareImage(
        image_id=node.name,
        name=name,
        version=text(data.get("version")),
        provider=text(data.get("provider")),
        checksum=_checksum(data.get("checksum")),
        # Glance accepts no data for an image without a container format.
        container_format=text(data.get("container_format")) or "bare",
        disk_format=text(data.get("disk_format")),
        min_disk_bytes=size("min_disk"),
        min_ram_bytes=size("min_ram"),
        size_bytes=size("size"),
        path=path,
        uri=reference if reference and (path is None or is_external) else None,
    )


def _checksum(value: Any) -> Checksum | None:
    if isinstance(value, str):  # SOL001 V2.5.1: the bare digest
        return Checksum(algorithm="sha-256", hash=value)
    given: JsonMapping = mapping(value)
    if not given.get("hash"):
        return None
    return Checksum(algorithm=text(given.get("algorithm")) or "sha-256", hash=text(given.get("hash")))


def storages(topology: Topology) -> dict[str, Storage]:
    """Return the virtual storages by node name."""
    found = {}
    for ancestor, kind in types.STORAGES.items():
        for node in topology.of_type(ancestor):
            data = mapping(node.properties.get(f"virtual_{kind}_storage_data"))
            found[node.name] = Storage(
                storage_id=node.name,
                kind=cast("Literal['block', 'object', 'file']", kind),
                size_bytes=topology.size_bytes(data.get("size_of_storage"), f"{node.name}.size_of_storage"),
                image=_image(topology, node),
            )
    return found


def connection_points(topology: Topology) -> dict[str, Cp]:
    """Return the connection points of the VDUs and of the VNF by node name."""
    found: dict[str, Cp] = {}
    for node in topology.of_type(types.VDU_CP):
        link = node.requirement("virtual_link")
        order = node.properties.get("order")
        found[node.name] = Cp(
            cp_id=node.name,
            kind="vdu",
            vdu_id=node.requirement("virtual_binding"),
            order=None if order is None else topology.whole_number(order, f"{node.name}.order"),
            virtual_link=link,
            # A connection point that the VNFD leaves open can only be connected by a request.
            is_external=node.name in topology.exposed or link is None,
            vnic_type=text(node.properties.get("vnic_type")) or "normal",
            interface_requirements=_interface_requirements(topology, node),
        )
    for kind, ancestor in (("external", types.EXT_CP), ("virtual", types.VIRTUAL_CP)):
        for node in topology.of_type(ancestor):
            link = node.requirement("internal_virtual_link") or node.requirement("virtual_link")
            found[node.name] = Cp(
                cp_id=node.name,
                kind=cast("Literal['external', 'virtual']", kind),
                vdu_id=node.requirement("target"),
                virtual_link=link,
                is_external=kind == "external" or node.name in topology.exposed,
                interface_requirements=_interface_requirements(topology, node),
            )
    return found


def _interface_requirements(topology: Topology, node: Node) -> tuple[InterfaceRequirement, ...]:
    """Return the requirements on the network interface of a connection point. Raises PackageRefused."""
    found = []
    for number, item in enumerate(sequence(node.properties.get("virtual_network_interface_requirements"))):
        what = f"{node.name}.virtual_network_interface_requirements[{number}]"
        if not isinstance(item, dict):
            raise topology.refused(f"{what}: a map expected")
        # SOL001 V4.4.1 has no support_mandatory.
        mandatory = boolean(given) if (given := item.get("support_mandatory")) is not None else False
        if mandatory is None:
            raise topology.refused(f"{what}.support_mandatory: true or false expected, got {given!r}")
        nodes = mapping(mapping(item.get("nic_io_requirements")).get("logical_node_requirements"))
        asks = (*mapping(item.get("network_interface_requirements")), *nodes)
        found.append(InterfaceRequirement(name=text(item.get("name")) or what, is_mandatory=mandatory, asks=asks))
    return tuple(found)


def virtual_links(topology: Topology) -> dict[str, VirtualLink]:
    """Return the internal virtual links by node name."""
    return {
        node.name: VirtualLink(
            virtual_link_id=node.name,
            description=text(node.properties.get("description")),
            subnets=_subnets(node),
        )
        for node in topology.of_type(types.VIRTUAL_LINK)
    }


def _subnets(node: Node) -> tuple[LinkSubnet, ...]:
    """Return a subnet for each data of layer 3, and one for each IP version without data that the link has."""
    profile = mapping(node.properties.get("vl_profile"))
    found = []
    for item in map(mapping, sequence(profile.get("virtual_link_protocol_data"))):
        data, protocol = mapping(item.get("l3_protocol_data")), text(item.get("associated_layer_protocol")).lower()
        if data or protocol in _IP:
            found.append(_subnet(data, protocol))
    layers = mapping(node.properties.get("connectivity_type")).get("layer_protocols")
    versions = {text(one).lower() for one in sequence(layers)}
    for protocol in _IP:
        if protocol in versions and not any(one.is_ipv6 == (protocol == "ipv6") for one in found):
            found.append(_subnet({}, protocol))
    return () if found == [LinkSubnet()] else tuple(found)


def _subnet(data: JsonMapping, protocol: str) -> LinkSubnet:
    cidr = text(data.get("cidr")) or None
    version = text(data.get("ip_version")).lower() or protocol
    pools = [mapping(one) for one in sequence(data.get("ip_allocation_pools"))]
    return LinkSubnet(
        is_ipv6=version == "ipv6" if version in _IP else ":" in (cidr or ""),
        cidr=cidr,
        dhcp_enabled=boolean(data.get("dhcp_enabled")),
        gateway=text(data.get("gateway_ip")) or None,
        pools=tuple((text(one.get("start_ip_address")), text(one.get("end_ip_address"))) for one in pools),
        ipv6_address_mode=text(data.get("ipv6_address_mode")) or None,
    )
