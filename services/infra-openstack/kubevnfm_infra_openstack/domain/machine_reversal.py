"""Puts a machine back to its snapshot: Nova rebuilds it in place, and Cinder reverts its volumes while they are detached.

The order is fixed: stop, detach, revert, rebuild, attach, start. A rebuild keeps id, ports and addresses of a server. Each look
continues where the last one ended, also in another process: servers and volumes that are done carry the try of the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubevnfm_events.snapshots import RevertMachine

from kubevnfm_infra_openstack.domain.errors import RevertFailed
from kubevnfm_infra_openstack.domain.ports import Cloud
from kubevnfm_infra_openstack.domain.snapshot_ports import REVERTED_BY, REVERTED_TO, Attached, MachineView

_WANTED: Final = {"STARTED": "ACTIVE", "STOPPED": "SHUTOFF"}
_SETTLED: Final = frozenset({"ACTIVE", "SHUTOFF", "ERROR"})
_AT_REST: Final = frozenset(
    {"PAUSED", "SUSPENDED", "SHELVED", "SHELVED_OFFLOADED", "RESCUE", "VERIFY_RESIZE", "SOFT_DELETED"}
)
"""States in which Nova rebuilds no server, and which last until a person ends them."""
_BROKEN_VOLUME: Final = "error"


async def check_revertible(cloud: Cloud, command: RevertMachine, tag: str) -> None:
    """Raise RevertFailed if something is missing that the reversal needs, unless this try has begun already."""
    machine = await _machine(cloud, command)
    ids = [one.volume_id for one in command.volumes]
    volumes = await cloud.snapshots.volumes(ids)
    if tag in (machine.metadata.get(REVERTED_BY), *(one.metadata.get(REVERTED_BY) for one in volumes.values())):
        return
    image = await cloud.snapshots.image(command.image_id)
    if image is None or image.status != "active":
        raise RevertFailed(f"image {command.image_id}: active expected, found {image.status if image else 'no image'}")
    for wanted in command.volumes:
        if wanted.volume_id not in volumes:
            raise RevertFailed(f"volume {wanted.volume_id} of the snapshot does not exist")
        found = await cloud.snapshots.volume_snapshots({}, wanted.volume_id)
        ours = next((one for one in found if one.id == wanted.snapshot_id), None)
        if ours is None or ours.status != "available":
            state = ours.status if ours is not None else "no such snapshot"
            raise RevertFailed(f"volume snapshot {wanted.snapshot_id}: available expected, found {state}")
        if found[0].id != wanted.snapshot_id:
            raise RevertFailed(
                f"volume {wanted.volume_id} has a newer snapshot, {found[0].id}: Cinder reverts a volume to its newest "
                "snapshot only"
            )
    foreign = [one.volume_id for one in machine.attached if one.volume_id not in ids]
    if foreign:
        raise RevertFailed(
            f"server {machine.id} has volumes that the snapshot does not have, {', '.join(foreign)}: detach them first"
        )


async def reverted(cloud: Cloud, command: RevertMachine, tag: str) -> bool:
    """Look once and do what is next; return whether the machine is back, as it was asked for. Raises RevertFailed."""
    machine = await _machine(cloud, command)
    if machine.task is not None or machine.status not in _SETTLED:
        return False
    if not await _volumes_reverted(cloud, command, machine, tag):
        return False
    if machine.metadata.get(REVERTED_BY) != tag:
        marks = {REVERTED_BY: tag, REVERTED_TO: command.image_id}
        await cloud.snapshots.rebuild(machine, command.image_id, marks)
        return False
    if machine.status == "ERROR":
        raise RevertFailed(f"server {machine.id} is in state ERROR after its rebuild: {machine.fault or 'no reason'}")
    return await _completed(cloud, command, machine)


async def _machine(cloud: Cloud, command: RevertMachine) -> MachineView:
    machine = await cloud.snapshots.machine(command.server_id)
    if machine is None:
        raise RevertFailed(f"server {command.server_id} does not exist")
    if machine.task is None and machine.status in _AT_REST:
        wanted = ", ".join(sorted(_SETTLED))
        raise RevertFailed(f"server {machine.id}: state {wanted} expected, found {machine.status}")
    return machine


async def _volumes_reverted(cloud: Cloud, command: RevertMachine, machine: MachineView, tag: str) -> bool:
    """Return whether all volumes have their earlier content; bring them nearer to it."""
    volumes = await cloud.snapshots.volumes([one.volume_id for one in command.volumes])
    attached = {one.volume_id for one in machine.attached}
    are_done = True
    for wanted in command.volumes:
        volume = volumes.get(wanted.volume_id)
        if volume is None:
            raise RevertFailed(f"volume {wanted.volume_id} of the snapshot does not exist")
        if volume.status.startswith(_BROKEN_VOLUME):
            raise RevertFailed(f"volume {volume.id} is in state {volume.status}")
        if volume.metadata.get(REVERTED_BY) == tag:
            are_done = are_done and (volume.status == "available" or volume.id in attached)
            continue
        are_done = False
        if machine.status == "ACTIVE":
            # First, so that the machine writes nothing to a disk that leaves it.
            await cloud.servers.stop(machine.id)
            return False
        if volume.id in attached:
            await cloud.snapshots.detach(machine.id, volume.id)
        elif volume.status == "available":
            await cloud.snapshots.revert_volume(volume.id, wanted.snapshot_id, {REVERTED_BY: tag})
    return are_done


async def _completed(cloud: Cloud, command: RevertMachine, machine: MachineView) -> bool:
    """Attach the volumes, one after the other, and bring the machine to its state; then compare."""
    attached = {one.volume_id for one in machine.attached}
    for wanted in command.volumes:
        if wanted.volume_id not in attached:
            await cloud.snapshots.attach(machine.id, Attached(wanted.volume_id, wanted.device))
            return False
    if machine.status != _WANTED[command.state]:
        act = cloud.servers.start if command.state == "STARTED" else cloud.servers.stop
        await act(machine.id)
        return False
    found = _differences(command, machine, await cloud.snapshots.ports(machine.id))
    if found:
        raise RevertFailed(f"server {machine.id}: {'; '.join(found)}")
    return True


def _differences(command: RevertMachine, machine: MachineView, ports: frozenset[str]) -> Sequence[str]:
    """Return a sentence for each difference between what was asked for and what is shown."""
    found = []
    if machine.image_id != command.image_id:
        found.append(f"asked for image {command.image_id}, shown {machine.image_id}")
    if missing := sorted(set(command.ports) - ports):
        found.append(f"asked for ports {', '.join(missing)}, shown {', '.join(sorted(ports)) or 'none'}")
    return found
