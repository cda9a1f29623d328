"""The steps that sequences of several kinds of VNFs have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_events import Command
from kubevnfm_events.lcm import MarkOrphans as MarkOrphansCommand
from kubevnfm_events.lcm import OrphansMarked, RemainsRemoved
from kubevnfm_events.lcm import RemoveRemains as RemoveRemainsCommand
from kubevnfm_events.mgmt import ForgetInstance, InstanceForgotten
from kubevnfm_events.vim import DeregisterVim, VimDeregistered

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.step import Step


@dataclass(frozen=True)
class RemoveRemains(Step[Draft, RemainsRemoved]):
    """Remove the remains of an earlier, FAILED instantiate before anything is created (api.md 4.3).

    Again: safe; the clean-up is an operation of its own, found by the failed occurrence's id.
    """

    occurrence_id: str
    """The FAILED instantiate."""

    kind: ClassVar[str] = "remove_remains"
    command: ClassVar[type[Command]] = RemoveRemainsCommand
    label: ClassVar[str] = "Remove what a failed instantiate left"
    base_timeout_s: ClassVar[float] = 3600.0
    """Twice the time to delete a stack, as a deletion that fails is repeated."""

    def ask(self, draft: Draft) -> RemoveRemainsCommand:
        return RemoveRemainsCommand(vnf_instance_id=draft.vnf_instance_id, vnf_lcm_op_occ_id=self.occurrence_id)

    def undo(self, draft: Draft) -> None:
        """The remains of a failure are not restored."""


@dataclass(frozen=True)
class MarkOrphans(Step[Draft, OrphansMarked]):
    """Mark the instances that use what the operation deletes, and publish an event about each (sequences.md D0).

    Again: safe; a marked instance is left as it is.
    """

    operation: str
    """TERMINATE ..., for the mark's reason."""

    kind: ClassVar[str] = "mark_orphans"
    command: ClassVar[type[Command]] = MarkOrphansCommand
    label: ClassVar[str] = "Mark the VNFs that use this one"
    base_timeout_s: ClassVar[float] = 600.0

    def ask(self, draft: Draft) -> MarkOrphansCommand:
        assert draft.withdrawn is not None
        provided = draft.withdrawn.provided
        return MarkOrphansCommand(
            vnf_instance_id=draft.vnf_instance_id,
            provided=provided.kind,
            resource_id=provided.ids[0],
            other_ids=provided.ids[1:],
            operation=self.operation,
        )

    def undo(self, draft: Draft) -> None:
        """The operations that take something away have no rollback (api.md 4.3)."""


@dataclass(frozen=True)
class DeregisterClusterVim(Step[Draft, VimDeregistered]):
    """Remove the cluster's VIM and its access data, after the machines were deleted (sequences.md D1, SEQ-035).

    Again: safe.
    Fails: another instance uses the VIM and the termination is GRACEFUL.
    """

    is_forced: bool = False
    """FORCEFUL: also if another instance uses the VIM."""

    kind: ClassVar[str] = "deregister_vim"
    command: ClassVar[type[Command]] = DeregisterVim
    label: ClassVar[str] = "Remove the cluster's VIM"
    base_timeout_s: ClassVar[float] = 300.0

    def ask(self, draft: Draft) -> DeregisterVim:
        return DeregisterVim(vnf_instance_id=draft.vnf_instance_id, force=self.is_forced)

    def undo(self, draft: Draft) -> None:
        """Terminate has no rollback (api.md 4.3)."""


@dataclass(frozen=True)
class ForgetMachines(Step[Draft, InstanceForgotten]):
    """Purge the journal, host keys and logs of deleted machines: ``terminate_end`` of the sequence (sequences.md D1).

    Again: safe.
    """

    kind: ClassVar[str] = "forget_machines"
    command: ClassVar[type[Command]] = ForgetInstance
    label: ClassVar[str] = "Forget the machines' keys and journal"
    base_timeout_s: ClassVar[float] = 300.0

    def ask(self, draft: Draft) -> ForgetInstance:
        return ForgetInstance(vnf_instance_id=draft.vnf_instance_id)

    def undo(self, draft: Draft) -> None:
        """Terminate has no rollback (api.md 4.3)."""
