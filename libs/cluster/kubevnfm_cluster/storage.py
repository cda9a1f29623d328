"""The storage server of a cluster and its persistent volumes (sequences.md 2.7 and 2.8)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from ipaddress import ip_network
from pathlib import PurePosixPath
from typing import Annotated, Any, Final

from kubevnfm_kit.errors import InvalidInput, Unprocessable

from kubevnfm_cluster.forms import FILLED_ARRAY, HOST, Part, parsed, text
from kubevnfm_cluster.ssh_login import PackagePath, Resource, SshLogin

_FOLDER: Final = r"/[A-Za-z0-9._/-]{1,1023}"
_SYSTEM: Final = ("bin", "boot", "dev", "etc", "lib", "lib64", "proc", "root", "run", "sbin", "sys", "usr", "var")
"""Folders of the root that no volume may be mounted over."""
_NAME: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
"""The name of a PersistentVolume: a DNS subdomain, of at most 253 characters."""


def _folder(value: str) -> str:
    if not re.fullmatch(_FOLDER, value):
        raise ValueError
    path = PurePosixPath(value)
    # PurePosixPath does not resolve "..": /data/../etc would pass as a folder under /data.
    if ".." in path.parts or len(path.parts) < 2:
        raise ValueError
    return str(path)


def _mount_point(value: str) -> str:
    path = _folder(value)
    if PurePosixPath(path).parts[1] in _SYSTEM:
        raise ValueError
    return path


def _network_or_host(value: str) -> str:
    if not re.fullmatch(HOST, value):
        ip_network(value, strict=False)
    return value


class CinderVolume(Part):
    """A volume of the storage server."""

    volume_resource_id: Annotated[str, text("the name of a volume of the Base HOT")]
    mount_to: Annotated[str, parsed("an absolute path outside the system's folders", _mount_point)]


class NfsExport(Part):
    """A folder that the storage server exports."""

    export_dir: Annotated[str, parsed("an absolute path", _folder)]
    export_to: Annotated[str, parsed("a network or a host", _network_or_host)]


class StorageServer(SshLogin):
    """The NFS server of persistent volumes."""

    ssh_cp_name: Annotated[str, text("the name of a port of the top template")]
    nic_cp_name: Resource | None = None
    cinder_volume_setup_params: Annotated[tuple[CinderVolume, ...], FILLED_ARRAY]
    nfs_server_setup_params: Annotated[tuple[NfsExport, ...], FILLED_ARRAY]


class PersistentVolume(Part):
    """A manifest of a PersistentVolume on the storage server."""

    pv_manifest_file_path: PackagePath
    nfs_server_cp: Annotated[str, text("the name of a port of the top template")]


def check_storage(storage: StorageServer | None, volumes: Sequence[PersistentVolume], *, path: str) -> None:
    """Refuse values that contradict each other. Raises InvalidInput, Unprocessable naming the field below ``path``."""
    if storage is None:
        if volumes:
            raise Unprocessable(f"{path}/pv_registration_params", "given without storage_server")
        return
    place = f"{path}/storage_server"
    mounts: list[PurePosixPath] = []
    disks: set[str] = set()
    for index, volume in enumerate(storage.cinder_volume_setup_params):
        field, mount = f"{place}/cinder_volume_setup_params/{index}", PurePosixPath(volume.mount_to)
        if mount in mounts:
            raise InvalidInput(f"{field}/mount_to", f"{mount} is a mount point already")
        # A mount hides what is below it, and which one came first would depend on the order at a boot.
        if any(mount.is_relative_to(one) or one.is_relative_to(mount) for one in mounts):
            raise Unprocessable(f"{field}/mount_to", f"{mount} and another mount point are one below the other")
        if volume.volume_resource_id in disks:
            raise Unprocessable(f"{field}/volume_resource_id", f"{volume.volume_resource_id} is mounted already")
        disks.add(volume.volume_resource_id)
        mounts.append(mount)
    exports: list[str] = []
    for index, export in enumerate(storage.nfs_server_setup_params):
        field = f"{place}/nfs_server_setup_params/{index}/export_dir"
        if export.export_dir in exports:
            raise InvalidInput(field, f"{export.export_dir} is exported already")
        if mount_of(export.export_dir, storage) is None:
            raise Unprocessable(field, f"{export.export_dir} is under none of the mount points")
        exports.append(export.export_dir)


def mount_of(folder: str, storage: StorageServer) -> str | None:
    """Return the mount point of the disk that a folder is on; None: it is on none of them."""
    found = (one.mount_to for one in storage.cinder_volume_setup_params)
    return next((mount for mount in found if PurePosixPath(folder).is_relative_to(mount)), None)


def read_manifest(documents: Iterable[object], exports: Collection[str]) -> Sequence[Mapping[str, Any]]:
    """Return the PersistentVolumes among the documents of a manifest; empty documents are left out.

    ``exports``: the folders that the storage server exports. Raises ValueError with what was expected.
    """
    found: list[Mapping[str, Any]] = []
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, Mapping) or document.get("kind") != "PersistentVolume":
            raise ValueError("objects of kind PersistentVolume alone expected")
        name, nfs = _at(document, "metadata", "name"), _at(document, "spec", "nfs")
        if not isinstance(name, str) or len(name) > 253 or not re.fullmatch(_NAME, name):
            raise ValueError("metadata.name: the name of a PersistentVolume expected")
        if not isinstance(nfs, Mapping) or not nfs.get("server"):
            raise ValueError(f"{name}: spec.nfs with server and path expected")
        folder = nfs.get("path")
        if not isinstance(folder, str) or str(PurePosixPath(folder)) not in exports:
            raise ValueError(f"{name}: spec.nfs.path: one of the exported folders expected: {', '.join(exports)}")
        found.append(document)
    if not found:
        raise ValueError("at least one PersistentVolume expected")
    return found


def refuse_same_names(names: Iterable[tuple[str, str]]) -> None:
    """Refuse two PersistentVolumes of one name. ``names``: a field, and the name. Raises Unprocessable."""
    taken: set[str] = set()
    for field, name in names:
        if name in taken:
            raise Unprocessable(field, f"two PersistentVolumes have the name {name}")
        taken.add(name)


def _at(document: Mapping[str, Any], section: str, name: str) -> object:
    part = document.get(section)
    return part.get(name) if isinstance(part, Mapping) else None
