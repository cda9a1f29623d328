"""The sequences, each readable as its table of contents.

A plan is a pure function of the draft. An operation keeps the plan that it started with, also through an upgrade, and
replies may extend it. Steps that do not come after one another run side by side.
"""

from __future__ import annotations

from kubevnfm_sol.lcm import OperationType

from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.core.step import Plan
from kubevnfm_lcm_api.lifecycle.core.steps import DeregisterClusterVim, ForgetMachines, MarkOrphans, RemoveRemains
from kubevnfm_lcm_api.lifecycle.machines.change_steps import (
    ChangeMachines,
    ConnectVnf,
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
from kubevnfm_lcm_api.lifecycle.machines.roles import ROLES
from kubevnfm_lcm_api.lifecycle.machines.scaling import ScaleVmDraft
from kubevnfm_lcm_api.lifecycle.machines.snapshot_steps import (
    BeginSnapshot,
    CompleteSnapshot,
    RevertVnfc,
    SnapshotMachine,
)
from kubevnfm_lcm_api.lifecycle.machines.snapshots import CreateSnapshotDraft, RevertToSnapshotDraft
from kubevnfm_lcm_api.lifecycle.machines.stack_steps import CreateVnfResources, DeleteVnfResources, RecreateVnf
from kubevnfm_lcm_api.lifecycle.scripts.plans import begin, finish


@SEQUENCES.sequence(InstantiateVmDraft)
def instantiate_vm(draft: InstantiateVmDraft) -> Plan[InstantiateVmDraft]:
    """Build a VM-based VNF, and what its role makes of the machines, such as a cluster (sequences.md 1.1)."""
    plan, role = Plan[InstantiateVmDraft](), ROLES[draft.role_name]
    if draft.remains_of is not None:
        plan.then(RemoveRemains(draft.remains_of))
    begin(plan, draft)
    role.before_creation(plan, draft)
    plan.then(CreateVnfResources())
    role.after_creation(plan, draft)
    finish(plan, draft)
    return plan


@SEQUENCES.sequence(TerminateVmDraft)
def terminate_vm(draft: TerminateVmDraft) -> Plan[TerminateVmDraft]:
    """Delete a VM-based VNF: the stack first, then the records about it (SEQ-035)."""
    plan = Plan[TerminateVmDraft]()
    # GRACEFUL: no instance uses the cluster, or the operation would have been refused.
    if draft.withdrawn is not None and draft.withdrawn.is_forced:
        plan.then(MarkOrphans(OperationType.TERMINATE))
    begin(plan, draft)
    ROLES[draft.role_name].before_deletion(plan, draft)
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
    """Scale a VNF of plain machines."""
    plan = Plan[ScaleVmDraft]()
    begin(plan, draft)
    plan.then(ScaleVnf())
    finish(plan, draft)
    return plan


@SEQUENCES.sequence(HealVmDraft)
def heal_vm(draft: HealVmDraft) -> Plan[HealVmDraft]:
    """Heal a VNF of plain machines."""
    plan = Plan[HealVmDraft]()
    begin(plan, draft)
    replace_machines(plan, draft)
    finish(plan, draft)
    return plan


def replace_machines(plan: Plan[HealVmDraft], draft: HealVmDraft) -> None:
    """Add the replacement of some machines in place, or of the whole stack."""
    if draft.is_recreated:
        plan.then(DeleteVnfResources())
        plan.then(RecreateVnf())
        # The stack is created as instantiated; scalings since then are applied to it again.
        plan.then(RestoreScale())
    else:
        plan.then(HealVnfcs())


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


@SEQUENCES.sequence(CreateSnapshotDraft)
def create_snapshot_vm(draft: CreateSnapshotDraft) -> Plan[CreateSnapshotDraft]:
    """Take a snapshot of every machine, side by side."""
    plan = Plan[CreateSnapshotDraft]()
    begin(plan, draft)
    begun = plan.then(BeginSnapshot())
    for server in draft.before.servers:
        plan.add(SnapshotMachine(server.vnfc_id), id=f"snapshot/{server.vnfc_id}", after=[begun])
    plan.then(CompleteSnapshot())
    finish(plan, draft)
    return plan


@SEQUENCES.sequence(RevertToSnapshotDraft)
def revert_to_snapshot_vm(draft: RevertToSnapshotDraft) -> Plan[RevertToSnapshotDraft]:
    """Put every machine back, side by side."""
    plan = Plan[RevertToSnapshotDraft]()
    begin(plan, draft)
    before = plan.ends()
    for target in draft.targets:
        plan.add(RevertVnfc(target.vnfc_id), id=f"revert/{target.vnfc_id}", after=before)
    finish(plan, draft)
    return plan
