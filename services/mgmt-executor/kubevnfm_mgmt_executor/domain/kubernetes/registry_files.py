"""The files by which a node pulls from private registries.

Sources: containerd, docs/hosts.md; kubernetes.io, "Images", configuring nodes to authenticate to a private registry;
curl(1), --config.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kubevnfm_cluster.parameters import ROOT
from kubevnfm_cluster.registries import Registry, check_certificate
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_secrets import Secret

from kubevnfm_mgmt_executor.domain.driver import PackageFiles

SCRIPT: Final = "registry.sh"
LIBRARY: Final = "library.sh"
"""The name on the machine of the script whose functions `SCRIPT` uses."""
OWN_LIBRARY: Final = "install_k8s_cluster.sh"


@dataclass(frozen=True)
class RegistryFiles:
    """The files for the registries of a cluster, apart from logins."""

    scripts: Mapping[str, bytes] = field(default_factory=dict)
    """By name on the machine; empty without registries."""
    authorities: Mapping[str, bytes] = field(default_factory=dict)
    """The CA certificates in PEM form, by server."""


async def read_registry_files(
    package: PackageFiles, own: PackageFiles, registries: Sequence[Registry]
) -> RegistryFiles:
    """Read the files of the registries. Raises Unprocessable for a certificate that the package does not have."""
    if not registries:
        return RegistryFiles()
    authorities: dict[str, bytes] = {}
    for index, registry in enumerate(registries):
        if registry.certificate_path is not None:
            place = f"{ROOT}/private_registry_connection_info/{index}/certificate_path"
            authorities[registry.server] = await _certificate(package, registry.certificate_path, place)
    return RegistryFiles(await own_scripts(own, SCRIPT), authorities)


async def own_scripts(own: PackageFiles, script: str) -> Mapping[str, bytes]:
    """Return a script of the driver and its library, by name on the machine."""
    found: dict[str, bytes] = {}
    for name, file in ((script, script), (LIBRARY, OWN_LIBRARY)):
        content = await own.read(file)
        assert content is not None, f"{file} is a part of this program"
        found[name] = content
    return found


async def _certificate(package: PackageFiles, path: str, place: str) -> bytes:
    content = await package.read(path)
    if content is None:
        raise Unprocessable(place, f"the package has no file {path}")
    try:
        check_certificate(content)
    except ValueError as error:
        raise Unprocessable(place, f"{path} of the package is not a certificate in PEM form") from error
    return content


def on_the_node(
    registries: Sequence[Registry], authorities: Mapping[str, bytes], reveal: Callable[[Secret], str]
) -> Mapping[str, bytes]:
    """Return the files that `SCRIPT` expects beside its parameters."""
    found: dict[str, bytes] = {}
    logins: dict[str, Mapping[str, str]] = {}
    for number, registry in enumerate(registries):
        name = f"registry-{number}"
        authority = authorities.get(registry.server)
        found[f"{name}.toml"] = hosts_toml(registry, has_authority=authority is not None).encode()
        if authority is not None:
            found[f"{name}.crt"] = authority
        if registry.username is not None and registry.password is not None:
            login = f"{registry.username}:{reveal(registry.password)}"
            basic = base64.b64encode(login.encode()).decode()
            logins[registry.server] = {"auth": basic}
            found[f"{name}.header"] = f'[header]\nAuthorization = ["Basic {basic}"]\n'.encode()
            found[f"{name}.curl"] = curl_login(registry.username, reveal(registry.password))
    if logins:
        found["logins.json"] = json.dumps({"auths": logins}).encode()
    return found


def hosts_toml(registry: Registry, *, has_authority: bool) -> str:
    """Return containerd's file for a registry.

    Everything stands at the server itself. In a table ``host."..."`` it would be tried by that first and then without
    it, so that an image that does not exist would be reported as a certificate that is not trusted.
    """
    lines = [f'server = "{registry.url}"', 'capabilities = ["pull", "resolve"]']
    if has_authority:
        lines.append(f'ca = "/etc/containerd/certs.d/{registry.server}/ca.crt"')
    # containerd 1.6 refuses a file without this table.
    return "\n".join([*lines, "", "[host]", ""])


def listed(registries: Sequence[Registry]) -> str:
    """Return the lines of the script's parameter REGISTRIES."""
    return "\n".join(f"{number} {registry.server} {registry.url}" for number, registry in enumerate(registries))


def curl_login(user: str, password: str) -> bytes:
    """Return a file of options by which curl logs in."""
    quoted = f"{user}:{password}".replace("\\", "\\\\").replace('"', '\\"')
    return f'user = "{quoted}"\n'.encode()
