"""The sequences of changes of a cluster's nodes, and of the heal of a private registry, each readable as its table of contents."""

from __future__ import annotations

from kubevnfm_cluster.parameters import ClusterParameters

from kubevnfm_lcm_api.lifecycle.clusters.heal_steps import (
    HEAL_END,
    HEAL_START,
    HealMaster,
    ReleaseStorage,
    RunHealPhase,
    RunMasterHealPhase,
)
from kubevnfm_lcm_api.lifecycle.clusters.healing import HealClusterDraft
from kubevnfm_lcm_api.lifecycle.clusters.kuryr_steps import (
    AwaitNewTrunks,
    PrepareKuryrNetwork,
    RemoveKuryrResources,
    StopIllKuryr,
)
from kubevnfm_lcm_api.lifecycle.clusters.phase_steps import drain_limit_s, join_limit_s
from kubevnfm_lcm_api.lifecycle.clusters.registry_steps import HealRegistryDraft, RunRegistryPhase
from kubevnfm_lcm_api.lifecycle.clusters.scale_steps import (
    SCALE_END,
    SCALE_ROLLBACK_END,
    SCALE_START,
    ForgetNewWorkers,
    RunScalePhase,
)
from kubevnfm_lcm_api.lifecycle.clusters.scaling import ScaleClusterDraft
from kubevnfm_lcm_api.lifecycle.clusters.vim_steps import RegisterClusterVim
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.core.step import Plan
from kubevnfm_lcm_api.lifecycle.machines.change_steps import ScaleVnf
from kubevnfm_lcm_api.lifecycle.machines.plans import replace_machines
from kubevnfm_lcm_api.lifecycle.scripts.plans import begin, finish


@SEQUENCES.sequence(ScaleClusterDraft)
def scale_cluster(draft: ScaleClusterDraft) -> Plan[ScaleClusterDraft]:
    """Scale a cluster: workers leave it before their machines go, and join after they came."""
    plan, cluster = Plan[ScaleClusterDraft](), draft.cluster_parameters
    assert cluster is not None
    begin(plan, draft)
    if draft.leaving:
        plan.then(RunScalePhase(SCALE_START, drain_limit_s(cluster)), id=SCALE_START)
    else:
        # Undone last, when the machines are gone.
        plan.then(ForgetNewWorkers(), id=SCALE_ROLLBACK_END)
    plan.then(ScaleVnf())
    if _has_trunks(cluster) and not draft.leaving:
        plan.then(AwaitNewTrunks())
    more = sum(draft.counts.values()) - len(draft.before.servers)
    plan.then(RunScalePhase(SCALE_END, join_limit_s(cluster, max(1, more))), id=SCALE_END)
    finish(plan, draft)
    return plan


@SEQUENCES.sequence(HealClusterDraft)
def heal_cluster(draft: HealClusterDraft) -> Plan[HealClusterDraft]:
    """Heal a cluster: nodes leave it before their machines are replaced, and the new machines join it."""
    plan, cluster = Plan[HealClusterDraft](), draft.cluster_parameters
    begin(plan, draft)
    if draft.driver is None or cluster is None:
        # Scripts of the package build it again.
        replace_machines(plan, draft)
    else:
        _leave(plan, draft, cluster)
        if not draft.is_in_turns:
            replace_machines(plan, draft)
            _join(plan, draft, cluster)
    finish(plan, draft)
    return plan


def _leave(plan: Plan[HealClusterDraft], draft: HealClusterDraft, cluster: ClusterParameters) -> None:
    """Add the steps before machines are replaced: masters one after another, with their replacement, then workers.

    The persistent volumes of a storage server leave it first, and come back last (5.2).
    """
    if draft.masters and draft.storage is not None:
        plan.then(ReleaseStorage(HEAL_START, drain_limit_s(cluster)), id=f"{HEAL_START}/storage")
    # The driver chooses the order of the masters, by what etcd can lose (sequences.md 5.3).
    for turn in range(1, len(draft.masters) + 1):
        plan.then(RunMasterHealPhase(HEAL_START, drain_limit_s(cluster), turn), id=f"{HEAL_START}/{turn}")
        plan.then(HealMaster(turn), id=f"heal_resources/{turn}")
        if _has_trunks(cluster):
            plan.then(AwaitNewTrunks(), id=f"await_new_trunks/{turn}")
        plan.then(RunMasterHealPhase(HEAL_END, join_limit_s(cluster, 1, masters=2), turn), id=f"{HEAL_END}/{turn}")
    if draft.leaving and not draft.is_whole:
        plan.then(RunHealPhase(HEAL_START, drain_limit_s(cluster)), id=HEAL_START)
    if draft.is_whole and cluster.kuryr_param is not None:
        if draft.has_old_nodes:
            plan.then(StopIllKuryr())
        # Kuryr's ports would keep the old networks in use, and its load balancers the addresses of Services.
        plan.then(RemoveKuryrResources())


def _join(plan: Plan[HealClusterDraft], draft: HealClusterDraft, cluster: ClusterParameters) -> None:
    """Add the steps after machines were replaced. A cluster that is built again gives its VIM the new access data."""
    if draft.is_whole and cluster.kuryr_param is not None:
        plan.then(PrepareKuryrNetwork())
    elif _has_trunks(cluster):
        plan.then(AwaitNewTrunks())
    nodes = (draft.max_nodes if draft.is_whole else None) or len(draft.servers)
    plan.then(RunHealPhase(HEAL_END, join_limit_s(cluster, nodes)), id=HEAL_END)
    if draft.is_whole:
        plan.then(RegisterClusterVim())


@SEQUENCES.sequence(HealRegistryDraft)
def heal_registry(draft: HealRegistryDraft) -> Plan[HealRegistryDraft]:
    """Heal a private registry: install it on the machine that replaces the old one."""
    plan = Plan[HealRegistryDraft]()
    begin(plan, draft)
    replace_machines(plan, draft)
    plan.then(RunRegistryPhase(HEAL_END), id=HEAL_END)
    finish(plan, draft)
    return plan


def _has_trunks(cluster: ClusterParameters) -> bool:
    """Return whether each node of the cluster gets a trunk, on which its pods' ports are."""
    return cluster.kuryr_param is not None and cluster.kuryr_param.has_trunks
