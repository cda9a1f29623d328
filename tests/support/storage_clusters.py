"""The sample of a cluster with a storage server and persistent volumes, in the form of document 002."""

from __future__ import annotations

import zipfile
from typing import Any, Final

import yaml
from lab_process import LabProcess
from own_packages import Files, zipped
from user import PACKED, cluster_body

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
        files[descriptor] = _flavour(files[descriptor])
        files[template] = _hot(files[template])
    for number in NUMBERS:
        files[manifest_path(number)] = yaml.safe_dump(manifest(number)).encode()
    return zipped(files)


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


def _flavour(text: bytes) -> bytes:
    whole = yaml.safe_load(text)
    nodes = whole["topology_template"]["node_templates"]
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
    policies = {name: one for entry in whole["topology_template"]["policies"] for name, one in entry.items()}
    # An aspect that no request can use: the storage server is not scaled (SEQ-087).
    aspect = {"name": VDU, "description": VDU, "max_scale_level": 1, "step_deltas": ["delta_1"]}
    policies["scaling_aspects"]["properties"]["aspects"][VDU] = aspect
    for level in policies["instantiation_levels"]["properties"]["levels"].values():
        level["scale_info"][VDU] = {"scale_level": 0}
    one = {"number_of_instances": 1}
    for name, kind, properties in (
        ("initial_delta", "VduInitialDelta", {"initial_delta": one}),
        ("deltas", "VduScalingAspectDeltas", {"aspect": VDU, "deltas": {"delta_1": one}}),
    ):
        policies[f"{VDU}_{name}"] = {
            "type": f"tosca.policies.nfv.{kind}",
            "properties": properties,
            "targets": [VDU],
        }
    whole["topology_template"]["policies"] = [{name: one} for name, one in policies.items()]
    dumped: str = yaml.safe_dump(whole)
    return dumped.encode()


def _hot(text: bytes) -> bytes:
    whole = yaml.safe_load(text)
    whole["resources"] |= {
        VOLUME: {"type": "OS::Cinder::Volume", "properties": {"size": 5}},
        PORT: {
            "type": "OS::Neutron::Port",
            "properties": {"network": {"get_param": ["nfv", "CP", PORT, "network"]}},
        },
        VDU: {
            "type": "OS::Nova::Server",
            "properties": {
                "flavor": {"get_param": ["nfv", "VDU", VDU, "flavor"]},
                "image": {"get_param": ["nfv", "VDU", VDU, "image"]},
                "networks": [{"port": {"get_resource": PORT}}],
                "block_device_mapping_v2": [
                    {"device_name": "vdb", "volume_id": {"get_resource": VOLUME}, "boot_index": -1}
                ],
            },
        },
    }
    dumped: str = yaml.safe_dump(whole)
    return dumped.encode()
