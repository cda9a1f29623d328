"""Steps that infra-k8s does for a workload cluster of Cluster API (capi.md chapters 7, 8 and 14)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

from kubevnfm_events import Command, Event
from kubevnfm_events.capi import (
    AddonsApplied,
    ApplyAddons,
    AwaitCluster,
    ClusterReached,
    ClusterStage,
    ClusterTimeouts,
    RollOutBegun,
)
from kubevnfm_events.capi import RollOutMachines as RollOutCommand
from kubevnfm_events.objects import (
    ApplyObjects,
    DeleteObjects,
    ObjectCount,
    ObjectsApplied,
    ObjectsDeleted,
    ObjectsScaled,
    ScaleObjects,
)

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import Release
from kubevnfm_lcm_api.lifecycle.core.step import KeepsRemains, Step
from kubevnfm_lcm_api.lifecycle.workloads.drafts import (
    ChangeWorkloadDraft,
    RollOutWorkloadDraft,
    ScaleWorkloadDraft,
    TerminateWorkloadDraft,
)
from kubevnfm_lcm_api.lifecycle.workloads.recreating import NewClusterDraft, RecreateWorkloadDraft

_MARGIN_S = 600.0
"""The time in addition to that of the cluster itself: for reading and applying manifests, and for lost workers."""


@dataclass(frozen=True)
class ApplyClusterObjects(KeepsRemains[NewClusterDraft, ObjectsApplied]):
    """Apply the objects of a workload cluster in order; the cluster itself is awaited by later steps.

    Adds: the release, and with it the Cluster.
    Again: safe; what was applied carries the instance's label and is adopted.
    Fails: as `ApplyCnfObjects`; the files have no Cluster, or several and the request names none.
    """

    delete_timeout_s: float = 1800.0
    """How long the cluster may take to go, in a rollback."""

    kind: ClassVar[str] = "apply_cluster_objects"
    command: ClassVar[type[Command]] = ApplyObjects
    label: ClassVar[str] = "Apply the objects of the workload cluster"
    base_timeout_s: ClassVar[float] = 2400.0

    @property
    def timeout_s(self) -> float:
        """The compensation has the same limit."""
        return max(self.base_timeout_s, self.delete_timeout_s + _MARGIN_S)

    def ask(self, draft: NewClusterDraft) -> ApplyObjects:
        return ApplyObjects(
            **vars(draft.order),
            vnf_instance_id=draft.vnf_instance_id,
            adopt=draft.adopt,
            parameters=draft.parameters,
            cluster_apart=True,
            cluster_name=draft.cluster_name,
            openstack_vim_id=draft.openstack_vim_id,
        )

    def fold(self, draft: NewClusterDraft, reply: ObjectsApplied) -> Draft:
        """Keep what was applied."""
        return draft.with_release(Release.from_applied(reply))

    def undone(self, draft: NewClusterDraft, reply: Event) -> Draft:
        """The objects are deleted, except what is left."""
        assert isinstance(reply, ObjectsDeleted)
        return draft.without_objects(reply.left)

    def undo(self, draft: NewClusterDraft) -> DeleteObjects:
        """Delete the cluster and then everything else in the inventory, also if it was applied only in part (CR-112)."""
        return DeleteObjects(
            vnf_instance_id=draft.vnf_instance_id, vim=draft.vim, cluster_gone_timeout_s=self.delete_timeout_s
        )


def _all_phases_s(limits: ClusterTimeouts) -> float:
    return limits.infrastructure + limits.control_plane + limits.workers


C = TypeVar("C", bound=ChangeWorkloadDraft, contravariant=True)


@dataclass(frozen=True)
class AwaitWorkloadCluster(Step[NewClusterDraft, ClusterReached]):
    """Wait until the workload cluster is ``initialized`` or ``available`` (capi.md chapter 8).

    Adds: the Machines.
    Again: safe; it changes nothing.
    Fails: the time limit of a phase, or a permanent failure of one of the cluster's objects.
    """

    stage: ClusterStage
    timeouts: ClusterTimeouts = field(default_factory=ClusterTimeouts)

    kind: ClassVar[str] = "await_cluster"
    command: ClassVar[type[Command]] = AwaitCluster
    label: ClassVar[str] = "Wait until the workload cluster is {stage}"
    base_timeout_s: ClassVar[float] = 0.0

    @property
    def timeout_s(self) -> float:
        """The limits of all phases."""
        return _all_phases_s(self.timeouts) + _MARGIN_S

    def ask(self, draft: NewClusterDraft) -> AwaitCluster:
        assert draft.workload_cluster is not None
        return AwaitCluster(
            vnf_instance_id=draft.vnf_instance_id,
            vim=draft.vim,
            cluster=draft.workload_cluster,
            stage=self.stage,
            timeouts=self.timeouts,
            vdus=draft.vdus,
            uid=draft.cluster_uid,
        )

    def fold(self, draft: NewClusterDraft, reply: ClusterReached) -> Draft:
        """Keep the Machines."""
        return draft.with_reached(reply)

    def undo(self, draft: NewClusterDraft) -> None:
        """A wait changes nothing."""


@dataclass(frozen=True)
class _AwaitsSettledCluster(Step[C, ClusterReached]):
    timeouts: ClusterTimeouts = field(default_factory=ClusterTimeouts)

    command: ClassVar[type[Command]] = AwaitCluster
    base_timeout_s: ClassVar[float] = _MARGIN_S

    @property
    def timeout_s(self) -> float:
        """The limits of all phases."""
        return self.base_timeout_s + _all_phases_s(self.timeouts)

    def ask(self, draft: C) -> AwaitCluster:
        assert draft.workload_cluster is not None
        return AwaitCluster(
            vnf_instance_id=draft.vnf_instance_id,
            vim=draft.vim,
            cluster=draft.workload_cluster,
            stage="available",
            timeouts=self.timeouts,
            vdus=draft.vdus,
            is_settled=True,
        )

    def fold(self, draft: C, reply: ClusterReached) -> Draft:
        """Keep the Machines."""
        return draft.with_reached(reply)

    def undo(self, draft: C) -> Command | None:
        """A wait changes nothing; one before the change waits once more after its reversal."""
        return None


@dataclass(frozen=True)
class AwaitSettledCluster(_AwaitsSettledCluster[ChangeWorkloadDraft]):
    """Wait until the workload cluster is available and no Machine is being deleted (CR-089).

    Before a scaling: an etcd that is not healthy loses no member (CR-088). Its compensation waits after the reversal.
    Adds: the Machines.
    Again: safe; it changes nothing.
    Fails: as `AwaitWorkloadCluster`.
    """

    waits_in_rollback: bool = True
    """False for a wait after the change: a cluster that the change has broken would hold up its reversal."""

    kind: ClassVar[str] = "await_settled_cluster"
    label: ClassVar[str] = "Wait until the workload cluster is available and no Machine is being deleted"

    def undo(self, draft: ChangeWorkloadDraft) -> AwaitCluster | None:
        """Wait for the cluster as it was."""
        return self.ask(draft) if self.waits_in_rollback else None

    def undone(self, draft: ChangeWorkloadDraft, reply: Event) -> Draft:
        """Keep the Machines that are left after the reversal."""
        assert isinstance(reply, ClusterReached)
        return self.fold(draft, reply)


@dataclass(frozen=True)
class AwaitUpdatedCluster(_AwaitsSettledCluster[ChangeWorkloadDraft]):
    """Wait until every Machine is as its template says, and the workload cluster is available (CR-100).

    Adds: the Machines.
    Again: safe; it changes nothing.
    Fails: as `AwaitWorkloadCluster`.
    """

    kind: ClassVar[str] = "await_updated_cluster"
    label: ClassVar[str] = "Wait until the machines of the workload cluster are updated"


@dataclass(frozen=True)
class RollOutMachines(Step[RollOutWorkloadDraft, RollOutBegun]):
    """Have Cluster API replace every Machine that was made before the operation (CR-103); a later step waits for that.

    Again: safe; the time is absolute.
    Fails: a missing Cluster, refusals name the object.
    """

    kind: ClassVar[str] = "roll_out_machines"
    command: ClassVar[type[Command]] = RollOutCommand
    label: ClassVar[str] = "Begin the replacement of the machines of the workload cluster"
    base_timeout_s: ClassVar[float] = _MARGIN_S

    def ask(self, draft: RollOutWorkloadDraft) -> RollOutCommand:
        assert draft.workload_cluster is not None
        return RollOutCommand(
            vnf_instance_id=draft.vnf_instance_id,
            vim=draft.vim,
            cluster=draft.workload_cluster,
            roll_out_after=draft.roll_out_after,
        )

    def undo(self, draft: RollOutWorkloadDraft) -> None:
        """A deleted Machine cannot be restored."""


@dataclass(frozen=True)
class AwaitRolledOutCluster(_AwaitsSettledCluster[RollOutWorkloadDraft]):
    """Wait until every Machine is replaced and the workload cluster is available (CR-100, CR-103).

    Adds: the Machines.
    Again: safe; it changes nothing.
    Fails: as `AwaitWorkloadCluster`.
    """

    kind: ClassVar[str] = "await_rolled_out_cluster"
    label: ClassVar[str] = "Wait until every machine of the workload cluster is replaced"

    def ask(self, draft: RollOutWorkloadDraft) -> AwaitCluster:
        return super().ask(draft).model_copy(update={"made_after": draft.roll_out_after})


@dataclass(frozen=True)
class ScaleClusterMachines(Step[ScaleWorkloadDraft, ObjectsScaled]):
    """Set the number of replicas of owners of Machines; the cluster itself is awaited by a later step.

    Again: safe; the counts are absolute.
    Fails: a missing object, refusals and timeouts name the object.
    """

    wait_timeout_s: float

    kind: ClassVar[str] = "scale_cluster_machines"
    command: ClassVar[type[Command]] = ScaleObjects
    label: ClassVar[str] = "Scale the machines of the workload cluster"
    base_timeout_s: ClassVar[float] = _MARGIN_S

    @property
    def timeout_s(self) -> float:
        """The time until the Machines are ready, and a margin."""
        return self.base_timeout_s + self.wait_timeout_s

    def ask(self, draft: ScaleWorkloadDraft) -> ScaleObjects:
        return self._command(draft, draft.counts).model_copy(update={"leaving": draft.leaving})

    def fold(self, draft: ScaleWorkloadDraft, reply: ObjectsScaled) -> None:
        """Nothing to keep: the reply names pods, and the VNFCs are Machines."""

    def undo(self, draft: ScaleWorkloadDraft) -> ScaleObjects:
        """Ask for the counts before (CR-093)."""
        return self._command(draft, draft.counts_before).model_copy(update={"is_undo": True})

    def _command(self, draft: ScaleWorkloadDraft, counts: tuple[ObjectCount, ...]) -> ScaleObjects:
        return ScaleObjects(
            vnf_instance_id=draft.vnf_instance_id, vim=draft.vim, objects=counts, wait_timeout_s=self.wait_timeout_s
        )


@dataclass(frozen=True)
class ApplyClusterAddons(Step[NewClusterDraft, AddonsApplied]):
    """Apply the addons inside the workload cluster, once its API server answers (CR-048).

    Again: safe; they are applied once more.
    Fails: the Secret with the kubeconfig is not as expected, the cluster does not answer, or it refuses an object.
    """

    def_files: tuple[str, ...]

    kind: ClassVar[str] = "apply_addons"
    command: ClassVar[type[Command]] = ApplyAddons
    label: ClassVar[str] = "Apply the addons inside the workload cluster"
    base_timeout_s: ClassVar[float] = 1200.0

    def ask(self, draft: NewClusterDraft) -> ApplyAddons:
        assert draft.workload_cluster is not None
        return ApplyAddons(
            **{**vars(draft.order), "def_files": self.def_files},
            vnf_instance_id=draft.vnf_instance_id,
            cluster=draft.workload_cluster,
        )

    def undo(self, draft: NewClusterDraft) -> None:
        """The cluster is deleted as a whole (CR-048)."""


@dataclass(frozen=True)
class DeleteClusterObjects(Step[TerminateWorkloadDraft | RecreateWorkloadDraft, ObjectsDeleted]):
    """Delete the Cluster, and when it is gone everything else in the inventory (CR-106, CR-107).

    Again: safe; what is deleted already is left alone.
    Fails: the time limit; it names the objects that remain, and their finalizers (CR-109).
    """

    timeout: float = 1800.0
    """``capi.timeouts.delete``, in seconds."""
    is_forced: bool = False
    """FORCEFUL: a management cluster that cannot be reached does not hold up the termination."""

    kind: ClassVar[str] = "delete_cluster_objects"
    command: ClassVar[type[Command]] = DeleteObjects
    label: ClassVar[str] = "Delete the workload cluster"
    base_timeout_s: ClassVar[float] = _MARGIN_S

    @property
    def timeout_s(self) -> float:
        """The time of the deletion itself, and a margin."""
        return self.base_timeout_s + self.timeout

    def ask(self, draft: TerminateWorkloadDraft | RecreateWorkloadDraft) -> DeleteObjects:
        return DeleteObjects(
            vnf_instance_id=draft.vnf_instance_id,
            vim=draft.vim,
            force=self.is_forced,
            force_remove_finalizers=draft.force_remove_finalizers,
            cluster_gone_timeout_s=self.timeout,
        )

    def fold(self, draft: TerminateWorkloadDraft | RecreateWorkloadDraft, reply: ObjectsDeleted) -> Draft:
        """Forget the objects, except those that a FORCEFUL termination leaves."""
        return draft.without_release(reply.left)

    def undo(self, draft: TerminateWorkloadDraft | RecreateWorkloadDraft) -> None:
        """Terminate has no rollback (api.md 4.3)."""
