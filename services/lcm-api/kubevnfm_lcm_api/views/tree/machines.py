"""The machines, networks and volumes of a stack. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubevnfm_clients.multicloud.object_health import Health
from kubevnfm_events.stacks import PortFacts, ServerFacts, StackResources
from kubevnfm_kit.errors import VnfmError

from kubevnfm_lcm_api.lifecycle.clusters.nodes import find_nodes
from kubevnfm_lcm_api.lifecycle.core.drift import Drift, drift_of
from kubevnfm_lcm_api.lifecycle.core.instance import StackDeployment
from kubevnfm_lcm_api.views.causes.wording import line
from kubevnfm_lcm_api.views.tree.facts import TreeFacts
from kubevnfm_lcm_api.views.tree.model import Node, NodeKind
from kubevnfm_lcm_api.views.tree.nodes import ClusterNodes, of_node, state_of
from kubevnfm_lcm_api.views.tree.standing import Standing


def stack_node(facts: TreeFacts, deployment: StackDeployment, ground: Standing) -> Node:
    """Return the stack with its machines."""
    drift, resources = drift_of(facts.record.vnf.metadata), deployment.resources
    health, text, since = _of_stack(drift, ground)
    return Node(
        kind="stack",
        id=resources.stack_id if resources is not None else None,
        name=deployment.stack_name,
        type="OS::Heat::Stack",
        state=drift.state if drift is not None else None,
        health=health,
        text=text,
        since=since,
        vim_id=ground.vim_id,
        children=[] if resources is None else list(_parts(facts, resources, drift, ground)),
    )


def _of_stack(drift: Drift | None, ground: Standing) -> tuple[Health, str | None, str | None]:
    # INCOMPLETE: some machines do not exist, and each of them says so.
    if drift is not None and drift.state != "INCOMPLETE":
        return "problem", line(drift.reason), drift.since
    return ("ok", None, None) if ground.doubt is None else ("unknown", ground.doubt, None)


def _parts(facts: TreeFacts, resources: StackResources, drift: Drift | None, ground: Standing) -> Iterator[Node]:
    roles, names, nodes = _roles(facts, resources), _node_names(facts), ClusterNodes(facts.nodes)
    info = facts.record.vnf.instantiated_vnf_info
    vnfcs = info.vnfc_info if info is not None else ()
    stopped = {each.vnfc_resource_info_id for each in vnfcs if each.vnfc_state == "STOPPED"}
    for server in resources.servers:
        health, text, since = _of_server(server, drift, ground)
        node = nodes.find(names.get(server.vnfc_id), _addresses(server.ports))
        if node is not None and not node.ready and health != "problem":
            health, text, since = of_node(node)
        yield Node(
            kind="server",
            id=server.server_id,
            name=server.server_name or names.get(server.vnfc_id) or server.name,
            type="OS::Nova::Server",
            role=roles.get(server.vnfc_id, server.vdu_id),
            state="STOPPED" if server.vnfc_id in stopped else None,
            health=health,
            text=text,
            since=since,
            addresses=_addresses(server.ports) or None,
            place=node.name if node is not None else names.get(server.vnfc_id) or server.host,
            node_state=state_of(node),
        )
    for network in resources.networks:
        yield _part("network", network.resource_id, network.name, "OS::Neutron::Net", drift, ground)
    for volume in resources.volumes:
        yield _part("volume", volume.resource_id, volume.name, "OS::Cinder::Volume", drift, ground)


def _part(
    kind: NodeKind, resource_id: str, name: str, resource_type: str, drift: Drift | None, ground: Standing
) -> Node:
    health, text, since = _by_stack(drift, ground)
    return Node(kind=kind, id=resource_id, name=name, type=resource_type, health=health, text=text, since=since)


def _of_server(server: ServerFacts, drift: Drift | None, ground: Standing) -> tuple[Health, str | None, str | None]:
    if drift is not None and server.vnfc_id in drift.vnfc_ids:
        return "problem", "the server does not exist, or is in state ERROR", drift.since
    return _by_stack(drift, ground)


def _by_stack(drift: Drift | None, ground: Standing) -> tuple[Health, str | None, str | None]:
    """Return what the stack says of a part of it."""
    if drift is not None and drift.state == "MISSING":
        return "unknown", "the stack that it was a part of does not exist", drift.since
    return ("ok", None, None) if ground.doubt is None else ("unknown", ground.doubt, None)


def _roles(facts: TreeFacts, resources: StackResources) -> Mapping[str, str]:
    """Return the role in the cluster, by the id of the VNFC."""
    cluster = facts.record.internals.cluster
    if cluster is None:
        return {}
    try:
        return {node.vnfc_id: node.role for node in find_nodes(resources, cluster).nodes}
    # An operation that has failed may have left a part of them.
    except VnfmError:
        return {}


def _node_names(facts: TreeFacts) -> Mapping[str, str]:
    """Return the name of the Kubernetes node, by the id of the VNFC."""
    info = facts.record.vnf.instantiated_vnf_info
    found = (
        {} if info is None else {each.id: (each.metadata or {}).get("node_name") for each in info.vnfc_resource_info}
    )
    return {**{vnfc_id: name for vnfc_id, name in found.items() if isinstance(name, str)}, **facts.node_names}


def _addresses(ports: tuple[PortFacts, ...]) -> list[str]:
    listed = [address for port in ports for address in (*port.addresses, port.floating_address) if address]
    return list(dict.fromkeys(listed))
