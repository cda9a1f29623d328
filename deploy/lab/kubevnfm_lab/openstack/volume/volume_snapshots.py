"""Cinder's snapshots of volumes, as records."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubevnfm_lab.openstack.errors import ServiceError, bad_request, not_found
from kubevnfm_lab.openstack.ids import new_uuid, now_micro
from kubevnfm_lab.openstack.quotas import Quotas
from kubevnfm_lab.openstack.settings import Durations


@dataclass(kw_only=True, slots=True)
class VolumeSnapshot:
    """The content of a volume at one moment."""

    snapshot_id: str = field(default_factory=new_uuid)
    project_id: str
    volume_id: str
    size_gib: int
    name: str | None = None
    description: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    status: str = "creating"
    created_at: str = field(default_factory=now_micro)
    updated_at: str | None = None

    def view(self) -> dict[str, Any]:
        """Return it as the API shows it."""
        return {
            "id": self.snapshot_id,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "name": self.name,
            "description": self.description,
            "volume_id": self.volume_id,
            "status": self.status,
            "size": self.size_gib,
            "metadata": self.metadata,
        }

    def detail(self) -> dict[str, Any]:
        """Return it as lists show it in detail."""
        progress = "100%" if self.status == "available" else "0%"
        return {
            **self.view(),
            "os-extended-snapshot-attributes:project_id": self.project_id,
            "os-extended-snapshot-attributes:progress": progress,
        }


class VolumeSnapshots:
    """All snapshots of the cloud, the oldest first."""

    def __init__(self, quotas: Quotas, durations: Durations) -> None:
        self._quotas, self._durations = quotas, durations
        self.by_id: dict[str, VolumeSnapshot] = {}
        self.failures = 0
        """How many of the next snapshots end in error."""

    def of_volume(self, volume_id: str) -> list[VolumeSnapshot]:
        """Return the snapshots of a volume."""
        return [one for one in self.by_id.values() if one.volume_id == volume_id]

    def get(self, snapshot_id: str, project_id: str) -> VolumeSnapshot:
        """Return a snapshot; raise Cinder's 404."""
        found = self.by_id.get(snapshot_id)
        if found is None or found.project_id != project_id:
            raise not_found("cinder", "SnapshotNotFound", f"Snapshot {snapshot_id} could not be found.")
        return found

    def begin(self, project_id: str, size_gib: int, status: str, body: Mapping[str, Any]) -> VolumeSnapshot:
        """Register a snapshot in status creating; ``size_gib`` and ``status`` are those of the volume. Raises the API's errors."""
        volume_id = str(body.get("volume_id"))
        if status not in ("available", "in-use") or (status == "in-use" and not body.get("force")):
            wanted = "available, in-use" if body.get("force") else "available"
            message = f"Invalid volume: Volume {volume_id} status must be {wanted}, but current status is: {status}."
            raise bad_request("cinder", message)
        if self._quotas.exceeded(project_id, snapshots=1):
            limit = self._quotas.limits["snapshots"]
            message = f"SnapshotLimitExceeded: Maximum number of snapshots allowed ({limit}) exceeded"
            raise ServiceError("cinder", 413, "SnapshotLimitExceeded", message)
        if self._quotas.exceeded(project_id, gigabytes=size_gib):
            message = "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota."
            raise ServiceError("cinder", 413, "VolumeSizeExceedsAvailableQuota", message)
        self._quotas.use(project_id, snapshots=1, gigabytes=size_gib)
        made = VolumeSnapshot(
            project_id=project_id,
            volume_id=volume_id,
            size_gib=size_gib,
            name=body.get("name"),
            description=body.get("description"),
            metadata=dict(body.get("metadata") or {}),
        )
        self.by_id[made.snapshot_id] = made
        return made

    async def make(self, snapshot: VolumeSnapshot) -> None:
        """Make a snapshot available."""
        if self._durations.volume_create_s:
            await asyncio.sleep(self._durations.volume_create_s)
        if snapshot.status == "creating":
            snapshot.status, self.failures = ("error", self.failures - 1) if self.failures else ("available", 0)
            snapshot.updated_at = now_micro()

    def delete(self, snapshot: VolumeSnapshot) -> None:
        """Delete a snapshot; raise BadRequest unless it is settled."""
        if snapshot.status not in ("available", "error"):
            message = "Invalid snapshot: Snapshot status must be one of available or error."
            raise bad_request("cinder", message)
        if self.by_id.pop(snapshot.snapshot_id, None) is not None:
            self._quotas.release(snapshot.project_id, snapshots=1, gigabytes=snapshot.size_gib)

    def check_newest(self, volume_id: str, snapshot_id: str) -> None:
        """Raise BadRequest unless the snapshot is the newest one of the volume."""
        own = self.of_volume(volume_id)
        if not own or own[-1].snapshot_id != snapshot_id:
            message = f"Specified snapshot {snapshot_id} is None or not the latest one of volume {volume_id}."
            raise bad_request("cinder", message)
