"""The sample of a cluster with a storage server and persistent volumes, in the form of document 002."""

from __future__ import annotations

import zipfile
from typing import Any, Final

import yaml
from callers.user import PACKED, cluster_body
from clouds.lab_process import LabProcess
from packages.own_packages import Files, zipped

VDU: Final = "storage_server"
VOLUME: Final = "storage_server_volume"
PORT: Final = "storage_server_CP"
NUMBERS: Final = (1, 2, 3)
_SAMPLE: Final = "4cf1e5fe-5a37-4ee8-a5a7-64bd4da8ff2b"
_FLAVOURS: Final = ("simple", "complex")


def storage_cluster(vnfd_id: str) -> bytes:
    """Return the package: one volume in each flavour, and three manifests of persistent volumes on it."""
    with zipfile.ZipFile(PACKED / "cluster.zip") as sample:
        files: Files = {
            name: sample.read(name).replace(_SAMPLE.encode(), vnfd_id.encode()) for name in sample.namelist()
        }
    files["TOSCA-Metadata/TOSCA.meta"] = files["TOSCA-Metadata/TOSCA.meta"].split(b"\n\n")[0] + b"\n"
    for flavour in _FLAVOURS:
        descriptor, template = f"Definitions/cluster_df_{flavour}.yaml", f"BaseHOT/{flavour}/cluster_hot.yaml"
        whole, top = (yaml.safe_load(files[path]) for path in (descriptor, template))
        add_storage_to_flavour(whole["topology_template"])
        _add_aspect(whole["topology_template"])
        add_storage_to_template(top)
        files |= {descriptor: yaml.safe_dump(whole).encode(), template: yaml.safe_dump(top).encode()}
    return zipped({**files, **manifests()})


def manifests() -> Files:
    """Return the manifests of the persistent volumes by path in the package."""
    return {manifest_path(number): yaml.safe_dump(manifest(number)).encode() for number in NUMBERS}


def manifest_path(number: int) -> str:
    """Return the path of a manifest in the package."""
    return f"Files/kubernetes/nfs-pv{number}.yaml"


def manifest(number: int) -> dict[str, Any]:
    """Return a persistent volume as the package has it: with an address that no server has."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"nfs-pv{number}", "labels": {"tier": "gold"}},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "volumeMode": "Filesystem",
            "accessModes": ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "nfs": {"path": f"/volume/nfs/pv{number}", "server": "192.168.250.254"},
        },
    }


def storage_parameters(password: str) -> dict[str, Any]:
    """Return the parameters of document 002's sample."""
    return {
        "storage_server": {
            "ssh_cp_name": PORT,
            "username": "ubuntu",
            "password": password,
            "cinder_volume_setup_params": [{"volume_resource_id": VOLUME, "mount_to": "/volume"}],
            "nfs_server_setup_params": [
                {"export_dir": f"/volume/nfs/pv{number}", "export_to": "10.10.0.0/24"} for number in NUMBERS
            ],
        },
        "pv_registration_params": [
            {"pv_manifest_file_path": manifest_path(number), "nfs_server_cp": PORT} for number in NUMBERS
        ],
    }


def storage_request(lab: LabProcess, *, request: str = "instantiate") -> dict[str, Any]:
    """Return the instantiate request for one worker and the storage server on the lab's machines.

    ``request``: ``instantiate`` has one master, ``instantiate_complex`` has three.
    """
    body = cluster_body(lab, request=request)
    body["additionalParams"]["k8s_cluster_installation_param"] |= storage_parameters(lab.machine_password)
    return body


def add_storage_to_flavour(topology: dict[str, Any]) -> None:
    """Add the storage server to the topology_template of a flavour with workers."""
    nodes = topology["node_templates"]
    worker = nodes["workerNode"]
    nodes[VDU] = {
        **worker,
        "properties": {
            **worker["properties"],
            "name": VDU,
            "description": "The storage server",
            "vdu_profile": {"min_number_of_instances": 1, "max_number_of_instances": 1},
        },
        "requirements": [{"virtual_storage": VOLUME}],
    }
    nodes[VOLUME] = {
        "type": "tosca.nodes.nfv.Vdu.VirtualBlockStorage",
        "properties": {"virtual_block_storage_data": {"size_of_storage": "5 GB", "rdma_enabled": False}},
    }
    nodes[PORT] = {
        "type": "tosca.nodes.nfv.VduCp",
        "properties": {"layer_protocols": ["ipv4"], "order": 0},
        "requirements": [{"virtual_binding": VDU}],
    }
    topology["policies"].append(_policy("initial_delta", "VduInitialDelta", initial_delta={"number_of_instances": 1}))


def _add_aspect(topology: dict[str, Any]) -> None:
    """Add an aspect that no request can use: the storage server is not scaled (SEQ-087)."""
    policies = {name: one for entry in topology["policies"] for name, one in entry.items()}
    aspect = {"name": VDU, "description": VDU, "max_scale_level": 1, "step_deltas": ["delta_1"]}
    policies["scaling_aspects"]["properties"]["aspects"][VDU] = aspect
    for level in policies["instantiation_levels"]["properties"]["levels"].values():
        level["scale_info"][VDU] = {"scale_level": 0}
    deltas = {"delta_1": {"number_of_instances": 1}}
    topology["policies"].append(_policy("deltas", "VduScalingAspectDeltas", aspect=VDU, deltas=deltas))


def _policy(name: str, kind: str, **properties: Any) -> dict[str, Any]:
    return {f"{VDU}_{name}": {"type": f"tosca.policies.nfv.{kind}", "properties": properties, "targets": [VDU]}}


def add_storage_to_template(
    top: dict[str, Any], *, flavor: str = "flavor", image: str = "image", network: str | None = None
) -> None:
    """Add the storage server to a top template.

    ``flavor``, ``image``: the names by which user data give them. ``network``: that of the port; None: user data give it.
    """
    given = {"get_param": ["nfv", "CP", PORT, "network"]}
    top["resources"] |= {
        VOLUME: {"type": "OS::Cinder::Volume", "properties": {"size": 5}},
        PORT: {"type": "OS::Neutron::Port", "properties": {"network": network or given}},
        VDU: {
            "type": "OS::Nova::Server",
            "properties": {
                "flavor": {"get_param": ["nfv", "VDU", VDU, flavor]},
                "image": {"get_param": ["nfv", "VDU", VDU, image]},
                "networks": [{"port": {"get_resource": PORT}}],
                "block_device_mapping_v2": [
                    {"device_name": "vdb", "volume_id": {"get_resource": VOLUME}, "boot_index": -1}
                ],
            },
        },
    }
