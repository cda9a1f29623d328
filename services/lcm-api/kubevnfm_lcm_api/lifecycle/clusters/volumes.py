"""The manifests of persistent volumes that a request for a cluster names (sequences.md 2.8)."""

from __future__ import annotations

from typing import Final

from kubevnfm_cluster.parameters import ROOT, ClusterParameters
from kubevnfm_cluster.storage import read_manifest, refuse_same_names
from kubevnfm_events import PackageRef
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.foreign_yaml.kubernetes import read_kubernetes_yaml

from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue

MANIFEST_LIMIT: Final = 1024 * 1024
"""Bytes: what Kubernetes takes for an object at most."""


async def check_manifests(packages: PackageCatalogue, package: PackageRef, cluster: ClusterParameters) -> None:
    """Refuse a file that is no manifest of volumes of the storage server. Raises Unprocessable naming the field."""
    if cluster.storage_server is None:
        return
    exports = [one.export_dir for one in cluster.storage_server.nfs_server_setup_params]
    named: list[tuple[str, str]] = []
    for index, volume in enumerate(cluster.pv_registration_params):
        path, field = volume.pv_manifest_file_path, f"{ROOT}/pv_registration_params/{index}/pv_manifest_file_path"
        content = await packages.file(package.package_id, path, limit_bytes=MANIFEST_LIMIT)
        try:
            documents = read_kubernetes_yaml((content or b"").decode())
            named += [(field, one["metadata"]["name"]) for one in read_manifest(documents, exports)]
        except ValueError as error:
            raise Unprocessable(field, f"{path} of the package: {error}") from error
    refuse_same_names(named)
