"""Registries, storage servers, persistent volumes (sequences.md 2.6 to 2.8) and others that are not installed yet.

Their form is checked all the same, so a request is not accepted today with values that a later version refuses.
They are no part of `ClusterParameters`, which is published in messages, until a cluster with them can be installed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import PurePosixPath
from typing import Annotated, ClassVar, Final

from kubevnfm_kit.errors import InvalidInput, Unprocessable

from kubevnfm_cluster.forms import ARRAY, FILLED_ARRAY, FLAG, HOST, Form, Part, text
from kubevnfm_cluster.parameters import ROOT, ClusterParameters, PackagePath, Password, Resource, UserName

_SERVER: Final = rf"{HOST}(:\d{{1,5}})?"
_FOLDER: Final = r"/[A-Za-z0-9._/-]{1,1023}"
_SYSTEM: Final = ("bin", "boot", "dev", "etc", "lib", "lib64", "proc", "root", "run", "sbin", "sys", "usr", "var")
"""Folders of the root that no volume may be mounted over."""


def _connection_type(value: object) -> str:
    # Both the text and the number are in use. In Python, True is an int.
    if isinstance(value, bool) or str(value) not in {"0", "1"}:
        raise ValueError
    return str(value)


def _hosts_entry(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError
    address, _, name = value.partition(" ")
    ip_address(address)
    if not re.fullmatch(HOST, name):
        raise ValueError
    return value


def _folder(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(_FOLDER, value):
        raise ValueError
    path = PurePosixPath(value)
    if ".." in path.parts or len(path.parts) < 2:
        raise ValueError
    return str(path)


def _mount_point(value: object) -> str:
    path = _folder(value)
    if PurePosixPath(path).parts[1] in _SYSTEM:
        raise ValueError
    return path


def _network_or_host(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError
    if not re.fullmatch(HOST, value):
        ip_network(value, strict=False)
    return value


class Registry(Part):
    """A private container registry (``private_registry_connection_info``)."""

    pairs: ClassVar = (("username", "password"),)

    connection_type: Annotated[str, Form("0 (HTTP) or 1 (HTTPS)", _connection_type)]
    server: Annotated[str, text("host or host:port", _SERVER)]
    username: Annotated[str, text("one line of text", r"[^\r\n\0]{1,255}")] | None = None
    password: Password | None = None
    certificate_path: PackagePath | None = None
    hosts_string: Annotated[str, Form("one line '<ip> <fqdn>'", _hosts_entry)] | None = None


class CinderVolume(Part):
    """A volume of the storage server."""

    volume_resource_id: Annotated[str, text("the name of a volume of the Base HOT")]
    mount_to: Annotated[str, Form("an absolute path outside the system's folders", _mount_point)]


class NfsExport(Part):
    """A folder that the storage server exports."""

    export_dir: Annotated[str, Form("an absolute path", _folder)]
    export_to: Annotated[str, Form("a network or a host", _network_or_host)]


class StorageServer(Part):
    """The NFS server of persistent volumes."""

    ssh_cp_name: Annotated[str, text("the name of a port of the top template")]
    nic_cp_name: Resource | None = None
    username: UserName
    password: Password
    cinder_volume_setup_params: Annotated[tuple[CinderVolume, ...], FILLED_ARRAY]
    nfs_server_setup_params: Annotated[tuple[NfsExport, ...], FILLED_ARRAY]


class PersistentVolume(Part):
    """A manifest of a PersistentVolume on the storage server."""

    pv_manifest_file_path: PackagePath
    nfs_server_cp: Annotated[str, text("the name of a port of the top template")]


@dataclass(frozen=True)
class Feature:
    """A part of a request that is not installed yet."""

    attribute: str
    is_asked: bool


class RequestedCluster(ClusterParameters):
    """What a request may hold."""

    private_registry_connection_info: Annotated[tuple[Registry, ...], ARRAY] = ()
    storage_server: StorageServer | None = None
    pv_registration_params: Annotated[tuple[PersistentVolume, ...], ARRAY] = ()
    helm_installation_script_path: PackagePath | None = None
    kuryr_param: object = None
    x_strict: Annotated[bool, FLAG] = False
    """Whether unknown attributes are refused."""

    @property
    def features(self) -> Sequence[Feature]:
        """What is not installed yet, and whether the request has it."""
        return (
            Feature("private_registry_connection_info", bool(self.private_registry_connection_info)),
            Feature("storage_server", self.storage_server is not None),
            Feature("pv_registration_params", bool(self.pv_registration_params)),
            Feature("helm_installation_script_path", self.helm_installation_script_path is not None),
            Feature("kuryr_param", self.kuryr_param is not None),
        )


def check_features(cluster: RequestedCluster) -> None:
    """Refuse values that contradict each other. Raises InvalidInput, Unprocessable naming the field."""
    _check_registries(cluster.private_registry_connection_info)
    if cluster.storage_server is not None:
        _check_storage(cluster.storage_server)
    elif cluster.pv_registration_params:
        raise Unprocessable(f"{ROOT}/pv_registration_params", "given without storage_server")


def _check_registries(registries: Sequence[Registry]) -> None:
    seen: set[str] = set()
    for index, registry in enumerate(registries):
        place = f"{ROOT}/private_registry_connection_info/{index}"
        if registry.server in seen:
            raise Unprocessable(f"{place}/server", f"{registry.server} is listed twice")
        seen.add(registry.server)
        if registry.certificate_path is not None and registry.connection_type == "0":
            raise Unprocessable(f"{place}/certificate_path", "given for a registry without TLS (connection_type 0)")


def _check_storage(storage: StorageServer) -> None:
    place = f"{ROOT}/storage_server"
    mounts: list[str] = []
    for index, volume in enumerate(storage.cinder_volume_setup_params):
        if volume.mount_to in mounts:
            raise InvalidInput(
                f"{place}/cinder_volume_setup_params/{index}/mount_to", f"{volume.mount_to} is a mount point already"
            )
        mounts.append(volume.mount_to)
    exports: list[str] = []
    for index, export in enumerate(storage.nfs_server_setup_params):
        field = f"{place}/nfs_server_setup_params/{index}/export_dir"
        if export.export_dir in exports:
            raise InvalidInput(field, f"{export.export_dir} is exported already")
        if not any(PurePosixPath(export.export_dir).is_relative_to(mount) for mount in mounts):
            raise Unprocessable(field, f"{export.export_dir} is under none of the mount points")
        exports.append(export.export_dir)
