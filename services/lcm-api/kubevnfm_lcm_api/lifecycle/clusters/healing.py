"""The rules of a heal of a cluster, and what it needs to know (sequences.md 5.1 to 5.3, 5.6)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from kubevnfm_cluster.parameters import ClusterParameters, Role
from kubevnfm_cluster.request import read_cluster_parameters
from kubevnfm_csar.hot import BaseHot
from kubevnfm_events.mgmt import REGISTRY_DRIVERS
from kubevnfm_kit.errors import InvalidInput, Unprocessable

from kubevnfm_lcm_api.lifecycle.clusters.heal_steps import (
    HEAL_END,
    HEAL_START,
    ReleaseStorage,
    RunHealPhase,
    RunMasterHealPhase,
)
from kubevnfm_lcm_api.lifecycle.clusters.kuryr import driver_of
from kubevnfm_lcm_api.lifecycle.clusters.kuryr_steps import (
    AwaitNewTrunks,
    PrepareKuryrNetwork,
    RemoveKuryrResources,
    StopIllKuryr,
)
from kubevnfm_lcm_api.lifecycle.clusters.nodes import has_nodes, storage_server
from kubevnfm_lcm_api.lifecycle.clusters.phase_steps import INSTALL_TIMEOUT_S
from kubevnfm_lcm_api.lifecycle.clusters.places import Places
from kubevnfm_lcm_api.lifecycle.clusters.requested_nodes import changed_cluster, servers_of
from kubevnfm_lcm_api.lifecycle.clusters.vim_steps import RegisterClusterVim
from kubevnfm_lcm_api.lifecycle.core.drift import is_stack_missing
from kubevnfm_lcm_api.lifecycle.core.step import Plan
from kubevnfm_lcm_api.lifecycle.machines.change_steps import HealMaster
from kubevnfm_lcm_api.lifecycle.machines.healing import HealVmDraft
from kubevnfm_lcm_api.lifecycle.machines.roles import HealFields
from kubevnfm_lcm_api.lifecycle.machines.under_change import VnfUnderChange

_FIELD: Final = "vnfcInstanceId"


def healed_cluster(
    vnf: VnfUnderChange,
    chosen: Collection[str] | None,
    given: Mapping[str, Any],
    *,
    base_hot: BaseHot | None,
) -> HealFields:
    """Return the fields of a cluster that is healed, in part or as a whole; none for any other VNF.

    ``chosen``: Nova ids of the machines that the request names, None: it names none; ``given``: its additionalParams;
    ``base_hot``: that of its flavour.
    Raises: Unprocessable if the cluster would not survive the loss of the machines; InvalidInput, Unprocessable of
    `with_overrides`.
    """
    internals = vnf.record.internals
    driver = driver_of(internals.phases, "heal_end")
    if "instantiate_end" not in internals.phases and internals.cluster_vim_key is not None:
        return _scripted_cluster(vnf, chosen)
    if driver is None or driver in REGISTRY_DRIVERS or "instantiate_end" not in internals.phases:
        return {}
    present = read_cluster_parameters(internals.parameters)
    if chosen is None:
        places = Places(vnf.flavour, base_hot, internals.instantiation_level_id)
        roles: tuple[Role, ...] = ("master", "worker")
        name = internals.cluster_vim_key or present.vim_name or f"kubernetes_vim_{vnf.record.vnf.id}"
        return {
            **changed_cluster(vnf, driver, given),
            "is_whole": True,
            "masters": (),
            "storage": None,
            "cluster_vim_id": internals.cluster_vim_id,
            "cluster_vim_name": name,
            "has_old_nodes": not is_stack_missing(vnf.record) and has_nodes(vnf.resources, present),
            "max_nodes": sum(places.group(present.group(role), role, needed=None).most for role in roles),
        }
    masters = {server.server_id for server in servers_of(vnf, present, "master")}
    workers = {server.server_id for server in servers_of(vnf, present, "worker")}
    if masters and masters.issubset(chosen):
        which = "this is the only master" if len(masters) == 1 else f"these are all {len(masters)} masters"
        raise Unprocessable(
            _FIELD, f"HEAL-1M: {which}, and the cluster is lost with it: heal the whole cluster, without vnfcInstanceId"
        )
    of_storage = present.storage_server
    storage = None if of_storage is None else storage_server(vnf.resources, of_storage).server_id
    if not {*masters, *workers, storage}.issuperset(chosen):
        raise Unprocessable(
            _FIELD, "a machine that is neither master, worker nor storage server is named: it cannot be healed"
        )
    return {
        **changed_cluster(vnf, driver, given),
        "is_whole": False,
        "masters": tuple(server for server in chosen if server in masters),
        "storage": storage if storage in chosen else None,
        "cluster_vim_id": None,
        "cluster_vim_name": None,
        "max_nodes": None,
        "has_old_nodes": False,
    }


def _scripted_cluster(vnf: VnfUnderChange, chosen: Collection[str] | None) -> HealFields:
    """Return the fields of a cluster that scripts of the package have built, if they build it again on other machines.

    Nothing is known of its nodes, so only a heal of the whole VNF gives it other access data (sequences.md 6.7).
    """
    internals = vnf.record.internals
    if chosen is not None and not set(chosen).issuperset(server.server_id for server in vnf.resources.servers):
        return {}
    fields: HealFields = {
        "is_whole": True,
        "cluster_vim_id": internals.cluster_vim_id,
        "cluster_vim_name": internals.cluster_vim_key,
    }
    try:
        return {
            **fields,
            "parameters": internals.parameters,
            "cluster_parameters": read_cluster_parameters(internals.parameters),
        }
    except (InvalidInput, Unprocessable):
        # Parameters of the scripts' own under the same name: they say nothing about the nodes.
        return fields


def before_nodes(plan: Plan[HealVmDraft], draft: HealVmDraft) -> None:
    """Add the steps before machines are replaced: masters one after another, with their replacement, then workers.

    The persistent volumes of a storage server leave it first, and come back last (5.2).
    """
    cluster = draft.cluster_parameters
    assert cluster is not None
    if draft.masters:
        if draft.storage is not None:
            plan.then(ReleaseStorage(HEAL_START, drain_limit_s(cluster)), id=f"{HEAL_START}/storage")
        _heal_masters(plan, draft, cluster)
    if draft.leaving and not draft.is_whole:
        plan.then(RunHealPhase(HEAL_START, drain_limit_s(cluster)), id=HEAL_START)
    if draft.is_whole and cluster.kuryr_param is not None:
        if draft.has_old_nodes:
            plan.then(StopIllKuryr())
        # Kuryr's ports would keep the old networks in use, and its load balancers the addresses of Services.
        plan.then(RemoveKuryrResources())


def after_nodes(plan: Plan[HealVmDraft], draft: HealVmDraft) -> None:
    """Add the steps after machines were replaced. A cluster that is built again gives its VIM the new access data."""
    cluster = draft.cluster_parameters
    assert cluster is not None
    if draft.is_whole and cluster.kuryr_param is not None:
        plan.then(PrepareKuryrNetwork())
    elif has_trunks(cluster):
        plan.then(AwaitNewTrunks())
    nodes = (draft.max_nodes if draft.is_whole else None) or len(draft.servers)
    plan.then(RunHealPhase(HEAL_END, join_limit_s(cluster, nodes)), id=HEAL_END)
    if draft.is_whole:
        plan.then(RegisterClusterVim())


def _heal_masters(plan: Plan[HealVmDraft], draft: HealVmDraft, cluster: ClusterParameters) -> None:
    """Add the replacement of each master; the driver chooses the order, by what etcd can lose (sequences.md 5.3)."""
    for turn in range(1, len(draft.masters) + 1):
        plan.then(RunMasterHealPhase(HEAL_START, drain_limit_s(cluster), turn), id=f"{HEAL_START}/{turn}")
        plan.then(HealMaster(turn), id=f"heal_resources/{turn}")
        if has_trunks(cluster):
            plan.then(AwaitNewTrunks(), id=f"await_new_trunks/{turn}")
        plan.then(RunMasterHealPhase(HEAL_END, join_limit_s(cluster, 1, masters=2), turn), id=f"{HEAL_END}/{turn}")


def has_trunks(cluster: ClusterParameters | None) -> bool:
    """Return whether each node of the cluster gets a trunk, on which its pods' ports are."""
    return cluster is not None and cluster.kuryr_param is not None and cluster.kuryr_param.has_trunks


def drain_limit_s(cluster: ClusterParameters) -> float:
    """Return how long nodes may take to leave."""
    return max(INSTALL_TIMEOUT_S, cluster.drain_limit_s())


def join_limit_s(cluster: ClusterParameters, nodes: int, *, masters: int = 1) -> float:
    """Return how long nodes may take to join."""
    return max(INSTALL_TIMEOUT_S, cluster.install_limit_s(nodes, masters=masters))
