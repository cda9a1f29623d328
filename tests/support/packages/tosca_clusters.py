"""The package of a Kubernetes cluster by TOSCA alone (sequences.md 1.9, B6), and the request for it.

No Base HOT and no user data: one master and one worker, each with a connection point of the internal network and one of
an external link. The names are those of the source document; the files are those of our sample of a cluster.
"""

from __future__ import annotations

import zipfile
from ipaddress import ip_network
from typing import Any, Final

import yaml
from callers.user import PACKED, ApiVersion, cluster_body
from clouds.lab_process import LabProcess

from packages.own_packages import zipped

_SAMPLE: Final = "4cf1e5fe-5a37-4ee8-a5a7-64bd4da8ff2b"
_DRIVER: Final = "mgmt-drivers-kubernetes"
_ROLES: Final = ("master", "worker")


def tosca_cluster(vnfd_id: str, cidr: str) -> bytes:
    """Return the package; ``cidr``: the range of the internal network."""
    with zipfile.ZipFile(PACKED / "cluster.zip") as sample:
        files = {
            name: sample.read(name).replace(_SAMPLE.encode(), vnfd_id.encode())
            for name in sample.namelist()
            if not name.startswith(("BaseHOT/", "UserData/"))
        }
    files["TOSCA-Metadata/TOSCA.meta"] = files["TOSCA-Metadata/TOSCA.meta"].split(b"\n\n")[0] + b"\n"
    files["Definitions/cluster_df_simple.yaml"] = yaml.safe_dump(_flavour(cidr)).encode()
    return zipped(files)


def tosca_request(lab: LabProcess, *, version: ApiVersion) -> dict[str, Any]:
    """Return the request. The machines' roles follow from the names of the VDUs; nothing but the network is mapped."""
    body = cluster_body(lab)
    del body["instantiationLevelId"]
    install = body["additionalParams"]["k8s_cluster_installation_param"]
    config: Any = {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]}
    cps = []
    for role in _ROLES:
        group = install[f"{role}_node"]
        del group["aspect_id"]
        group |= {"ssh_cp_name": f"{role}NodeExternalCP", "nic_cp_name": f"{role}NodeInternalCP"}
        configs = [config] if version == "v1" else {"1": config}
        cps.append({"cpdId": f"{role}NodeExternalCP", "cpConfig": configs})
    install["master_node"]["cluster_cp_name"] = "masterNodeInternalCP"
    body["additionalParams"] = {"k8s_cluster_installation_param": install}
    body["extVirtualLinks"] = [{"id": "external", "resourceId": "net0", "extCps": cps}]
    return body


def free_range(lab: LabProcess) -> str:
    """Return a range beside the lab's networks, at whose addresses its machines can listen."""
    octets = str(ip_network(lab.endpoints["networks"]["net0"]).network_address).split(".")
    return f"{octets[0]}.{octets[1]}.200.0/24"


def _flavour(cidr: str) -> dict[str, Any]:
    driven = {"implementation": _DRIVER}
    driven_phases = ("instantiate_end", "heal_start", "heal_end", "terminate_end")
    phases: dict[str, Any] = {"instantiate_start": [], **dict.fromkeys(driven_phases, driven)}
    artifact = {
        "description": "the driver",
        "type": "tosca.artifacts.Implementation.Python",
        "file": "Scripts/kubernetes_mgmt.py",
    }
    link = {"l3_protocol_data": {"ip_version": "ipv4", "cidr": cidr, "dhcp_enabled": True}}
    nodes: dict[str, Any] = {
        "VNF": {
            "type": "kubevnfm.nodes.KubernetesCluster",
            "properties": {"flavour_description": "One master and one worker"},
            "interfaces": {"Vnflcm": phases},
            "artifacts": {_DRIVER: artifact},
        },
        "internalVL": {
            "type": "tosca.nodes.nfv.VnfVirtualLink",
            "properties": {
                "connectivity_type": {"layer_protocols": ["ipv4"]},
                "vl_profile": {
                    "max_bitrate_requirements": {"root": 1048576},
                    "min_bitrate_requirements": {"root": 1048576},
                    "virtual_link_protocol_data": [{"associated_layer_protocol": "ipv4", **link}],
                },
            },
        },
    }
    # No flavor of the lab has such a disk.
    disk_by_role = {"master": 20, "worker": 200}
    for number, role in enumerate(_ROLES):
        nodes[f"{role}Node"] = _vdu(f"{role}Node", disk_by_role[role])
        nodes[f"{role}NodeInternalCP"] = _cp(f"{role}Node", 2 * number, link="internalVL")
        nodes[f"{role}NodeExternalCP"] = _cp(f"{role}Node", 2 * number + 1)
    exposed = {f"virtual_link_external_{role}": [f"{role}NodeExternalCP", "virtual_link"] for role in _ROLES}
    targets = [f"{role}Node" for role in _ROLES]
    return {
        "tosca_definitions_version": "tosca_simple_yaml_1_2",
        "imports": ["etsi_nfv_sol001_common_types.yaml", "etsi_nfv_sol001_vnfd_types.yaml", "cluster_types.yaml"],
        "topology_template": {
            "substitution_mappings": {
                "node_type": "kubevnfm.nodes.KubernetesCluster",
                "properties": {"flavour_id": "simple"},
                "requirements": exposed,
            },
            "node_templates": nodes,
            "groups": {"nodes": {"type": "tosca.groups.nfv.PlacementGroup", "members": targets}},
            "policies": [
                {
                    "hosts": {
                        "type": "tosca.policies.nfv.AntiAffinityRule",
                        "properties": {"scope": "nfvi_node"},
                        "targets": ["nodes"],
                    }
                }
            ],
        },
    }


def _vdu(name: str, disk_gb: int) -> dict[str, Any]:
    image = {"name": "ubuntu", "version": "22.04", "container_format": "bare", "disk_format": "qcow2"}
    compute = {
        "virtual_memory": {"virtual_mem_size": "4 GB"},
        "virtual_cpu": {"num_virtual_cpu": 2},
        "virtual_local_storage": [{"size_of_storage": f"{disk_gb} GB"}],
    }
    return {
        "type": "tosca.nodes.nfv.Vdu.Compute",
        "properties": {
            "name": name,
            "description": name,
            "vdu_profile": {"min_number_of_instances": 1, "max_number_of_instances": 1},
            "sw_image_data": {**image, "min_disk": "10 GB", "size": "700 MB"},
        },
        "capabilities": {"virtual_compute": {"properties": compute}},
    }


def _cp(vdu: str, order: int, *, link: str | None = None) -> dict[str, Any]:
    requirements = [{"virtual_binding": vdu}, *([{"virtual_link": link}] if link is not None else [])]
    return {
        "type": "tosca.nodes.nfv.VduCp",
        "properties": {"layer_protocols": ["ipv4"], "order": order},
        "requirements": requirements,
    }
