"""The sequences, each readable as its table of contents, and how their drafts are written and read.

A plan is a pure function of the draft; an operation keeps the plan it started with. Steps that do not come after one
another run side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_secrets import KeyRing, sealing

from kubevnfm_lcm_api.lifecycle.domain.change_drafts import (
    ConnectVmDraft,
    HealVmDraft,
    ModifyDraft,
    OperateVmDraft,
    ReplaceVmDraft,
    ScaleVmDraft,
)
from kubevnfm_lcm_api.lifecycle.domain.drafts import (
    InstantiateCnfDraft,
    InstantiateVmDraft,
    TerminateCnfDraft,
    TerminateVmDraft,
)
from kubevnfm_lcm_api.lifecycle.domain.occurrence import PlannedStep
from kubevnfm_lcm_api.lifecycle.domain.steps.base import Draft, Step
from kubevnfm_lcm_api.lifecycle.domain.steps.changes import (
    ConnectVnf,
    HealVnfcs,
    OperateVnf,
    RecreateVnf,
    ReplaceTemplate,
    RestoreScale,
    ScaleVnf,
)
from kubevnfm_lcm_api.lifecycle.domain.steps.machines import (
    ForgetMachines,
    InstallOnMachines,
    PrepareInstantiate,
    PrepareTerminate,
)
from kubevnfm_lcm_api.lifecycle.domain.steps.objects import ApplyCnfObjects, DeleteCnfObjects
from kubevnfm_lcm_api.lifecycle.domain.steps.remains import RemoveRemains
from kubevnfm_lcm_api.lifecycle.domain.steps.stacks import CreateVnfResources, DeleteVnfResources
from kubevnfm_lcm_api.lifecycle.domain.steps.vims import DeregisterClusterVim, RegisterClusterVim

AnyStep = Step[Any, Any]


def instantiate_vm(draft: InstantiateVmDraft) -> Sequence[AnyStep]:
    """Return the steps that build a VM-based VNF, and a cluster out of it where the VNFD says so (sequences.md 1.1)."""
    steps: list[AnyStep] = []
    if draft.remains_of is not None:
        steps.append(RemoveRemains())
    if "instantiate_start" in draft.phases:
        steps.append(PrepareInstantiate())
    steps.append(CreateVnfResources())
    if "instantiate_end" in draft.phases:
        steps.append(InstallOnMachines())
    if draft.cluster_vim_name is not None:
        steps.append(RegisterClusterVim())
    return steps


def instantiate_cnf(draft: InstantiateCnfDraft) -> Sequence[AnyStep]:
    """Return the steps that deploy a CNF."""
    steps: list[AnyStep] = []
    if draft.remains_of is not None:
        steps.append(RemoveRemains())
    steps.append(ApplyCnfObjects())
    return steps


def terminate_vm(draft: TerminateVmDraft) -> Sequence[AnyStep]:
    """Return the steps that take a VM-based VNF down: the stack first, then what is known about it (SEQ-035)."""
    steps: list[AnyStep] = []
    if "terminate_start" in draft.phases and draft.resources is not None:
        steps.append(PrepareTerminate())
    steps.append(DeleteVnfResources())
    if draft.cluster_vim_key is not None:
        steps.append(DeregisterClusterVim())
    if draft.phases:
        steps.append(ForgetMachines())
    return steps


def terminate_cnf(_: TerminateCnfDraft) -> Sequence[AnyStep]:
    """Return the steps that take a CNF away."""
    return [DeleteCnfObjects()]


def scale_vm(_: ScaleVmDraft) -> Sequence[AnyStep]:
    """Return the steps that scale a VNF of plain machines."""
    return [ScaleVnf()]


def heal_vm(draft: HealVmDraft) -> Sequence[AnyStep]:
    """Return the steps that heal a VNF of plain machines: some of them in place, or the whole stack anew."""
    if draft.is_recreated:
        return [DeleteVnfResources(), RecreateVnf(), RestoreScale()]
    return [HealVnfcs()]


def operate_vm(_: OperateVmDraft) -> Sequence[AnyStep]:
    """Return the steps that start or stop machines."""
    return [OperateVnf()]


def change_ext_conn_vm(_: ConnectVmDraft) -> Sequence[AnyStep]:
    """Return the steps that change the external connectivity of a VNF of plain machines."""
    return [ConnectVnf()]


def change_template_vm(_: ReplaceVmDraft) -> Sequence[AnyStep]:
    """Return the steps that change a VNF of plain machines to another flavour or package."""
    return [ReplaceTemplate()]


def modify_info(_: ModifyDraft) -> Sequence[AnyStep]:
    """Nobody is asked: the instance's document changes at the end."""
    return []


@dataclass(frozen=True)
class Plan:
    """One kind of operation: its draft and its sequence."""

    draft: type[Draft]
    steps: Callable[[Any], Sequence[AnyStep]]


PLANS: Final[Mapping[str, Plan]] = {
    InstantiateVmDraft.plan: Plan(InstantiateVmDraft, instantiate_vm),
    InstantiateCnfDraft.plan: Plan(InstantiateCnfDraft, instantiate_cnf),
    TerminateVmDraft.plan: Plan(TerminateVmDraft, terminate_vm),
    TerminateCnfDraft.plan: Plan(TerminateCnfDraft, terminate_cnf),
    ScaleVmDraft.plan: Plan(ScaleVmDraft, scale_vm),
    HealVmDraft.plan: Plan(HealVmDraft, heal_vm),
    OperateVmDraft.plan: Plan(OperateVmDraft, operate_vm),
    ConnectVmDraft.plan: Plan(ConnectVmDraft, change_ext_conn_vm),
    ReplaceVmDraft.plan: Plan(ReplaceVmDraft, change_template_vm),
    ModifyDraft.plan: Plan(ModifyDraft, modify_info),
}

_SIDE_BY_SIDE: Final = {
    ForgetMachines.name: DeleteVnfResources.name,
    DeregisterClusterVim.name: DeleteVnfResources.name,
}
"""Steps that come after a named step and not after the one before them in the list."""

STEPS: Final[Mapping[str, AnyStep]] = {
    step.name: step
    for step in (
        RemoveRemains(),
        PrepareInstantiate(),
        CreateVnfResources(),
        InstallOnMachines(),
        RegisterClusterVim(),
        ApplyCnfObjects(),
        PrepareTerminate(),
        DeleteVnfResources(),
        DeregisterClusterVim(),
        ForgetMachines(),
        DeleteCnfObjects(),
        ScaleVnf(),
        HealVnfcs(),
        RecreateVnf(),
        RestoreScale(),
        OperateVnf(),
        ConnectVnf(),
        ReplaceTemplate(),
    )
}
"""Every step by its stored name."""


def planned(draft: Any) -> tuple[PlannedStep, ...]:
    """Return the plan that is stored with a new operation."""
    steps = PLANS[draft.plan].steps(draft)
    names = [step.name for step in steps]
    return tuple(
        PlannedStep(
            name=name,
            after=(_SIDE_BY_SIDE[name],) if name in _SIDE_BY_SIDE else tuple(names[index - 1 : index] if index else ()),
        )
        for index, name in enumerate(names)
    )


def write_draft(draft: Draft, ring: KeyRing) -> dict[str, Any]:
    """Return the draft as it is stored: secrets sealed."""
    return draft.model_dump(mode="json", exclude_none=True, context=sealing(ring))


def read_draft(plan: str, document: Mapping[str, Any]) -> Any:
    """Return the draft of a stored operation."""
    return PLANS[plan].draft.model_validate(document)
