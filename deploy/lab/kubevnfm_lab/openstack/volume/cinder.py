"""Cinder: volumes that exist as records only, and their attachments."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubevnfm_lab.openstack.errors import ServiceError, bad_request, conflict, not_found
from kubevnfm_lab.openstack.ids import new_uuid, now_micro
from kubevnfm_lab.openstack.quotas import Quotas
from kubevnfm_lab.openstack.settings import Durations
from kubevnfm_lab.openstack.volume.volume_snapshots import VolumeSnapshots
from kubevnfm_lab.openstack.volume.volume_types import VolumeType, VolumeTypes


@dataclass(slots=True)
class Attachment:
    """The attachment of a volume to a server."""

    attachment_id: str
    server_id: str
    device: str
    attached_at: str


@dataclass(kw_only=True, slots=True)
class Volume:
    """A virtual disk."""

    volume_id: str = field(default_factory=new_uuid)
    project_id: str
    user_id: str
    size_gib: int
    volume_type: VolumeType
    name: str = ""
    description: str | None = None
    image_id: str | None = None
    snapshot_id: str | None = None
    availability_zone: str = "nova"
    metadata: dict[str, str] = field(default_factory=dict)
    status: str = "creating"
    created_at: str = field(default_factory=now_micro)
    updated_at: str | None = None
    attachments: list[Attachment] = field(default_factory=list)
    reverted_to: list[str] = field(default_factory=list)
    """The snapshots to which it was reverted, in order: volumes of the lab have no bits that would show it."""

    def view(self, base: str) -> dict[str, Any]:
        """Return it as the API shows it in detail; ``base`` starts its links."""
        shown: dict[str, Any] = {
            "id": self.volume_id,
            "status": self.status,
            "size": self.size_gib,
            "availability_zone": self.availability_zone,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "name": self.name,
            "description": self.description,
            "volume_type": self.volume_type.name,
            "snapshot_id": self.snapshot_id,
            "source_volid": None,
            "metadata": self.metadata,
            "links": self.links(base),
            "user_id": self.user_id,
            "bootable": "true" if self.image_id else "false",
            "encrypted": False,
            "replication_status": None,
            "consistencygroup_id": None,
            "multiattach": self.volume_type.multiattach,
            "attachments": [
                {
                    "id": self.volume_id,
                    "attachment_id": one.attachment_id,
                    "volume_id": self.volume_id,
                    "server_id": one.server_id,
                    "host_name": None,
                    "device": one.device,
                    "attached_at": one.attached_at,
                }
                for one in self.attachments
            ],
            "os-vol-tenant-attr:tenant_id": self.project_id,
        }
        if self.image_id:
            shown["volume_image_metadata"] = {"image_id": self.image_id}
        return shown

    def links(self, base: str) -> list[dict[str, str]]:
        """Return the links that every answer about it has."""
        return [
            {"rel": "self", "href": f"{base}/v3/{self.project_id}/volumes/{self.volume_id}"},
            {"rel": "bookmark", "href": f"{base}/{self.project_id}/volumes/{self.volume_id}"},
        ]


class Cinder:
    """All volumes of the cloud."""

    def __init__(self, quotas: Quotas, durations: Durations) -> None:
        self._quotas, self._durations = quotas, durations
        self.volumes: dict[str, Volume] = {}
        self.snapshots = VolumeSnapshots(quotas, durations)
        self.types = VolumeTypes(in_use=self._has_volumes)

    def begin(self, project_id: str, user_id: str, body: Mapping[str, Any]) -> Volume:
        """Register a volume in status creating; raise the API's errors."""
        size = body.get("size")
        if isinstance(size, str) and size.isdigit():
            size = int(size)
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            why = (
                f"{size} is less than the minimum of 1"
                if isinstance(size, int)
                else f"{size!r} does not match '^[0-9]+$'"
            )
            raise bad_request("cinder", f"Invalid input for field/attribute size. Value: {size}. {why}")
        # Before the quotas, as in Cinder: an unknown type must not use any.
        volume_type = self.types.for_volume(body.get("volume_type"))
        if self._quotas.exceeded(project_id, volumes=1):
            message = f"VolumeLimitExceeded: Maximum number of volumes allowed ({self._quotas.limits['volumes']}) exceeded for quota 'volumes'."
            # Cinder answers 413 where Nova and Neutron answer 403 and 409.
            raise ServiceError("cinder", 413, "VolumeLimitExceeded", message)
        if self._quotas.exceeded(project_id, gigabytes=size):
            used = self._quotas.used(project_id, "gigabytes")
            limit = self._quotas.limits["gigabytes"]
            message = (
                f"VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota."
                f" Requested {size}G, quota is {limit}G and {used}G has been consumed."
            )
            raise ServiceError("cinder", 413, "VolumeSizeExceedsAvailableQuota", message)
        self._quotas.use(project_id, volumes=1, gigabytes=size)
        made = Volume(
            project_id=project_id,
            user_id=user_id,
            size_gib=size,
            name=str(body.get("name") or ""),
            description=body.get("description"),
            image_id=body.get("imageRef"),
            snapshot_id=body.get("snapshot_id"),
            volume_type=volume_type,
            availability_zone=str(body.get("availability_zone") or "nova"),
            metadata=dict(body.get("metadata") or {}),
        )
        self.volumes[made.volume_id] = made
        return made

    async def make(self, volume: Volume) -> None:
        """Make a volume available."""
        if self._durations.volume_create_s:
            await asyncio.sleep(self._durations.volume_create_s)
        # It may have been reset to another status, or deleted, during the wait.
        if volume.status == "creating":
            self._now(volume, "available")

    def attach(self, volume: Volume, server_id: str, device: str = "") -> Attachment:
        """Attach a volume to a server; raise BadRequest unless it is available or allows another server."""
        if not self.can_attach(volume):
            raise bad_request(
                "cinder",
                f"Invalid volume: Volume {volume.volume_id} status must be available or downloading to reserve, but"
                f" the current status is {volume.status}.",
            )
        made = Attachment(new_uuid(), server_id, device or "/dev/vdb", now_micro())
        volume.attachments.append(made)
        self._now(volume, "in-use")
        return made

    def can_attach(self, volume: Volume) -> bool:
        """Return whether the volume can be attached to another server now."""
        return volume.status in ("available", "reserved") or (
            volume.status == "in-use" and volume.volume_type.multiattach
        )

    def detach(self, volume: Volume, server_id: str) -> None:
        """Detach a volume from a server."""
        volume.attachments = [one for one in volume.attachments if one.server_id != server_id]
        if not volume.attachments and volume.status == "in-use":
            self._now(volume, "available")

    def begin_reversal(self, volume: Volume, snapshot_id: str) -> None:
        """Put a volume into status reverting; raise Cinder's errors."""
        self.snapshots.check_newest(volume.volume_id, snapshot_id)
        if volume.status != "available":
            message = (
                f"Invalid volume: Can't revert volume {volume.volume_id} to its latest snapshot {snapshot_id}. Volume's status"
                " must be 'available'."
            )
            raise conflict("cinder", "InvalidVolume", message)
        self._now(volume, "reverting")

    async def revert(self, volume: Volume, snapshot_id: str) -> None:
        """Revert a volume."""
        if self._durations.volume_create_s:
            await asyncio.sleep(self._durations.volume_create_s)
        volume.reverted_to.append(snapshot_id)
        self._now(volume, "available")

    def extend(self, volume: Volume, size_gib: int) -> None:
        """Enlarge a volume."""
        if size_gib <= volume.size_gib:
            message = f"New size for extend must be greater than current size. (current: {volume.size_gib}, extended: {size_gib})."
            raise bad_request("cinder", f"Invalid input received: {message}")
        self._quotas.use(volume.project_id, gigabytes=size_gib - volume.size_gib)
        volume.size_gib = size_gib
        self._now(volume, volume.status)

    def retype(self, volume: Volume, name_or_id: object) -> None:
        """Give a volume another type; raise Cinder's 404 if there is no such type, its 400 if it has the type."""
        wanted = self.types.for_volume(name_or_id)
        if wanted is volume.volume_type:
            raise bad_request("cinder", f"Invalid volume type: New volume_type same as original: {wanted.type_id}.")
        volume.volume_type = wanted
        self._now(volume, volume.status)

    def delete(self, volume: Volume) -> None:
        """Delete a volume; raise BadRequest while it is attached."""
        # Two deletions of the same volume may overlap; the quota must be released only once.
        if volume.volume_id not in self.volumes:
            return
        if volume.attachments or self.snapshots.of_volume(volume.volume_id):
            raise bad_request(
                "cinder",
                "Invalid volume: Volume status must be available or error or error_restoring or error_extending or"
                " error_managing and must not be migrating, attached, belong to a group, have snapshots, awaiting a"
                " transfer, or be disassociated from snapshots after volume transfer.",
            )
        del self.volumes[volume.volume_id]
        self._quotas.release(volume.project_id, volumes=1, gigabytes=volume.size_gib)

    def get(self, volume_id: str) -> Volume:
        """Return a volume; raise Cinder's 404."""
        found = self.volumes.get(volume_id)
        if found is None:
            raise not_found("cinder", "VolumeNotFound", f"Volume {volume_id} could not be found.")
        return found

    def _has_volumes(self, volume_type: VolumeType) -> bool:
        return any(volume.volume_type is volume_type for volume in self.volumes.values())

    def _now(self, volume: Volume, status: str) -> None:
        volume.status = status
        volume.updated_at = now_micro()
