"""The difference between two reports of a stack: what an operation has changed, as SOL003 shows it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from kubevnfm_events.stacks import ServerFacts, StackResources
from kubevnfm_sol.resources import (
    AffectedExtLinkPort,
    AffectedVirtualLink,
    AffectedVirtualStorage,
    AffectedVnfc,
    ChangeType,
    ExtLinkPortInfo,
    InstantiatedVnfInfo,
    ResourceChanges,
)

from kubevnfm_lcm_api.lifecycle.core.resource_handle import handle
from kubevnfm_lcm_api.lifecycle.machines.inventory import NETWORK, SERVER, VOLUME, cp_id, link_ports_on, own_ports


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
                affected_vnfc_cp_ids=tuple(cp_id(server, port) for port in own_ports(server)) or None,
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
                virtual_storage_desc_id=volume.storage_id,
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
        affected_virtual_links=(
            *(one for part in parts for one in part.affected_virtual_links),
            *_affected_link_ports(before, after, vnfd_id, vim_key),
        ),
        affected_virtual_storages=tuple(one for part in parts for one in part.affected_virtual_storages),
    )


def _affected_link_ports(
    before: StackResources, after: StackResources, vnfd_id: str, vim_key: str
) -> Iterator[AffectedVirtualLink]:
    """Yield the ports that came and went on the virtual links that stay."""
    for network in after.networks:
        if network not in before.networks:
            continue
        old, new = ([one.id for one in link_ports_on(stack, network.resource_id, vim_key)] for stack in (before, after))
        kinds: tuple[tuple[Literal["LINK_PORT_REMOVED", "LINK_PORT_ADDED"], list[str], list[str]], ...] = (
            ("LINK_PORT_REMOVED", old, new),
            ("LINK_PORT_ADDED", new, old),
        )
        for kind, ports, others in kinds:
            found = tuple(one for one in ports if one not in others)
            if found:
                yield AffectedVirtualLink(
                    id=network.resource_id,
                    vnf_virtual_link_desc_id=network.name,
                    vnfd_id=vnfd_id,
                    change_type=kind,
                    network_resource=handle(network.resource_id, vim_key, NETWORK),
                    vnf_link_port_ids=found,
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
