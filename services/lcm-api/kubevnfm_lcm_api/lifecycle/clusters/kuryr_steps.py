"""Steps of clusters with Kuryr-Kubernetes: infra-openstack prepares their network and empties it, mgmt-executor installs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_events import Command
from kubevnfm_events.kuryr import (
    AwaitTrunks,
    KuryrPrepared,
    KuryrRemoved,
    PrepareKuryr,
    RemoveKuryr,
    TrunksReady,
)
from kubevnfm_events.mgmt import INSTANTIATE_END, KURYR_DRIVER, TERMINATE_START, ManagedNode, PhaseDone, RunPhase

from kubevnfm_lcm_api.lifecycle.clusters.changing import ClusterChangeDraft
from kubevnfm_lcm_api.lifecycle.clusters.healing import HealClusterDraft
from kubevnfm_lcm_api.lifecycle.clusters.node_steps import cluster_phase, nodes_in
from kubevnfm_lcm_api.lifecycle.clusters.nodes import find_nodes
from kubevnfm_lcm_api.lifecycle.clusters.phase_steps import RunDriverPhase, phase_command
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.step import Step
from kubevnfm_lcm_api.lifecycle.machines.drafts import InstantiateVmDraft, TerminateVmDraft

PREPARE_TIMEOUT_S = 600.0
"""Octavia takes minutes to make a load balancer, but the stack has waited for it already."""
REMOVE_TIMEOUT_S = 900.0
"""Octavia deletes many load balancers one after another."""


def _with_trunks(nodes: Iterable[ManagedNode]) -> tuple[str, ...]:
    """Return the Nova ids of the nodes on which pods run: no pod runs on a storage server."""
    return tuple(node.server_id for node in nodes if node.role in ("master", "worker"))


@dataclass(frozen=True)
class PrepareKuryrNetwork(Step[InstantiateVmDraft | HealClusterDraft, KuryrPrepared]):
    """Find and check the network entities of the cluster, and wait for the nodes' trunks (sequences.md B5, 2).

    Adds: the network entities, and Kuryr's login.
    Again: safe; a new application credential replaces the earlier one.
    Fails: an entity that is missing or does not fit names the parameter.
    """

    kind: ClassVar[str] = "prepare_kuryr_network"
    command: ClassVar[type[Command]] = PrepareKuryr
    label: ClassVar[str] = "Prepare the network for Kuryr"
    base_timeout_s: ClassVar[float] = PREPARE_TIMEOUT_S

    def ask(self, draft: InstantiateVmDraft | HealClusterDraft) -> PrepareKuryr:
        """Ask for the entities that the request names."""
        cluster = draft.cluster_parameters
        assert cluster is not None
        assert cluster.kuryr_param is not None
        assert draft.resources is not None
        return PrepareKuryr(
            vnf_instance_id=draft.vnf_instance_id,
            tag=draft.vnf_instance_id,
            stack_name=draft.stack_name,
            vim=draft.vim,
            kuryr=cluster.kuryr_param,
            service_cidr=str(cluster.master_node.cluster_cidr),
            servers=_with_trunks(find_nodes(draft.resources, cluster).nodes),
        )

    def fold(self, draft: InstantiateVmDraft | HealClusterDraft, reply: KuryrPrepared) -> Draft:
        return draft.with_kuryr_network(reply.network)

    def undo(self, draft: InstantiateVmDraft | HealClusterDraft) -> RemoveKuryr:
        """Remove what Kuryr has made since, so that the networks of the stack can be deleted."""
        return RemoveKuryr(vnf_instance_id=draft.vnf_instance_id, vim=draft.vim)


@dataclass(frozen=True)
class InstallKuryrCluster(RunDriverPhase):
    """Install the cluster with Kuryr in place of a pod network (sequences.md B5)."""

    phase: str = INSTANTIATE_END

    kind: ClassVar[str] = "install_kuryr_cluster"

    def ask(self, draft: InstantiateVmDraft | TerminateVmDraft) -> RunPhase:
        assert isinstance(draft, InstantiateVmDraft)
        return super().ask(draft).model_copy(update={"kuryr": draft.kuryr_network})


@dataclass(frozen=True)
class StopKuryr(Step[TerminateVmDraft, PhaseDone]):
    """Delete the Services that have load balancers for the outside, and stop Kuryr: it must not make anything again.

    Again: safe; what is gone already is left alone.
    Fails: a master that cannot be reached; FORCEFUL goes on without.
    """

    kind: ClassVar[str] = "stop_kuryr"
    command: ClassVar[type[Command]] = RunPhase
    label: ClassVar[str] = "Stop Kuryr"
    base_timeout_s: ClassVar[float] = 1800.0

    def ask(self, draft: TerminateVmDraft) -> RunPhase:
        assert draft.resources is not None
        found = find_nodes(draft.resources, draft.cluster_parameters)
        phase = phase_command(draft, KURYR_DRIVER, TERMINATE_START, found)
        return phase.model_copy(update={"force": draft.is_forceful})

    def undo(self, draft: TerminateVmDraft) -> None:
        """Terminate has no rollback (api.md 4.3)."""


@dataclass(frozen=True)
class RemoveKuryrResources(Step[TerminateVmDraft | HealClusterDraft, KuryrRemoved]):
    """Delete the load balancers and ports that Kuryr has made: they would keep the stack's networks in use (B5).

    Again: safe; what is deleted already is left alone.
    """

    kind: ClassVar[str] = "remove_kuryr_resources"
    command: ClassVar[type[Command]] = RemoveKuryr
    label: ClassVar[str] = "Delete the load balancers and ports of Kuryr"
    base_timeout_s: ClassVar[float] = REMOVE_TIMEOUT_S

    def ask(self, draft: TerminateVmDraft | HealClusterDraft) -> RemoveKuryr:
        return RemoveKuryr(vnf_instance_id=draft.vnf_instance_id, vim=draft.vim)

    def undo(self, draft: TerminateVmDraft | HealClusterDraft) -> None:
        """Terminate has no rollback (api.md 4.3)."""


@dataclass(frozen=True)
class AwaitNewTrunks(Step[ClusterChangeDraft, TrunksReady]):
    """Wait until the trunks of the new machines are ACTIVE: the pods on them get no ports before (sequences.md 1.11, C2k).

    Again: safe; it changes nothing.
    Fails: a machine whose ports are no trunks is named.
    """

    kind: ClassVar[str] = "await_new_trunks"
    command: ClassVar[type[Command]] = AwaitTrunks
    label: ClassVar[str] = "Wait for the trunks of the new machines"
    base_timeout_s: ClassVar[float] = PREPARE_TIMEOUT_S

    def ask(self, draft: ClusterChangeDraft) -> AwaitTrunks:
        """Ask for the nodes that were not there before. Raises: NodeNotFound, SharedAddress of `find_nodes`."""
        old = {server.server_id for server in draft.before.servers}
        nodes = nodes_in(draft, draft.resources or draft.before).nodes
        new = _with_trunks(node for node in nodes if node.server_id not in old)
        return AwaitTrunks(vnf_instance_id=draft.vnf_instance_id, vim=draft.vim, servers=new)

    def undo(self, draft: ClusterChangeDraft) -> None:
        """Nothing was changed."""


@dataclass(frozen=True)
class StopIllKuryr(Step[ClusterChangeDraft, PhaseDone]):
    """Stop Kuryr before all machines of its cluster are replaced, as far as the cluster still answers.

    Again: safe; what is gone already is left alone.
    """

    kind: ClassVar[str] = "stop_ill_kuryr"
    command: ClassVar[type[Command]] = RunPhase
    label: ClassVar[str] = "Stop Kuryr, if its cluster answers"
    base_timeout_s: ClassVar[float] = StopKuryr.base_timeout_s

    def ask(self, draft: ClusterChangeDraft) -> RunPhase:
        """Ask for the phase on the old nodes; a cluster that does not answer does not hold the heal up."""
        phase = cluster_phase(draft, "terminate_start", nodes_in(draft, draft.before))
        return phase.model_copy(update={"force": True})

    def undo(self, draft: ClusterChangeDraft) -> None:
        """A heal has no rollback (api.md 4.3)."""
