"""The files that the driver takes from the VNF package: the install script and the pod network's manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml
from kubevnfm_cluster import ROOT, ClusterParameters
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_mgmt_executor.domain.driver import PackageFiles
from kubevnfm_mgmt_executor.domain.errors import ForeignScript

MARKER: Final = b"# kubevnfm-install-script: 1"
"""The line in the head of a script that declares its interface."""
MARKER_WITHIN: Final = 10
POD_CIDR_WORD: Final = "KUBEVNFM_POD_CIDR"
# The kinds for which `kubectl rollout status` can wait.
ROLLED_OUT: Final = frozenset({"DaemonSet", "Deployment", "StatefulSet"})


@dataclass(frozen=True)
class InstallFiles:
    """The files that go onto machines."""

    script: bytes
    network_manifest: bytes
    network_workloads: Sequence[tuple[str, str]]
    """Namespace and ``kind/name`` of the workloads that must run before pods have a network."""


async def read_package(package: PackageFiles, parameters: ClusterParameters) -> InstallFiles:
    """Read and check the files. Raises Unprocessable (not in the package, not YAML), ForeignScript."""
    script = await _needed(package, "script_path", parameters.script_path)
    # A package for another manager may have a script at this path that takes other arguments. It must not run as root.
    if not any(line.rstrip() == MARKER for line in script.splitlines()[:MARKER_WITHIN]):
        raise ForeignScript(
            f"{parameters.script_path}: a script with the interface of this driver expected, which has the line"
            f" {MARKER.decode()!r} among its first {MARKER_WITHIN}"
        )
    manifest = await _needed(package, "x_cni", parameters.network_manifest)
    text = manifest.decode("utf-8", "replace").replace(POD_CIDR_WORD, str(parameters.master_node.pod_cidr))
    return InstallFiles(script=script, network_manifest=text.encode(), network_workloads=_workloads(text))


async def _needed(package: PackageFiles, field: str, path: str) -> bytes:
    content = await package.read(path)
    if content is None:
        raise Unprocessable(f"{ROOT}/{field}", f"the package has no file {path}")
    return content


def _workloads(manifest: str) -> Sequence[tuple[str, str]]:
    try:
        # YAML reads the text after a last `---` as a document without content.
        documents: list[Any] = [document for document in yaml.safe_load_all(manifest) if document]
        return [
            (
                document["metadata"].get("namespace", "default"),
                f"{document['kind'].lower()}/{document['metadata']['name']}",
            )
            for document in documents
            if document["kind"] in ROLLED_OUT
        ]
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise Unprocessable(f"{ROOT}/x_cni", "a manifest of Kubernetes objects expected") from error
