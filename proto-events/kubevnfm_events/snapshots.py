"""VNF snapshots: images of machines and snapshots of their volumes (infra-openstack), and the record about them (lcm-api)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from kubevnfm_secrets import SecretParams
from pydantic import Field

from kubevnfm_events.base import Command, Event, Facts
from kubevnfm_events.common import VimConnection
from kubevnfm_events.stacks import StackResources


class VolumeSnapshot(Facts):
    """The Cinder snapshot of one volume of a machine."""

    volume_id: str
    snapshot_id: str
    device: str = ""
    """Where the machine had the volume: ``/dev/vdb``; empty if Nova does not show it."""
    is_root: bool = False
    """Whether the machine boots from the volume. Then the machine has no image of its own."""


class MachineSnapshot(Facts):
    """The parts of a snapshot of one machine."""

    vnfc_id: str
    server_id: str
    image_id: str | None = None
    """The Glance image of its disk; None: it boots from a volume."""
    volumes: tuple[VolumeSnapshot, ...] = ()
    """Those that were attached to it, in the order in which Nova lists them."""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class SnapshotTaken(Event, kind="infra.snapshots.taken"):
    """The image of a machine and the snapshots of its volumes are complete."""

    machine: MachineSnapshot


class SnapshotCommand(Command):
    """The attributes of every command about the snapshot of one machine."""

    vnf_instance_id: str
    vim: VimConnection
    snapshot_id: str
    """VnfSnapshot id: the mark by which a repeated command finds what an earlier one has made."""
    vnfc_id: str


class TakeSnapshot(
    SnapshotCommand, kind="infra.openstack.take_snapshot", service="infra-openstack", reply=SnapshotTaken
):
    """Make an image of a machine, and a snapshot of each of its volumes; what exists already is not made again."""

    server_id: str


class SnapshotRemoved(Event, kind="infra.snapshots.removed"):
    """Nothing of the snapshot of a machine is left."""

    snapshot_id: str
    vnfc_id: str


class RemoveSnapshot(
    SnapshotCommand, kind="infra.openstack.remove_snapshot", service="infra-openstack", reply=SnapshotRemoved
):
    """Delete what was made for the snapshot of a machine: by recorded ids, and by the mark what was not recorded yet."""

    made: MachineSnapshot | None = None
    """None: nothing is recorded."""


class MachineReverted(Event, kind="infra.snapshots.reverted"):
    """A machine has the disk and the volumes of the snapshot again."""

    server_id: str
    image_id: str


class RevertMachine(
    SnapshotCommand, kind="infra.openstack.revert_machine", service="infra-openstack", reply=MachineReverted
):
    """Rebuild a machine from its image, and revert its volumes; its ports and addresses stay."""

    server_id: str
    image_id: str
    volumes: tuple[VolumeSnapshot, ...] = ()
    ports: tuple[str, ...] = ()
    """The Neutron ids of the ports that the machine has, and has to have afterwards."""
    state: Literal["STARTED", "STOPPED"] = "STARTED"
    """The state in which the machine is left."""


class SnapshotRecorded(Event, kind="lcm.snapshot.recorded"):
    """The individual VNF snapshot shows the snapshot."""

    snapshot_info_id: str


class RecordSnapshot(Command, kind="lcm.record_snapshot", service="lcm-api", reply=SnapshotRecorded):
    """Write a VNF snapshot into its individual VNF snapshot: when it begins, and when all its machines are done."""

    vnf_instance_id: str
    snapshot_info_id: str
    snapshot_id: str
    occurrence_id: str
    """CREATE_SNAPSHOT, which holds the individual VNF snapshot."""
    vim_key: str
    vim_id: str | None = None
    """The registered VIM that has the images and snapshots; None: the VIM is not registered."""
    stack: StackResources
    machines: tuple[MachineSnapshot, ...] = ()
    is_complete: bool = False
    user_defined_data: SecretParams = Field(default_factory=dict)


class SnapshotForgotten(Event, kind="lcm.snapshot.forgotten"):
    """The individual VNF snapshot is empty again, or does not exist."""

    snapshot_info_id: str


class ForgetSnapshot(Command, kind="lcm.forget_snapshot", service="lcm-api", reply=SnapshotForgotten):
    """Empty the individual VNF snapshot that an operation has filled; one that another operation holds is left alone."""

    vnf_instance_id: str
    snapshot_info_id: str
    occurrence_id: str
