"""Converts the facts that the infrastructure reports (stack resources, pods) to SOL003's resource types. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_csar.vnfd.clones import number_of
from kubevnfm_events.stacks import PortFacts, ServerFacts, ShownResource, StackResources, StorageFacts
from kubevnfm_kit.ids import derived_id
from kubevnfm_sol.connection_points import AskedPoint, AskedPort, asked_points, assigned, canonical
from kubevnfm_sol.connectivity import shown_of_managed
from kubevnfm_sol.resources import (
    CpProtocolInfo,
    ExtLinkPortInfo,
    ExtVirtualLinkInfo,
    InstantiatedVnfInfo,
    IpAddresses,
    IpOverEthernetAddressInfo,
    ScaleInfo,
    VirtualStorageResourceInfo,
    VnfcCpInfo,
    VnfcInfo,
    VnfcResourceInfo,
    VnfExtCpInfo,
    VnfLinkPortInfo,
    VnfVirtualLinkResourceInfo,
)

from kubevnfm_lcm_api.lifecycle.core.resource_handle import handle

CpPlace = tuple[str, int | None, str | None, str]
"""A connection point of a machine, as long as the VNF has the machine: VDU, number, member of the group, descriptor."""
SERVER: Final = "OS::Nova::Server"
PORT = "OS::Neutron::Port"
NETWORK = "OS::Neutron::Net"
VOLUME: Final = "OS::Cinder::Volume"


def _protocol(port: PortFacts, points: Mapping[str, AskedPoint]) -> tuple[CpProtocolInfo, ...]:
    """``points``: what is asked; the VIM has assigned every address that is not among its fixed ones."""
    point = points.get(port.cpd_id)
    fixed = {address for one in point.ports for address in one.fixed} if point is not None else set()
    addresses = tuple(
        IpAddresses(
            type="IPV6" if ":" in address else "IPV4",
            addresses=(address,),
            is_dynamic=canonical(address) not in fixed,
            subnet_id=port.subnet_ids[index] if index < len(port.subnet_ids) else None,
        )
        for index, address in enumerate(port.addresses)
    )
    return (CpProtocolInfo(ip_over_ethernet=IpOverEthernetAddressInfo(mac_address=port.mac, ip_addresses=addresses)),)


def with_link_ports(resources: StackResources, ext_virtual_links: Sequence[Mapping[str, Any]]) -> StackResources:
    """Name the ports that were made before the VNF by the connection points for which a request gives them."""
    points = asked_points(ext_virtual_links).values()
    cp_by_port = {asked.port_id: point.cpd_id for point in points for asked in point.ports if asked.port_id is not None}
    if not cp_by_port:
        return resources

    def named(server: ServerFacts) -> ServerFacts:
        ports = tuple(
            port.model_copy(update={"name": port.name or cp_by_port.get(port.resource_id, "")}) for port in server.ports
        )
        return server.model_copy(update={"ports": ports})

    return resources.model_copy(update={"servers": tuple(named(server) for server in resources.servers)})


def own_ports(server: ServerFacts) -> Sequence[PortFacts]:
    # Without the floating IPs, which are among the ports in the facts, and without ports of no connection point: SOL003
    # has no place for them.
    return [port for port in server.ports if port.resource_type == PORT and port.name]


def cp_id(server: ServerFacts, port: PortFacts) -> str:
    # Unique among machines of one VDU, and a new id for a port that was created again.
    return f"{port.cpd_id}-{derived_id(server.vnfc_id, port.resource_id)}"


def _ext_cp_id(server: ServerFacts, port: PortFacts) -> str:
    # The ids of SOL003 that no VIM knows are derived from the VIM's ids: every report of a stack leads to the same ids.
    return derived_id("ext-cp", server.vnfc_id, port.resource_id)


def _link_port_id(port: PortFacts) -> str:
    return derived_id("vnf-link-port", port.resource_id)


def index_of(server: ServerFacts) -> int | None:
    """Return the number in ``<vdu>-<index>``, the names by which Tacker's user data classes distinguish machines."""
    # The server itself has this name in the top template, or its group has it.
    for name in (server.name, server.group or ""):
        if (number := number_of(name, server.vdu_id)) is not None:
            return number
    return None


def _place(server: ServerFacts, port: PortFacts) -> CpPlace:
    return server.vdu_id, index_of(server), server.member or None, port.cpd_id


def known_configs(info: Mapping[str, Any]) -> Mapping[CpPlace, str]:
    """Return the entries of cpConfig that an InstantiatedVnfInfo shows. ``info``: as stored in drafts."""
    config_by_cp = {one.get("associatedVnfcCpId"): one.get("cpConfigId") for one in info.get("extCpInfo") or ()}
    found: dict[CpPlace, str] = {}
    for vnfc in info.get("vnfcResourceInfo") or ():
        metadata = vnfc.get("metadata") or {}
        for cp in vnfc.get("vnfcCpInfo") or ():
            name = config_by_cp.get(cp["id"])
            if name:
                place = (vnfc["vduId"], metadata.get("vdu_idx"), metadata.get("parent_resource_name"), cp["cpdId"])
                found[place] = str(name)
    return found


def machines(resources: StackResources) -> Sequence[ServerFacts]:
    """Return one server for each place in the stack: an old server whose replacement failed is there beside the new one."""
    # The newest is the last one.
    return [*{(one.vdu_id, one.stack_id, one.name): one for one in resources.servers}.values()]


def machines_by_vdu(resources: StackResources) -> Counter[str]:
    """Return the number of machines by VDU."""
    return Counter(server.vdu_id for server in machines(resources))


def shown_resources(stacks: Iterable[StackResources | None]) -> tuple[ShownResource, ...]:
    """Return the servers and volumes of the stacks, each once."""
    found: dict[str, ShownResource] = {}
    for stack in stacks:
        if stack is None:
            continue
        for server in stack.servers:
            found[server.server_id] = ShownResource(
                resource_type=SERVER, name=server.name, resource_id=server.server_id, stack_id=server.stack_id
            )
        for volume in stack.volumes:
            found[volume.resource_id] = ShownResource(
                resource_type=VOLUME, name=volume.name, resource_id=volume.resource_id, stack_id=stack.stack_id
            )
    return tuple(found.values())


def part_of(server: ServerFacts) -> str:
    """Return the name of the resource of the top stack that is or holds the server."""
    return server.group or server.name


def _parameters(server: ServerFacts, volumes: Sequence[StorageFacts], nfv: Mapping[str, Any]) -> dict[str, Any]:
    """Return flavor, zone and images that the stack's parameters give a machine and its volumes, named as by Tacker."""
    index = index_of(server)
    entries = nfv.get("VDU")
    found: dict[str, Any] = {}
    for name in (server.vdu_id, *(volume.storage_id for volume in volumes)):
        key = name if index is None else f"{name}-{index}"
        entry = entries.get(key) if isinstance(entries, Mapping) else None
        if not isinstance(entry, Mapping):
            continue
        found[f"image-{key}"] = entry.get("vcImageId")
        if name == server.vdu_id:
            found.update(flavor=entry.get("computeFlavourId") or server.flavor, zone=entry.get("locationConstraints"))
    return found


def _vnfc(
    server: ServerFacts,
    vnfd_id: str,
    vim_key: str,
    volumes: Sequence[StorageFacts],
    nfv: Mapping[str, Any],
    node_name: str | None,
    points: Mapping[str, AskedPoint],
    external: Collection[str],
    internal_networks: Collection[str],
) -> VnfcResourceInfo:
    """``external``: ids of VnfExtCpInfo; ``internal_networks``: ids of the networks that have ``vnfLinkPorts``."""
    # The names in Tacker's `metadata`, which its user data classes read back.
    metadata: dict[str, Any] = {"stack_id": server.stack_id}
    facts = {
        "parent_stack_group": server.group,
        "parent_resource_name": server.member,
        "flavor": server.flavor,
        "image_id": server.image_id,
        "host": server.host,
        "node_name": node_name,
        "vdu_idx": index_of(server),
        "creation_time": server.created_at.isoformat() if server.created_at else None,
        **_parameters(server, volumes, nfv),
    }
    metadata.update({name: value for name, value in facts.items() if value is not None})
    return VnfcResourceInfo(
        id=server.vnfc_id,
        vdu_id=server.vdu_id,
        vnfd_id=vnfd_id,
        compute_resource=handle(server.server_id, vim_key, SERVER),
        zone_id=server.zone,
        storage_resource_ids=tuple(volume.resource_id for volume in volumes) or None,
        vnfc_cp_info=tuple(
            VnfcCpInfo(
                id=cp_id(server, port),
                cpd_id=port.cpd_id,
                vnf_ext_cp_id=_ext_cp_id(server, port) if _ext_cp_id(server, port) in external else None,
                cp_protocol_info=_protocol(port, points),
                vnf_link_port_id=_link_port_id(port) if port.network_id in internal_networks else None,
            )
            for port in own_ports(server)
        )
        or None,
        metadata=metadata,
    )


def info_of_stack(
    resources: StackResources,
    *,
    vnfd_id: str,
    vim_key: str,
    flavour_id: str,
    scale_status: Sequence[ScaleInfo],
    max_scale_levels: Sequence[ScaleInfo],
    external_cps: Mapping[str, str],
    ext_virtual_links: Sequence[Mapping[str, Any]],
    ext_managed_links: Sequence[Mapping[str, Any]],
    node_names: Mapping[str, str],
    known_configs: Mapping[CpPlace, str],
) -> InstantiatedVnfInfo:
    """Return instantiatedVnfInfo of a VM-based VNF (SOL003 5.5.2.2).

    ``external_cps``: descriptor of the external CP by internal CP name; ``ext_managed_links``: extManagedVirtualLinks
    of request and grant; ``node_names``: Kubernetes node by VNFC id; ``known_configs``: the entry of cpConfig that a
    connection point of a machine had before.
    """
    volumes_by_server: dict[str, list[StorageFacts]] = {}
    for volume in resources.volumes:
        if volume.server_id is not None:
            volumes_by_server.setdefault(volume.server_id, []).append(volume)
    points = asked_points(ext_virtual_links)
    ext_cps, ext_links = _external(resources, external_cps, ext_virtual_links, points, known_configs, vnfd_id, vim_key)
    internal_networks = {str(link["resourceId"]) for link in ext_managed_links}
    internal_networks |= {network.resource_id for network in resources.networks}
    vnfcs = tuple(
        _vnfc(
            server,
            vnfd_id,
            vim_key,
            volumes_by_server.get(server.server_id, ()),
            resources.nfv,
            node_names.get(server.vnfc_id),
            points,
            {one.id for one in ext_cps},
            internal_networks,
        )
        for server in resources.servers
    )
    return InstantiatedVnfInfo(
        flavour_id=flavour_id,
        scale_status=tuple(scale_status) or None,
        max_scale_levels=tuple(max_scale_levels) or None,
        ext_cp_info=ext_cps,
        ext_virtual_link_info=ext_links or None,
        ext_managed_virtual_link_info=tuple(_managed(link, resources, vim_key) for link in ext_managed_links) or None,
        vnfc_resource_info=vnfcs,
        vnf_virtual_link_resource_info=tuple(
            VnfVirtualLinkResourceInfo(
                id=network.resource_id,
                vnf_virtual_link_desc_id=network.name,
                vnfd_id=vnfd_id,
                network_resource=handle(network.resource_id, vim_key, NETWORK),
                vnf_link_ports=link_ports_on(resources, network.resource_id, vim_key) or None,
            )
            for network in resources.networks
        )
        or None,
        virtual_storage_resource_info=tuple(
            VirtualStorageResourceInfo(
                id=volume.resource_id,
                virtual_storage_desc_id=volume.storage_id,
                vnfd_id=vnfd_id,
                storage_resource=handle(volume.resource_id, vim_key, VOLUME),
            )
            for volume in resources.volumes
        )
        or None,
        vnfc_info=tuple(
            VnfcInfo(id=f"{vnfc.vdu_id}-{vnfc.id}", vdu_id=vnfc.vdu_id, vnfc_resource_info_id=vnfc.id) for vnfc in vnfcs
        ),
        metadata={
            "stack_id": resources.stack_id,
            "stack_name": resources.stack_name,
            **({"nfv": resources.nfv} if resources.nfv else {}),
        },
    )


def _managed(link: Mapping[str, Any], resources: StackResources, vim_key: str) -> dict[str, Any]:
    """Return the ExtManagedVirtualLinkInfo (SOL003 5.5.3.3) of an ExtManagedVirtualLinkData."""
    resource = {"vimConnectionId": link.get("vimConnectionId") or vim_key, "resourceId": link["resourceId"]}
    ports = link_ports_on(resources, str(link["resourceId"]), vim_key)
    shown = [port.model_dump(by_alias=True, exclude_none=True) for port in ports]
    return {
        **shown_of_managed(link),
        "networkResource": resource,
        **({"vnfLinkPorts": shown} if shown else {}),
    }


def links_of(info: InstantiatedVnfInfo | None) -> InstantiatedVnfInfo | None:
    """Return the same with its links only."""
    if info is None:
        return None
    return InstantiatedVnfInfo(
        flavour_id=info.flavour_id,
        ext_virtual_link_info=info.ext_virtual_link_info,
        ext_managed_virtual_link_info=info.ext_managed_virtual_link_info,
        vnf_virtual_link_resource_info=info.vnf_virtual_link_resource_info,
    )


def link_ports_on(resources: StackResources, network_id: str, vim_key: str) -> tuple[VnfLinkPortInfo, ...]:
    """Return the ports of machines on an internal network."""
    return tuple(
        VnfLinkPortInfo(
            id=_link_port_id(port),
            resource_handle=handle(port.resource_id, vim_key, PORT),
            cp_instance_id=cp_id(server, port),
            cp_instance_type="VNFC_CP",
        )
        for server in resources.servers
        for port in own_ports(server)
        if port.network_id == network_id
    )


@dataclass(frozen=True)
class _Connected:
    """A port of a machine at an external connection point."""

    server: ServerFacts
    port: PortFacts
    asked: AskedPort | None
    """Its entry of cpConfig; None: no entry is for it."""


def _connected(
    resources: StackResources, points: Mapping[str, AskedPoint], known: Mapping[CpPlace, str]
) -> Iterator[_Connected]:
    """Yield the ports of connection points, each with its entry. ``known``: the entries before the operation.

    An entry that describes a port by what only one port can have is that port's; the others are given as they were, then
    in the order of the machines' numbers.
    """
    by_cp: dict[str, list[tuple[ServerFacts, PortFacts]]] = {}
    for server in resources.servers:
        for port in own_ports(server):
            by_cp.setdefault(port.cpd_id, []).append((server, port))
    for cpd_id, pairs in by_cp.items():
        asked = points[cpd_id].ports if cpd_id in points else ()
        port_by_id = {port.resource_id: port for _, port in pairs}
        found: dict[str, AskedPort] = {}
        for one in asked:
            shown = [key for key, p in port_by_id.items() if one.is_shown_by(key, p.mac, p.addresses)]
            if one.is_for_one and shown:
                found.setdefault(shown[0], one)
        left = [one for one in asked if one not in found.values()]
        in_order = sorted(pairs, key=lambda pair: index_of(pair[0]) or 0)
        free = [port.resource_id for _, port in in_order if port.resource_id not in found]
        before = {port.resource_id: known.get(_place(server, port)) for server, port in pairs}
        found |= assigned(left, free, {port_id: name for port_id, name in before.items() if name is not None})
        for server, port in pairs:
            yield _Connected(server, port, found.get(port.resource_id))


def _external(
    resources: StackResources,
    external_cps: Mapping[str, str],
    ext_virtual_links: Sequence[Mapping[str, Any]],
    points: Mapping[str, AskedPoint],
    known: Mapping[CpPlace, str],
    vnfd_id: str,
    vim_key: str,
) -> tuple[tuple[VnfExtCpInfo, ...], tuple[ExtVirtualLinkInfo, ...]]:
    """Return the external CPs and links: ports whose CP the VNFD exposes, or that a request's extCps name."""
    cps: list[VnfExtCpInfo] = []
    ports_by_link: dict[tuple[str, str], list[ExtLinkPortInfo]] = {}
    for one in _connected(resources, points, known):
        server, port, asked = one.server, one.port, one.asked
        point = points.get(port.cpd_id)
        # A request may connect a port that the VNFD does not expose.
        if port.cpd_id not in external_cps and point is None:
            continue
        is_given = asked is not None and asked.port_id == port.resource_id
        port_id = asked.link_port_id if is_given and asked is not None else None
        port_id = port_id or derived_id("ext-link-port", port.resource_id)
        cps.append(
            VnfExtCpInfo(
                id=_ext_cp_id(server, port),
                cpd_id=external_cps.get(port.cpd_id, port.cpd_id),
                cp_config_id=asked.config_id if asked is not None else port.cpd_id,
                vnfd_id=vnfd_id,
                cp_protocol_info=_protocol(port, points),
                ext_link_port_id=port_id if point is not None else None,
                associated_vnfc_cp_id=cp_id(server, port),
            )
        )
        if point is not None:
            ports_by_link.setdefault((point.link_id, point.network), []).append(
                ExtLinkPortInfo(
                    id=port_id,
                    resource_handle=handle(port.resource_id, vim_key, PORT),
                    cp_instance_id=_ext_cp_id(server, port),
                )
            )
    links = tuple(
        ExtVirtualLinkInfo(
            id=str(link["id"]),
            resource_handle=handle(str(link["resourceId"]), vim_key, NETWORK),
            ext_link_ports=tuple(ports_by_link.get((str(link["id"]), str(link["resourceId"])), ())) or None,
            current_vnf_ext_cp_data=tuple(dict(cp) for cp in link.get("extCps", ())),
        )
        for link in ext_virtual_links
    )
    return tuple(cps), links
