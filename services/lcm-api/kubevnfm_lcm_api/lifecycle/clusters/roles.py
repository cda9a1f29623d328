"""The roles that management drivers give machines: a cluster, one with Kuryr, a private registry."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from kubevnfm_cluster.parameters import ROOT
from kubevnfm_cluster.request import read_cluster_parameters
from kubevnfm_csar.hot import BaseHot
from kubevnfm_events.mgmt import INSTANTIATE_END, INSTANTIATE_START, KURYR_DRIVER, TERMINATE_START
from kubevnfm_kit.errors import Conflict, InvalidInput, Unprocessable

from kubevnfm_lcm_api.lifecycle.clusters.heal_steps import HEAL_END
from kubevnfm_lcm_api.lifecycle.clusters.healing import (
    after_nodes,
    before_nodes,
    drain_limit_s,
    has_trunks,
    healed_cluster,
    join_limit_s,
)
from kubevnfm_lcm_api.lifecycle.clusters.kuryr_steps import (
    AwaitNewTrunks,
    InstallKuryrCluster,
    PrepareKuryrNetwork,
    RemoveKuryrResources,
    StopKuryr,
)
from kubevnfm_lcm_api.lifecycle.clusters.nodes import has_nodes
from kubevnfm_lcm_api.lifecycle.clusters.parameters import CheckedCluster, check_cluster_parameters
from kubevnfm_lcm_api.lifecycle.clusters.phase_steps import INSTALL_TIMEOUT_S, RunDriverPhase
from kubevnfm_lcm_api.lifecycle.clusters.registries import check_certificates, check_registry
from kubevnfm_lcm_api.lifecycle.clusters.registry_steps import RunRegistryPhase
from kubevnfm_lcm_api.lifecycle.clusters.scale_steps import (
    SCALE_END,
    SCALE_ROLLBACK_END,
    SCALE_START,
    ForgetNewWorkers,
    RunScalePhase,
)
from kubevnfm_lcm_api.lifecycle.clusters.scaling import cluster_fields
from kubevnfm_lcm_api.lifecycle.clusters.vim_steps import RegisterClusterVim
from kubevnfm_lcm_api.lifecycle.clusters.volumes import check_manifests
from kubevnfm_lcm_api.lifecycle.core.step import Plan
from kubevnfm_lcm_api.lifecycle.machines.drafts import InstantiateVmDraft, TerminateVmDraft
from kubevnfm_lcm_api.lifecycle.machines.drivers import has_kuryr
from kubevnfm_lcm_api.lifecycle.machines.healing import HealVmDraft
from kubevnfm_lcm_api.lifecycle.machines.roles import (
    ClusterFields,
    HealFields,
    NewClusterFields,
    RequestedMachines,
    Role,
    role,
)
from kubevnfm_lcm_api.lifecycle.machines.scaling import ScaleVmDraft
from kubevnfm_lcm_api.lifecycle.machines.under_change import VnfUnderChange


class DrivenMachines(Role):
    """Machines that a management driver works on."""

    def before_creation(self, plan: Plan[InstantiateVmDraft], draft: InstantiateVmDraft) -> None:
        """Run the driver's first phase."""
        if INSTANTIATE_START in draft.phases:
            plan.then(RunDriverPhase(INSTANTIATE_START), id=INSTANTIATE_START)

    def before_deletion(self, plan: Plan[TerminateVmDraft], draft: TerminateVmDraft) -> None:
        """Run the driver's last phase. Without a stack there are no machines to run it on."""
        if draft.phases.get(TERMINATE_START) not in (None, KURYR_DRIVER) and _has_machines(draft):
            plan.then(RunDriverPhase(TERMINATE_START), id=TERMINATE_START)


@role("registry")
class PrivateRegistry(DrivenMachines):
    """One machine that serves images to clusters."""

    async def instantiated(self, asked: RequestedMachines) -> NewClusterFields:
        """Check the registry that the request describes."""
        await check_registry(
            asked.packages,
            asked.common.package,
            asked.request.additional_params,
            asked.flavour,
            asked.base_hot,
            level_id=asked.request.instantiation_level_id,
        )
        return {}

    def after_creation(self, plan: Plan[InstantiateVmDraft], draft: InstantiateVmDraft) -> None:
        """Install the registry."""
        plan.then(RunRegistryPhase("instantiate_end"), id=INSTANTIATE_END)

    def after_healing(self, plan: Plan[HealVmDraft], draft: HealVmDraft) -> None:
        """Install the registry on the new machine."""
        plan.then(RunRegistryPhase("heal_end"), id=HEAL_END)


@role("cluster")
class Cluster(DrivenMachines):
    """Machines that are the nodes of a Kubernetes cluster."""

    async def instantiated(self, asked: RequestedMachines) -> NewClusterFields:
        """Return what the cluster is to be.

        A script may have parameters of its own under the cluster's name. Then no VIM is made of what it builds.
        """
        is_driven = INSTANTIATE_END in asked.phases
        try:
            # In a thread, because a private key may have to be opened with its passphrase.
            cluster = await asyncio.to_thread(
                check_cluster_parameters,
                asked.request.additional_params,
                flavour=asked.flavour,
                base_hot=asked.base_hot,
                file_names=asked.file_names,
                api_version=asked.common.api_version,
                has_user_data=asked.has_user_data,
                instantiation_level_id=asked.request.instantiation_level_id,
                has_kuryr_driver=has_kuryr(asked.phases),
            )
        except (InvalidInput, Unprocessable):
            if is_driven:
                raise
            return {}
        if is_driven:
            await check_certificates(asked.packages, asked.common.package, cluster.parameters)
            await check_manifests(asked.packages, asked.common.package, cluster.parameters)
        return {
            "cluster_vim_name": await _vim_name(asked, cluster),
            "cluster_parameters": cluster.parameters,
            "max_nodes": cluster.max_nodes,
            "masters": cluster.masters,
        }

    def scaled(
        self, vnf: VnfUnderChange, wanted: Mapping[str, int], given: Mapping[str, Any], field: str
    ) -> ClusterFields:
        """Return the nodes that come or go."""
        return cluster_fields(vnf, wanted, given, field)

    def healed(
        self,
        vnf: VnfUnderChange,
        chosen: Collection[str] | None,
        given: Mapping[str, Any],
        *,
        base_hot: BaseHot | None,
    ) -> HealFields:
        """Return the nodes that are replaced."""
        return healed_cluster(vnf, chosen, given, base_hot=base_hot)

    def after_creation(self, plan: Plan[InstantiateVmDraft], draft: InstantiateVmDraft) -> None:
        """Install the cluster and register it; that of a script is registered once the script has said how."""
        self._install(plan, draft)
        if draft.cluster_vim_name is not None and INSTANTIATE_END in draft.phases:
            plan.then(RegisterClusterVim())

    def _install(self, plan: Plan[InstantiateVmDraft], draft: InstantiateVmDraft) -> None:
        if INSTANTIATE_END in draft.phases:
            plan.then(RunDriverPhase(INSTANTIATE_END, _install_limit_s(draft)), id=INSTANTIATE_END)

    def before_scaling(self, plan: Plan[ScaleVmDraft], draft: ScaleVmDraft) -> None:
        """Take the workers that leave out of the cluster."""
        assert draft.cluster_parameters is not None
        if draft.leaving:
            plan.then(RunScalePhase(SCALE_START, drain_limit_s(draft.cluster_parameters)), id=SCALE_START)
        else:
            # Undone last, when the machines are gone.
            plan.then(ForgetNewWorkers(), id=SCALE_ROLLBACK_END)

    def after_scaling(self, plan: Plan[ScaleVmDraft], draft: ScaleVmDraft) -> None:
        """Let the new workers join."""
        assert draft.cluster_parameters is not None
        more = sum(draft.counts.values()) - len(draft.before.servers)
        limit_s = join_limit_s(draft.cluster_parameters, max(1, more))
        plan.then(RunScalePhase(SCALE_END, limit_s), id=SCALE_END)

    def before_healing(self, plan: Plan[HealVmDraft], draft: HealVmDraft) -> None:
        """Take the nodes that are replaced out of the cluster."""
        before_nodes(plan, draft)

    def after_healing(self, plan: Plan[HealVmDraft], draft: HealVmDraft) -> None:
        """Let the new nodes join, or build the cluster again."""
        after_nodes(plan, draft)


@role("kuryr")
class KuryrCluster(Cluster):
    """A cluster whose pods are in networks of OpenStack."""

    def _install(self, plan: Plan[InstantiateVmDraft], draft: InstantiateVmDraft) -> None:
        plan.then(PrepareKuryrNetwork())
        plan.then(InstallKuryrCluster(limit_s=_install_limit_s(draft)), id=INSTANTIATE_END)

    def before_deletion(self, plan: Plan[TerminateVmDraft], draft: TerminateVmDraft) -> None:
        """Remove what Kuryr has made, once nothing makes more."""
        super().before_deletion(plan, draft)
        resources = draft.resources
        if (
            resources is not None
            and _has_machines(draft)
            and has_nodes(resources, read_cluster_parameters(draft.parameters))
        ):
            plan.then(StopKuryr())
        plan.then(RemoveKuryrResources())

    def after_scaling(self, plan: Plan[ScaleVmDraft], draft: ScaleVmDraft) -> None:
        """Let the new workers join, once they have their trunks."""
        if has_trunks(draft.cluster_parameters) and not draft.leaving:
            plan.then(AwaitNewTrunks())
        super().after_scaling(plan, draft)


def _has_machines(draft: TerminateVmDraft) -> bool:
    return draft.resources is not None and not draft.is_stack_missing


def _install_limit_s(draft: InstantiateVmDraft) -> float:
    """Return the time for the installation; shorter limits in the request do not shorten the measured worst case."""
    if draft.cluster_parameters is None:
        return INSTALL_TIMEOUT_S
    return join_limit_s(draft.cluster_parameters, draft.max_nodes or 1, masters=draft.masters)


async def _vim_name(asked: RequestedMachines, cluster: CheckedCluster) -> str:
    """Return the name of the cluster's VIM. Raises Conflict if it is taken."""
    instance_id = asked.common.vnf_instance_id
    name = cluster.parameters.vim_name or f"kubernetes_vim_{instance_id}"
    for vim in await asked.vims.list({"name": [name]}):
        if vim.get("extra", {}).get("vnf_instance_id") != instance_id:
            raise Conflict(f"{ROOT}/vim_name: a VIM named {name} is registered already")
    return name
