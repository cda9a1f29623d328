"""The roles that management drivers give machines: a cluster, one with Kuryr, a private registry."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from kubevnfm_cluster.parameters import ROOT
from kubevnfm_events.mgmt import INSTANTIATE_END, INSTANTIATE_START, KURYR_DRIVER, TERMINATE_START
from kubevnfm_kit.errors import Conflict, InvalidInput, Unprocessable

from kubevnfm_lcm_api.lifecycle.clusters.heal_steps import HEAL_END
from kubevnfm_lcm_api.lifecycle.clusters.healing import healed_cluster
from kubevnfm_lcm_api.lifecycle.clusters.kuryr_steps import (
    InstallKuryrCluster,
    PrepareKuryrNetwork,
    RemoveKuryrResources,
    StopKuryr,
)
from kubevnfm_lcm_api.lifecycle.clusters.nodes import has_nodes
from kubevnfm_lcm_api.lifecycle.clusters.parameters import CheckedCluster, check_cluster_parameters
from kubevnfm_lcm_api.lifecycle.clusters.phase_steps import INSTALL_TIMEOUT_S, RunDriverPhase, join_limit_s
from kubevnfm_lcm_api.lifecycle.clusters.registries import check_certificates, check_registry
from kubevnfm_lcm_api.lifecycle.clusters.registry_steps import HealRegistryDraft, RunRegistryPhase
from kubevnfm_lcm_api.lifecycle.clusters.scaling import scaled_cluster
from kubevnfm_lcm_api.lifecycle.clusters.vim_steps import RegisterClusterVim
from kubevnfm_lcm_api.lifecycle.clusters.volumes import check_manifests
from kubevnfm_lcm_api.lifecycle.core.step import Plan
from kubevnfm_lcm_api.lifecycle.machines.drafts import InstantiateVmDraft, TerminateVmDraft
from kubevnfm_lcm_api.lifecycle.machines.drivers import has_kuryr
from kubevnfm_lcm_api.lifecycle.machines.healing import HealVmDraft
from kubevnfm_lcm_api.lifecycle.machines.registry_vnf import RegistryVnf
from kubevnfm_lcm_api.lifecycle.machines.roles import RequestedHeal, RequestedMachines, Role, role
from kubevnfm_lcm_api.lifecycle.machines.scaling import ScaleVmDraft
from kubevnfm_lcm_api.lifecycle.machines.under_change import VnfUnderChange


class DrivenMachines(Role):
    """Machines that a management driver works on."""

    def before_creation(self, plan: Plan[InstantiateVmDraft], draft: InstantiateVmDraft) -> None:
        if INSTANTIATE_START in draft.phases:
            plan.then(RunDriverPhase(INSTANTIATE_START), id=INSTANTIATE_START)

    def before_deletion(self, plan: Plan[TerminateVmDraft], draft: TerminateVmDraft) -> None:
        """Run the driver's last phase. Without a stack there are no machines to run it on."""
        if draft.phases.get(TERMINATE_START) not in (None, KURYR_DRIVER) and _has_machines(draft):
            plan.then(RunDriverPhase(TERMINATE_START), id=TERMINATE_START)


@role("registry")
class PrivateRegistry(DrivenMachines):
    """One machine that serves images to clusters."""

    async def instantiated(self, draft: InstantiateVmDraft, asked: RequestedMachines) -> InstantiateVmDraft:
        """Return the draft, once the registry that the request describes is checked."""
        await check_registry(
            asked.packages,
            draft.package,
            draft.parameters,
            asked.flavour,
            asked.base_hot,
            level_id=draft.instantiation_level_id,
        )
        return draft

    def healed(self, asked: RequestedHeal) -> HealVmDraft:
        """Return the draft of a registry, if a driver of registries heals it."""
        internals = asked.vnf.record.internals
        registry = RegistryVnf.from_phases(internals.phases, HEAL_END, internals.parameters)
        return asked.plain if registry is None else HealRegistryDraft(**vars(asked.plain), registry=registry)

    def after_creation(self, plan: Plan[InstantiateVmDraft], draft: InstantiateVmDraft) -> None:
        plan.then(RunRegistryPhase("instantiate_end"), id=INSTANTIATE_END)


@role("cluster")
class Cluster(DrivenMachines):
    """Machines that are the nodes of a Kubernetes cluster."""

    async def instantiated(self, draft: InstantiateVmDraft, asked: RequestedMachines) -> InstantiateVmDraft:
        """Return the draft with what the cluster is to be.

        A script may have parameters of its own under the cluster's name. Then no VIM is made of what it builds.
        """
        is_driven = INSTANTIATE_END in draft.phases
        try:
            # In a thread, because a private key may have to be opened with its passphrase.
            cluster = await asyncio.to_thread(
                check_cluster_parameters,
                draft.parameters,
                flavour=asked.flavour,
                base_hot=asked.base_hot,
                file_names=asked.file_names,
                api_version=draft.api_version,
                has_user_data=draft.user_data is not None,
                instantiation_level_id=draft.instantiation_level_id,
                has_kuryr_driver=has_kuryr(draft.phases),
            )
        except (InvalidInput, Unprocessable):
            if is_driven:
                raise
            return draft
        if is_driven:
            await check_certificates(asked.packages, draft.package, cluster.parameters)
            await check_manifests(asked.packages, draft.package, cluster.parameters)
        return draft.model_copy(
            update={
                "cluster_vim_name": await _vim_name(draft.vnf_instance_id, asked, cluster),
                "cluster_parameters": cluster.parameters,
                "max_nodes": cluster.max_nodes,
                "masters": cluster.masters,
            }
        )

    def scaled(self, vnf: VnfUnderChange, plain: ScaleVmDraft, given: Mapping[str, Any], field: str) -> ScaleVmDraft:
        return scaled_cluster(vnf, plain, given, field)

    def healed(self, asked: RequestedHeal) -> HealVmDraft:
        return healed_cluster(asked)

    def after_creation(self, plan: Plan[InstantiateVmDraft], draft: InstantiateVmDraft) -> None:
        """Install the cluster and register it; that of a script is registered once the script has said how."""
        self._install(plan, draft)
        if draft.cluster_vim_name is not None and INSTANTIATE_END in draft.phases:
            plan.then(RegisterClusterVim())

    def _install(self, plan: Plan[InstantiateVmDraft], draft: InstantiateVmDraft) -> None:
        if INSTANTIATE_END in draft.phases:
            plan.then(RunDriverPhase(INSTANTIATE_END, _install_limit_s(draft)), id=INSTANTIATE_END)


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
        cluster = draft.cluster_parameters
        if resources is not None and cluster is not None and _has_machines(draft) and has_nodes(resources, cluster):
            plan.then(StopKuryr())
        plan.then(RemoveKuryrResources())


def _has_machines(draft: TerminateVmDraft) -> bool:
    return draft.resources is not None and not draft.is_stack_missing


def _install_limit_s(draft: InstantiateVmDraft) -> float:
    """Return the time for the installation; shorter limits in the request do not shorten the measured worst case."""
    if draft.cluster_parameters is None:
        return INSTALL_TIMEOUT_S
    return join_limit_s(draft.cluster_parameters, draft.max_nodes or 1, masters=draft.masters)


async def _vim_name(instance_id: str, asked: RequestedMachines, cluster: CheckedCluster) -> str:
    """Return the name of the cluster's VIM. Raises Conflict if it is taken."""
    name = cluster.parameters.vim_name or f"kubernetes_vim_{instance_id}"
    for vim in await asked.vims.list({"name": [name]}):
        if vim.get("extra", {}).get("vnf_instance_id") != instance_id:
            raise Conflict(f"{ROOT}/vim_name: a VIM named {name} is registered already")
    return name
