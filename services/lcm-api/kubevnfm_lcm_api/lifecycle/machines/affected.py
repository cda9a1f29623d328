"""The difference between two reports of a stack: what an operation has changed, as SOL003 shows it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
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
    ResourceHandle,
)

from kubevnfm_lcm_api.lifecycle.core.resource_handle import handle
from kubevnfm_lcm_api.lifecycle.machines.inventory import NETWORK, SERVER, VOLUME, cp_id, own_ports


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


def with_link_ports(
    changes: ResourceChanges, before: InstantiatedVnfInfo | None, after: InstantiatedVnfInfo | None, *, vnfd_id: str
) -> ResourceChanges:
    """Return the changes with the ports that came and went on internal and external links. None: the VNF has none."""
    links = (*changes.affected_virtual_links, *_affected_by_ports(_internal(before), _internal(after), vnfd_id))
    return changes.model_copy(
        update={"affected_virtual_links": links, "affected_ext_link_ports": _ext_link_ports(before, after)}
    )


@dataclass(frozen=True)
class _Link:
    """An internal link with the ids of its ports, made by the stack or managed externally."""

    descriptor: str
    network: ResourceHandle
    ports: Collection[str]


def _internal(info: InstantiatedVnfInfo | None) -> Mapping[str, _Link]:
    if info is None:
        return {}
    own = {
        one.id: _Link(
            one.vnf_virtual_link_desc_id, one.network_resource, [port.id for port in one.vnf_link_ports or ()]
        )
        for one in info.vnf_virtual_link_resource_info or ()
    }
    managed = {
        str(one["id"]): _Link(
            str(one["vnfVirtualLinkDescId"]),
            ResourceHandle.model_validate(one["networkResource"]),
            [str(port["id"]) for port in one.get("vnfLinkPorts") or ()],
        )
        for one in info.ext_managed_virtual_link_info or ()
    }
    return {**own, **managed}


def _affected_by_ports(
    before: Mapping[str, _Link], after: Mapping[str, _Link], vnfd_id: str
) -> Iterator[AffectedVirtualLink]:
    """Yield one entry for each link and kind of change (SOL003 5.5.2.13, note 3)."""
    for link_id in {**before, **after}:
        old, new = before.get(link_id), after.get(link_id)
        # A managed link keeps its id when the request gives it another network: all of its ports are other ones then.
        kinds: tuple[tuple[Literal["LINK_PORT_REMOVED", "LINK_PORT_ADDED"], _Link | None, _Link | None], ...] = (
            ("LINK_PORT_REMOVED", old, new),
            ("LINK_PORT_ADDED", new, old),
        )
        for kind, link, other in kinds:
            ports = [] if link is None else [one for one in link.ports if other is None or one not in other.ports]
            if link is not None and ports:
                yield AffectedVirtualLink(
                    id=link_id,
                    vnf_virtual_link_desc_id=link.descriptor,
                    vnfd_id=vnfd_id,
                    change_type=kind,
                    network_resource=link.network,
                    vnf_link_port_ids=tuple(ports),
                )


def _ext_link_ports(
    before: InstantiatedVnfInfo | None, after: InstantiatedVnfInfo | None
) -> tuple[AffectedExtLinkPort, ...]:
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


def _link_ports(info: InstantiatedVnfInfo | None) -> Mapping[str, ExtLinkPortInfo]:
    links = (info.ext_virtual_link_info if info is not None else None) or ()
    return {f"{link.id}/{port.id}": port for link in links for port in link.ext_link_ports or ()}
