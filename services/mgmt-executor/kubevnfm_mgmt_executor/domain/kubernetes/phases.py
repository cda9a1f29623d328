"""The phases of the ``kubernetes`` driver: their plans, how a plan is run, and the table of phases at the end.

A new phase is a row there, and a plan if it works on machines. A plan is a pure function of the cluster: node tasks and
their order. A task is identified by name and node, so one plan may have a task of the same name on every node. The
journal stores both: a phase that was interrupted before an upgrade continues with the plan of the new version, and each
task asks its machine how far it came. Names of tasks therefore never change; see `tasks`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kubevnfm_events.common import ClusterAccess
from kubevnfm_events.mgmt import ManagedNode, RunPhase
from kubevnfm_kit.errors import VnfmError
from kubevnfm_secrets import Secret

from kubevnfm_mgmt_executor.domain.driver import MACHINE_PHASES, Driver, PackageFiles, PhaseResult, PhaseWork, Tools
from kubevnfm_mgmt_executor.domain.graph import Task, TaskId, run_graph
from kubevnfm_mgmt_executor.domain.kubernetes.cluster import Cluster, read_cluster
from kubevnfm_mgmt_executor.domain.kubernetes.package import InstallFiles, read_files, read_own_script, read_script
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


@dataclass(frozen=True)
class Mending:
    """A task after the failure of a plan."""

    task: PlannedTask
    needs: Callable[[ClusterRun], bool]


class Plan:
    """A graph of node tasks, in an order in which each task stands behind those that it comes after."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.tasks: list[PlannedTask] = []
        self.on_failure: Mending | None = None

    def add(self, name: str, node: ManagedNode, *, after: Sequence[TaskId] = (), takes_slot: bool = False) -> TaskId:
        """Add a task; return its id, for tasks that come after it."""
        self.tasks.append(PlannedTask(name, node, tuple(after), takes_slot))
        return (name, self._cluster.name(node))

    def if_failed(self, name: str, node: ManagedNode, *, needs: Callable[[ClusterRun], bool]) -> None:
        """Set the task that runs after another one has failed, if it ``needs`` to."""
        self.on_failure = Mending(PlannedTask(name, node), needs)


PlanFunction = Callable[[Cluster], Plan]
ResultFunction = Callable[[ClusterRun], PhaseResult]
FilesFunction = Callable[[PackageFiles, PackageFiles, Cluster], Awaitable[InstallFiles]]
BeginFunction = Callable[[ClusterRun], Awaitable[None]]


def connect(plan: Plan, cluster: Cluster, node: ManagedNode, prepared: TaskId) -> TaskId:
    """Connect a new node to registries and storage server of its cluster, if it has them; return what its join comes after."""
    takes_slot = node.role != "master"
    if cluster.parameters.private_registry_connection_info:
        prepared = plan.add("registries", node, after=[prepared], takes_slot=takes_slot)
    if cluster.storage is not None:
        prepared = plan.add("nfs_client", node, after=[prepared], takes_slot=takes_slot)
    return prepared


def add_helm(plan: Plan, cluster: Cluster, master: ManagedNode, joined: TaskId) -> None:
    """Install Helm on a master that has ``joined``, if the request asks for it; nothing waits for that (sequences.md M17)."""
    if cluster.parameters.helm_installation_script_path is not None:
        plan.add("helm", master, after=[joined])


def serve_volumes(plan: Plan, cluster: Cluster, finished: Sequence[TaskId]) -> None:
    """Set up the storage server, if there is one, and its persistent volumes once the other tasks are ``finished``.

    The machine is set up beside the others; the cluster must exist for the volumes (sequences.md 1.10).
    """
    storage = cluster.storage
    if storage is None:
        return
    mounted = plan.add("disks", storage, after=[plan.add("reach", storage)])
    exported = plan.add("exports", storage, after=[mounted])
    if cluster.parameters.pv_registration_params:
        plan.add("register_volumes", cluster.master, after=[*finished, exported])


def install_cluster(cluster: Cluster, network: str = "network") -> Plan:
    """Install a cluster (sequences.md 1.10): all machines side by side, and the master waits for no worker.

    ``network``: the task that gives pods a network.
    """
    plan, master = Plan(cluster), cluster.master
    prepared: dict[str, TaskId] = {}
    for node in cluster.nodes:
        reached = plan.add("reach", node)
        copied = plan.add("copy", node, after=[reached])
        # Masters take no slot: all joins wait for them, so they must not queue behind workers.
        installed = plan.add("prepare", node, after=[copied], takes_slot=node.role != "master")
        prepared[node.vnfc_id] = connect(plan, cluster, node, installed)
        if cluster.is_balanced and node.role == "master":
            # Before the API server: kubeadm init ends only when the virtual address leads to it.
            prepared[node.vnfc_id] = plan.add("balance", node, after=[prepared[node.vnfc_id]])
    started = plan.add("init", master, after=[prepared[master.vnfc_id]])
    add_helm(plan, cluster, master, started)
    connected = plan.add(network, master, after=[started])
    # It needs the API only, so it does not wait for the pod network.
    plan.add("admin", master, after=[started])
    last = started
    for node in cluster.masters[1:]:
        # One after another: each join changes the members of etcd, and a majority of them must stay (1.3, M12).
        last = plan.add("join_master", node, after=[prepared[node.vnfc_id], last])
        add_helm(plan, cluster, node, last)
    # A node can join before pods have a network; it becomes Ready once the network's pods run on it, and `verify` waits
    # for that.
    joined = [
        plan.add("join", node, after=[prepared[node.vnfc_id], started], takes_slot=True) for node in cluster.workers
    ]
    # One task for all workers: the labels are set through the master's API, and a node must have joined to have any.
    labelled = plan.add("label", master, after=[started, *joined])
    verified = plan.add("verify", master, after=[connected, labelled, last])
    serve_volumes(plan, cluster, [verified])
    return plan


def finish_scaling(cluster: Cluster) -> Plan:
    """Join the new workers, many at once, and remove what is left of those that are gone (sequences.md 1.11, C2 and C3)."""
    plan, master = Plan(cluster), cluster.master
    copied = plan.add("copy", master, after=[plan.add("reach", master)])
    for node in cluster.gone:
        # A kubelet that was started again before its machine was deleted has registered its Node again.
        plan.add("delete", node, after=[copied])
    if cluster.targets:
        _with_targets(plan, cluster, copied)
    return plan


def finish_healing(cluster: Cluster) -> Plan:
    """Join the machines that have replaced others, many at once, under the names of these (sequences.md 1.11, E1e).

    A new storage server is set up after them, and its persistent volumes come back (E3e).
    """
    plan, master = Plan(cluster), cluster.master
    last = plan.add("reach", master)
    if cluster.targets or cluster.new_masters or cluster.gone:
        copied = plan.add("copy", master, after=[last])
        for node in cluster.gone:
            # Its place has another address now, and so another name.
            plan.add("delete", node, after=[copied])
        if cluster.targets or cluster.new_masters:
            last = _with_targets(plan, cluster, copied, replaces=True)
    if cluster.storage is not None and cluster.storage.is_target:
        serve_volumes(plan, cluster, [last])
    return plan


def _with_targets(plan: Plan, cluster: Cluster, copied: TaskId, *, replaces: bool = False) -> TaskId:
    """Add the tasks that join the targets to the cluster; return the last. ``replaces``: in the place of other machines."""
    master = cluster.master
    known = plan.add("facts", master, after=[copied])
    joined = []
    for node in cluster.new_masters:
        uploaded = plan.add("copy", node, after=[plan.add("reach", node)])
        prepared = connect(plan, cluster, node, plan.add("prepare", node, after=[uploaded, known]))
        joins = plan.add("join_master", node, after=[plan.add("balance", node, after=[prepared])])
        joined.append(plan.add("member", node, after=[joins]))
        add_helm(plan, cluster, node, joins)
        for other in cluster.masters:
            # Only now: a server that is not there yet would be one more that haproxy tries.
            if other is not node:
                plan.add("balance", other, after=[joins])
    for node in cluster.targets:
        uploaded = plan.add("copy", node, after=[plan.add("reach", node)])
        ready = connect(plan, cluster, node, plan.add("prepare", node, after=[uploaded, known], takes_slot=True))
        if replaces:
            ready = plan.add("clear", node, after=[ready])
        joined.append(plan.add("join", node, after=[ready], takes_slot=True))
    for node in (master, *cluster.others):
        plan.add("hosts", node, after=[known])
    labelled = plan.add("label", master, after=joined)
    return plan.add("verify", master, after=[labelled])


def take_out_workers(cluster: Cluster) -> Plan:
    """Take workers out of the cluster while their machines still run (sequences.md 1.11, C1)."""
    plan = Plan(cluster)
    deleted = _without_targets(plan, cluster)
    for node in (cluster.master, *cluster.others):
        plan.add("hosts", node, after=deleted)
    return plan


def begin_healing(cluster: Cluster) -> Plan:
    """Take workers out of the cluster whose machines are replaced next, dead or alive (sequences.md 1.11, E1s, E3s).

    The hosts files keep their names: the new machines get the same ones. Before the storage server is replaced, its
    persistent volumes leave the cluster.
    """
    plan = Plan(cluster)
    # Before anything else changes: a volume in use refuses the heal (sequences.md 5.2, 5.5).
    first = (
        [_release_volumes(plan, cluster.master)] if cluster.storage is not None and cluster.storage.is_target else []
    )
    if cluster.targets:
        _without_targets(plan, cluster, after=first)
    return plan


def release_storage(cluster: Cluster) -> Plan:
    """Take the persistent volumes of the storage server out of the cluster (sequences.md 1.11, E3s)."""
    plan = Plan(cluster)
    _release_volumes(plan, cluster.master)
    return plan


def _release_volumes(plan: Plan, master: ManagedNode) -> TaskId:
    return plan.add("release_volumes", master, after=[plan.add("reach", master)])


def take_out_master(cluster: Cluster) -> Plan:
    """Take one of several masters out of the cluster, dead or alive (sequences.md 1.11, E2s; 1.3, M20)."""
    plan, leaving = Plan(cluster), cluster.leaving
    assert leaving is not None
    dropped = [plan.add("balance", node) for node in cluster.serving]
    # After the others: until then the virtual address stays where it is, and no connection is lost.
    stood_down = plan.add("stand_down", leaving, after=dropped)
    # The member before the Node: it counts for the majority until it is removed.
    removed = plan.add("remove_member", leaving, after=[stood_down])
    plan.add("delete", leaving, after=[removed])
    return plan


def read_admin(cluster: Cluster) -> Plan:
    """Make the administrator of a cluster that a script of the package has built (sequences.md 6.7; 1.3, M11)."""
    plan, master = Plan(cluster), cluster.master
    copied = plan.add("copy", master, after=[plan.add("reach", master)])
    plan.add("admin", master, after=[plan.add("facts", master, after=[copied])])
    return plan


def _without_targets(plan: Plan, cluster: Cluster, *, after: Sequence[TaskId] = ()) -> list[TaskId]:
    """Add the tasks that drain the targets and delete their Nodes; return the deletions."""
    master = cluster.master
    copied = plan.add("copy", master, after=after or [plan.add("reach", master)])
    known = plan.add("facts", master, after=[copied])
    # All before the first drain: otherwise pods would move from one node that leaves to the next.
    cordoned = plan.add("cordon", master, after=[known])
    drained = [plan.add("drain", node, after=[cordoned]) for node in cluster.targets]
    # No Node is deleted before all are drained, so that a drain that fails leaves the cluster as it was.
    plan.if_failed("uncordon", master, needs=lambda run: run.learned.is_cordoned)
    return [plan.add("delete", node, after=drained) for node in cluster.targets]


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
        await _mend(plan, run)
        with suppress(VnfmError):  # tokens expire within minutes, and the error to report is that of the task
            await run.tokens.revoke()
        await run.close(clean=True)
        raise
    await run.close(clean=True)


async def _mend(plan: Plan, run: ClusterRun) -> None:
    """Run the task that a failed plan ends with. Its own failure is recorded; the one to report is that of the plan."""
    found = plan.on_failure
    if found is not None and found.needs(run):
        with suppress(VnfmError):
            await _bound(found.task, run).work()


def _bound(planned: PlannedTask, run: ClusterRun, *, counted: bool = True) -> Task:
    node, work = planned.node, TASKS[planned.name]
    node_id = NodeId(node.vnfc_id, run.cluster.name(node))

    async def perform() -> None:
        async def on_node(earlier: Earlier | None) -> TaskResult:
            return await work(run, node, earlier)

        await run.tools.recorder.perform(node_id, planned.name, on_node, counted=counted)

    return Task(planned.name, node_id.name, perform, planned.after, planned.takes_slot)


async def find_master(run: ClusterRun) -> None:
    """Work through a master that answers, and that was one before the phase."""
    masters = run.cluster.masters
    await run.find_master([node for node in masters if not node.is_target] or masters)


async def choose_master(run: ClusterRun) -> None:
    """Choose which of the masters that are to be healed is taken out now, before anything is changed."""
    # One that is to be healed itself may be the last that answers.
    await run.find_master(sorted(run.cluster.masters, key=lambda node: node.is_target))
    for name in ("reach", "copy", "quorum"):
        # Not counted: the plan, and how many tasks it has, is known afterwards.
        await _bound(PlannedTask(name, run.cluster.master), run, counted=False).work()


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
    return PhaseResult(cluster=access, node_names=run.cluster.node_names)


def admin_access(run: ClusterRun) -> PhaseResult:
    """Return how to reach a cluster that exists, once ``facts`` and ``admin`` are done. Its nodes have names of their own."""
    assert run.learned.built is not None
    run.learned.version = f"v{run.learned.built.version}"
    return PhaseResult(cluster=cluster_access(run).cluster)


def node_names(run: ClusterRun) -> PhaseResult:
    """Return the names of the nodes that stay or have joined."""
    return PhaseResult(node_names=run.cluster.node_names)


def left(run: ClusterRun) -> PhaseResult:
    """Return which master has left."""
    assert run.cluster.leaving is not None
    return PhaseResult(left=run.cluster.leaving.vnfc_id)


def no_facts(_: ClusterRun) -> PhaseResult:
    """Return the result of a phase from which nothing is learned."""
    return PhaseResult()


def on_machines(
    plan: PlanFunction,
    result: ResultFunction,
    files: FilesFunction = read_files,
    *,
    begin: BeginFunction | None = None,
) -> PhaseWork:
    """Return the work of a phase that runs a plan of node tasks on the cluster's machines.

    ``begin``: finds out what the plan needs to know of a cluster that exists; None: there is none yet.
    """

    async def work(command: RunPhase, tools: Tools) -> PhaseResult:
        # All checks of command and package stand before the first login: a wrong request changes no machine.
        # In a thread, because a private key may have to be opened with its passphrase.
        cluster = await asyncio.to_thread(read_cluster, command, tools.reveal)
        found = await files(tools.package, tools.own_files, cluster)
        run = ClusterRun(cluster, found, tools)
        if found.remarks:
            await tools.recorder.remark("files", "; ".join(found.remarks))
        if begin is not None:
            try:
                await begin(run)
            except asyncio.CancelledError:
                await run.close(clean=False)  # as in `run_plan`
                raise
            except BaseException:
                await run.close(clean=True)
                raise
        await run_plan(plan(run.cluster), run)
        if command.gone:
            # Last, because a repeat writes the journal again.
            gone = [node.vnfc_id for node in command.gone]
            await tools.host_keys.forget(command.vnf_instance_id, vnfc_ids=gone)
            await tools.journal.forget(command.vnf_instance_id, vnfc_ids=gone)
        return result(run)

    return work


def node_phases(install: PhaseWork, files: FilesFunction = read_script) -> Driver:
    """Return the phases in which nodes join a cluster that exists, or leave it.

    ``install``: builds the cluster again if all its machines are new; ``files``: those that the other phases need.
    """
    drain = on_machines(begin_healing, no_facts, files, begin=find_master)
    take_out = on_machines(take_out_master, left, files, begin=choose_master)
    release_volumes = on_machines(release_storage, no_facts, files, begin=choose_master)
    join_again = on_machines(finish_healing, node_names, files, begin=find_master)

    async def begin_heal(command: RunPhase, tools: Tools) -> PhaseResult:
        """Take workers out of the cluster, or the one of the masters among the targets whose turn it is (sequences.md 5.3).

        With masters and the storage server only the volumes leave, if etcd can lose the masters: no other machine is
        replaced before these, and no volume leaves for a heal that then cannot go on.
        """
        roles = {node.role for node in command.nodes if node.is_target}
        if "master" not in roles:
            return await drain(command, tools)
        return await (release_volumes if "storage" in roles else take_out)(command, tools)

    async def finish_heal(command: RunPhase, tools: Tools) -> PhaseResult:
        """Join the new machines to the cluster; build it again if all its machines are new (sequences.md 5.6)."""
        is_whole = all(node.is_target for node in command.nodes)
        return await (install if is_whole else join_again)(command, tools)

    return {
        "scale_start": on_machines(take_out_workers, no_facts, files, begin=find_master),
        "scale_end": on_machines(finish_scaling, node_names, files, begin=find_master),
        # A rollback of scale out takes out what has joined, as a scale in does.
        "scale_rollback_start": on_machines(take_out_workers, no_facts, files, begin=find_master),
        "scale_rollback_end": on_machines(finish_scaling, no_facts, files, begin=find_master),
        "heal_start": begin_heal,
        "heal_end": finish_heal,
        "read_admin": on_machines(read_admin, admin_access, read_own_script, begin=find_master),
    }


_INSTALL: Final = on_machines(install_cluster, cluster_access)
PHASES: Final[Driver] = {**MACHINE_PHASES, "instantiate_end": _INSTALL, **node_phases(_INSTALL)}
