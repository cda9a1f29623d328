"""The files of a cluster's storage server: the script, and the manifests of its PersistentVolumes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubevnfm_cluster.parameters import ROOT
from kubevnfm_cluster.storage import StorageServer, read_manifest, refuse_same_names
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.foreign_yaml.kubernetes import read_kubernetes_yaml

from kubevnfm_mgmt_executor.domain.driver import PackageFiles
from kubevnfm_mgmt_executor.domain.kubernetes.cluster import Cluster
from kubevnfm_mgmt_executor.domain.kubernetes.registry_files import own_scripts

SCRIPT: Final = "storage.sh"
MANIFESTS: Final = "volumes.json"
"""The manifests by name on the master."""
OWNER_LABEL: Final = "kubevnfm.io/vnf-instance-id"
"""The label by which the volumes of a VNF are found."""


@dataclass(frozen=True)
class VolumeFiles:
    """The files of a storage server."""

    scripts: Mapping[str, bytes] = field(default_factory=dict)
    """By name on the machine; empty without a storage server."""
    volumes: Sequence[Mapping[str, Any]] = ()
    """The PersistentVolumes as the cluster gets them."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the volumes."""
        return [str(one["metadata"]["name"]) for one in self.volumes]

    @property
    def manifests(self) -> bytes:
        """All volumes as one file."""
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(self.volumes)}).encode()


async def read_volume_files(package: PackageFiles, own: PackageFiles, cluster: Cluster) -> VolumeFiles:
    """Read the files of the storage server; none if the cluster has no such machine.

    Raises Unprocessable naming the field for a manifest that the package does not have, or that is none.
    """
    parameters = cluster.parameters
    if parameters.storage_server is None:
        return VolumeFiles()
    volumes: list[Mapping[str, Any]] = []
    named: list[tuple[str, str]] = []
    for index, asked in enumerate(parameters.pv_registration_params):
        place = f"{ROOT}/pv_registration_params/{index}"
        address = cluster.nfs_addresses.get(asked.nfs_server_cp)
        if address is None:
            raise Unprocessable(f"{place}/nfs_server_cp", f"{asked.nfs_server_cp} has no address")
        field_ = f"{place}/pv_manifest_file_path"
        content = await package.read(asked.pv_manifest_file_path)
        if content is None:
            raise Unprocessable(field_, f"the package has no file {asked.pv_manifest_file_path}")
        for volume in _documents(content, parameters.storage_server, field_):
            volumes.append(exported_by(volume, address=address, instance_id=cluster.vnf_instance_id))
            named.append((field_, volume["metadata"]["name"]))
    refuse_same_names(named)
    return VolumeFiles(await own_scripts(own, SCRIPT), volumes)


def _documents(content: bytes, storage: StorageServer, place: str) -> Sequence[Mapping[str, Any]]:
    exports = [one.export_dir for one in storage.nfs_server_setup_params]
    try:
        return read_manifest(read_kubernetes_yaml(content.decode()), exports)
    except ValueError as error:
        raise Unprocessable(place, f"not a manifest of persistent volumes: {error}") from error


def exported_by(volume: Mapping[str, Any], *, address: str, instance_id: str) -> Mapping[str, Any]:
    """Return a volume of the package as this VNF's: with the address of its server, and nothing else changed."""
    metadata, spec = volume["metadata"], volume["spec"]
    labels = {**(metadata.get("labels") or {}), OWNER_LABEL: instance_id}
    return {
        **volume,
        "metadata": {**metadata, "labels": labels},
        "spec": {**spec, "nfs": {**spec["nfs"], "server": address}},
    }
