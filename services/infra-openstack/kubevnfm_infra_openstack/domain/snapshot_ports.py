"""The capability that snapshots of machines need from a tenant: images, volume snapshots, and their way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol

SNAPSHOT: Final = "kubevnfm_snapshot"
"""The property of an image, and the metadata of a volume snapshot, with the VnfSnapshot that it belongs to."""
VNFC: Final = "kubevnfm_vnfc"
"""The same, with the VNFC."""
ATTEMPT: Final = "kubevnfm_attempt"
"""The same, with the try of the step that has made it."""
IMAGE_ASKED_BY: Final = "kubevnfm_image_asked_by"
"""The metadata of a server: the try of the step that has asked for an image of it."""
REVERTED_BY: Final = "kubevnfm_reverted_by"
"""The metadata of a server and of a volume: the try of the step that has put it back."""
REVERTED_TO: Final = "kubevnfm_reverted_to"
"""The metadata of a server: the image to which it was reverted."""


@dataclass(frozen=True)
class Attached:
    """A volume of a server."""

    volume_id: str
    device: str = ""


@dataclass(frozen=True)
class MachineView:
    """A server as Nova shows it."""

    id: str
    status: str
    task: str | None
    """The work that Nova does on it now."""
    image_id: str | None
    """None: it boots from a volume."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    attached: tuple[Attached, ...] = ()
    fault: str = ""


@dataclass(frozen=True)
class VolumeView:
    """A volume as Cinder shows it."""

    id: str
    status: str
    size_gib: int
    is_bootable: bool = False
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Made:
    """An image or a volume snapshot that was made for a VNF snapshot."""

    id: str
    status: str
    attempt: str = ""
    volume_id: str = ""
    """The volume that a volume snapshot is of; empty for an image."""
    created_at: datetime | None = None
    updated_at: datetime | None = None


class SnapshotPort(Protocol):
    """Snapshots of the machines of one tenant. Every method may raise VimUnavailable and VimRefused."""

    async def machine(self, server_id: str) -> MachineView | None:
        """Return the server with its volumes; None if it does not exist."""
        ...

    async def ports(self, server_id: str) -> frozenset[str]:
        """Return the ids of the ports of a server."""
        ...

    async def volumes(self, ids: Sequence[str]) -> Mapping[str, VolumeView]:
        """Return the volumes that exist, by id."""
        ...

    async def images(self, marks: Mapping[str, str]) -> Sequence[Made]:
        """Return the images that carry all the marks."""
        ...

    async def image(self, image_id: str) -> Made | None:
        """Return an image; None if it does not exist."""
        ...

    async def volume_snapshots(self, marks: Mapping[str, str], volume_id: str | None = None) -> Sequence[Made]:
        """Return the volume snapshots that carry all the marks, of one volume or of all; the newest first."""
        ...

    async def volume_snapshot(self, snapshot_id: str) -> Made | None:
        """Return a volume snapshot; None if it does not exist."""
        ...

    async def make_image(self, server_id: str, name: str, marks: Mapping[str, str]) -> bool:
        """Begin to make an image of the server; return False if Nova is working on the server. Raises SnapshotFailed."""
        ...

    async def make_volume_snapshot(self, volume_id: str, name: str, marks: Mapping[str, str]) -> None:
        """Begin to make a snapshot of the volume, also while a server uses it. Raises SnapshotFailed."""
        ...

    async def delete_image(self, image_id: str) -> None:
        """Delete an image; a missing one is no error. Raises SnapshotNotDeleted."""
        ...

    async def delete_volume_snapshot(self, snapshot_id: str) -> None:
        """Begin to delete a volume snapshot; a missing one is no error. Raises SnapshotNotDeleted."""
        ...

    async def mark_machine(self, server_id: str, marks: Mapping[str, str]) -> None:
        """Add to the metadata of a server."""
        ...

    async def rebuild(self, machine: MachineView, image_id: str, marks: Mapping[str, str]) -> None:
        """Begin to rebuild the server from the image, and add to its metadata. Raises RevertFailed."""
        ...

    async def revert_volume(self, volume_id: str, snapshot_id: str, marks: Mapping[str, str]) -> None:
        """Begin to revert a volume, and add to its metadata once that was accepted. Raises RevertFailed."""
        ...

    async def detach(self, server_id: str, volume_id: str) -> None:
        """Begin to detach a volume, unless Nova is working on it already. Raises RevertFailed."""
        ...

    async def attach(self, server_id: str, attached: Attached) -> None:
        """Begin to attach a volume, unless Nova is working on the server. Raises RevertFailed."""
        ...
