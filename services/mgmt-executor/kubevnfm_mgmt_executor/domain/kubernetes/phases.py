"""The phases of the ``kubernetes`` driver: their plans, how a plan is run, and the table of phases at the end.

A new phase is a row there, and a plan if it works on machines. A plan is a pure function of the cluster: node tasks and
their order. A task is identified by name and node, so one plan may have a task of the same name on every node. The
journal stores both: a phase that was interrupted before an upgrade continues with the plan of the new version, and each
task asks its machine how far it came. Names of tasks therefore never change; see `tasks`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kubevnfm_events.common import ClusterAccess
from kubevnfm_events.mgmt import ManagedNode, RunPhase
from kubevnfm_kit.errors import VnfmError
from kubevnfm_secrets import Secret

from kubevnfm_mgmt_executor.domain.driver import Driver, PhaseResult, PhaseWork, Tools
from kubevnfm_mgmt_executor.domain.graph import Task, TaskId, run_graph
from kubevnfm_mgmt_executor.domain.kubernetes.cluster import Cluster, read_cluster
from kubevnfm_mgmt_executor.domain.kubernetes.package import read_files
from kubevnfm_mgmt_executor.domain.kubernetes.state import ClusterRun
from kubevnfm_mgmt_executor.domain.kubernetes.tasks import TASKS
from kubevnfm_mgmt_executor.domain.ports import Earlier
from kubevnfm_mgmt_executor.domain.recorder import NodeId, TaskResult


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
ResultFunction = Callable[[ClusterRun], PhaseResult]


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


async def run_plan(plan: Plan, run: ClusterRun) -> None:
    """Run every task of the plan in its order. Raises the first task's error; the other tasks are then cancelled."""
    tasks = [_bound(planned, run) for planned in plan.tasks]
    run.tools.recorder.total = len(tasks)
    try:
        await run_graph(tasks, slots=run.cluster.parameters.x_max_parallel_nodes)
        await run.tokens.revoke()
    except asyncio.CancelledError:
        # Another worker may have taken the command over. The folders on the machines are then in its use.
        await run.close(clean=False)
        raise
    except BaseException:
        # Published before the cleaning up, which may wait for machines that no longer answer.
        await run.tools.recorder.report_cancelled()
        with suppress(VnfmError):  # tokens expire within minutes, and the error to report is that of the task
            await run.tokens.revoke()
        await run.close(clean=True)
        raise
    await run.close(clean=True)


def _bound(planned: PlannedTask, run: ClusterRun) -> Task:
    node, work = planned.node, TASKS[planned.name]
    node_id = NodeId(node.vnfc_id, run.cluster.name(node))

    async def perform() -> None:
        async def on_node(earlier: Earlier | None) -> TaskResult:
            return await work(run, node, earlier)

        await run.tools.recorder.perform(node_id, planned.name, on_node)

    return Task(planned.name, node_id.name, perform, planned.after, planned.takes_slot)


def cluster_access(run: ClusterRun) -> PhaseResult:
    """Return how to reach the cluster, once ``init``, ``admin`` and ``verify`` are done."""
    learned = run.learned
    access = ClusterAccess(
        server=run.cluster.server,
        bearer_token=Secret(learned.admin_token),
        ssl_ca_cert=learned.ca_pem,
        ssl_ca_cert_hash=learned.ca_cert_hash,
        certificate_key=Secret(learned.certificate_key),
        kubernetes_version=learned.version,
    )
    return PhaseResult(cluster=access, node_names=run.cluster.name_by_vnfc)


def on_machines(plan: PlanFunction, result: ResultFunction) -> PhaseWork:
    """Return the work of a phase that runs a plan of node tasks on the cluster's machines."""

    async def work(command: RunPhase, tools: Tools) -> PhaseResult:
        # All checks of command and package stand before the first login: a wrong request changes no machine.
        # In a thread, because a private key may have to be opened with its passphrase.
        cluster = await asyncio.to_thread(read_cluster, command, tools.reveal)
        files = await read_files(tools.package, tools.own_files, cluster.parameters)
        run = ClusterRun(cluster, files, tools)
        if files.remarks:
            await tools.recorder.remark("files", "; ".join(files.remarks))
        await run_plan(plan(cluster), run)
        return result(run)

    return work


async def nothing(_: RunPhase, __: Tools) -> PhaseResult:
    """Do nothing: the phase has no meaning for a cluster, but VNFDs of other managers map it to the driver."""
    return PhaseResult()


async def forget_machines(command: RunPhase, tools: Tools) -> PhaseResult:
    """Delete journal and host keys: the machines no longer exist, and others may get their addresses."""
    # The output stays, because operators read it after a termination; `ForgetInstance` deletes it with the instance.
    await tools.host_keys.forget(command.vnf_instance_id)
    await tools.journal.forget(command.vnf_instance_id)
    return PhaseResult()


PHASES: Final[Driver] = {
    "instantiate_start": nothing,
    "instantiate_end": on_machines(install_cluster, cluster_access),
    "terminate_start": nothing,
    "terminate_end": forget_machines,
    "change_external_connectivity_start": nothing,
    "change_external_connectivity_end": nothing,
    "modify_information_start": nothing,
    "modify_information_end": nothing,
}
