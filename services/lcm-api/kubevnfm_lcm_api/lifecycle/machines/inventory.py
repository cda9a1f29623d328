"""Converts the facts that the infrastructure reports (stack resources, pods) to SOL003's resource types. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import Any

from kubevnfm_events.stacks import PortFacts, ServerFacts, StackResources, StorageFacts
from kubevnfm_kit.ids import derived_id
from kubevnfm_sol.resources import (
    AffectedExtLinkPort,
    AffectedVirtualLink,
    AffectedVirtualStorage,
    AffectedVnfc,
    ChangeType,
    CpProtocolInfo,
    ExtLinkPortInfo,
    ExtVirtualLinkInfo,
    InstantiatedVnfInfo,
    IpAddresses,
    IpOverEthernetAddressInfo,
    ResourceChanges,
    ScaleInfo,
    VirtualStorageResourceInfo,
    VnfcCpInfo,
    VnfcInfo,
    VnfcResourceInfo,
    VnfExtCpInfo,
    VnfVirtualLinkResourceInfo,
)

from kubevnfm_lcm_api.lifecycle.core.resource_handle import handle

SERVER = "OS::Nova::Server"
PORT = "OS::Neutron::Port"
NETWORK = "OS::Neutron::Net"
VOLUME = "OS::Cinder::Volume"


def _fixed_addresses(ext_virtual_links: Sequence[Mapping[str, Any]]) -> frozenset[tuple[str, str]]:
    """Return pairs of connection point and address: the fixed addresses of a request or a grant."""

    def addresses(config: Mapping[str, Any]) -> Iterator[str]:
        for protocol in config.get("cpProtocolData") or ():
            for given in (protocol.get("ipOverEthernet") or {}).get("ipAddresses") or ():
                yield from given.get("fixedAddresses") or ()

    return frozenset(
        (str(cp.get("cpdId")), _canonical(str(address)))
        for link in ext_virtual_links
        for cp in link.get("extCps") or ()
        for config in (cp.get("cpConfig") or {}).values()
        for address in addresses(config or {})
    )


def _canonical(address: str) -> str:
    """Return an address in canonical form, as VIMs report it: an IPv6 address can be written in many ways."""
    try:
        return str(ip_address(address))
    except ValueError:
        return address


def _protocol(port: PortFacts, fixed: frozenset[tuple[str, str]]) -> tuple[CpProtocolInfo, ...]:
    """``fixed``: the result of `_fixed_addresses`; the VIM has assigned every other address."""
    addresses = tuple(
        IpAddresses(
            type="IPV6" if ":" in address else "IPV4",
            addresses=(address,),
            is_dynamic=(port.name, _canonical(address)) not in fixed,
            subnet_id=port.subnet_ids[index] if index < len(port.subnet_ids) else None,
        )
        for index, address in enumerate(port.addresses)
    )
    return (CpProtocolInfo(ip_over_ethernet=IpOverEthernetAddressInfo(mac_address=port.mac, ip_addresses=addresses)),)


def with_link_ports(resources: StackResources, ext_virtual_links: Sequence[Mapping[str, Any]]) -> StackResources:
    """Name the ports that were made before the VNF by the connection points for which a request gives them."""
    cp_by_port = {port_id: cpd_id for port_id, (_, cpd_id) in _given_ports(ext_virtual_links).items()}
    if not cp_by_port:
        return resources

    def named(server: ServerFacts) -> ServerFacts:
        ports = tuple(
            port.model_copy(update={"name": port.name or cp_by_port.get(port.resource_id, "")}) for port in server.ports
        )
        return server.model_copy(update={"ports": ports})

    return resources.model_copy(update={"servers": tuple(named(server) for server in resources.servers)})


def _given_ports(ext_virtual_links: Sequence[Mapping[str, Any]]) -> Mapping[str, tuple[str, str]]:
    """Return the id of the link port and its cpdId by the id of the port (SOL003 4.4.1.11 and 4.4.1.10a)."""
    found: dict[str, tuple[str, str]] = {}
    for link in ext_virtual_links:
        port_by_id = {port["id"]: port["resourceHandle"]["resourceId"] for port in link.get("extLinkPorts") or ()}
        for cp in link.get("extCps") or ():
            for config in (cp.get("cpConfig") or {}).values():
                link_port_id = (config or {}).get("linkPortId")
                if link_port_id in port_by_id:
                    found[str(port_by_id[link_port_id])] = (str(link_port_id), str(cp["cpdId"]))
    return found


def _own_ports(server: ServerFacts) -> Sequence[PortFacts]:
    # Without the floating IPs, which are among the ports in the facts, and without ports of no connection point: SOL003
    # has no place for them.
    return [port for port in server.ports if port.resource_type == PORT and port.name]


def _cp_id(server: ServerFacts, port: PortFacts) -> str:
    # Unique among machines of one VDU, and a new id for a port that was created again.
    return f"{port.name}-{derived_id(server.vnfc_id, port.resource_id)}"


def index_of(server: ServerFacts) -> int | None:
    """Return the number in ``<vdu>-<index>``, the names by which Tacker's user data classes distinguish machines."""
    # The server itself has this name in the top template, or its group has it.
    for name in (server.name, server.group or ""):
        vdu_id, _, number = name.rpartition("-")
        if vdu_id == server.vdu_id and number.isdigit():
            return int(number)
    return None


def part_of(server: ServerFacts) -> str:
    """Return the name of the resource of the top stack that is or holds the server."""
    return server.group or server.name


def _parameters(server: ServerFacts, volumes: Sequence[StorageFacts], nfv: Mapping[str, Any]) -> dict[str, Any]:
    """Return flavor, zone and images that the stack's parameters give a machine and its volumes, named as by Tacker."""
    index = index_of(server)
    entries = nfv.get("VDU")
    found: dict[str, Any] = {}
    for name in (server.vdu_id, *(volume.name for volume in volumes)):
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
    fixed: frozenset[tuple[str, str]],
) -> VnfcResourceInfo:
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
            VnfcCpInfo(id=_cp_id(server, port), cpd_id=port.name, cp_protocol_info=_protocol(port, fixed))
            for port in _own_ports(server)
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
) -> InstantiatedVnfInfo:
    """Return instantiatedVnfInfo of a VM-based VNF (SOL003 5.5.2.2).

    ``external_cps``: descriptor of the external CP by internal CP name; ``ext_managed_links``: extManagedVirtualLinks
    of request and grant; ``node_names``: Kubernetes node by VNFC id.
    """
    volumes_by_server: dict[str, list[StorageFacts]] = {}
    for volume in resources.volumes:
        if volume.server_id is not None:
            volumes_by_server.setdefault(volume.server_id, []).append(volume)
    fixed = _fixed_addresses(ext_virtual_links)
    vnfcs = tuple(
        _vnfc(
            server,
            vnfd_id,
            vim_key,
            volumes_by_server.get(server.server_id, ()),
            resources.nfv,
            node_names.get(server.vnfc_id),
            fixed,
        )
        for server in resources.servers
    )
    ext_cps, ext_links = _external(resources, external_cps, ext_virtual_links, fixed, vnfd_id, vim_key)
    return InstantiatedVnfInfo(
        flavour_id=flavour_id,
        scale_status=tuple(scale_status) or None,
        max_scale_levels=tuple(max_scale_levels) or None,
        ext_cp_info=ext_cps,
        ext_virtual_link_info=ext_links or None,
        ext_managed_virtual_link_info=tuple(_managed(link, vim_key) for link in ext_managed_links) or None,
        vnfc_resource_info=vnfcs,
        vnf_virtual_link_resource_info=tuple(
            VnfVirtualLinkResourceInfo(
                id=network.resource_id,
                vnf_virtual_link_desc_id=network.name,
                vnfd_id=vnfd_id,
                network_resource=handle(network.resource_id, vim_key, NETWORK),
            )
            for network in resources.networks
        )
        or None,
        virtual_storage_resource_info=tuple(
            VirtualStorageResourceInfo(
                id=volume.resource_id,
                virtual_storage_desc_id=volume.name,
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


def _managed(link: Mapping[str, Any], vim_key: str) -> dict[str, Any]:
    """Return the ExtManagedVirtualLinkInfo (SOL003 5.5.3.3) of an ExtManagedVirtualLinkData."""
    resource = {"vimConnectionId": link.get("vimConnectionId") or vim_key, "resourceId": link["resourceId"]}
    return {**{name: link[name] for name in ("id", "vnfVirtualLinkDescId")}, "networkResource": resource}


def _external(
    resources: StackResources,
    external_cps: Mapping[str, str],
    ext_virtual_links: Sequence[Mapping[str, Any]],
    fixed: frozenset[tuple[str, str]],
    vnfd_id: str,
    vim_key: str,
) -> tuple[tuple[VnfExtCpInfo, ...], tuple[ExtVirtualLinkInfo, ...]]:
    """Return the external CPs and links: ports whose CP the VNFD exposes, or that a request's extCps name."""
    # The ids of SOL003 that no VIM knows are derived from the VIM's ids: every report of a stack leads to the same ids.
    cps: list[VnfExtCpInfo] = []
    ports_by_link: dict[str, list[ExtLinkPortInfo]] = {}
    config_by_cp: dict[str, tuple[str, str]] = {}
    given = _given_ports(ext_virtual_links)
    for link in ext_virtual_links:
        for cp in link.get("extCps", ()):
            config_id = next(iter(cp.get("cpConfig") or {}), "")
            config_by_cp[cp.get("cpdId", "")] = (str(link["id"]), config_id)
    for server in resources.servers:
        for port in _own_ports(server):
            link_id, config_id = config_by_cp.get(port.name, ("", ""))
            # A request may connect a port that the VNFD does not expose.
            if port.name not in external_cps and not link_id:
                continue
            cp_id = derived_id("ext-cp", server.vnfc_id, port.resource_id)
            port_id, _ = given.get(port.resource_id) or (derived_id("ext-link-port", port.resource_id), "")
            cps.append(
                VnfExtCpInfo(
                    id=cp_id,
                    cpd_id=external_cps.get(port.name, port.name),
                    cp_config_id=config_id or port.name,
                    vnfd_id=vnfd_id,
                    cp_protocol_info=_protocol(port, fixed),
                    ext_link_port_id=port_id if link_id else None,
                    associated_vnfc_cp_id=_cp_id(server, port),
                )
            )
            if link_id:
                ports_by_link.setdefault(link_id, []).append(
                    ExtLinkPortInfo(
                        id=port_id, resource_handle=handle(port.resource_id, vim_key, PORT), cp_instance_id=cp_id
                    )
                )
    links = tuple(
        ExtVirtualLinkInfo(
            id=str(link["id"]),
            resource_handle=handle(str(link["resourceId"]), vim_key, NETWORK),
            ext_link_ports=tuple(ports_by_link.get(str(link["id"]), ())) or None,
            current_vnf_ext_cp_data=tuple(dict(cp) for cp in link.get("extCps", ())),
        )
        for link in ext_virtual_links
    )
    return tuple(cps), links


def changes_of_stack(resources: StackResources, *, vnfd_id: str, vim_key: str, change: ChangeType) -> ResourceChanges:
    """Return every server, network and volume of the stack as affected."""
    return ResourceChanges(
        affected_vnfcs=tuple(
            AffectedVnfc(
                id=server.vnfc_id,
                vdu_id=server.vdu_id,
                vnfd_id=vnfd_id,
                change_type=change,
                compute_resource=handle(server.server_id, vim_key, SERVER),
                zone_id=server.zone,
                affected_vnfc_cp_ids=tuple(_cp_id(server, port) for port in _own_ports(server)) or None,
            )
            for server in resources.servers
        ),
        affected_virtual_links=tuple(
            AffectedVirtualLink(
                id=network.resource_id,
                vnf_virtual_link_desc_id=network.name,
                vnfd_id=vnfd_id,
                change_type=change,
                network_resource=handle(network.resource_id, vim_key, NETWORK),
            )
            for network in resources.networks
        ),
        affected_virtual_storages=tuple(
            AffectedVirtualStorage(
                id=volume.resource_id,
                virtual_storage_desc_id=volume.name,
                vnfd_id=vnfd_id,
                change_type=change,
                storage_resource=handle(volume.resource_id, vim_key, VOLUME),
            )
            for volume in resources.volumes
        ),
    )


def changes_between(before: StackResources, after: StackResources, *, vnfd_id: str, vim_key: str) -> ResourceChanges:
    """Return what an operation has removed, added and changed; a machine that was created again is a new VNFC."""
    old = {server.vnfc_id: server for server in before.servers}
    changed = only_servers(after, lambda one: one.vnfc_id in old and _differs(old[one.vnfc_id], one))
    kinds: tuple[tuple[StackResources, ChangeType], ...] = (
        (_without(before, after), "REMOVED"),
        (_without(after, before), "ADDED"),
        (changed, "MODIFIED"),
    )
    parts = [changes_of_stack(part, vnfd_id=vnfd_id, vim_key=vim_key, change=change) for part, change in kinds]
    return ResourceChanges(
        affected_vnfcs=tuple(one for part in parts for one in part.affected_vnfcs),
        affected_virtual_links=tuple(one for part in parts for one in part.affected_virtual_links),
        affected_virtual_storages=tuple(one for part in parts for one in part.affected_virtual_storages),
    )


def only_servers(resources: StackResources, chosen: Callable[[ServerFacts], bool]) -> StackResources:
    """Return the stack with the chosen servers, and without networks and volumes."""
    servers = tuple(server for server in resources.servers if chosen(server))
    return resources.model_copy(update={"servers": servers, "networks": (), "volumes": ()})


def _without(one: StackResources, other: StackResources) -> StackResources:
    servers, volumes = {each.vnfc_id for each in other.servers}, {each.resource_id for each in other.volumes}
    return one.model_copy(
        update={
            "servers": tuple(each for each in one.servers if each.vnfc_id not in servers),
            "networks": tuple(each for each in one.networks if each not in other.networks),
            "volumes": tuple(each for each in one.volumes if each.resource_id not in volumes),
        }
    )


def _differs(before: ServerFacts, after: ServerFacts) -> bool:
    # Not the host: a live migration is no change by the operation.
    return (before.ports, before.flavor, before.image_id) != (after.ports, after.flavor, after.image_id)


def ext_link_ports(before: InstantiatedVnfInfo, after: InstantiatedVnfInfo) -> tuple[AffectedExtLinkPort, ...]:
    """Return the added and removed ports of external links."""
    old, new = _link_ports(before), _link_ports(after)
    found: list[tuple[ChangeType, ExtLinkPortInfo]] = [("REMOVED", old[key]) for key in old if key not in new]
    found += [("ADDED", new[key]) for key in new if key not in old]
    return tuple(
        AffectedExtLinkPort(
            id=port.id,
            change_type=change,
            ext_cp_instance_id=port.cp_instance_id or "",
            resource_handle=port.resource_handle,
        )
        for change, port in found
    )


def _link_ports(info: InstantiatedVnfInfo) -> Mapping[str, ExtLinkPortInfo]:
    return {
        f"{link.id}/{port.id}": port for link in info.ext_virtual_link_info or () for port in link.ext_link_ports or ()
    }
