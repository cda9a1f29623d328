"""Finds the machines of a cluster, and their addresses, among the resources of its stack (sequences.md chapter 3).

Requests never carry addresses: they name groups (or VDUs) and connection points, which are resources of the stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from kubevnfm_events.infra import PortFacts, ServerFacts, StackResources
from kubevnfm_events.mgmt import ManagedNode
from kubevnfm_kit.errors import VnfmError

CLUSTER: Final = "k8s_cluster_installation_param"
FLOATING_IP: Final = "OS::Neutron::FloatingIP"

Role = Literal["master", "worker"]


class NodeNotFound(VnfmError):
    """A name in the request points to nothing in the stack: group, VDU, connection point, or its address."""

    code = "node-not-found"
    title = "Machine not found in the stack"
    status = 422

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{CLUSTER}.{field}: {reason}")
        self.field, self.reason = field, reason


class SharedAddress(VnfmError):
    """Two nodes would be reached at one address: two names mean the same machine, or a network has it twice."""

    code = "shared-address"
    title = "Two machines share an address"
    status = 422

    def __init__(self, address: str, nodes: Sequence[str]) -> None:
        super().__init__(f"{address} is the address of {' and '.join(nodes)}")
        self.address, self.nodes = address, tuple(nodes)


@dataclass(frozen=True)
class FoundNodes:
    """The machines of a VNF and, of a cluster, the addresses of its API."""

    nodes: tuple[ManagedNode, ...]
    """Masters first, each group in the order in which its machines were made."""
    cluster_address: str | None = None
    cluster_public_address: str | None = None


def find_nodes(
    resources: StackResources, parameters: Mapping[str, Any], zones: Mapping[str, Sequence[str]] = {}
) -> FoundNodes:
    """Return the nodes that additionalParams point to; without cluster parameters every server, as ``other``.

    ``zones``: those that were granted, by VDU.
    Raises: NodeNotFound naming the field and what the stack has instead; SharedAddress.
    """
    resources = resources.model_copy(
        update={"servers": tuple(s.model_copy(update={"zone": _zone(s, zones)}) for s in resources.servers)}
    )
    cluster = parameters.get(CLUSTER)
    if not isinstance(cluster, Mapping):
        return FoundNodes(nodes=tuple(_other(server) for server in _in_order(resources.servers)))
    masters = _group(resources, cluster, "master")
    workers = _group(resources, cluster, "worker")
    nodes = (
        *(_node(server, resources, cluster, "master") for server in masters),
        *(_node(server, resources, cluster, "worker") for server in workers),
    )
    _refuse_shared(nodes, {server.vnfc_id: _label(server) for server in resources.servers})
    return FoundNodes(
        nodes=nodes,
        cluster_address=_cluster_address(masters, resources, cluster),
        cluster_public_address=_public_address(masters, resources, cluster),
    )


def _zone(server: ServerFacts, zones: Mapping[str, Sequence[str]]) -> str | None:
    """Return the zone granted to the machine: of several that where the cloud says it is; without a grant that, too."""
    granted = zones.get(server.vdu_id, ())
    return server.zone if not granted or server.zone in granted else granted[0]


def _group(resources: StackResources, cluster: Mapping[str, Any], role: Role) -> Sequence[ServerFacts]:
    """Return the servers of a role: by ``aspect_id`` (v1), by ``vdu_id`` (v2), else by their names (TOSCA)."""
    section = f"{role}_node"
    given: Mapping[str, Any] = cluster.get(section) or {}
    aspect_id, vdu_id = given.get("aspect_id"), given.get("vdu_id")
    if aspect_id:
        found = [server for server in resources.servers if server.group == aspect_id]
        groups = sorted({server.group for server in resources.servers if server.group is not None})
        if not found:
            raise NodeNotFound(
                f"{section}.aspect_id", f"the stack has no servers in a group {aspect_id}; groups: {_list(groups)}"
            )
    elif vdu_id:
        found = [server for server in resources.servers if server.vdu_id == vdu_id]
        if not found:
            vdus = sorted({server.vdu_id for server in resources.servers})
            raise NodeNotFound(f"{section}.vdu_id", f"the stack has no server of VDU {vdu_id}; VDUs: {_list(vdus)}")
    else:
        found = [server for server in resources.servers if server.name.startswith(role)]
        if not found:
            names = sorted({server.name for server in resources.servers})
            raise NodeNotFound(
                section, f"the stack has no server whose name begins with {role}; servers: {_list(names)}"
            )
    return _in_order(found)


def _in_order(servers: Iterable[ServerFacts]) -> Sequence[ServerFacts]:
    """Oldest first; the id decides between machines of one moment, so the order is the same every time."""
    return sorted(
        servers, key=lambda server: (server.created_at.isoformat() if server.created_at else "", server.vnfc_id)
    )


def _node(server: ServerFacts, resources: StackResources, cluster: Mapping[str, Any], role: Role) -> ManagedNode:
    section = f"{role}_node"
    given: Mapping[str, Any] = cluster.get(section) or {}
    ssh_name = given.get("ssh_cp_name")
    ssh = _beside(server, resources, ssh_name, field=f"{section}.ssh_cp_name")
    nic_field = f"{section}.nic_cp_name"
    nic = _beside(server, resources, given.get("nic_cp_name") or ssh_name, field=nic_field)
    if nic.resource_type == FLOATING_IP:
        raise NodeNotFound(nic_field, f"{nic.name} is a floating IP; the port of the cluster's own network expected")
    return ManagedNode(
        vnfc_id=server.vnfc_id,
        role=role,
        ssh_address=_address(ssh, field=f"{section}.ssh_cp_name", of=_label(server)),
        nic_address=_address(nic, field=nic_field, of=_label(server)),
        subnet_cidr=nic.subnet_cidrs[0] if nic.subnet_cidrs else None,
        host=server.host,
        zone=server.zone,
        server_id=server.server_id,
    )


def _other(server: ServerFacts) -> ManagedNode:
    port = next((port for port in server.ports if port.addresses), None)
    if port is None:
        raise NodeNotFound("", f"no port of {_label(server)} has an address")
    return ManagedNode(
        vnfc_id=server.vnfc_id,
        role="other",
        ssh_address=port.addresses[0],
        nic_address=port.addresses[0],
        subnet_cidr=port.subnet_cidrs[0] if port.subnet_cidrs else None,
        host=server.host,
        zone=server.zone,
        server_id=server.server_id,
    )


def _beside(server: ServerFacts, resources: StackResources, name: Any, *, field: str) -> PortFacts:
    """Return a port or floating IP of the server's own stack; of the top stack only if the server is in that."""
    here = server.ports if server.group is not None else (*server.ports, *resources.ports)
    return _named(here, name, field=field, where=f"beside {_label(server)}")


def _named(ports: Iterable[PortFacts], name: Any, *, field: str, where: str) -> PortFacts:
    known = list(ports)
    for port in known:
        if port.name == name:
            return port
    names = sorted({port.name for port in known})
    raise NodeNotFound(field, f"there is no connection point {name} {where}; there are: {_list(names)}")


def _address(port: PortFacts, *, field: str, of: str) -> str:
    if port.resource_type == FLOATING_IP:
        if port.floating_address is None:
            raise NodeNotFound(field, f"floating IP {port.name} of {of} has no address")
        return port.floating_address
    if not port.addresses:
        raise NodeNotFound(field, f"port {port.name} of {of} has no address")
    return port.addresses[0]


def _cluster_address(masters: Sequence[ServerFacts], resources: StackResources, cluster: Mapping[str, Any]) -> str:
    """Return the API's address: the master's own port, or with several masters the VIP in the top stack (3.1)."""
    field = "master_node.cluster_cp_name"
    name = (cluster.get("master_node") or {}).get("cluster_cp_name")
    if len(masters) == 1:
        port = _beside(masters[0], resources, name, field=field)
    else:
        port = _named(resources.ports, name, field=field, where="in the top stack, where the VIP of several masters is")
    return _address(port, field=field, of="the cluster")


def _public_address(
    masters: Sequence[ServerFacts], resources: StackResources, cluster: Mapping[str, Any]
) -> str | None:
    """Return the API's floating address: of ``cluster_fip_name``, else the one that the first master has SSH on."""
    given: Mapping[str, Any] = cluster.get("master_node") or {}
    if given.get("cluster_fip_name"):
        field = "master_node.cluster_fip_name"
        found = _named(resources.ports, given["cluster_fip_name"], field=field, where="in the top stack")
        if found.floating_address is None:
            raise NodeNotFound(field, f"{found.name} has no floating address")
        return found.floating_address
    ssh = _beside(masters[0], resources, given.get("ssh_cp_name"), field="master_node.ssh_cp_name")
    return ssh.floating_address if ssh.resource_type == FLOATING_IP else None


def _refuse_shared(nodes: Sequence[ManagedNode], labels: Mapping[str, str]) -> None:
    for addresses in ([node.ssh_address for node in nodes], [node.nic_address for node in nodes]):
        for address in addresses:
            users = [node for node, own in zip(nodes, addresses, strict=True) if own == address]
            if len(users) > 1:
                raise SharedAddress(address, [f"{node.role} {labels[node.vnfc_id]}" for node in users])


def _label(server: ServerFacts) -> str:
    """What a person knows the machine by."""
    return server.server_name or (f"{server.group}/{server.member}/{server.name}" if server.group else server.name)


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
