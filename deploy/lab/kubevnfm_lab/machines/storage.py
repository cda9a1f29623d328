"""Disks of a machine: volumes, which outlive it, their file systems, mounts, and fstab."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

DEVICE_LETTERS = "bcdefghijklmnop"
ID_PREFIX_LENGTH = 20
"""QEMU truncates a virtio disk's serial, which is the Cinder volume id, after 20 characters."""


@dataclass
class Volume:
    """A block device and its content."""

    volume_id: str
    content: Path
    """The folder with the content of its file system."""
    filesystem: str | None = None
    uuid: str = ""
    label: str = ""
    formatted: int = 0
    """How often mkfs ran on it: a second time would have destroyed data."""


class VolumeShelf:
    """All volumes of the lab: they keep their data while no machine holds them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._by_id: dict[str, Volume] = {}

    def volume(self, volume_id: str) -> Volume:
        """Return the volume, a blank one on its first use."""
        if volume_id not in self._by_id:
            self._by_id[volume_id] = Volume(volume_id, self._folder / volume_id)
        return self._by_id[volume_id]

    def all(self) -> Sequence[Volume]:
        """Return every volume that a machine ever held."""
        return list(self._by_id.values())


@dataclass(frozen=True)
class Mount:
    """One line of ``/proc/mounts``."""

    source: str
    target: str
    kind: str
    options: str = "rw,relatime"


@dataclass(frozen=True)
class FstabEntry:
    """One line of fstab."""

    source: str
    target: str
    kind: str
    options: str


def fstab_entries(root: Path) -> list[FstabEntry]:
    """Return the active lines of ``/etc/fstab``."""
    file = root / "etc/fstab"
    if not file.exists():
        return []
    rows = (line.split() for line in file.read_text().splitlines() if not line.lstrip().startswith("#"))
    return [FstabEntry(row[0], row[1], row[2], row[3] if len(row) > 3 else "defaults") for row in rows if len(row) > 2]


class MountRefused(Exception):
    """A mount that failed, in mount's words; ``code`` is its exit status (mount(8), 32: mount failure)."""

    def __init__(self, message: str, code: int = 32) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Disks:
    """The volumes attached to one machine, as ``/dev/vdb`` and on, and its mounts."""

    root: Path
    volumes: list[Volume]
    mounts: list[Mount] = field(default_factory=list)

    def devices(self) -> Iterator[tuple[str, Volume]]:
        """Yield device name and volume, in the order of attachment."""
        for letter, volume in zip(DEVICE_LETTERS, self.volumes, strict=False):
            yield f"/dev/vd{letter}", volume

    def publish(self) -> None:
        """Write what programs search: device files, links by id and by UUID, ``/proc/mounts``."""
        for device, volume in self.devices():
            (self.root / device.lstrip("/")).touch()
            self._link(f"dev/disk/by-id/virtio-{volume.volume_id[:ID_PREFIX_LENGTH]}", device)
            # Links by UUID exist only for formatted volumes, as udev creates them.
            if volume.uuid:
                self._link(f"dev/disk/by-uuid/{volume.uuid}", device)
        lines = ["/dev/vda1 / ext4 rw,relatime 0 0"]
        lines += [f"{m.source} {m.target} {m.kind} {m.options} 0 0" for m in self.mounts]
        (self.root / "proc/mounts").write_text("\n".join(lines) + "\n")

    def _link(self, place: str, device: str) -> None:
        link = self.root / place
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(f"../../{Path(device).name}")

    def find(self, source: str) -> tuple[str, Volume] | None:
        """Return device and volume for ``/dev/vdb``, a link under ``/dev/disk``, ``UUID=…`` or ``LABEL=…``."""
        tag, _, value = source.partition("=")
        for device, volume in self.devices():
            by_tag = {"UUID": volume.uuid, "LABEL": volume.label}.get(tag) if value else None
            places = (
                device,
                f"/dev/disk/by-id/virtio-{volume.volume_id[:ID_PREFIX_LENGTH]}",
                f"/dev/disk/by-uuid/{volume.uuid}",
            )
            if source in places or (by_tag and by_tag == value.strip('"')):
                return device, volume
        return None

    def format(self, volume: Volume, kind: str, *, label: str = "") -> str:
        """Create a file system, replacing any other; return its UUID."""
        # Formatting destroys the content, which a test can then observe.
        shutil.rmtree(volume.content, ignore_errors=True)
        volume.content.mkdir(parents=True)
        (volume.content / "lost+found").mkdir()
        volume.filesystem, volume.uuid, volume.label = kind, str(uuid.uuid4()), label
        volume.formatted += 1
        self.publish()
        return volume.uuid

    def mounted_at(self, target: str) -> Mount | None:
        """Return the mount on a directory."""
        # The last mount on a directory hides the earlier ones.
        return next((mount for mount in reversed(self.mounts) if mount.target == target), None)

    def mounts_of(self, device: str) -> list[Mount]:
        """Return where a device is mounted."""
        return [mount for mount in self.mounts if mount.source == device]

    def attach(self, source: str, target: str, *, kind: str | None = None, options: str = "") -> None:
        """Show a volume's files in a directory, or record another mount; MountRefused has mount(8)'s words."""
        place = self.root / target.lstrip("/")
        if not place.is_dir():
            raise MountRefused(f"mount: {target}: mount point does not exist.")
        # These have no volume behind them, so a record of the mount is enough.
        if kind in ("tmpfs", "proc", "sysfs", "cgroup2") or "bind" in options.split(","):
            self._note(Mount(source, target, kind or "none", options or "rw,relatime"))
            return
        found = self.find(source)
        if found is None:
            raise MountRefused(f"mount: {target}: special device {source} does not exist.")
        device, volume = found
        if volume.filesystem is None or (kind not in (None, "auto") and kind != volume.filesystem):
            raise MountRefused(
                f"mount: {target}: wrong fs type, bad option, bad superblock on {device}, "
                "missing codepage or helper program, or other error."
            )
        if any(mount.source == device and mount.target == target for mount in self.mounts):
            raise MountRefused(f"mount: {target}: {device} already mounted on {target}.")
        # A symbolic link in this place is an earlier mount.
        if place.is_symlink():
            raise MountRefused(f"mount: {target}: busy.")
        # The directory's own files are hidden, not lost; they come back with umount.
        place.rename(_hidden(place))
        place.symlink_to(volume.content)
        self._note(Mount(device, target, volume.filesystem))

    def unmount(self, target_or_source: str) -> None:
        """Undo the last mount on a directory or of a device; raise MountRefused if there is none."""
        mounts = [mount for mount in self.mounts if target_or_source in (mount.target, mount.source)]
        if not mounts:
            raise MountRefused(f"umount: {target_or_source}: not mounted.")
        mount = mounts[-1]
        place = self.root / mount.target.lstrip("/")
        if place.is_symlink():
            place.unlink()
            _hidden(place).rename(place)
        self.mounts.remove(mount)
        self.publish()

    def mount_all(self) -> list[str]:
        """Mount the entries of fstab that are not mounted; return the errors that mount would print."""
        complaints = []
        for entry in fstab_entries(self.root):
            if (
                entry.kind == "swap"
                or entry.target == "/"
                or "noauto" in entry.options
                or self.mounted_at(entry.target)
            ):
                continue
            try:
                self.attach(entry.source, entry.target, kind=entry.kind, options=entry.options)
            except MountRefused as refused:
                # nofail entries do not stop a boot.
                if "nofail" not in entry.options:
                    complaints.append(str(refused))
        return complaints

    def unmount_all(self) -> None:
        """Undo every mount, last first."""
        for mount in reversed(list(self.mounts)):
            with suppress(MountRefused):
                self.unmount(mount.target)

    def _note(self, mount: Mount) -> None:
        self.mounts.append(mount)
        self.publish()


def _hidden(place: Path) -> Path:
    return place.with_name(f".{place.name}.under-mount")
