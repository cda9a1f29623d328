"""Registries, storage servers, persistent volumes (sequences.md 2.6 to 2.8) and Kuryr: their form is checked here.

A cluster with them is not built yet, so a well-formed request for one is refused as well: with a text that says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from ipaddress import ip_address, ip_network
from pathlib import PurePosixPath
from typing import Final

from kubevnfm_csar import inside

from kubevnfm_lcm_api.lifecycle.domain.cluster_places import FLOATING_IP, PORT, VOLUME, Places, connection_point
from kubevnfm_lcm_api.lifecycle.domain.request_section import Section

USER_NAME: Final = r"[a-z_][a-z0-9_-]{0,31}"
PASSWORD: Final = r"[^\r\n\0]{1,1024}"  # noqa: S105  # its form: one line, since sudo reads it as a line
HOST: Final = r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?"
_SERVER: Final = rf"{HOST}(:\d{{1,5}})?"
_PATH: Final = r"/[A-Za-z0-9._/-]{1,1023}"
_SYSTEM: Final = ("bin", "boot", "dev", "etc", "lib", "lib64", "proc", "root", "run", "sbin", "sys", "usr", "var")
"""Folders in the root that no volume may be mounted over."""


def check_features(cluster: Section, places: Places, file_names: Collection[str]) -> None:
    """Check the form of everything, then refuse what is there: 422 naming the feature.

    Raises: InvalidInput, Unprocessable.
    """
    registries = cluster.sections("private_registry_connection_info")
    _registries(registries, file_names)
    storage = cluster.section("storage_server")
    if storage is not None:
        _storage(storage, places)
    volumes = cluster.sections("pv_registration_params")
    if volumes and storage is None:
        raise cluster.contradiction("pv_registration_params", "given without storage_server")
    for volume in volumes:
        package_file(volume, "pv_manifest_file_path", file_names, is_needed=True)
        _top_port(volume, "nfs_server_cp", places, kinds=(PORT,), is_needed=True)
    package_file(cluster, "helm_installation_script_path", file_names)
    asked = {
        "private_registry_connection_info": bool(registries),
        "storage_server": storage is not None,
        "pv_registration_params": bool(volumes),
        "helm_installation_script_path": "helm_installation_script_path" in cluster,
        "kuryr_param": "kuryr_param" in cluster,
    }
    for name, is_asked in asked.items():
        if is_asked:
            raise cluster.contradiction(name, "not supported yet: leave it out")


def package_file(section: Section, name: str, file_names: Collection[str], *, is_needed: bool = False) -> str | None:
    """Return the plain path of a package's file that an attribute names. Raises InvalidInput, Unprocessable."""
    expected = "a relative path inside the package"
    given = section.needed_text(name, expected=expected) if is_needed else section.text(name, expected=expected)
    if given is None:
        return None
    path = inside(given)
    if path is None:
        raise section.malformed(name, expected)
    if path not in file_names:
        raise section.contradiction(name, f"the package has no file {path}")
    return path


def _registries(registries: list[Section], file_names: Collection[str]) -> None:
    seen: set[str] = set()
    for registry in registries:
        kind = registry.value("connection_type")
        if kind is None:
            raise registry.missing("connection_type", "0 (HTTP) or 1 (HTTPS)")
        if isinstance(kind, bool) or str(kind) not in {"0", "1"}:
            raise registry.malformed("connection_type", "0 (HTTP) or 1 (HTTPS)")
        server = registry.needed_text("server", expected="host or host:port", pattern=_SERVER)
        if server in seen:
            raise registry.contradiction("server", f"{server} is listed twice")
        seen.add(server)
        if registry.pair("username", "password"):
            registry.text("username", expected="one line of text", pattern=r"[^\r\n\0]{1,255}")
            registry.text("password", expected="one line of text", pattern=PASSWORD)
        package_file(registry, "certificate_path", file_names)
        if "certificate_path" in registry and str(kind) == "0":
            raise registry.contradiction("certificate_path", "given for a registry without TLS (connection_type 0)")
        hosts = registry.text("hosts_string", expected="one line '<ip> <fqdn>'")
        if hosts is not None and not _is_hosts_entry(hosts):
            raise registry.malformed("hosts_string", "one line '<ip> <fqdn>'")


def _is_hosts_entry(line: str) -> bool:
    address, _, name = line.partition(" ")
    return _is(ip_address, address) and re.fullmatch(HOST, name) is not None


def _storage(storage: Section, places: Places) -> None:
    _top_port(storage, "ssh_cp_name", places, kinds=(PORT, FLOATING_IP), is_needed=True)
    _top_port(storage, "nic_cp_name", places, kinds=(PORT,))
    storage.needed_text("username", expected="a Linux user name", pattern=USER_NAME)
    storage.needed_text("password", expected="one line of text", pattern=PASSWORD)
    mounts: list[PurePosixPath] = []
    for volume in storage.needed_sections("cinder_volume_setup_params"):
        volume.needed_text("volume_resource_id", expected="the name of a volume of the Base HOT")
        connection_point(volume, "volume_resource_id", places.top, where="the top template", kinds=(VOLUME,))
        mount = _folder(volume, "mount_to")
        if mount.parts[1] in _SYSTEM or mount in mounts:
            raise volume.malformed("mount_to", "a mount point of its own, outside the system's folders,")
        mounts.append(mount)
    exports: list[PurePosixPath] = []
    for export in storage.needed_sections("nfs_server_setup_params"):
        folder = _folder(export, "export_dir")
        if folder in exports:
            raise export.malformed("export_dir", "a folder that is exported once")
        if not any(folder.is_relative_to(mount) for mount in mounts):
            raise export.contradiction("export_dir", f"{folder} is under none of the mount points")
        exports.append(folder)
        to = export.needed_text("export_to", expected="a network or a host")
        if not _is(ip_network, to) and not re.fullmatch(HOST, to):
            raise export.malformed("export_to", "a network or a host")


def _folder(section: Section, name: str) -> PurePosixPath:
    expected = "an absolute path"
    path = PurePosixPath(section.needed_text(name, expected=expected, pattern=_PATH))
    if ".." in path.parts or len(path.parts) < 2:
        raise section.malformed(name, expected)
    return path


def _top_port(section: Section, name: str, places: Places, *, kinds: tuple[str, ...], is_needed: bool = False) -> None:
    found = connection_point(section, name, places.top, where="the top template", kinds=kinds)
    if found is None and is_needed:
        raise section.missing(name, "the name of a port of the top template")


def _is(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text) if parse is ip_address else ip_network(text, strict=False)
    except ValueError:
        return False
    return True
