"""Common to the steps that work on the nodes of a cluster that exists: which nodes there are, and the command about them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from kubevnfm_events.mgmt import ManagedNode, Phase, RunPhase
from kubevnfm_events.stacks import StackResources

from kubevnfm_lcm_api.lifecycle.clusters.changing import ClusterChangeDraft
from kubevnfm_lcm_api.lifecycle.clusters.nodes import FoundNodes, find_nodes
from kubevnfm_lcm_api.lifecycle.clusters.phase_steps import phase_command


def nodes_in(draft: ClusterChangeDraft, stack: StackResources) -> FoundNodes:
    """Return the nodes, with the names that are known. Raises NodeNotFound, SharedAddress of `find_nodes`."""
    assert draft.cluster_parameters is not None
    found = find_nodes(stack, draft.cluster_parameters, draft.granted_zones)
    named = [node.model_copy(update={"name": draft.node_names.get(node.vnfc_id)}) for node in found.nodes]
    return replace(found, nodes=tuple(named))


def added(draft: ClusterChangeDraft, stack: StackResources) -> list[str]:
    """Return the VNFC ids that the stack did not have before (sequences.md 3.3)."""
    old = {server.vnfc_id for server in draft.before.servers}
    return [server.vnfc_id for server in stack.servers if server.vnfc_id not in old]


def without(nodes: Iterable[ManagedNode], stack: StackResources) -> tuple[ManagedNode, ...]:
    """Return the nodes that are not in the stack."""
    present = {server.vnfc_id for server in stack.servers}
    return tuple(node for node in nodes if node.vnfc_id not in present)


def cluster_phase(
    draft: ClusterChangeDraft,
    phase: Phase,
    found: FoundNodes,
    *,
    targets: Collection[str] = (),
    gone: Iterable[ManagedNode] = (),
) -> RunPhase:
    """Return the command of a phase that works on the ``targets`` (VNFC ids); the other nodes are there for reference."""
    assert draft.driver is not None
    nodes = tuple(node.model_copy(update={"is_target": node.vnfc_id in targets}) for node in found.nodes)
    command = phase_command(draft, draft.driver, phase, replace(found, nodes=nodes))
    return command.model_copy(
        update={"gone": tuple(node.model_copy(update={"is_target": False}) for node in gone), "max_nodes": None}
    )
