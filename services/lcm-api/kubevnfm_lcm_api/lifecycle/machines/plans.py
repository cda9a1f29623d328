"""The sequences, each readable as its table of contents.

A plan is a pure function of the draft. An operation keeps the plan that it started with, also through an upgrade, and
replies may extend it. Steps that do not come after one another run side by side.
"""

from __future__ import annotations

from kubevnfm_cluster import ClusterParameters, read_cluster_parameters
from kubevnfm_events.mgmt import INSTANTIATE_END, INSTANTIATE_START, KURYR_DRIVER, TERMINATE_START
from kubevnfm_sol.lcm import OperationType

from kubevnfm_lcm_api.lifecycle.clusters.heal_steps import (
    HEAL_END,
    HEAL_START,
    ReleaseStorage,
    RunHealPhase,
    RunMasterHealPhase,
)
from kubevnfm_lcm_api.lifecycle.clusters.kuryr import has_kuryr
from kubevnfm_lcm_api.lifecycle.clusters.kuryr_steps import (
    AwaitNewTrunks,
    InstallKuryrCluster,
    PrepareKuryrNetwork,
    RemoveKuryrResources,
    StopIllKuryr,
    StopKuryr,
)
from kubevnfm_lcm_api.lifecycle.clusters.nodes import has_nodes
from kubevnfm_lcm_api.lifecycle.clusters.phase_steps import INSTALL_TIMEOUT_S, ForgetMachines, RunDriverPhase
from kubevnfm_lcm_api.lifecycle.clusters.registry_steps import RunRegistryPhase
from kubevnfm_lcm_api.lifecycle.clusters.scale_steps import (
    SCALE_END,
    SCALE_ROLLBACK_END,
    SCALE_START,
    ForgetNewWorkers,
    RunScalePhase,
)
from kubevnfm_lcm_api.lifecycle.clusters.vim_steps import DeregisterClusterVim, RegisterClusterVim
from kubevnfm_lcm_api.lifecycle.core.orphans import MarkOrphans
from kubevnfm_lcm_api.lifecycle.core.plan import Plan
from kubevnfm_lcm_api.lifecycle.core.remains import RemoveRemains
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.machines.change_steps import (
    ChangeMachines,
    ConnectVnf,
    HealMaster,
    HealVnfcs,
    OperateVnf,
    ReplaceTemplate,
    RestoreScale,
    ScaleVnf,
)
from kubevnfm_lcm_api.lifecycle.machines.changing import ConnectVmDraft, OperateVmDraft, ReplaceVmDraft
from kubevnfm_lcm_api.lifecycle.machines.coordinate_steps import CoordinateNew, CoordinateOld
from kubevnfm_lcm_api.lifecycle.machines.drafts import InstantiateVmDraft, TerminateVmDraft
from kubevnfm_lcm_api.lifecycle.machines.healing import HealVmDraft
from kubevnfm_lcm_api.lifecycle.machines.scaling import ScaleVmDraft
from kubevnfm_lcm_api.lifecycle.machines.stack_steps import CreateVnfResources, DeleteVnfResources, RecreateVnf
from kubevnfm_lcm_api.lifecycle.scripts.plans import begin, finish


@SEQUENCES.sequence(InstantiateVmDraft)
def instantiate_vm(draft: InstantiateVmDraft) -> Plan[InstantiateVmDraft]:
    """Build a VM-based VNF, and a cluster out of it if the VNFD says so (sequences.md 1.1)."""
    plan = Plan[InstantiateVmDraft]()
    if draft.remains_of is not None:
        plan.then(RemoveRemains(draft.remains_of))
    begin(plan, draft)
    if INSTANTIATE_START in draft.phases:
        plan.then(RunDriverPhase(INSTANTIATE_START), id=INSTANTIATE_START)
    plan.then(CreateVnfResources())
    if draft.registry is not None:
        plan.then(RunRegistryPhase("instantiate_end"), id=INSTANTIATE_END)
    elif has_kuryr(draft.phases) and draft.cluster_parameters is not None:
        plan.then(PrepareKuryrNetwork())
        plan.then(InstallKuryrCluster(limit_s=_install_limit_s(draft)), id=INSTANTIATE_END)
    elif INSTANTIATE_END in draft.phases:
        plan.then(RunDriverPhase(INSTANTIATE_END, _install_limit_s(draft)), id=INSTANTIATE_END)
    # The cluster of a script is registered once the script has said how (`RunScriptPhase`).
    if draft.cluster_vim_name is not None and INSTANTIATE_END in draft.phases:
        plan.then(RegisterClusterVim())
    finish(plan, draft)
    return plan


def _install_limit_s(draft: InstantiateVmDraft) -> float:
    """Return the time for the installation; shorter limits in the request do not shorten the measured worst case."""
    if draft.cluster_parameters is None:
        return INSTALL_TIMEOUT_S
    return max(INSTALL_TIMEOUT_S, draft.cluster_parameters.install_limit_s(draft.max_nodes or 1, masters=draft.masters))


@SEQUENCES.sequence(TerminateVmDraft)
def terminate_vm(draft: TerminateVmDraft) -> Plan[TerminateVmDraft]:
    """Delete a VM-based VNF: the stack first, then the records about it (SEQ-035)."""
    plan = Plan[TerminateVmDraft]()
    # GRACEFUL: no instance uses the cluster, or the operation would have been refused.
    if draft.withdrawn is not None and draft.withdrawn.is_forced:
        plan.then(MarkOrphans(OperationType.TERMINATE))
    begin(plan, draft)
    # Without a stack there are no machines to run the phase on.
    if (
        draft.phases.get(TERMINATE_START) not in (None, KURYR_DRIVER)
        and draft.resources is not None
        and not draft.is_stack_missing
    ):
        plan.then(RunDriverPhase(TERMINATE_START), id=TERMINATE_START)
    if has_kuryr(draft.phases):
        if (
            draft.resources is not None
            and not draft.is_stack_missing
            and has_nodes(draft.resources, read_cluster_parameters(draft.parameters))
        ):
            plan.then(StopKuryr())
        plan.then(RemoveKuryrResources())
    # Only after the stack: if its deletion fails, the cluster still runs and must remain registered.
    deleted = plan.then(DeleteVnfResources(draft.graceful_wait_s))
    if draft.cluster_vim_key is not None:
        plan.add(DeregisterClusterVim(draft.is_forceful), after=[deleted])
    if draft.has_scripts:
        finish(plan, draft)
        plan.then(ForgetMachines())
    elif draft.phases:
        plan.add(ForgetMachines(), after=[deleted])
    return plan


@SEQUENCES.sequence(ScaleVmDraft)
def scale_vm(draft: ScaleVmDraft) -> Plan[ScaleVmDraft]:
    """Scale a VNF of machines; workers of a cluster leave it before their machines go, and join after they came."""
    plan = Plan[ScaleVmDraft]()
    begin(plan, draft)
    cluster = draft.changed_cluster
    if cluster is not None:
        if draft.leaving:
            plan.then(RunScalePhase(SCALE_START, _drain_limit_s(cluster)), id=SCALE_START)
        else:
            # Undone last, when the machines are gone.
            plan.then(ForgetNewWorkers(), id=SCALE_ROLLBACK_END)
    plan.then(ScaleVnf())
    if cluster is not None:
        if _has_trunks(cluster) and not draft.leaving:
            plan.then(AwaitNewTrunks())
        more = sum(draft.counts.values()) - len(draft.before.servers)
        plan.then(RunScalePhase(SCALE_END, _join_limit_s(cluster, max(1, more))), id=SCALE_END)
    finish(plan, draft)
    return plan


def _has_trunks(cluster: ClusterParameters) -> bool:
    return cluster.kuryr_param is not None and cluster.kuryr_param.has_trunks


def _drain_limit_s(cluster: ClusterParameters) -> float:
    return max(INSTALL_TIMEOUT_S, cluster.drain_limit_s())


def _join_limit_s(cluster: ClusterParameters, nodes: int, *, masters: int = 1) -> float:
    return max(INSTALL_TIMEOUT_S, cluster.install_limit_s(nodes, masters=masters))


@SEQUENCES.sequence(HealVmDraft)
def heal_vm(draft: HealVmDraft) -> Plan[HealVmDraft]:
    """Heal a VNF of machines: replace some of them in place, or the whole stack.

    Nodes of a cluster leave it before their machines are replaced, and the new machines join it: masters one after another,
    then workers. The persistent volumes of a storage server leave it first, and come back last (5.2). A cluster of which all
    machines are replaced is built again, and its VIM gets the new access data.
    """
    plan = Plan[HealVmDraft]()
    begin(plan, draft)
    cluster = draft.changed_cluster
    if cluster is not None and draft.masters:
        if draft.storage is not None:
            plan.then(ReleaseStorage(HEAL_START, _drain_limit_s(cluster)), id=f"{HEAL_START}/storage")
        _heal_masters(plan, draft, cluster)
        if len(draft.masters) == len(draft.servers):
            finish(plan, draft)
            return plan
    if cluster is not None and draft.leaving and not draft.is_whole:
        plan.then(RunHealPhase(HEAL_START, _drain_limit_s(cluster)), id=HEAL_START)
    is_kuryr_new = cluster is not None and cluster.kuryr_param is not None and draft.is_whole
    if is_kuryr_new:
        if draft.has_old_nodes:
            plan.then(StopIllKuryr())
        # Kuryr's ports would keep the old networks in use, and its load balancers the addresses of Services.
        plan.then(RemoveKuryrResources())
    if draft.is_recreated:
        plan.then(DeleteVnfResources())
        plan.then(RecreateVnf())
        # The stack is created as instantiated; scalings since then are applied to it again.
        plan.then(RestoreScale())
    else:
        plan.then(HealVnfcs())
    if cluster is not None:
        if is_kuryr_new:
            plan.then(PrepareKuryrNetwork())
        elif _has_trunks(cluster):
            plan.then(AwaitNewTrunks())
        nodes = (draft.max_nodes if draft.is_whole else None) or len(draft.servers)
        plan.then(RunHealPhase(HEAL_END, _join_limit_s(cluster, nodes)), id=HEAL_END)
        if draft.is_whole:
            plan.then(RegisterClusterVim())
    if draft.registry is not None:
        plan.then(RunRegistryPhase("heal_end"), id=HEAL_END)
    finish(plan, draft)
    return plan


def _heal_masters(plan: Plan[HealVmDraft], draft: HealVmDraft, cluster: ClusterParameters) -> None:
    """Add the replacement of each master; the driver chooses the order, by what etcd can lose (sequences.md 5.3)."""
    for turn in range(1, len(draft.masters) + 1):
        plan.then(RunMasterHealPhase(HEAL_START, _drain_limit_s(cluster), turn), id=f"{HEAL_START}/{turn}")
        plan.then(HealMaster(turn), id=f"heal_resources/{turn}")
        if _has_trunks(cluster):
            plan.then(AwaitNewTrunks(), id=f"await_new_trunks/{turn}")
        plan.then(RunMasterHealPhase(HEAL_END, _join_limit_s(cluster, 1, masters=2), turn), id=f"{HEAL_END}/{turn}")


@SEQUENCES.sequence(OperateVmDraft)
def operate_vm(draft: OperateVmDraft) -> Plan[OperateVmDraft]:
    """Start or stop machines."""
    plan = Plan[OperateVmDraft]()
    begin(plan, draft)
    plan.then(OperateVnf(draft.graceful_wait_s))
    finish(plan, draft)
    return plan


@SEQUENCES.sequence(ConnectVmDraft)
def change_ext_conn_vm(draft: ConnectVmDraft) -> Plan[ConnectVmDraft]:
    """Change the external connectivity of a VNF of plain machines."""
    plan = Plan[ConnectVmDraft]()
    begin(plan, draft)
    plan.then(ConnectVnf())
    finish(plan, draft)
    return plan


@SEQUENCES.sequence(ReplaceVmDraft)
def change_template_vm(draft: ReplaceVmDraft) -> Plan[ReplaceVmDraft]:
    """Change a VNF of plain machines to another flavour or package, in one update or in a rolling one.

    In one update the reply of the change adds the coordination of each changed machine. In a rollback, one after the other is
    coordinated once all are as before: these steps are undone after the change, the last one first.
    """
    plan = Plan[ReplaceVmDraft]()
    begin(plan, draft)
    if draft.rolling:
        for part in draft.rolling:
            _change_part(plan, draft, part)
    else:
        for number, server in reversed(list(enumerate(draft.machines_to_coordinate("old")))):
            plan.then(CoordinateOld(server.vdu_id, number), id=f"coordinate-old/{server.vdu_id}/{number}")
        plan.then(ReplaceTemplate())
    finish(plan, draft)
    return plan


def _change_part(plan: Plan[ReplaceVmDraft], draft: ReplaceVmDraft, part: str) -> None:
    """Add the change of one machine, or of one group of machines, and its coordination (ADR 0012)."""
    machines = list(enumerate(draft.machines_of(part)))
    # Undone after the change below, so that a rollback coordinates a machine once it is as before.
    for number, server in reversed(machines) if "old" in draft.coordination else ():
        plan.then(CoordinateOld(server.vdu_id, number, part), id=f"coordinate-old/{part}/{number}")
    plan.then(ChangeMachines(part), id=f"change/{part}")
    for number, server in machines if "new" in draft.coordination else ():
        plan.then(CoordinateNew(server.vdu_id, number, part), id=f"coordinate-new/{part}/{number}")
