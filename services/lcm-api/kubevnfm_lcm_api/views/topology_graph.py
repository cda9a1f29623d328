"""The graph of networks and what is on them. Pure.

A VNF has machines and pods; a machine or pod has connection points, with its addresses; a connection point is on a network or a virtual
link; VNFs, networks and links are on a VIM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

from kubevnfm_clients.multicloud.inventory import InventoryResource
from kubevnfm_clients.multicloud.links import VirtualLink
from kubevnfm_clients.multicloud.object_health import Health
from kubevnfm_events.inventory import NetworkAddresses
from kubevnfm_events.objects import NetworkAttachment
from kubevnfm_events.stacks import PortFacts, ServerFacts, StackResources

from kubevnfm_lcm_api.http.models import Shown
from kubevnfm_lcm_api.lifecycle.core.drift import drift_of
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.machines.addresses import FLOATING_IP
from kubevnfm_lcm_api.views.causes.wording import line
from kubevnfm_lcm_api.views.shared_health import link_health
from kubevnfm_lcm_api.views.tree.objects import pod_health
from kubevnfm_lcm_api.views.tree.standing import SeenVim

_CLUSTER_NETWORK: Final = "cluster network"
_LOST: Final = "the server does not exist, or is in state ERROR"


class TopologyNode(Shown):
    """A part of the graph."""

    id: str
    """An id within this graph: ``<kind>:<id of the resource>``."""
    kind: Literal["vim", "vnf", "network", "virtual-link", "machine", "pod", "connection-point"]
    name: str
    resourceId: str | None = None  # noqa: N815  # as it is on the wire
    """The id by which its owner knows it."""
    type: str | None = None
    """``ovn4nfv`` and so on, for a virtual link; ``kubernetes`` or ``openstack`` for a VIM; the kind of a pod's object."""
    role: str | None = None
    """The VDU of a machine or pod."""
    place: str | None = None
    """The host of a machine, the node of a pod."""
    addresses: list[str] | None = None
    floatingAddress: str | None = None  # noqa: N815  # as it is on the wire
    mac: str | None = None
    vnfInstanceId: str | None = None  # noqa: N815  # as it is on the wire
    health: Health = "ok"
    text: str | None = None
    """Why the health is not ``ok``."""
    href: str | None = None


class TopologyEdge(Shown):
    """A connection between two nodes."""

    source: str
    target: str
    kind: Literal["has", "connects", "on"]
    """``has``: VNF to machine or pod, and these to a connection point; ``connects``: that to a network or link; ``on``: to a VIM."""


class Graph:
    """A graph that grows up to a number of nodes; an edge is there only if both of its nodes are."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.nodes: dict[str, TopologyNode] = {}
        self._edges: dict[tuple[str, str], TopologyEdge] = {}
        self.is_truncated = False

    @property
    def is_full(self) -> bool:
        return len(self.nodes) >= self._most

    @property
    def edges(self) -> list[TopologyEdge]:
        return [each for each in self._edges.values() if each.source in self.nodes and each.target in self.nodes]

    def add(self, node: TopologyNode) -> None:
        """Add a node, unless it is there or the graph is full."""
        if node.id in self.nodes:
            return
        if self.is_full:
            self.is_truncated = True
        else:
            self.nodes[node.id] = node

    def connect(self, source: str, target: str, kind: Literal["has", "connects", "on"]) -> None:
        """Add an edge, unless one of its nodes can be in the graph no more."""
        if (source, target) not in self._edges and not (self.lacks(source) or self.lacks(target)):
            self._edges[source, target] = TopologyEdge(source=source, target=target, kind=kind)

    def lacks(self, node_id: str) -> bool:
        """Return whether the graph is full without this node."""
        return self.is_full and node_id not in self.nodes


def add_vim(graph: Graph, vim_id: str, seen: SeenVim, root: str) -> None:
    """Add a VIM."""
    graph.add(
        TopologyNode(
            id=f"vim:{vim_id}", kind="vim", name=seen.name, resourceId=vim_id, type=seen.type, health=seen.health,
            text=seen.text, href=f"{root}/kubevnfm/v1/vims/{vim_id}",
        )
    )  # fmt: skip


def add_links(graph: Graph, links: Iterable[VirtualLink], vim_id: str | None, root: str) -> None:
    """Add virtual links of a VIM."""
    for link in links:
        health, text = link_health(link)
        graph.add(
            TopologyNode(
                id=f"virtual-link:{link.id}", kind="virtual-link", name=link.name, resourceId=link.id, type=link.type,
                health=health, text=text, href=f"{root}/multicloud/v1/virtual-links/{link.id}",
            )
        )  # fmt: skip
        if vim_id is not None:
            graph.connect(f"virtual-link:{link.id}", f"vim:{vim_id}", "on")


def add_vnf(graph: Graph, record: InstanceRecord, pods: Sequence[InventoryResource], root: str, now: datetime) -> None:
    """Add a VNF with its machines and pods, their connection points and networks; ``pods``: those that the inventory has of it."""
    vnf = record.vnf
    me = f"vnf:{vnf.id}"
    href = f"{root}/kubevnfm/v1/instances/{vnf.id}/tree"
    drift = drift_of(vnf.metadata)
    trouble = None if drift is None else line(drift.reason)
    graph.add(
        TopologyNode(
            id=me, kind="vnf", name=vnf.vnf_instance_name or vnf.id, resourceId=vnf.id, vnfInstanceId=vnf.id,
            health="ok" if drift is None else "problem", text=trouble, href=href,
        )
    )  # fmt: skip
    for vim_id in record.facts.vim_ids:
        graph.connect(me, f"vim:{vim_id}", "on")
    stack = record.stack
    if stack is not None and stack.resources is not None:
        connection = vnf.vim_connection_info.get(stack.vim_key)
        _add_stack(graph, record, stack.resources, connection.vim_id if connection is not None else None)
    _add_attached(graph, record.internals.networks, root)
    for pod in pods:
        _add_pod(graph, record, pod, now)


def _add_stack(graph: Graph, record: InstanceRecord, resources: StackResources, vim_id: str | None) -> None:
    names = _network_names(record, resources)
    for network in resources.networks:
        _add_network(graph, vim_id, network.resource_id, network.name)
    drift = drift_of(record.vnf.metadata)
    for server in resources.servers:
        me = f"machine:{server.server_id}"
        is_lost = drift is not None and server.vnfc_id in drift.vnfc_ids
        graph.add(
            TopologyNode(
                id=me, kind="machine", name=server.server_name or server.name, resourceId=server.server_id,
                role=server.vdu_id, place=server.host, vnfInstanceId=record.vnf.id,
                health="problem" if is_lost else "ok", text=_LOST if is_lost else None,
            )
        )  # fmt: skip
        graph.connect(f"vnf:{record.vnf.id}", me, "has")
        for port in _ports(server):
            _add_point(graph, me, port, vim_id, names, record.vnf.id)
    for port in resources.ports:
        # Virtual addresses, which belong to no machine.
        if port.resource_type != FLOATING_IP and port.addresses:
            _add_point(graph, f"vnf:{record.vnf.id}", port, vim_id, names, record.vnf.id)


def _ports(server: ServerFacts) -> Iterator[PortFacts]:
    yield from (port for port in server.ports if port.resource_type != FLOATING_IP)


def _network_names(record: InstanceRecord, resources: StackResources) -> Mapping[str, str]:
    """Return the names of networks: those of the template, and the links of requests.

    A request may have the name of a network instead of its id; then the ports say which one that is.
    """
    info, found = record.vnf.instantiated_vnf_info, dict[str, str]()
    facts = (*resources.ports, *(port for server in resources.servers for port in server.ports))
    network_of = {port.resource_id: port.network_id for port in facts}
    for link in (info.ext_virtual_link_info or ()) if info is not None else ():
        named, ports = link.resource_handle.resource_id, (each.resource_handle for each in link.ext_link_ports or ())
        networks = {network_of.get(port.resource_id) for port in ports}
        found |= {network: link.id if network == named else named for network in networks if network}
        found.setdefault(named, link.id)
    for managed in (info.ext_managed_virtual_link_info or ()) if info is not None else ():
        resource = managed.get("networkResource")
        if isinstance(resource, Mapping):
            handles = [resource, *(port["resourceHandle"] for port in managed.get("vnfLinkPorts") or ())]
            ids = (str(each.get("resourceId")) for each in handles)
            name = str(managed.get("vnfVirtualLinkDescId") or managed.get("id"))
            found |= {network_of.get(each) or each: name for each in ids}
    return found | {network.resource_id: network.name for network in resources.networks}


def _add_point(
    graph: Graph, owner: str, port: PortFacts, vim_id: str | None, names: Mapping[str, str], vnf_id: str
) -> None:
    me = f"connection-point:{port.resource_id}"
    graph.add(
        TopologyNode(
            id=me, kind="connection-point", name=port.name or port.resource_id, resourceId=port.resource_id,
            addresses=list(port.addresses) or None, floatingAddress=port.floating_address, mac=port.mac,
            vnfInstanceId=vnf_id,
        )
    )  # fmt: skip
    graph.connect(owner, me, "has")
    if port.network_id is not None:
        _add_network(graph, vim_id, port.network_id, names.get(port.network_id, port.network_id))
        graph.connect(me, _network_id(vim_id, port.network_id), "connects")


def _add_network(graph: Graph, vim_id: str | None, network_id: str, name: str) -> None:
    me = _network_id(vim_id, network_id)
    graph.add(TopologyNode(id=me, kind="network", name=name, resourceId=network_id))
    present = graph.nodes.get(me)
    if present is not None and present.name == network_id != name:
        # The first VNF on it did not know its name.
        graph.nodes[me] = present.model_copy(update={"name": name})
    if vim_id is not None:
        graph.connect(me, f"vim:{vim_id}", "on")


def _network_id(vim_id: str | None, network_id: str) -> str:
    return f"network:{vim_id or ''}/{network_id}"


def _add_attached(graph: Graph, attached: Sequence[NetworkAttachment], root: str) -> None:
    for each in attached:
        link_id = each.virtual_link_id
        graph.add(
            TopologyNode(
                id=f"virtual-link:{link_id}", kind="virtual-link", name=each.link.name, resourceId=link_id,
                type=each.link.type, href=f"{root}/multicloud/v1/virtual-links/{link_id}",
            )
        )  # fmt: skip


def _add_pod(graph: Graph, record: InstanceRecord, pod: InventoryResource, now: datetime) -> None:
    me = f"pod:{pod.uid}"
    # Its connection points are in the graph with it alone.
    if graph.lacks(me):
        graph.is_truncated = True
        return
    health, text = pod_health(pod, now)
    graph.add(
        TopologyNode(
            id=me, kind="pod", name=pod.name, resourceId=pod.uid, type=pod.kind, role=pod.vdu_id, place=pod.node or None,
            vnfInstanceId=record.vnf.id, health=health, text=text,
        )
    )  # fmt: skip
    graph.connect(f"vnf:{record.vnf.id}", me, "has")
    for index, network in enumerate(pod.networks):
        point = f"connection-point:{pod.uid}/{index}"
        graph.add(
            TopologyNode(
                id=point, kind="connection-point", name=network.interface or network.network or _CLUSTER_NETWORK,
                addresses=list(network.addresses) or None, vnfInstanceId=record.vnf.id,
            )
        )  # fmt: skip
        graph.connect(me, point, "has")
        link = _link_of(record.internals.networks, pod, network)
        if link is not None:
            graph.connect(point, f"virtual-link:{link}", "connects")
        else:
            name = network.network or _CLUSTER_NETWORK
            _add_network(graph, pod.vim_id, name, name)
            graph.connect(point, _network_id(pod.vim_id, name), "connects")


def _link_of(attached: Sequence[NetworkAttachment], pod: InventoryResource, network: NetworkAddresses) -> str | None:
    """Return the link that an interface of a pod is on: by the interface, or by the name of the link's definition."""
    if not network.network and not network.interface:
        return None
    for each in attached:
        if each.vdu_id != pod.vdu_id:
            continue
        # The definition of some types has the namespace of the pod in its name.
        end = f"-{pod.namespace}" if each.link.is_definition_by_namespace else ""
        is_named = bool(each.link.definition) and network.network.rpartition("/")[2] == f"{each.link.definition}{end}"
        if network.interface == each.interface or is_named:
            return each.virtual_link_id
    return None
