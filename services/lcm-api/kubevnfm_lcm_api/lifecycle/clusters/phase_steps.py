"""Steps that mgmt-executor does: the phases of a management driver."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from kubevnfm_cluster.parameters import ClusterParameters
from kubevnfm_events import Command
from kubevnfm_events.mgmt import (
    INSTANTIATE_END,
    INSTANTIATE_START,
    KUBERNETES_DRIVER,
    READ_ADMIN,
    ForgetInstance,
    PhaseDone,
    RunPhase,
)

from kubevnfm_lcm_api.lifecycle.clusters.changing import ClusterChangeDraft
from kubevnfm_lcm_api.lifecycle.clusters.nodes import FoundNodes, find_nodes
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.step import N, Step
from kubevnfm_lcm_api.lifecycle.machines.drafts import InstantiateVmDraft, TerminateVmDraft

INSTALL_TIMEOUT_S: Final = 7200.0
"""The measured worst case of a highly available cluster over a slow mirror (sequences.md 1.4) with a reserve."""
_BEFORE_MACHINES: Final = frozenset({INSTANTIATE_START})
"""Phases that run before any machine exists."""
_BUILDING: Final = frozenset({INSTANTIATE_END, READ_ADMIN})
"""Phases whose work a rollback removes: the machines go with the stack; journal, host keys and logs are purged."""


def drain_limit_s(cluster: ClusterParameters) -> float:
    """Return how long nodes may take to leave."""
    return max(INSTALL_TIMEOUT_S, cluster.drain_limit_s())


def join_limit_s(cluster: ClusterParameters, nodes: int, *, masters: int = 1) -> float:
    """Return how long nodes may take to join."""
    return max(INSTALL_TIMEOUT_S, cluster.install_limit_s(nodes, masters=masters))


def phase_command(
    draft: InstantiateVmDraft | TerminateVmDraft | ClusterChangeDraft, driver: str, phase: str, found: FoundNodes
) -> RunPhase:
    """Return the command of a phase that works on all nodes."""
    return RunPhase(
        vnf_instance_id=draft.vnf_instance_id,
        driver=driver,
        phase=phase,
        package=draft.package,
        nodes=found.nodes,
        parameters=draft.parameters,
        cluster=draft.cluster_parameters,
        cluster_address=found.cluster_address,
        cluster_public_address=found.cluster_public_address,
        max_nodes=draft.max_nodes,
        volumes=dict(found.volumes),
        nfs_addresses=dict(found.nfs_addresses),
    )


@dataclass(frozen=True)
class DriverPhase(Step[N, PhaseDone]):
    """Common to the steps that run one phase of a management driver on machines, for as long as the plan lets it."""

    phase: str
    limit_s: float = INSTALL_TIMEOUT_S
    """How long the phase may take: a task's own limit, whose error names node and task, must come before it."""

    command: ClassVar[type[Command]] = RunPhase
    label: ClassVar[str] = "Management driver: {phase}"
    base_timeout_s: ClassVar[float] = INSTALL_TIMEOUT_S

    @property
    def timeout_s(self) -> float:
        return self.limit_s


@dataclass(frozen=True)
class RunDriverPhase(DriverPhase[InstantiateVmDraft | TerminateVmDraft]):
    """Run one phase of the management driver on the instance's machines (sequences.md 1.10).

    Adds: a cluster's access data and node names.
    Again: safe; continues from the journal, nodes that are Ready are left alone.
    Fails: an address, login or script error names the node and the task.
    """

    kind: ClassVar[str] = "run_driver_phase"

    def ask(self, draft: InstantiateVmDraft | TerminateVmDraft) -> RunPhase:
        """Ask for the phase on the nodes that the request's names refer to.

        Raises: NodeNotFound, SharedAddress of `nodes`.
        """
        # Addresses are read at each attempt: machines that a retry created again have others.
        found = FoundNodes(nodes=())
        if self.phase not in _BEFORE_MACHINES:
            assert draft.resources is not None
            found = find_nodes(draft.resources, draft.cluster_parameters, draft.granted_zones)
        if self.phase != READ_ADMIN:
            return phase_command(draft, draft.phases[self.phase], self.phase, found)
        nodes = tuple(node.model_copy(update={"is_target": False}) for node in found.nodes)
        return phase_command(draft, KUBERNETES_DRIVER, self.phase, replace(found, nodes=nodes))

    def fold(self, draft: InstantiateVmDraft | TerminateVmDraft, reply: PhaseDone) -> Draft:
        return draft.after_phase(reply)

    def undo(self, draft: InstantiateVmDraft | TerminateVmDraft) -> ForgetInstance | None:
        """Purge the records of machines that are deleted with the stack; other phases leave no records."""
        return ForgetInstance(vnf_instance_id=draft.vnf_instance_id) if self.phase in _BUILDING else None
