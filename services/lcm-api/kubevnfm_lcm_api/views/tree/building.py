"""Makes the tree of a VNF from the facts about it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kubevnfm_clients.multicloud.links import VirtualLink
from kubevnfm_clients.multicloud.volumes import PersistentVolume
from kubevnfm_clients.vim_views import VimNode
from kubevnfm_events.capi import MachineFacts
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_lcm_api.lifecycle.core.drift import drift_of
from kubevnfm_lcm_api.lifecycle.core.instance import ReleaseDeployment, StackDeployment
from kubevnfm_lcm_api.lifecycle.core.workload_cluster import is_of_control_plane
from kubevnfm_lcm_api.views.causes.wording import line
from kubevnfm_lcm_api.views.instance_rows import (
    PREFIX,
    InstanceSummary,
    drift_mark,
    judged,
    kind_of,
    shown_operation,
)
from kubevnfm_lcm_api.views.shared_health import link_health, volume_health
from kubevnfm_lcm_api.views.tree.facts import Away, Gone, Known, Placed, TreeFacts
from kubevnfm_lcm_api.views.tree.machines import stack_node
from kubevnfm_lcm_api.views.tree.model import Node
from kubevnfm_lcm_api.views.tree.nodes import ClusterNodes, of_node, state_of
from kubevnfm_lcm_api.views.tree.objects import release_node, unfinished_nodes
from kubevnfm_lcm_api.views.tree.standing import seen_vim, standing, unread


def tree_of(facts: TreeFacts) -> Node:
    """Return the tree of a VNF, neither in order nor grouped."""
    vnf, document = facts.record.vnf, facts.document
    drift = drift_of(vnf.metadata)
    health, text, since = judged(document, facts.operation, drift, None, facts.alarm)
    return Node(
        kind="vnf",
        id=vnf.id,
        name=vnf.vnf_instance_name or vnf.id,
        type=kind_of(document),
        state=vnf.instantiation_state,
        health=health,
        text=text,
        since=since,
        href=f"{facts.root}/vnflcm/v2/vnf_instances/{vnf.id}",
        drift=None if drift is None else drift_mark(drift),
        children=list(_children(facts)),
    )


def parts_of(facts: TreeFacts) -> int:
    """Return about how many nodes the tree has, without making it."""
    held, stack = facts.record.release, facts.record.stack
    release = held.release if held is not None else None
    counts = [] if release is None else [len(release.objects), len(release.pods), len(release.hooks)]
    if stack is not None and stack.resources is not None:
        counts += [len(stack.resources.servers), len(stack.resources.networks), len(stack.resources.volumes)]
    if isinstance(facts.placed, Placed):
        counts.append(len(facts.placed.resources))
    return sum(counts) + len(facts.on_vim.rows)


def _children(facts: TreeFacts) -> Iterator[Node]:
    if facts.operation is not None:
        yield _operation(facts, facts.operation)
    for deployment in facts.record.internals.deployments:
        connection = facts.record.vnf.vim_connection_info.get(deployment.vim_key)
        ground = standing(facts, connection.vim_id if connection is not None else None)
        if isinstance(deployment, StackDeployment):
            yield stack_node(facts, deployment, ground)
        elif isinstance(deployment, ReleaseDeployment) and deployment.release is not None:
            yield release_node(facts, deployment.release, ground)
    if not facts.record.internals.deployments:
        yield from unfinished_nodes(facts)
    yield from _workload(facts)
    yield from (_link(facts, link_id, known) for link_id, known in facts.links.items())
    yield from (_volume(facts, volume_id, known) for volume_id, known in facts.volumes.items())
    own = facts.record.internals.cluster_vim_id
    if own is not None:
        yield _vim(facts, own)


def _operation(facts: TreeFacts, document: JsonMapping) -> Node:
    shown = shown_operation(document, facts.root)
    has_failed = shown.state == "FAILED_TEMP"
    detail = (document.get("error") or {}).get("detail") if has_failed else None
    return Node(
        kind="operation",
        id=shown.id,
        name=shown.operation,
        state=shown.state,
        health="problem" if has_failed else "progressing",
        text=line(detail) if detail else None,
        since=shown.stateEnteredTime,
        href=shown.href,
    )


def _workload(facts: TreeFacts) -> Iterator[Node]:
    workload = facts.record.internals.workload
    if workload is None:
        return
    nodes = ClusterNodes(facts.nodes)
    yield Node(
        kind="workload-cluster",
        name=workload.cluster.name,
        type="Cluster",
        health="ok",
        place=workload.cluster.namespace,
        children=[_machine(each, nodes.find(each.node, each.addresses)) for each in workload.machines],
    )


def _machine(machine: MachineFacts, node: VimNode | None) -> Node:
    is_ill = node is not None and not node.ready
    health, text, since = of_node(node) if node is not None and is_ill else ("ok", None, None)
    return Node(
        kind="machine",
        id=machine.uid,
        name=machine.name,
        type="Machine",
        role="control-plane" if is_of_control_plane(machine) else machine.vdu_id or machine.owner,
        health=health,
        text=text,
        since=since,
        addresses=list(machine.addresses) or None,
        place=machine.node,
        node_state=state_of(node),
    )


def _vim(facts: TreeFacts, vim_id: str) -> Node:
    seen = seen_vim(facts.vims[vim_id], vim_id)
    on_it = [_on_vim(each) for each in facts.on_vim.rows]
    if facts.on_vim.are_more:
        on_it.append(Node(kind="more", name=f"further VNFs: {PREFIX}/instances?vimId={vim_id}", health="ok"))
    return Node(
        kind="vim",
        id=vim_id,
        name=seen.name,
        type=seen.type,
        state=seen.state,
        health=seen.health,
        text=seen.text,
        href=f"{facts.root}{PREFIX}/vims/{vim_id}",
        children=on_it,
    )


def _on_vim(row: InstanceSummary) -> Node:
    return Node(
        kind="vnf",
        id=row.id,
        name=row.name or row.id,
        type=row.kind,
        state=row.state,
        health=row.health,
        text=row.text,
        since=row.since,
        href=row.href,
        drift=row.drift,
    )


def _link(facts: TreeFacts, link_id: str, known: Known[VirtualLink]) -> Node:
    stored = next(each.link for each in facts.record.internals.networks if each.virtual_link_id == link_id)
    href = f"{facts.root}/multicloud/v1/virtual-links/{link_id}"
    node = Node(kind="virtual-link", id=link_id, name=stored.name, type=stored.type, health="ok", href=href)
    if isinstance(known, Away | Gone):
        node.health, node.text = unread(known)
    else:
        node.name, node.type = known.name, known.type
        node.state, (node.health, node.text) = known.status, link_health(known)
        node.since = None if node.health == "ok" else known.updated_at
    return node


def _volume(facts: TreeFacts, volume_id: str, known: Known[PersistentVolume]) -> Node:
    stored = next(each for each in facts.record.internals.volumes if each.persistent_volume_id == volume_id)
    href = f"{facts.root}/multicloud/v1/persistent-volumes/{volume_id}"
    node = Node(kind="persistent-volume", id=volume_id, name=stored.claim_name, health="ok", href=href)
    if isinstance(known, Away | Gone):
        node.health, node.text = unread(known)
    else:
        node.name, node.type = known.name, known.storage_class
        node.state, (node.health, node.text) = known.phase, volume_health(known)
    return node
