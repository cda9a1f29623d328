"""Takes, removes and goes back to snapshots of machines. Each look at the cloud decides what is done next.

The images and snapshots carry the ids of the VnfSnapshot and the VNFC, so a repeated command finds them, whatever the process that
made them has stored. Names identify nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events.snapshots import (
    MachineReverted,
    MachineSnapshot,
    RemoveSnapshot,
    RevertMachine,
    SnapshotCommand,
    SnapshotRemoved,
    SnapshotTaken,
    TakeSnapshot,
    VolumeSnapshot,
)
from kubevnfm_kit.clock import Clock
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext, nothing_made

from kubevnfm_infra_openstack.domain import quota
from kubevnfm_infra_openstack.domain.errors import SnapshotFailed, SnapshotNotDeleted
from kubevnfm_infra_openstack.domain.machine_reversal import check_revertible, reverted
from kubevnfm_infra_openstack.domain.ports import POLL_PAUSES_S, Cloud, Clouds
from kubevnfm_infra_openstack.domain.snapshot_ports import (
    ATTEMPT,
    IMAGE_ASKED_BY,
    SNAPSHOT,
    VNFC,
    MachineView,
    Made,
    VolumeView,
)
from kubevnfm_infra_openstack.domain.stack import attempt_tag

log = structlog.get_logger()

_AGAIN_S: Final = 2.0
_CAN_BE_TAKEN: Final = frozenset({"ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"})
"""The states of a server of which Nova makes images."""
_IMAGE_COMES: Final = frozenset({"queued", "saving", "importing", "uploading"})
_SNAPSHOT_COMES: Final = frozenset({"creating", "backing-up"})
_SNAPSHOT_GOES: Final = "deleting"


def _marks(command: SnapshotCommand) -> dict[str, str]:
    return {SNAPSHOT: command.snapshot_id, VNFC: command.vnfc_id}


def _tag(context: StepContext) -> str:
    return attempt_tag(context.operation_id, context.step_id, context.attempt)


@dataclass(frozen=True)
class _Look:
    """A machine, and what of its snapshot exists."""

    machine: MachineView
    images: Sequence[Made]
    snapshots: Mapping[str, Made]
    """By the volume."""


@dataclass(frozen=True)
class SnapshotHandlers:
    """Snapshots of the machines of VNFs."""

    clouds: Clouds
    vims: VimDirectory
    clock: Clock

    async def take_snapshot(self, command: TakeSnapshot, context: StepContext) -> Outcome:
        """Make the image and the volume snapshots that are missing. Raises SnapshotFailed, QuotaExceeded."""
        tag = _tag(context)
        with nothing_made():
            cloud = await self._cloud(command)
            look = await self._look(cloud, command)
            if not look.images and not look.snapshots:
                await _check_quota(cloud, look.machine)
        for pause_s in POLL_PAUSES_S:
            await asyncio.sleep(pause_s)
            look = await self._look(cloud, command)
            if await _taken(cloud, command, look, tag):
                root = await _root_of(cloud, look.machine)
                log.info("snapshot_taken", server_id=command.server_id, volumes=len(look.snapshots))
                return Done(SnapshotTaken(machine=_facts(command, look, root, self.clock.now())))
        return NotYet(_AGAIN_S)

    async def remove_snapshot(self, command: RemoveSnapshot, context: StepContext) -> Outcome:
        """Delete all parts: those that are recorded, or those that carry the marks. Raises SnapshotNotDeleted."""
        cloud = await self._cloud(command)
        recorded = command.made
        for pause_s in POLL_PAUSES_S:
            await asyncio.sleep(pause_s)
            # An image that a person makes of a machine that was reverted inherits the marks from the image of the snapshot.
            marked = await cloud.snapshots.images(_marks(command)) if recorded is None else ()
            images = {one.id: one for one in marked}
            snapshots = {one.id: one for one in await cloud.snapshots.volume_snapshots(_marks(command))}
            if recorded is not None:
                if recorded.image_id is not None and (image := await cloud.snapshots.image(recorded.image_id)):
                    images[image.id] = image
                for volume in recorded.volumes:
                    if (found := await cloud.snapshots.volume_snapshot(volume.snapshot_id)) is not None:
                        snapshots[found.id] = found
            left = _there(images.values())
            if not left and not snapshots:
                log.info("snapshot_removed", snapshot_id=command.snapshot_id, vnfc_id=command.vnfc_id)
                return Done(SnapshotRemoved(snapshot_id=command.snapshot_id, vnfc_id=command.vnfc_id))
            for image in left:
                await cloud.snapshots.delete_image(image.id)
            for one in snapshots.values():
                if one.status == "error_deleting":
                    raise SnapshotNotDeleted(f"volume snapshot {one.id}: its state is error_deleting")
                # Cinder deletes what is settled only; the next look sees it.
                if one.status not in _SNAPSHOT_COMES and one.status != _SNAPSHOT_GOES:
                    await cloud.snapshots.delete_volume_snapshot(one.id)
        return NotYet(_AGAIN_S)

    async def revert_machine(self, command: RevertMachine, context: StepContext) -> Outcome:
        """Put the machine and its volumes back, then compare. Raises RevertFailed."""
        tag = _tag(context)
        with nothing_made():
            cloud = await self._cloud(command)
            await check_revertible(cloud, command, tag)
        for pause_s in POLL_PAUSES_S:
            await asyncio.sleep(pause_s)
            if await reverted(cloud, command, tag):
                log.info("machine_reverted", server_id=command.server_id, image_id=command.image_id)
                return Done(MachineReverted(server_id=command.server_id, image_id=command.image_id))
        return NotYet(_AGAIN_S)

    async def _cloud(self, command: SnapshotCommand) -> Cloud:
        return self.clouds.cloud(await self.vims.connection(command.vim))

    async def _look(self, cloud: Cloud, command: TakeSnapshot) -> _Look:
        machine = await cloud.snapshots.machine(command.server_id)
        if machine is None:
            raise SnapshotFailed(f"server {command.server_id} does not exist")
        if machine.status not in _CAN_BE_TAKEN:
            wanted = ", ".join(sorted(_CAN_BE_TAKEN))
            raise SnapshotFailed(f"server {machine.id}: state {wanted} expected, found {machine.status}")
        images = _there(await cloud.snapshots.images(_marks(command))) if machine.image_id else ()
        snapshots: dict[str, Made] = {}
        for attached in machine.attached:
            found = await cloud.snapshots.volume_snapshots(_marks(command), attached.volume_id)
            if found:
                snapshots[attached.volume_id] = found[0]
        return _Look(machine, images, snapshots)


def _there(images: Iterable[Made]) -> Sequence[Made]:
    return [one for one in images if one.status not in ("deleted", "pending_delete")]


async def _check_quota(cloud: Cloud, machine: MachineView) -> None:
    """Raise QuotaExceeded if Cinder has no room for the snapshots; images have no quota that a tenant can ask for."""
    volumes = await cloud.snapshots.volumes([one.volume_id for one in machine.attached])
    if not volumes:
        return
    wanted = {
        quota.VOLUME_SNAPSHOTS: len(volumes),
        quota.VOLUME_GIB: sum(one.size_gib for one in volumes.values()),
    }
    quota.check(wanted, await cloud.capacity.free(list(wanted)))


async def _taken(cloud: Cloud, command: TakeSnapshot, look: _Look, tag: str) -> bool:
    """Return whether all parts are complete; begin those that are missing."""
    made_all = True
    name, marks = f"snapshot-{command.snapshot_id}-{command.vnfc_id}"[:255], {**_marks(command), ATTEMPT: tag}
    # The volumes first: their snapshots are of one moment each, and an image takes Nova much longer.
    for attached in look.machine.attached:
        found = look.snapshots.get(attached.volume_id)
        if found is None:
            await cloud.snapshots.make_volume_snapshot(attached.volume_id, name, marks)
        elif found.status == "available":
            continue
        elif found.status not in _SNAPSHOT_COMES and found.status != _SNAPSHOT_GOES:
            if found.attempt == tag:
                raise SnapshotFailed(f"volume {attached.volume_id}: its snapshot {found.id} is {found.status}")
            # An earlier try has left it.
            await cloud.snapshots.delete_volume_snapshot(found.id)
        made_all = False
    return await _image_taken(cloud, look, tag, name, marks) and made_all


async def _image_taken(cloud: Cloud, look: _Look, tag: str, name: str, marks: Mapping[str, str]) -> bool:
    machine = look.machine
    # A machine that boots from a volume has no disk of its own: Nova would make the same snapshots once more.
    if machine.image_id is None:
        return True
    images = look.images
    for image in images:
        if image.status in _IMAGE_COMES or image.status == "active":
            continue
        if image.attempt == tag:
            raise SnapshotFailed(f"server {machine.id}: its image {image.id} is {image.status}")
        await cloud.snapshots.delete_image(image.id)
    if images:
        return len(images) == 1 and images[0].status == "active"
    if machine.task is not None:
        return False
    # Nova deletes an image that it could not make.
    if machine.metadata.get(IMAGE_ASKED_BY) == tag:
        raise SnapshotFailed(f"server {machine.id}: Nova has made no image of it; its instance actions say why")
    if await cloud.snapshots.make_image(machine.id, name, marks):
        # Afterwards: if the process dies in between, the image is there and is found.
        await cloud.snapshots.mark_machine(machine.id, {IMAGE_ASKED_BY: tag})
    return False


async def _root_of(cloud: Cloud, machine: MachineView) -> str | None:
    """Return the volume that the machine boots from; None if it boots from an image."""
    if machine.image_id is not None or not machine.attached:
        return None
    first = next((one for one in machine.attached if one.device.endswith("a")), None)
    if first is not None:
        return first.volume_id
    volumes: Mapping[str, VolumeView] = await cloud.snapshots.volumes([one.volume_id for one in machine.attached])
    bootable = [
        one.volume_id for one in machine.attached if one.volume_id in volumes and volumes[one.volume_id].is_bootable
    ]
    return (bootable or [machine.attached[0].volume_id])[0]


def _facts(command: TakeSnapshot, look: _Look, root: str | None, now: datetime) -> MachineSnapshot:
    made = [*look.images, *look.snapshots.values()]
    begun = [one.created_at for one in made if one.created_at is not None]
    return MachineSnapshot(
        vnfc_id=command.vnfc_id,
        server_id=command.server_id,
        image_id=look.images[0].id if look.images else None,
        volumes=tuple(
            VolumeSnapshot(
                volume_id=one.volume_id,
                snapshot_id=look.snapshots[one.volume_id].id,
                device=one.device,
                is_root=one.volume_id == root,
            )
            for one in look.machine.attached
        ),
        started_at=min(begun, default=now),
        finished_at=now,
    )
