"""The files that the driver puts onto machines: from the VNF package, or its own where the package's do not fit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubevnfm_cluster.parameters import ROOT, ClusterParameters
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.foreign_yaml.kubernetes import read_kubernetes_yaml
from kubevnfm_kit.foreign_yaml.reader import YamlRefused

from kubevnfm_mgmt_executor.domain.driver import PackageFiles
from kubevnfm_mgmt_executor.domain.kubernetes.cluster import Cluster
from kubevnfm_mgmt_executor.domain.kubernetes.registry_files import RegistryFiles, own_scripts, read_registry_files
from kubevnfm_mgmt_executor.domain.kubernetes.volume_files import VolumeFiles, read_volume_files

MARKER: Final = b"# kubevnfm-install-script: "
"""Begins the line in the head of a script that declares its interface by a number; each interface has the tasks before it."""
INSTALLS: Final = 1
"""The interface that installs a cluster."""
SCALES: Final = 2
"""The interface that also adds nodes to a cluster and takes them out."""
SEVERAL_MASTERS: Final = 3
"""The interface that also installs a cluster with several masters."""
HEALS_MASTERS: Final = 4
"""The interface that also replaces one of several masters."""
JOINS_MASTERS_AGAIN: Final = 5
"""The interface with which a master whose join was interrupted can join again."""
NEWEST: Final = JOINS_MASTERS_AGAIN
TASKS_SINCE: Final[Mapping[int, tuple[str, ...]]] = {
    INSTALLS: ("prepare", "init", "network", "admin", "token", "revoke", "join", "label", "verify"),
    SCALES: ("facts", "hosts", "cordon", "uncordon", "drain", "delete"),
    SEVERAL_MASTERS: ("balance", "certificates"),
    HEALS_MASTERS: ("members", "remove_member", "stand_down"),
    JOINS_MASTERS_AGAIN: ("reset",),
}
"""The tasks that each interface adds to those before it."""
MARKER_WITHIN: Final = 10
POD_CIDR_WORD: Final = "KUBEVNFM_POD_CIDR"
# The kinds for which `kubectl rollout status` can wait.
ROLLED_OUT: Final = frozenset({"DaemonSet", "Deployment", "StatefulSet"})
OWN_SCRIPT: Final = "install_k8s_cluster.sh"
OWN_MANIFEST: Final = "cni.yaml"
HELM_SCRIPT: Final = "helm.sh"
_HELM_OF_PACKAGE: Final = "install-helm-of-package.sh"
"""The name on the machine of the package's script, which `HELM_SCRIPT` runs."""


@dataclass(frozen=True)
class InstallFiles:
    """The files that go onto machines."""

    script: bytes
    network_manifest: bytes
    network_workloads: Sequence[tuple[str, str]]
    """Namespace and ``kind/name`` of the workloads that must run before pods have a network."""
    remarks: Sequence[str] = ()
    """Which files are the driver's own, and why, for people who watch the operation."""
    registries: RegistryFiles = field(default_factory=RegistryFiles)
    volumes: VolumeFiles = field(default_factory=VolumeFiles)
    helm: Mapping[str, bytes] = field(default_factory=dict)
    """By name on the machine; empty without Helm."""


async def read_files(package: PackageFiles, own: PackageFiles, cluster: Cluster) -> InstallFiles:
    """Read and check the files of an installation. Raises Unprocessable for a file that is not in the package, or not YAML.

    ``own`` has the driver's own files. They are used in place of an install script with another interface, and of the
    pod network's manifest if the request names none and the package has none at the default path.
    """
    parameters, least = cluster.parameters, JOINS_MASTERS_AGAIN if cluster.is_balanced else INSTALLS
    script, remarks = await _script(package, own, parameters, least=least, does="installs the cluster")
    manifest = await package.read(parameters.network_manifest)
    if manifest is None and parameters.x_cni is None:
        manifest = await _installed(own, OWN_MANIFEST)
        remarks.append(
            f"the package has no {parameters.network_manifest}: the pod network is that of the driver's own manifest"
        )
    elif manifest is None:
        raise _missing("x_cni", parameters.network_manifest)
    text = manifest.decode("utf-8", "replace").replace(POD_CIDR_WORD, str(parameters.master_node.pod_cidr))
    registries = await read_registry_files(package, own, parameters.private_registry_connection_info)
    volumes = await read_volume_files(package, own, cluster)
    helm = await _helm(package, own, parameters)
    return InstallFiles(script, text.encode(), _workloads(text), tuple(remarks), registries, volumes, helm)


async def read_script(package: PackageFiles, own: PackageFiles, cluster: Cluster) -> InstallFiles:
    """Read the script alone, as a phase needs it on a cluster that exists. Raises Unprocessable as `read_files`."""
    least = JOINS_MASTERS_AGAIN if any(node.is_target for node in cluster.masters) else SCALES
    script, remarks = await _script(package, own, cluster.parameters, least=least, does="works on the nodes")
    registries = await read_registry_files(package, own, cluster.parameters.private_registry_connection_info)
    volumes = await read_volume_files(package, own, cluster)
    helm = await _helm(package, own, cluster.parameters)
    return InstallFiles(script, b"", (), tuple(remarks), registries, volumes, helm)


async def read_own_script(package: PackageFiles, own: PackageFiles, cluster: Cluster) -> InstallFiles:
    """Read the driver's own script, for a cluster that a script of another interface has built."""
    return InstallFiles(await _installed(own, OWN_SCRIPT), b"", ())


async def _helm(package: PackageFiles, own: PackageFiles, parameters: ClusterParameters) -> Mapping[str, bytes]:
    path = parameters.helm_installation_script_path
    if path is None:
        return {}
    script = await package.read(path)
    if script is None:
        raise _missing("helm_installation_script_path", path)
    return {**await own_scripts(own, HELM_SCRIPT), _HELM_OF_PACKAGE: script}


async def _script(
    package: PackageFiles, own: PackageFiles, parameters: ClusterParameters, *, least: int, does: str
) -> tuple[bytes, list[str]]:
    """Return the script and a remark if it is the driver's own. ``least``: the interface that the phase needs."""
    script = await package.read(parameters.script_path)
    if script is None:
        raise _missing("script_path", parameters.script_path)
    # Packages for other managers have a script at this path that takes other arguments. It must not run as root.
    if least <= interface_of(script) <= NEWEST:
        return script, []
    if parameters.x_install_script == "package":
        _check_undeclared(script, parameters.script_path, least=least)
        remark = f"{parameters.script_path} of the package declares no interface and is run as x_install_script asks"
        return script, [remark]
    remark = (
        f"{parameters.script_path} of the package has another interface and is not run: the driver's own script {does}"
    )
    return await _installed(own, OWN_SCRIPT), [remark]


def interface_of(script: bytes) -> int:
    """Return the interface that a script declares; 0 if it declares none."""
    for line in script.splitlines()[:MARKER_WITHIN]:
        number = line.rstrip().removeprefix(MARKER)
        if number != line.rstrip() and number.isdigit():
            return int(number)
    return 0


def _check_undeclared(script: bytes, path: str, *, least: int) -> None:
    """Refuse a script that cannot have the interface ``least``: it declares another one, or does not name all tasks."""
    field, declared = f"{ROOT}/x_install_script", interface_of(script)
    if declared:
        raise Unprocessable(field, f"{path} of the package has interface {declared}, and {least} to {NEWEST} is needed")
    needed = [task for since, tasks in TASKS_SINCE.items() if since <= least for task in tasks]
    words = set(re.findall(rb"\w+", script))
    if missing := [task for task in needed if task.encode() not in words]:
        raise Unprocessable(
            field, f"{path} of the package has another interface and cannot be run: no task {', '.join(missing)}"
        )


async def _installed(own: PackageFiles, name: str) -> bytes:
    content = await own.read(name)
    assert content is not None, f"{name} is a part of this program"
    return content


def _missing(field: str, path: str) -> Unprocessable:
    return Unprocessable(f"{ROOT}/{field}", f"the package has no file {path}")


def _workloads(manifest: str) -> Sequence[tuple[str, str]]:
    try:
        # YAML reads the text after a last `---` as a document without content.
        documents: list[Any] = [document for document in read_kubernetes_yaml(manifest) if document]
        return [
            (
                document["metadata"].get("namespace", "default"),
                f"{document['kind'].lower()}/{document['metadata']['name']}",
            )
            for document in documents
            if document["kind"] in ROLLED_OUT
        ]
    except YamlRefused as error:
        raise Unprocessable(f"{ROOT}/x_cni", f"a manifest of Kubernetes objects expected: {error}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise Unprocessable(f"{ROOT}/x_cni", "a manifest of Kubernetes objects expected") from error
