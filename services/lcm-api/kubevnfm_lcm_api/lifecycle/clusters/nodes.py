"""Finds the machines of a cluster, and their addresses, among the resources of its stack (sequences.md chapter 3).

Requests never carry addresses. They name groups (or VDUs) and connection points, which are resources of the stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from kubevnfm_cluster.parameters import ClusterParameters, MasterGroup, NodeGroup, Role
from kubevnfm_cluster.registry_vnf import REGISTRY_VNF
from kubevnfm_cluster.rules import refuse_shared_addresses
from kubevnfm_cluster.storage import StorageServer
from kubevnfm_events.mgmt import ManagedNode
from kubevnfm_events.stacks import PortFacts, ServerFacts, StackResources
from kubevnfm_kit.errors import VnfmError

from kubevnfm_lcm_api.lifecycle.machines.addresses import (
    FLOATING_IP,
    NodeNotFound,
    _address,
    _beside,
    _label,
    _list,
    _named,
)

_REGISTRY: Final = f"{REGISTRY_VNF}."


@dataclass(frozen=True)
class FoundNodes:
    """The machines of a VNF and, of a cluster, the addresses of its API."""

    nodes: tuple[ManagedNode, ...]
    """Masters first, each group in the order in which its machines were created; the storage server last."""
    cluster_address: str | None = None
    cluster_public_address: str | None = None
    volumes: Mapping[str, str] = field(default_factory=dict)
    """Cinder id by resource name of the volumes of the storage server."""
    nfs_addresses: Mapping[str, str] = field(default_factory=dict)
    """The address of each port that ``nfs_server_cp`` names."""


def find_nodes(
    resources: StackResources, cluster: ClusterParameters | None, zones: Mapping[str, Sequence[str]] = {}
) -> FoundNodes:
    """Return the nodes of a cluster; of a VNF that is not a cluster (None) every server, as ``other``.

    ``zones``: the zones that were granted, by VDU.
    Raises: NodeNotFound naming the field and the names that the stack has; SharedAddress.
    """
    resources = resources.model_copy(
        update={"servers": tuple(s.model_copy(update={"zone": _zone(s, zones)}) for s in resources.servers)}
    )
    if cluster is None:
        return FoundNodes(nodes=tuple(_other(server) for server in _in_order(resources.servers)))
    master = cluster.master_node
    masters = _group(resources, master, "master")
    workers = _group(resources, cluster.worker_node, "worker")
    nodes = [(server, _node(server, resources, master, "master")) for server in masters]
    nodes += [(server, _node(server, resources, cluster.worker_node, "worker")) for server in workers]
    volumes: dict[str, str] = {}
    if cluster.storage_server is not None:
        volumes = _volumes(resources, cluster.storage_server)
        nodes.append(_storage(resources, cluster.storage_server, volumes))
    refuse_shared_addresses((f"{node.role} {_label(server)}", node.ssh_address) for server, node in nodes)
    refuse_shared_addresses((f"{node.role} {_label(server)}", node.nic_address) for server, node in nodes)
    return FoundNodes(
        nodes=tuple(node for _, node in nodes),
        cluster_address=_cluster_address(masters, resources, master),
        cluster_public_address=_public_address(masters, resources, master),
        volumes=volumes,
        nfs_addresses=_nfs_addresses(resources, cluster),
    )


def has_nodes(resources: StackResources, cluster: ClusterParameters) -> bool:
    """Return whether the stack has the cluster's nodes: an operation that failed may have left some of them, or none."""
    try:
        find_nodes(resources, cluster)
    except VnfmError:
        return False
    return True


def storage_server(resources: StackResources, storage: StorageServer) -> ServerFacts:
    """Return the machine that has the volumes (sequences.md 3.3). Raises NodeNotFound."""
    wanted = {volume.volume_resource_id for volume in storage.cinder_volume_setup_params}
    owners = {volume.server_id for volume in resources.volumes if volume.name in wanted}
    found = [server for server in resources.servers if server.server_id in owners]
    if not found:
        # A heal that failed has detached them already.
        ports = {storage.ssh_cp_name, storage.nic_cp_name}
        found = [server for server in resources.servers if ports & {port.name for port in server.ports}]
    if len(found) != 1:
        raise NodeNotFound(
            "storage_server.cinder_volume_setup_params",
            f"{len(found)} servers of the stack have the volumes {', '.join(sorted(wanted))}: one expected",
        )
    return found[0]


def _volumes(resources: StackResources, storage: StorageServer) -> dict[str, str]:
    ids = {volume.name: volume.resource_id for volume in resources.volumes}
    found: dict[str, str] = {}
    for index, volume in enumerate(storage.cinder_volume_setup_params):
        name = volume.volume_resource_id
        if name not in ids:
            raise NodeNotFound(
                f"storage_server.cinder_volume_setup_params.{index}.volume_resource_id",
                f"the stack has no volume {name}; volumes: {_list(sorted(ids))}",
            )
        found[name] = ids[name]
    return found


def _storage(
    resources: StackResources, storage: StorageServer, volumes: Mapping[str, str]
) -> tuple[ServerFacts, ManagedNode]:
    server = storage_server(resources, storage)
    elsewhere = [
        one.name
        for one in resources.volumes
        if one.resource_id in volumes.values() and one.server_id not in (None, server.server_id)
    ]
    if elsewhere:
        raise NodeNotFound(
            "storage_server.cinder_volume_setup_params", f"{elsewhere[0]} is not attached to {_label(server)}"
        )
    ssh, ssh_address = _port(server, resources, storage.ssh_cp_name, "storage_server.ssh_cp_name")
    name = storage.nic_cp_name or (ssh.name if ssh.resource_type != FLOATING_IP else None)
    if name is None:
        return server, _other(server).model_copy(update={"role": "storage", "ssh_address": ssh_address})
    nic, nic_address = _port(server, resources, name, "storage_server.nic_cp_name")
    return server, _managed(server, "storage", ssh_address, nic_address, nic)


def _nfs_addresses(resources: StackResources, cluster: ClusterParameters) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for index, volume in enumerate(cluster.pv_registration_params):
        field = f"pv_registration_params.{index}.nfs_server_cp"
        port = _named(resources.ports, volume.nfs_server_cp, field=field, where="in the top stack")
        found[volume.nfs_server_cp] = _address(port, field=field, of="the storage server")
    return found


def find_registry(resources: StackResources, ssh_cp_name: str) -> ManagedNode:
    """Return the machine of a private registry; its own address is that of a port. Raises NodeNotFound."""
    field = "ssh_cp_name"
    try:
        (server,) = resources.servers
    except ValueError as error:
        raise NodeNotFound(
            field, f"the stack has {len(resources.servers)} servers: one expected", within=_REGISTRY
        ) from error
    try:
        _, address = _port(server, resources, ssh_cp_name, field)
    except NodeNotFound as error:
        raise NodeNotFound(field, error.reason, within=_REGISTRY) from error
    return _other(server).model_copy(update={"ssh_address": address})


def _zone(server: ServerFacts, zones: Mapping[str, Sequence[str]]) -> str | None:
    """Return the machine's zone: the one that the cloud reports, unless others were granted."""
    granted = zones.get(server.vdu_id, ())
    # A grant of several zones does not name the zone of each machine; the cloud reports it.
    return server.zone if not granted or server.zone in granted else granted[0]


def _group(resources: StackResources, nodes: NodeGroup, role: Role) -> Sequence[ServerFacts]:
    """Return the servers of a role, in order. Raises NodeNotFound with the names that would fit."""
    choice, servers = nodes.choice(role), resources.servers
    found = [server for server in servers if choice.includes(server)]
    if found:
        return _in_order(found)
    if choice.by == "aspect_id":
        what, plural, names = f"servers in a group {choice.value}", "groups", {s.group for s in servers if s.group}
    elif choice.by == "vdu_id":
        what, plural, names = f"server of VDU {choice.value}", "VDUs", {s.vdu_id for s in servers}
    else:
        what, plural = f"server whose name begins with {choice.value}", "servers"
        names = {s.name for s in servers}
    field = f"{role}_node" if choice.by == "name" else f"{role}_node.{choice.by}"
    raise NodeNotFound(field, f"the stack has no {what}; {plural}: {_list(sorted(names))}")


def _in_order(servers: Iterable[ServerFacts]) -> Sequence[ServerFacts]:
    """Return the oldest first. The id decides between machines of the same age, so the order is always the same."""
    # A repeated command must choose the same first master.
    return sorted(
        servers, key=lambda server: (server.created_at.isoformat() if server.created_at else "", server.vnfc_id)
    )


def _node(server: ServerFacts, resources: StackResources, group: NodeGroup, role: Role) -> ManagedNode:
    _, ssh_address = _port(server, resources, group.ssh_cp_name, f"{role}_node.ssh_cp_name")
    field = f"{role}_node.nic_cp_name"
    nic = _beside(server, resources, group.cluster_port, field=field)
    # Nodes of the cluster talk over their own network; a floating IP exists at the router only.
    if nic.resource_type == FLOATING_IP:
        raise NodeNotFound(field, f"{nic.name} is a floating IP; the port of the cluster's own network expected")
    return _managed(server, role, ssh_address, _address(nic, field=field, of=_label(server)), nic)


def _other(server: ServerFacts) -> ManagedNode:
    port = next((port for port in server.ports if port.addresses), None)
    if port is None:
        raise NodeNotFound("", f"no port of {_label(server)} has an address")
    return _managed(server, "other", port.addresses[0], port.addresses[0], port)


def _port(server: ServerFacts, resources: StackResources, name: str, field: str) -> tuple[PortFacts, str]:
    """Return a port of the server or a floating IP, and its address."""
    port = _beside(server, resources, name, field=field)
    return port, _address(port, field=field, of=_label(server))


def _managed(
    server: ServerFacts, role: Role | Literal["storage", "other"], ssh_address: str, nic_address: str, nic: PortFacts
) -> ManagedNode:
    return ManagedNode(
        vnfc_id=server.vnfc_id,
        role=role,
        ssh_address=ssh_address,
        nic_address=nic_address,
        subnet_cidr=nic.subnet_cidrs[0] if nic.subnet_cidrs else None,
        host=server.host,
        zone=server.zone,
        server_id=server.server_id,
    )


def _cluster_address(masters: Sequence[ServerFacts], resources: StackResources, group: MasterGroup) -> str:
    """Return the API's address: the master's own port, or with several masters the VIP in the top stack (3.1)."""
    field = "master_node.cluster_cp_name"
    name = group.cluster_cp_name
    if len(masters) == 1:
        port = _beside(masters[0], resources, name, field=field)
    else:
        port = _named(resources.ports, name, field=field, where="in the top stack, where the VIP of several masters is")
    return _address(port, field=field, of="the cluster")


def _public_address(masters: Sequence[ServerFacts], resources: StackResources, group: MasterGroup) -> str | None:
    """Return the API's floating address: that of ``cluster_fip_name``, otherwise that of the first master's SSH."""
    if group.cluster_fip_name is not None:
        field = "master_node.cluster_fip_name"
        found = _named(resources.ports, group.cluster_fip_name, field=field, where="in the top stack")
        if found.floating_address is None:
            raise NodeNotFound(field, f"{found.name} has no floating address")
        return found.floating_address
    ssh = _beside(masters[0], resources, group.ssh_cp_name, field="master_node.ssh_cp_name")
    return ssh.floating_address if ssh.resource_type == FLOATING_IP else None
