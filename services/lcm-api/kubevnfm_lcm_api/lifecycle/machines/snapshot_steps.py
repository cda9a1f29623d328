"""Steps of snapshots: one for each machine, which can fail and be retried alone, and those that record the whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_events import Command
from kubevnfm_events.snapshots import (
    ForgetSnapshot,
    MachineReverted,
    RecordSnapshot,
    RemoveSnapshot,
    RevertMachine,
    SnapshotRecorded,
    SnapshotTaken,
    TakeSnapshot,
)

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.step import Step
from kubevnfm_lcm_api.lifecycle.machines.snapshots import CreateSnapshotDraft, RevertToSnapshotDraft


def _record(draft: CreateSnapshotDraft, *, is_complete: bool) -> RecordSnapshot:
    return RecordSnapshot(
        vnf_instance_id=draft.vnf_instance_id,
        snapshot_info_id=draft.snapshot_info_id,
        snapshot_id=draft.snapshot_id,
        occurrence_id=draft.occurrence_id,
        vim_key=draft.vim_key,
        vim_id=draft.vim.vim_id,
        stack=draft.before,
        machines=draft.machines,
        is_complete=is_complete,
        user_defined_data=draft.user_defined_data,
    )


@dataclass(frozen=True)
class BeginSnapshot(Step[CreateSnapshotDraft, SnapshotRecorded]):
    """Show the snapshot as begun, with the VNF as it is now.

    Again: safe; what is written is the same.
    Fails: the individual VNF snapshot was deleted.
    """

    kind: ClassVar[str] = "begin_snapshot"
    command: ClassVar[type[Command]] = RecordSnapshot
    label: ClassVar[str] = "Begin the record of the snapshot"
    base_timeout_s: ClassVar[float] = 300.0

    def ask(self, draft: CreateSnapshotDraft) -> RecordSnapshot:
        return _record(draft, is_complete=False)

    def undo(self, draft: CreateSnapshotDraft) -> ForgetSnapshot:
        """Empty the individual VNF snapshot, which then can hold another one."""
        return ForgetSnapshot(
            vnf_instance_id=draft.vnf_instance_id,
            snapshot_info_id=draft.snapshot_info_id,
            occurrence_id=draft.occurrence_id,
        )


@dataclass(frozen=True)
class SnapshotMachine(Step[CreateSnapshotDraft, SnapshotTaken]):
    """Make an image of a machine, and a snapshot of each of its volumes.

    Again: safe; what carries the marks of the snapshot is not made again.
    Fails: the machine is gone or in a state of which Nova makes no image, a quota, an image or snapshot in error.
    """

    vnfc_id: str

    kind: ClassVar[str] = "take_snapshot"
    command: ClassVar[type[Command]] = TakeSnapshot
    label: ClassVar[str] = "Take a snapshot of VNFC {vnfc_id}"
    base_timeout_s: ClassVar[float] = 7200.0
    """Nova copies the whole disk to Glance."""

    def ask(self, draft: CreateSnapshotDraft) -> TakeSnapshot:
        return TakeSnapshot(
            vnf_instance_id=draft.vnf_instance_id,
            vim=draft.vim,
            snapshot_id=draft.snapshot_id,
            vnfc_id=self.vnfc_id,
            server_id=draft.server_of(self.vnfc_id).server_id,
        )

    def fold(self, draft: CreateSnapshotDraft, reply: SnapshotTaken) -> Draft:
        return draft.with_machine(reply.machine)

    def forget(self, draft: CreateSnapshotDraft) -> Draft:
        return draft.without_machine(self.vnfc_id)

    def undo(self, draft: CreateSnapshotDraft) -> RemoveSnapshot:
        """Delete what was made, also what no reply has reported."""
        return RemoveSnapshot(
            vnf_instance_id=draft.vnf_instance_id,
            vim=draft.vim,
            snapshot_id=draft.snapshot_id,
            vnfc_id=self.vnfc_id,
            made=next((one for one in draft.made if one.vnfc_id == self.vnfc_id), None),
        )


@dataclass(frozen=True)
class CompleteSnapshot(Step[CreateSnapshotDraft, SnapshotRecorded]):
    """Show the snapshot as complete, with the snapshots of all VNFCs.

    Again: safe; what is written is the same.
    """

    kind: ClassVar[str] = "record_snapshot"
    command: ClassVar[type[Command]] = RecordSnapshot
    label: ClassVar[str] = "Complete the record of the snapshot"
    base_timeout_s: ClassVar[float] = 300.0

    def ask(self, draft: CreateSnapshotDraft) -> RecordSnapshot:
        return _record(draft, is_complete=True)

    def undo(self, draft: CreateSnapshotDraft) -> None:
        """The compensation of its beginning empties the record; until then no other request can use it."""


@dataclass(frozen=True)
class RevertVnfc(Step[RevertToSnapshotDraft, MachineReverted]):
    """Put a machine and its volumes back; its ports and addresses stay.

    Again: safe; a machine and volumes that this try has put back are left alone.
    Fails: a part of the snapshot is missing, a volume has a newer snapshot, Nova or Cinder refuses.
    """

    vnfc_id: str

    kind: ClassVar[str] = "revert_machine"
    command: ClassVar[type[Command]] = RevertMachine
    label: ClassVar[str] = "Revert VNFC {vnfc_id}"
    base_timeout_s: ClassVar[float] = 7200.0
    """Nova copies the whole image to the host, and Cinder may copy each volume."""

    def ask(self, draft: RevertToSnapshotDraft) -> RevertMachine:
        return draft.command(self.vnfc_id)

    def fold(self, draft: RevertToSnapshotDraft, reply: MachineReverted) -> Draft:
        return draft.with_reverted(reply.server_id)

    def undo(self, draft: RevertToSnapshotDraft) -> None:
        """The earlier content of the disks is not kept (api.md 4.3)."""
