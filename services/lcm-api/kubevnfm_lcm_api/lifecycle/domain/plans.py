"""The sequences, each readable as its table of contents.

A plan is a pure function of the draft. An operation keeps the plan that it started with, also through an upgrade, and
replies may extend it. Steps that do not come after one another run side by side.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol

from kubevnfm_cluster import ClusterParameters, read_cluster_parameters
from kubevnfm_sol.lcm import OperationType

from kubevnfm_lcm_api.lifecycle.domain.change_drafts import (
    ConnectVmDraft,
    ModifyCnfDraft,
    ModifyDraft,
    ModifyScriptedDraft,
    OperateVmDraft,
    ReplaceVmDraft,
)
from kubevnfm_lcm_api.lifecycle.domain.cnf_changes import HealCnfDraft, ScaleCnfDraft
from kubevnfm_lcm_api.lifecycle.domain.cnf_replacement import ReplaceCnfDraft
from kubevnfm_lcm_api.lifecycle.domain.drafts import (
    InstantiateCnfDraft,
    InstantiateVmDraft,
    TerminateCnfDraft,
    TerminateVmDraft,
)
from kubevnfm_lcm_api.lifecycle.domain.heal_draft import HealVmDraft
from kubevnfm_lcm_api.lifecycle.domain.kuryr import KURYR_DRIVER, has_kuryr
from kubevnfm_lcm_api.lifecycle.domain.nodes import has_nodes
from kubevnfm_lcm_api.lifecycle.domain.plan import Plan
from kubevnfm_lcm_api.lifecycle.domain.scale_draft import ScaleVmDraft
from kubevnfm_lcm_api.lifecycle.domain.sequences import Operation, Sequences
from kubevnfm_lcm_api.lifecycle.domain.steps.changes import (
    ChangeMachines,
    ConnectVnf,
    HealMaster,
    HealVnfcs,
    OperateVnf,
    ReplaceTemplate,
    RestoreScale,
    ScaleVnf,
)
from kubevnfm_lcm_api.lifecycle.domain.steps.cnf_changes import HealCnfPods, ScaleCnfObjects
from kubevnfm_lcm_api.lifecycle.domain.steps.cnf_replacement import ChangeCnfImages, ReplaceCnfObjects
from kubevnfm_lcm_api.lifecycle.domain.steps.credentials import (
    NeedsWorkloadVim,
    RegisterWorkloadVim,
    ReleaseWorkloadVim,
    SendClusterCredentials,
    WithdrawClusterCredentials,
)
from kubevnfm_lcm_api.lifecycle.domain.steps.healing import (
    HEAL_END,
    HEAL_START,
    ReleaseStorage,
    RunHealPhase,
    RunMasterHealPhase,
)
from kubevnfm_lcm_api.lifecycle.domain.steps.kuryr import (
    AwaitNewTrunks,
    InstallKuryrCluster,
    PrepareKuryrNetwork,
    RemoveKuryrResources,
    StopIllKuryr,
    StopKuryr,
)
from kubevnfm_lcm_api.lifecycle.domain.steps.machine_healing import CheckClusterMachines, ReplaceClusterMachine
from kubevnfm_lcm_api.lifecycle.domain.steps.machines import (
    INSTALL_TIMEOUT_S,
    INSTANTIATE_END,
    INSTANTIATE_START,
    TERMINATE_END,
    TERMINATE_START,
    ForgetMachines,
    RunCnfPhase,
    RunDriverPhase,
)
from kubevnfm_lcm_api.lifecycle.domain.steps.management import CheckManagedClusters, RecordProviders
from kubevnfm_lcm_api.lifecycle.domain.steps.objects import ApplyCnfObjects, DeleteCnfObjects, UpdateCnfObjects
from kubevnfm_lcm_api.lifecycle.domain.steps.orphans import MarkOrphans
from kubevnfm_lcm_api.lifecycle.domain.steps.registries import RunRegistryPhase
from kubevnfm_lcm_api.lifecycle.domain.steps.remains import RemoveRemains
from kubevnfm_lcm_api.lifecycle.domain.steps.repairing import RepairClusterObjects, RepairCnfObjects
from kubevnfm_lcm_api.lifecycle.domain.steps.scaling import (
    SCALE_END,
    SCALE_ROLLBACK_END,
    SCALE_START,
    ForgetNewWorkers,
    RunScalePhase,
)
from kubevnfm_lcm_api.lifecycle.domain.steps.scripts import (
    CoordinateNew,
    CoordinateOld,
    NeedsScripts,
    RunRollbackScript,
    RunScriptPhase,
    last_phases,
)
from kubevnfm_lcm_api.lifecycle.domain.steps.senders import NeedsSender, RunSenderScript
from kubevnfm_lcm_api.lifecycle.domain.steps.stacks import CreateVnfResources, DeleteVnfResources, RecreateVnf
from kubevnfm_lcm_api.lifecycle.domain.steps.vims import DeregisterClusterVim, RegisterClusterVim
from kubevnfm_lcm_api.lifecycle.domain.steps.workload import (
    ApplyClusterAddons,
    ApplyClusterObjects,
    AwaitRolledOutCluster,
    AwaitSettledCluster,
    AwaitUpdatedCluster,
    AwaitWorkloadCluster,
    DeleteClusterObjects,
    NeedsAddons,
    NeedsClusterManifests,
    NeedsNewCluster,
    RollOutMachines,
    ScaleClusterMachines,
)
from kubevnfm_lcm_api.lifecycle.domain.steps.workload_update import UpdateClusterAddons, UpdateClusterObjects
from kubevnfm_lcm_api.lifecycle.domain.workload import CapiParameters
from kubevnfm_lcm_api.lifecycle.domain.workload_drafts import (
    InstantiateWorkloadDraft,
    RollOutWorkloadDraft,
    ScaleWorkloadDraft,
    TerminateWorkloadDraft,
)
from kubevnfm_lcm_api.lifecycle.domain.workload_healing import HealWorkloadDraft, RepairWorkloadDraft
from kubevnfm_lcm_api.lifecycle.domain.workload_recreation import RecreateWorkloadDraft
from kubevnfm_lcm_api.lifecycle.domain.workload_replacement import ReplaceWorkloadDraft


def _begin(plan: Plan[NeedsScripts], draft: NeedsScripts, *, later: Collection[str] = ()) -> None:
    """Add the scripts at the operation's beginning; the one at the end of a rollback is undone after all other steps.

    ``later``: phases for which the sequence has another place.
    """
    for phase in draft.scripts:
        if phase.endswith("_rollback_end"):
            plan.then(RunRollbackScript(phase), id=phase)
    for phase in draft.scripts:
        if phase.endswith("_start") and "_rollback_" not in phase and phase not in later:
            plan.then(RunScriptPhase(phase), id=phase)


def _finish(plan: Plan[NeedsScripts], draft: NeedsScripts, *, earlier: Collection[str] = ()) -> None:
    """Add the scripts at the operation's end, and the one at the beginning of a rollback.

    ``earlier``: phases for which the sequence has another place.
    """
    for phase in last_phases(draft):
        if phase not in earlier:
            plan.then(RunRollbackScript(phase) if "_rollback_" in phase else RunScriptPhase(phase), id=phase)


def _finish_cluster(
    plan: Plan[NeedsSender], draft: NeedsSender, capi: CapiParameters, *, earlier: Collection[str] = ()
) -> None:
    """As `_finish`, for a change of a workload cluster: a sender of the package can send its credentials again."""
    ends = [phase for phase in last_phases(draft) if "_rollback_" not in phase] if capi.sender == "package" else []
    for phase in ends:
        if phase not in earlier:
            plan.then(RunSenderScript.with_parameters(phase, "ROTATED", capi), id=phase)
    _finish(plan, draft, earlier=(*ends, *earlier))


def instantiate_vm(draft: InstantiateVmDraft) -> Plan[InstantiateVmDraft]:
    """Build a VM-based VNF, and a cluster out of it if the VNFD says so (sequences.md 1.1)."""
    plan = Plan[InstantiateVmDraft]()
    if draft.remains_of is not None:
        plan.then(RemoveRemains(draft.remains_of))
    _begin(plan, draft)
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
    _finish(plan, draft)
    return plan


def _install_limit_s(draft: InstantiateVmDraft) -> float:
    """Return the time for the installation; shorter limits in the request do not shorten the measured worst case."""
    if draft.cluster_parameters is None:
        return INSTALL_TIMEOUT_S
    return max(INSTALL_TIMEOUT_S, draft.cluster_parameters.install_limit_s(draft.max_nodes or 1, masters=draft.masters))


def instantiate_cnf(draft: InstantiateCnfDraft) -> Plan[InstantiateCnfDraft]:
    """Deploy a CNF."""
    plan = Plan[InstantiateCnfDraft]()
    if draft.remains_of is not None:
        plan.then(RemoveRemains(draft.remains_of))
    _begin(plan, draft)
    plan.then(ApplyCnfObjects(draft.wait_timeout_s))
    if INSTANTIATE_END in draft.phases:
        plan.then(RunCnfPhase(INSTANTIATE_END), id=INSTANTIATE_END)
    _finish(plan, draft)
    return plan


def instantiate_workload(draft: InstantiateWorkloadDraft) -> Plan[InstantiateWorkloadDraft]:
    """Build a workload cluster with Cluster API, and make it a VIM (capi.md chapters 7 to 11)."""
    plan = Plan[InstantiateWorkloadDraft]()
    if draft.remains_of is not None:
        plan.then(RemoveRemains(draft.remains_of))
    _begin(plan, draft)
    _build_cluster(plan, draft.capi)
    _finish(plan, draft, earlier=(INSTANTIATE_END,) if draft.capi.sender == "package" else ())
    return plan


class _NeedsNewCluster(NeedsClusterManifests, NeedsNewCluster, NeedsAddons, NeedsWorkloadVim, NeedsSender, Protocol):
    """An operation that builds a workload cluster."""


def _build_cluster(plan: Plan[_NeedsNewCluster], capi: CapiParameters) -> None:
    """Add the steps from the objects of a workload cluster to its VIM."""
    plan.then(ApplyClusterObjects(capi.timeouts.delete))
    plan.then(AwaitWorkloadCluster("initialized", capi.timeouts), id="await_cluster/initialized")
    if capi.addon_def_files:
        plan.then(ApplyClusterAddons(capi.addon_def_files))
    if capi.ready == "available":
        plan.then(AwaitWorkloadCluster("available", capi.timeouts), id="await_cluster/available")
    if capi.sender == "package":
        plan.then(RunSenderScript.with_parameters(INSTANTIATE_END, "CREATED", capi), id=INSTANTIATE_END)
    else:
        plan.then(
            SendClusterCredentials(
                mode=capi.credentials,
                cluster_role=capi.cluster_role,
                callback_url=capi.callback_url,
                register_vim=capi.register_vim,
                vim_name=capi.vim_name,
                vim_default=capi.vim_default,
            )
        )
    if capi.register_vim:
        plan.then(RegisterWorkloadVim(capi.vim_name, capi.vim_default))


def _withdraws_itself(draft: NeedsSender, capi: CapiParameters) -> bool:
    """Return whether a script of the package has the receiver erase the credentials."""
    return capi.sender == "package" and TERMINATE_START in draft.scripts and draft.credentials_sent is not None


def _withdraw_credentials(
    plan: Plan[NeedsSender], draft: NeedsSender, capi: CapiParameters, *, is_forced: bool = False
) -> None:
    """Add the step in which the receiver erases the credentials.

    It comes after the VIM, also if it is a script: DELETED removes that, and it may still be in use.
    """
    if _withdraws_itself(draft, capi):
        step = RunSenderScript(TERMINATE_START, "DELETED", capi.callback_url, is_forced=is_forced)
        plan.then(step, id=TERMINATE_START)
    else:
        # Also if none are known: a heal that was given up may have sent some without an answer.
        plan.then(WithdrawClusterCredentials(capi.callback_url, is_forced))


def terminate_workload(draft: TerminateWorkloadDraft) -> Plan[TerminateWorkloadDraft]:
    """Delete a workload cluster: first what others know of it, then the Cluster, then the rest (capi.md chapter 14)."""
    plan = Plan[TerminateWorkloadDraft]()
    if draft.withdrawn is not None and draft.withdrawn.is_forced:
        plan.then(MarkOrphans(OperationType.TERMINATE))
    capi = draft.workload.capi
    _begin(plan, draft, later=(TERMINATE_START,) if _withdraws_itself(draft, capi) else ())
    if draft.workload.vim_id is not None:
        plan.then(DeregisterClusterVim(draft.is_forceful))
    _withdraw_credentials(plan, draft, capi, is_forced=draft.is_forceful)
    plan.then(DeleteClusterObjects(capi.timeouts.delete, draft.is_forceful))
    _finish(plan, draft)
    if draft.has_scripts:
        plan.then(ForgetMachines())
    return plan


def terminate_vm(draft: TerminateVmDraft) -> Plan[TerminateVmDraft]:
    """Delete a VM-based VNF: the stack first, then the records about it (SEQ-035)."""
    plan = Plan[TerminateVmDraft]()
    # GRACEFUL: no instance uses the cluster, or the operation would have been refused.
    if draft.withdrawn is not None and draft.withdrawn.is_forced:
        plan.then(MarkOrphans(OperationType.TERMINATE))
    _begin(plan, draft)
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
        _finish(plan, draft)
        plan.then(ForgetMachines())
    elif draft.phases:
        plan.add(ForgetMachines(), after=[deleted])
    return plan


def terminate_cnf(draft: TerminateCnfDraft) -> Plan[TerminateCnfDraft]:
    """Delete a CNF. Providers of Cluster API go only if no cluster needs them, or by force (capi.md CR-043)."""
    plan = Plan[TerminateCnfDraft]()
    if draft.is_management:
        plan.then(CheckManagedClusters(draft.is_forceful))
    if draft.withdrawn is not None and draft.withdrawn.is_forced:
        plan.then(MarkOrphans(OperationType.TERMINATE))
    _begin(plan, draft)
    # None: a GRACEFUL termination without a time leaves each pod its own terminationGracePeriodSeconds.
    grace_s = 0.0 if draft.is_forceful else (draft.graceful_wait_s or None)
    plan.then(DeleteCnfObjects(grace_s, draft.is_forceful))
    if draft.is_management and draft.vim_id is not None:
        plan.then(RecordProviders())
    if TERMINATE_END in draft.phases:
        plan.then(RunCnfPhase(TERMINATE_END), id=TERMINATE_END)
    _finish(plan, draft)
    if draft.phases or draft.has_scripts:
        plan.then(ForgetMachines())
    return plan


def scale_vm(draft: ScaleVmDraft) -> Plan[ScaleVmDraft]:
    """Scale a VNF of machines; workers of a cluster leave it before their machines go, and join after they came."""
    plan = Plan[ScaleVmDraft]()
    _begin(plan, draft)
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
    _finish(plan, draft)
    return plan


def _has_trunks(cluster: ClusterParameters) -> bool:
    return cluster.kuryr_param is not None and cluster.kuryr_param.has_trunks


def _drain_limit_s(cluster: ClusterParameters) -> float:
    return max(INSTALL_TIMEOUT_S, cluster.drain_limit_s())


def _join_limit_s(cluster: ClusterParameters, nodes: int, *, masters: int = 1) -> float:
    return max(INSTALL_TIMEOUT_S, cluster.install_limit_s(nodes, masters=masters))


def heal_vm(draft: HealVmDraft) -> Plan[HealVmDraft]:
    """Heal a VNF of machines: replace some of them in place, or the whole stack.

    Nodes of a cluster leave it before their machines are replaced, and the new machines join it: masters one after another,
    then workers. The persistent volumes of a storage server leave it first, and come back last (5.2). A cluster of which all
    machines are replaced is built again, and its VIM gets the new access data.
    """
    plan = Plan[HealVmDraft]()
    _begin(plan, draft)
    cluster = draft.changed_cluster
    if cluster is not None and draft.masters:
        if draft.storage is not None:
            plan.then(ReleaseStorage(HEAL_START, _drain_limit_s(cluster)), id=f"{HEAL_START}/storage")
        _heal_masters(plan, draft, cluster)
        if len(draft.masters) == len(draft.servers):
            _finish(plan, draft)
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
    _finish(plan, draft)
    return plan


def _heal_masters(plan: Plan[HealVmDraft], draft: HealVmDraft, cluster: ClusterParameters) -> None:
    """Add the replacement of each master; the driver chooses the order, by what etcd can lose (sequences.md 5.3)."""
    for turn in range(1, len(draft.masters) + 1):
        plan.then(RunMasterHealPhase(HEAL_START, _drain_limit_s(cluster), turn), id=f"{HEAL_START}/{turn}")
        plan.then(HealMaster(turn), id=f"heal_resources/{turn}")
        if _has_trunks(cluster):
            plan.then(AwaitNewTrunks(), id=f"await_new_trunks/{turn}")
        plan.then(RunMasterHealPhase(HEAL_END, _join_limit_s(cluster, 1, masters=2), turn), id=f"{HEAL_END}/{turn}")


def operate_vm(draft: OperateVmDraft) -> Plan[OperateVmDraft]:
    """Start or stop machines."""
    plan = Plan[OperateVmDraft]()
    _begin(plan, draft)
    plan.then(OperateVnf(draft.graceful_wait_s))
    _finish(plan, draft)
    return plan


def change_ext_conn_vm(draft: ConnectVmDraft) -> Plan[ConnectVmDraft]:
    """Change the external connectivity of a VNF of plain machines."""
    plan = Plan[ConnectVmDraft]()
    _begin(plan, draft)
    plan.then(ConnectVnf())
    _finish(plan, draft)
    return plan


def change_template_vm(draft: ReplaceVmDraft) -> Plan[ReplaceVmDraft]:
    """Change a VNF of plain machines to another flavour or package, in one update or in a rolling one.

    In one update the reply of the change adds the coordination of each changed machine. In a rollback, one after the other is
    coordinated once all are as before: these steps are undone after the change, the last one first.
    """
    plan = Plan[ReplaceVmDraft]()
    _begin(plan, draft)
    if draft.rolling:
        for part in draft.rolling:
            _change_part(plan, draft, part)
    else:
        for number, server in reversed(list(enumerate(draft.machines_to_coordinate("old")))):
            plan.then(CoordinateOld(server.vdu_id, number), id=f"coordinate-old/{server.vdu_id}/{number}")
        plan.then(ReplaceTemplate())
    _finish(plan, draft)
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


def modify_info(_: ModifyDraft) -> Plan[ModifyDraft]:
    """Change the instance's document at the end; no service takes part."""
    return Plan[ModifyDraft]()


def modify_scripted(draft: ModifyScriptedDraft) -> Plan[ModifyScriptedDraft]:
    """Run the scripts of a modification, then change the instance's document."""
    plan = Plan[ModifyScriptedDraft]()
    _begin(plan, draft)
    _finish(plan, draft)
    return plan


def modify_cnf(draft: ModifyCnfDraft) -> Plan[ModifyCnfDraft]:
    """Change a CNF's configuration and images, then the instance's document."""
    plan = Plan[ModifyCnfDraft]()
    _begin(plan, draft)
    plan.then(UpdateCnfObjects(draft.wait_timeout_s))
    _finish(plan, draft)
    return plan


def scale_cnf(draft: ScaleCnfDraft) -> Plan[ScaleCnfDraft]:
    """Change the number of a CNF's pods."""
    plan = Plan[ScaleCnfDraft]()
    _begin(plan, draft)
    plan.then(ScaleCnfObjects(draft.wait_timeout_s))
    _finish(plan, draft)
    return plan


def scale_workload(draft: ScaleWorkloadDraft) -> Plan[ScaleWorkloadDraft]:
    """Change the number of Machines of a workload cluster that is available before and after (capi.md chapter 12).

    In a rollback the earlier numbers come first, then the wait.
    """
    plan = Plan[ScaleWorkloadDraft]()
    timeouts = draft.workload.capi.timeouts
    _begin(plan, draft)
    plan.then(AwaitSettledCluster(timeouts), id="await_settled_cluster/before")
    plan.then(ScaleClusterMachines(timeouts.control_plane + timeouts.workers))
    plan.then(AwaitSettledCluster(timeouts, waits_in_rollback=False), id="await_settled_cluster/after")
    _finish_cluster(plan, draft, draft.workload.capi)
    return plan


def roll_out_workload(draft: RollOutWorkloadDraft) -> Plan[RollOutWorkloadDraft]:
    """Replace every Machine of a workload cluster (CR-103); a heal does so although the cluster is not available (CR-117)."""
    plan = Plan[RollOutWorkloadDraft]()
    timeouts = draft.workload.capi.timeouts
    _begin(plan, draft)
    if not draft.is_heal:
        plan.then(AwaitSettledCluster(timeouts))
    plan.then(RollOutMachines())
    plan.then(AwaitRolledOutCluster(timeouts))
    _finish_cluster(plan, draft, draft.workload.capi)
    return plan


def heal_workload(draft: HealWorkloadDraft) -> Plan[HealWorkloadDraft]:
    """Replace Machines of a workload cluster, one after the other; the first reply adds a step for each."""
    plan = Plan[HealWorkloadDraft]()
    _begin(plan, draft)
    plan.then(CheckClusterMachines(draft.workload.capi.timeouts))
    _finish_cluster(plan, draft, draft.workload.capi)
    return plan


def repair_workload(draft: RepairWorkloadDraft) -> Plan[RepairWorkloadDraft]:
    """Apply what others have deleted or changed of a workload cluster, then wait until it is available (CR-121)."""
    plan = Plan[RepairWorkloadDraft]()
    _begin(plan, draft)
    plan.then(RepairClusterObjects(draft.wait_timeout_s))
    plan.then(AwaitSettledCluster(draft.workload.capi.timeouts))
    _finish_cluster(plan, draft, draft.workload.capi)
    return plan


def recreate_workload(draft: RecreateWorkloadDraft) -> Plan[RecreateWorkloadDraft]:
    """Delete a workload cluster, and build it again; its VIM waits meanwhile and keeps its id (CR-117)."""
    plan = Plan[RecreateWorkloadDraft]()
    capi = draft.workload.capi
    _begin(plan, draft, later=(TERMINATE_START,))
    if draft.workload.vim_id is not None:
        plan.then(ReleaseWorkloadVim())
    _withdraw_credentials(plan, draft, capi)
    plan.then(DeleteClusterObjects(capi.timeouts.delete))
    _build_cluster(plan, capi)
    _finish_cluster(plan, draft, capi, earlier=(INSTANTIATE_END,))
    return plan


def change_package_workload(draft: ReplaceWorkloadDraft) -> Plan[ReplaceWorkloadDraft]:
    """Change a workload cluster to another package: the control plane first, then the workers (capi.md chapter 13).

    Addons come between them: a network plugin may have to know the new version of the control plane before its workers do.
    """
    plan = Plan[ReplaceWorkloadDraft]()
    timeouts = draft.workload.capi.timeouts
    _begin(plan, draft)
    plan.then(UpdateClusterObjects("check"), id="update_cluster/check")
    plan.then(AwaitSettledCluster(timeouts))
    plan.then(UpdateClusterObjects("control_plane"), id="update_cluster/control_plane")
    plan.then(AwaitUpdatedCluster(timeouts), id="await_updated_cluster/control_plane")
    if draft.addon_files is not None:
        plan.then(UpdateClusterAddons("apply"), id="update_addons/apply")
    plan.then(UpdateClusterObjects("all"), id="update_cluster/all")
    plan.then(AwaitUpdatedCluster(timeouts), id="await_updated_cluster/all")
    if draft.addon_files is not None:
        plan.then(UpdateClusterAddons("prune"), id="update_addons/prune")
    plan.then(UpdateClusterObjects("prune"), id="update_cluster/prune")
    _finish_cluster(plan, draft, draft.workload.capi)
    return plan


def heal_cnf(draft: HealCnfDraft) -> Plan[HealCnfDraft]:
    """Replace pods of a CNF, repair its objects, or create them all again; a load balancer in front gets new node ports."""
    plan = Plan[HealCnfDraft]()
    _begin(plan, draft)
    if draft.is_repair:
        plan.then(RepairCnfObjects(draft.wait_timeout_s))
    elif not draft.is_whole:
        plan.then(HealCnfPods(draft.wait_timeout_s))
    else:
        if TERMINATE_END in draft.phases:
            plan.then(RunCnfPhase(TERMINATE_END), id=TERMINATE_END)
        plan.then(DeleteCnfObjects())
        plan.then(ApplyCnfObjects(draft.wait_timeout_s))
        if INSTANTIATE_END in draft.phases:
            plan.then(RunCnfPhase(INSTANTIATE_END), id=INSTANTIATE_END)
    _finish(plan, draft)
    return plan


def change_package_cnf(draft: ReplaceCnfDraft) -> Plan[ReplaceCnfDraft]:
    """Change a CNF to another package: all its objects, or the images of some VDUs."""
    plan = Plan[ReplaceCnfDraft]()
    _begin(plan, draft)
    if draft.images_of:
        plan.then(ChangeCnfImages(draft.wait_timeout_s))
    else:
        plan.then(ReplaceCnfObjects(draft.wait_timeout_s))
    _finish(plan, draft)
    return plan


SEQUENCES: Final = Sequences(
    [
        Operation(InstantiateVmDraft, instantiate_vm),
        Operation(InstantiateCnfDraft, instantiate_cnf),
        Operation(InstantiateWorkloadDraft, instantiate_workload),
        Operation(TerminateWorkloadDraft, terminate_workload),
        Operation(TerminateVmDraft, terminate_vm),
        Operation(TerminateCnfDraft, terminate_cnf),
        Operation(ScaleVmDraft, scale_vm),
        Operation(HealVmDraft, heal_vm),
        Operation(OperateVmDraft, operate_vm),
        Operation(ConnectVmDraft, change_ext_conn_vm),
        Operation(ReplaceVmDraft, change_template_vm),
        Operation(ModifyDraft, modify_info),
        Operation(ModifyScriptedDraft, modify_scripted),
        Operation(ModifyCnfDraft, modify_cnf),
        Operation(ScaleCnfDraft, scale_cnf),
        Operation(ScaleWorkloadDraft, scale_workload),
        Operation(RollOutWorkloadDraft, roll_out_workload),
        Operation(ReplaceWorkloadDraft, change_package_workload),
        Operation(HealCnfDraft, heal_cnf),
        Operation(HealWorkloadDraft, heal_workload),
        Operation(RepairWorkloadDraft, repair_workload),
        Operation(RecreateWorkloadDraft, recreate_workload),
        Operation(ReplaceCnfDraft, change_package_cnf),
    ],
    [
        RemoveRemains,
        MarkOrphans,
        RunDriverPhase,
        RunRegistryPhase,
        PrepareKuryrNetwork,
        InstallKuryrCluster,
        StopKuryr,
        StopIllKuryr,
        RemoveKuryrResources,
        AwaitNewTrunks,
        CreateVnfResources,
        RegisterClusterVim,
        ApplyCnfObjects,
        ApplyClusterObjects,
        AwaitWorkloadCluster,
        ApplyClusterAddons,
        SendClusterCredentials,
        RegisterWorkloadVim,
        ReleaseWorkloadVim,
        WithdrawClusterCredentials,
        DeleteClusterObjects,
        DeleteVnfResources,
        DeregisterClusterVim,
        ForgetMachines,
        DeleteCnfObjects,
        UpdateCnfObjects,
        ScaleCnfObjects,
        ScaleClusterMachines,
        AwaitSettledCluster,
        RollOutMachines,
        AwaitRolledOutCluster,
        UpdateClusterObjects,
        UpdateClusterAddons,
        AwaitUpdatedCluster,
        HealCnfPods,
        RepairCnfObjects,
        RepairClusterObjects,
        CheckClusterMachines,
        ReplaceClusterMachine,
        ReplaceCnfObjects,
        ChangeCnfImages,
        CheckManagedClusters,
        RecordProviders,
        RunCnfPhase,
        ScaleVnf,
        RunScalePhase,
        ForgetNewWorkers,
        HealVnfcs,
        HealMaster,
        RunHealPhase,
        RunMasterHealPhase,
        ReleaseStorage,
        RecreateVnf,
        RestoreScale,
        OperateVnf,
        ConnectVnf,
        ReplaceTemplate,
        ChangeMachines,
        RunScriptPhase,
        RunSenderScript,
        RunRollbackScript,
        CoordinateNew,
        CoordinateOld,
    ],
)
"""Every sequence, and every kind of step that a stored plan can have."""
