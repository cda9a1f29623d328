"""Steps that mgmt-executor does: the phases of a management driver."""

from __future__ import annotations

from typing import ClassVar

from kubevnfm_events import Event
from kubevnfm_events.mgmt import ForgetInstance, InstanceForgotten, PhaseDone, RunPhase

from kubevnfm_lcm_api.lifecycle.domain.drafts import InstantiateVmDraft, TerminateVmDraft
from kubevnfm_lcm_api.lifecycle.domain.granting import granted_zones
from kubevnfm_lcm_api.lifecycle.domain.nodes import find_nodes
from kubevnfm_lcm_api.lifecycle.domain.steps.base import Step

INSTALL_TIMEOUT_S = 7200.0
"""The measured worst case of a highly available cluster over a slow mirror (sequences.md 1.4) with room."""


class PrepareInstantiate(Step[InstantiateVmDraft, PhaseDone]):
    """Run the driver's ``instantiate_start``, before anything exists.

    Again: safe; the driver probes before it acts.
    """

    name: ClassVar[str] = "instantiate_start"
    title: ClassVar[str] = "Management driver: instantiate_start"
    timeout_s: ClassVar[float] = INSTALL_TIMEOUT_S
    reply: ClassVar[type[Event]] = PhaseDone

    def ask(self, draft: InstantiateVmDraft) -> RunPhase:
        """Ask for the phase, without nodes."""
        return RunPhase(
            vnf_instance_id=draft.vnf_instance_id,
            driver=draft.phases["instantiate_start"],
            phase="instantiate_start",
            package=draft.package,
            nodes=(),
            parameters=draft.parameters,
        )

    def fold(self, draft: InstantiateVmDraft, reply: PhaseDone) -> InstantiateVmDraft:
        """Nothing to keep."""
        return draft

    def undo(self, draft: InstantiateVmDraft) -> None:
        """It ran before any machine existed: there is nothing to take back."""


class InstallOnMachines(Step[InstantiateVmDraft, PhaseDone]):
    """Run the driver's ``instantiate_end``: a cluster driver installs Kubernetes on all nodes (sequences.md 1.10).

    Needs: ``resources``. Adds: ``cluster``, ``node_names``.
    Again: safe; goes on from the journal, nodes that are Ready are left alone.
    Fails: an address, login or script error names the node and the task.
    """

    name: ClassVar[str] = "instantiate_end"
    title: ClassVar[str] = "Management driver: instantiate_end"
    timeout_s: ClassVar[float] = INSTALL_TIMEOUT_S
    reply: ClassVar[type[Event]] = PhaseDone

    def ask(self, draft: InstantiateVmDraft) -> RunPhase:
        """Ask for the installation on the nodes that the request's names point to.

        Raises: NodeNotFound, SharedAddress of `nodes`.
        """
        assert draft.resources is not None
        zones = granted_zones(draft.grant, draft.grant_request)
        found = find_nodes(draft.resources, draft.parameters, zones)
        return RunPhase(
            vnf_instance_id=draft.vnf_instance_id,
            driver=draft.phases["instantiate_end"],
            phase="instantiate_end",
            package=draft.package,
            nodes=found.nodes,
            parameters=draft.parameters,
            cluster_address=found.cluster_address,
            cluster_public_address=found.cluster_public_address,
            max_nodes=draft.max_nodes,
        )

    def fold(self, draft: InstantiateVmDraft, reply: PhaseDone) -> InstantiateVmDraft:
        """Keep how to reach the cluster."""
        return draft.model_copy(update={"cluster": reply.cluster, "node_names": reply.node_names})

    def undo(self, draft: InstantiateVmDraft) -> ForgetInstance:
        """The machines go with the stack; journal, host keys and logs are purged here."""
        return ForgetInstance(vnf_instance_id=draft.vnf_instance_id)


class PrepareTerminate(Step[TerminateVmDraft, PhaseDone]):
    """Run the driver's ``terminate_start``, while the machines still run.

    Again: safe; the driver probes before it acts.
    """

    name: ClassVar[str] = "terminate_start"
    title: ClassVar[str] = "Management driver: terminate_start"
    timeout_s: ClassVar[float] = INSTALL_TIMEOUT_S
    reply: ClassVar[type[Event]] = PhaseDone

    def ask(self, draft: TerminateVmDraft) -> RunPhase:
        """Ask for the phase on all nodes."""
        assert draft.resources is not None
        found = find_nodes(draft.resources, draft.parameters)
        return RunPhase(
            vnf_instance_id=draft.vnf_instance_id,
            driver=draft.phases["terminate_start"],
            phase="terminate_start",
            package=draft.package,
            nodes=found.nodes,
            parameters=draft.parameters,
            cluster_address=found.cluster_address,
            cluster_public_address=found.cluster_public_address,
        )

    def fold(self, draft: TerminateVmDraft, reply: PhaseDone) -> TerminateVmDraft:
        """Nothing to keep."""
        return draft

    def undo(self, draft: TerminateVmDraft) -> None:
        """Terminate has no rollback (api.md 4.3)."""


class ForgetMachines(Step[TerminateVmDraft, InstanceForgotten]):
    """Run what ``terminate_end`` means for machines that are gone: purge journal, host keys, logs (sequences.md D1).

    Again: safe.
    """

    name: ClassVar[str] = "forget_machines"
    title: ClassVar[str] = "Forget the machines' keys and journal"
    timeout_s: ClassVar[float] = 300.0
    reply: ClassVar[type[Event]] = InstanceForgotten

    def ask(self, draft: TerminateVmDraft) -> ForgetInstance:
        """Ask for the purge."""
        return ForgetInstance(vnf_instance_id=draft.vnf_instance_id)

    def fold(self, draft: TerminateVmDraft, reply: InstanceForgotten) -> TerminateVmDraft:
        """Nothing to keep."""
        return draft

    def undo(self, draft: TerminateVmDraft) -> None:
        """Terminate has no rollback (api.md 4.3)."""
