"""The plans of the driver's phases: node tasks and their order, as pure functions of the cluster.

A task is identified by name and node, so one plan may have a task of the same name on every node. The journal
stores both: a phase that was interrupted before an upgrade continues with the plan of the new version, and each task
asks its machine how far it came. Names of tasks therefore never change; see `tasks`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kubevnfm_events.mgmt import ManagedNode

from kubevnfm_mgmt_executor.domain.graph import TaskId
from kubevnfm_mgmt_executor.domain.kubernetes.cluster import Cluster


@dataclass(frozen=True)
class PlannedTask:
    """A task on a node, and the tasks that must be done before it."""

    name: str
    node: ManagedNode
    after: tuple[TaskId, ...] = ()
    takes_slot: bool = False
    """Whether it counts towards ``x_max_parallel_nodes``."""


class Plan:
    """A graph of node tasks, in an order in which each task stands behind those that it comes after."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.tasks: list[PlannedTask] = []

    def add(self, name: str, node: ManagedNode, *, after: Sequence[TaskId] = (), takes_slot: bool = False) -> TaskId:
        """Add a task; return its id, for tasks that come after it."""
        self.tasks.append(PlannedTask(name, node, tuple(after), takes_slot))
        return (name, self._cluster.name(node))


PlanFunction = Callable[[Cluster], Plan]


def install_cluster(cluster: Cluster) -> Plan:
    """Install a cluster (sequences.md 1.10): all machines side by side, and the master waits for no worker."""
    plan, master = Plan(cluster), cluster.master
    prepared: dict[str, TaskId] = {}
    for node in cluster.nodes:
        reached = plan.add("reach", node)
        copied = plan.add("copy", node, after=[reached])
        # The master takes no slot: all joins wait for it, so it must not queue behind workers.
        prepared[node.vnfc_id] = plan.add("prepare", node, after=[copied], takes_slot=node is not master)
    started = plan.add("init", master, after=[prepared[master.vnfc_id]])
    network = plan.add("network", master, after=[started])
    # It needs the API only, so it does not wait for the pod network.
    plan.add("admin", master, after=[started])
    # A node can join before pods have a network; it becomes Ready once the network's pods run on it, and `verify` waits
    # for that.
    joined = [
        plan.add("join", node, after=[prepared[node.vnfc_id], started], takes_slot=True) for node in cluster.workers
    ]
    # One task for all workers: the labels are set through the master's API, and a node must have joined to have any.
    labelled = plan.add("label", master, after=[started, *joined])
    plan.add("verify", master, after=[network, labelled])
    return plan
