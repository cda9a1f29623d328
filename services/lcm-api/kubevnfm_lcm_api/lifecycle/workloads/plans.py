"""The sequences, each readable as its table of contents.

A plan is a pure function of the draft. An operation keeps the plan that it started with, also through an upgrade, and
replies may extend it. Steps that do not come after one another run side by side.
"""

from __future__ import annotations

from collections.abc import Collection

from kubevnfm_events.mgmt import INSTANTIATE_END, TERMINATE_START
from kubevnfm_sol.lcm import OperationType

from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.core.step import Plan
from kubevnfm_lcm_api.lifecycle.core.steps import DeregisterClusterVim, ForgetMachines, MarkOrphans, RemoveRemains
from kubevnfm_lcm_api.lifecycle.core.workload_cluster import CapiParameters
from kubevnfm_lcm_api.lifecycle.scripts.plans import begin, finish
from kubevnfm_lcm_api.lifecycle.scripts.steps import last_phases
from kubevnfm_lcm_api.lifecycle.workloads.change_steps import (
    CheckClusterMachines,
    RepairClusterObjects,
    UpdateClusterAddons,
    UpdateClusterObjects,
)
from kubevnfm_lcm_api.lifecycle.workloads.cluster_steps import (
    ApplyClusterAddons,
    ApplyClusterObjects,
    AwaitRolledOutCluster,
    AwaitSettledCluster,
    AwaitUpdatedCluster,
    AwaitWorkloadCluster,
    DeleteClusterObjects,
    RollOutMachines,
    ScaleClusterMachines,
)
from kubevnfm_lcm_api.lifecycle.workloads.credential_steps import (
    RegisterWorkloadVim,
    ReleaseWorkloadVim,
    SendClusterCredentials,
    WithdrawClusterCredentials,
)
from kubevnfm_lcm_api.lifecycle.workloads.drafts import (
    InstantiateWorkloadDraft,
    RollOutWorkloadDraft,
    ScaleWorkloadDraft,
    TerminateWorkloadDraft,
    WorkloadDraft,
)
from kubevnfm_lcm_api.lifecycle.workloads.healing import HealWorkloadDraft, RepairWorkloadDraft
from kubevnfm_lcm_api.lifecycle.workloads.recreating import NewClusterDraft, RecreateWorkloadDraft
from kubevnfm_lcm_api.lifecycle.workloads.replacing import ReplaceWorkloadDraft
from kubevnfm_lcm_api.lifecycle.workloads.sender_steps import RunSenderScript


def _finish_cluster(
    plan: Plan[WorkloadDraft], draft: WorkloadDraft, capi: CapiParameters, *, earlier: Collection[str] = ()
) -> None:
    """As `finish`, for a change of a workload cluster: a sender of the package can send its credentials again."""
    ends = [phase for phase in last_phases(draft) if "_rollback_" not in phase] if capi.sender == "package" else []
    for phase in ends:
        if phase not in earlier:
            plan.then(RunSenderScript.with_parameters(phase, "ROTATED", capi), id=phase)
    finish(plan, draft, earlier=(*ends, *earlier))


@SEQUENCES.sequence(InstantiateWorkloadDraft)
def instantiate_workload(draft: InstantiateWorkloadDraft) -> Plan[InstantiateWorkloadDraft]:
    """Build a workload cluster with Cluster API, and make it a VIM (capi.md chapters 7 to 11)."""
    plan = Plan[InstantiateWorkloadDraft]()
    if draft.remains_of is not None:
        plan.then(RemoveRemains(draft.remains_of))
    begin(plan, draft)
    _build_cluster(plan, draft.capi)
    finish(plan, draft, earlier=(INSTANTIATE_END,) if draft.capi.sender == "package" else ())
    return plan


def _build_cluster(plan: Plan[NewClusterDraft], capi: CapiParameters) -> None:
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


def _withdraws_itself(draft: WorkloadDraft, capi: CapiParameters) -> bool:
    """Return whether a script of the package has the receiver erase the credentials."""
    return capi.sender == "package" and TERMINATE_START in draft.scripts and draft.credentials_sent is not None


def _withdraw_credentials(
    plan: Plan[WorkloadDraft], draft: WorkloadDraft, capi: CapiParameters, *, is_forced: bool = False
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


@SEQUENCES.sequence(TerminateWorkloadDraft)
def terminate_workload(draft: TerminateWorkloadDraft) -> Plan[TerminateWorkloadDraft]:
    """Delete a workload cluster: first what others know of it, then the Cluster, then the rest (capi.md chapter 14)."""
    plan = Plan[TerminateWorkloadDraft]()
    if draft.withdrawn is not None and draft.withdrawn.is_forced:
        plan.then(MarkOrphans(OperationType.TERMINATE))
    capi = draft.workload.capi
    begin(plan, draft, later=(TERMINATE_START,) if _withdraws_itself(draft, capi) else ())
    if draft.workload.vim_id is not None:
        plan.then(DeregisterClusterVim(draft.is_forceful))
    _withdraw_credentials(plan, draft, capi, is_forced=draft.is_forceful)
    plan.then(DeleteClusterObjects(capi.timeouts.delete, draft.is_forceful))
    finish(plan, draft)
    if draft.has_scripts:
        plan.then(ForgetMachines())
    return plan


@SEQUENCES.sequence(ScaleWorkloadDraft)
def scale_workload(draft: ScaleWorkloadDraft) -> Plan[ScaleWorkloadDraft]:
    """Change the number of Machines of a workload cluster that is available before and after (capi.md chapter 12).

    In a rollback the earlier numbers come first, then the wait.
    """
    plan = Plan[ScaleWorkloadDraft]()
    timeouts = draft.workload.capi.timeouts
    begin(plan, draft)
    plan.then(AwaitSettledCluster(timeouts), id="await_settled_cluster/before")
    plan.then(ScaleClusterMachines(timeouts.control_plane + timeouts.workers))
    plan.then(AwaitSettledCluster(timeouts, waits_in_rollback=False), id="await_settled_cluster/after")
    _finish_cluster(plan, draft, draft.workload.capi)
    return plan


@SEQUENCES.sequence(RollOutWorkloadDraft)
def roll_out_workload(draft: RollOutWorkloadDraft) -> Plan[RollOutWorkloadDraft]:
    """Replace every Machine of a workload cluster (CR-103); a heal does so although the cluster is not available (CR-117)."""
    plan = Plan[RollOutWorkloadDraft]()
    timeouts = draft.workload.capi.timeouts
    begin(plan, draft)
    if not draft.is_heal:
        plan.then(AwaitSettledCluster(timeouts))
    plan.then(RollOutMachines())
    plan.then(AwaitRolledOutCluster(timeouts))
    _finish_cluster(plan, draft, draft.workload.capi)
    return plan


@SEQUENCES.sequence(HealWorkloadDraft)
def heal_workload(draft: HealWorkloadDraft) -> Plan[HealWorkloadDraft]:
    """Replace Machines of a workload cluster, one after the other; the first reply adds a step for each."""
    plan = Plan[HealWorkloadDraft]()
    begin(plan, draft)
    plan.then(CheckClusterMachines(draft.workload.capi.timeouts))
    _finish_cluster(plan, draft, draft.workload.capi)
    return plan


@SEQUENCES.sequence(RepairWorkloadDraft)
def repair_workload(draft: RepairWorkloadDraft) -> Plan[RepairWorkloadDraft]:
    """Apply what others have deleted or changed of a workload cluster, then wait until it is available (CR-121)."""
    plan = Plan[RepairWorkloadDraft]()
    begin(plan, draft)
    plan.then(RepairClusterObjects(draft.wait_timeout_s))
    plan.then(AwaitSettledCluster(draft.workload.capi.timeouts))
    _finish_cluster(plan, draft, draft.workload.capi)
    return plan


@SEQUENCES.sequence(RecreateWorkloadDraft)
def recreate_workload(draft: RecreateWorkloadDraft) -> Plan[RecreateWorkloadDraft]:
    """Delete a workload cluster, and build it again; its VIM waits meanwhile and keeps its id (CR-117)."""
    plan = Plan[RecreateWorkloadDraft]()
    capi = draft.workload.capi
    begin(plan, draft, later=(TERMINATE_START,))
    if draft.workload.vim_id is not None:
        plan.then(ReleaseWorkloadVim())
    _withdraw_credentials(plan, draft, capi)
    plan.then(DeleteClusterObjects(capi.timeouts.delete))
    _build_cluster(plan, capi)
    _finish_cluster(plan, draft, capi, earlier=(INSTANTIATE_END,))
    return plan


@SEQUENCES.sequence(ReplaceWorkloadDraft)
def change_package_workload(draft: ReplaceWorkloadDraft) -> Plan[ReplaceWorkloadDraft]:
    """Change a workload cluster to another package: the control plane first, then the workers (capi.md chapter 13).

    Addons come between them: a network plugin may have to know the new version of the control plane before its workers do.
    """
    plan = Plan[ReplaceWorkloadDraft]()
    timeouts = draft.workload.capi.timeouts
    begin(plan, draft)
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
