"""The sequences, each readable as its table of contents.

A plan is a pure function of the draft. An operation keeps the plan that it started with, also through an upgrade, and
replies may extend it. Steps that do not come after one another run side by side.
"""

from __future__ import annotations

from kubevnfm_events.mgmt import INSTANTIATE_END, TERMINATE_END
from kubevnfm_sol.lcm import OperationType

from kubevnfm_lcm_api.lifecycle.containers.change_steps import (
    ChangeCnfImages,
    HealCnfPods,
    RepairCnfObjects,
    ReplaceCnfObjects,
    ScaleCnfObjects,
)
from kubevnfm_lcm_api.lifecycle.containers.changed_holds import leave_earlier, take_new
from kubevnfm_lcm_api.lifecycle.containers.changing import HealCnfDraft, ScaleCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.drafts import InstantiateCnfDraft, TerminateCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.link_steps import HoldCnfLinks, ReleaseCnfLinks
from kubevnfm_lcm_api.lifecycle.containers.management_steps import CheckManagedClusters, RecordProviders
from kubevnfm_lcm_api.lifecycle.containers.modifying import ModifyCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.object_steps import ApplyCnfObjects, DeleteCnfObjects, UpdateCnfObjects
from kubevnfm_lcm_api.lifecycle.containers.phase_steps import RunCnfPhase
from kubevnfm_lcm_api.lifecycle.containers.replacing import ReplaceCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.volume_steps import HoldCnfVolumes, ReleaseCnfVolumes
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.core.step import Plan
from kubevnfm_lcm_api.lifecycle.core.steps import ForgetMachines, MarkOrphans, RemoveRemains
from kubevnfm_lcm_api.lifecycle.scripts.plans import begin, finish


@SEQUENCES.sequence(InstantiateCnfDraft)
def instantiate_cnf(draft: InstantiateCnfDraft) -> Plan[InstantiateCnfDraft]:
    """Deploy a CNF."""
    plan = Plan[InstantiateCnfDraft]()
    if draft.remains_of is not None:
        plan.then(RemoveRemains(draft.remains_of))
    begin(plan, draft)
    if draft.networks:
        plan.then(HoldCnfLinks())
    if draft.volumes:
        plan.then(HoldCnfVolumes())
    plan.then(ApplyCnfObjects(draft.wait_timeout_s))
    if INSTANTIATE_END in draft.phases:
        plan.then(RunCnfPhase(INSTANTIATE_END), id=INSTANTIATE_END)
    finish(plan, draft)
    return plan


@SEQUENCES.sequence(TerminateCnfDraft)
def terminate_cnf(draft: TerminateCnfDraft) -> Plan[TerminateCnfDraft]:
    """Delete a CNF. Providers of Cluster API go only if no cluster needs them, or by force (capi.md CR-043)."""
    plan = Plan[TerminateCnfDraft]()
    if draft.is_management:
        plan.then(CheckManagedClusters(draft.is_forceful))
    if draft.withdrawn is not None and draft.withdrawn.is_forced:
        plan.then(MarkOrphans(OperationType.TERMINATE))
    begin(plan, draft)
    # None: a GRACEFUL termination without a time leaves each pod its own terminationGracePeriodSeconds.
    grace_s = 0.0 if draft.is_forceful else (draft.graceful_wait_s or None)
    plan.then(DeleteCnfObjects(grace_s, draft.is_forceful, draft.end_hooks_s))
    if draft.holds_links:
        plan.then(ReleaseCnfLinks())
    if draft.holds_volumes:
        plan.then(ReleaseCnfVolumes(draft.is_forceful))
    if draft.is_management and draft.vim_id is not None:
        plan.then(RecordProviders())
    if TERMINATE_END in draft.phases:
        plan.then(RunCnfPhase(TERMINATE_END), id=TERMINATE_END)
    finish(plan, draft)
    if draft.phases or draft.has_scripts:
        plan.then(ForgetMachines())
    return plan


@SEQUENCES.sequence(ModifyCnfDraft)
def modify_cnf(draft: ModifyCnfDraft) -> Plan[ModifyCnfDraft]:
    """Change a CNF's configuration and images, then the instance's document."""
    plan = Plan[ModifyCnfDraft]()
    begin(plan, draft)
    plan.then(UpdateCnfObjects(draft.wait_timeout_s))
    finish(plan, draft)
    return plan


@SEQUENCES.sequence(ScaleCnfDraft)
def scale_cnf(draft: ScaleCnfDraft) -> Plan[ScaleCnfDraft]:
    """Change the number of a CNF's pods."""
    plan = Plan[ScaleCnfDraft]()
    begin(plan, draft)
    plan.then(ScaleCnfObjects(draft.wait_timeout_s))
    finish(plan, draft)
    return plan


@SEQUENCES.sequence(HealCnfDraft)
def heal_cnf(draft: HealCnfDraft) -> Plan[HealCnfDraft]:
    """Replace pods of a CNF, repair its objects, or create them all again; a load balancer in front gets new node ports."""
    plan = Plan[HealCnfDraft]()
    begin(plan, draft)
    if draft.is_repair:
        plan.then(RepairCnfObjects(draft.wait_timeout_s))
    elif not draft.is_whole:
        plan.then(HealCnfPods(draft.wait_timeout_s))
    else:
        if TERMINATE_END in draft.phases:
            plan.then(RunCnfPhase(TERMINATE_END), id=TERMINATE_END)
        plan.then(DeleteCnfObjects(hooks_s=draft.end_hooks_s))
        plan.then(ApplyCnfObjects(draft.wait_timeout_s))
        if INSTANTIATE_END in draft.phases:
            plan.then(RunCnfPhase(INSTANTIATE_END), id=INSTANTIATE_END)
    finish(plan, draft)
    return plan


@SEQUENCES.sequence(ReplaceCnfDraft)
def change_package_cnf(draft: ReplaceCnfDraft) -> Plan[ReplaceCnfDraft]:
    """Change a CNF to another package: all its objects, or the images of some VDUs."""
    plan = Plan[ReplaceCnfDraft]()
    begin(plan, draft)
    take_new(plan, draft)
    if draft.images_of:
        plan.then(ChangeCnfImages(draft.wait_timeout_s))
    else:
        plan.then(ReplaceCnfObjects(draft.wait_timeout_s))
    finish(plan, draft)
    leave_earlier(plan, draft)
    return plan
