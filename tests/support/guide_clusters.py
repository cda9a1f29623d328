"""Packages and requests in the form of Tacker's guides for a Kubernetes cluster on machines (sequences.md chapter 6).

Both have an install script and a management driver of their own, which the built-in driver neither runs nor loads. The
texts here are ours; files, names, node types, interfaces, templates and parameters are as users of Tacker have them.
"""

from __future__ import annotations

from typing import Any, Final

import yaml
from lab_process import LabProcess
from own_packages import zipped
from package_builder import with_meta
from user import ApiVersion
from user_data_packages import CLASSES

DRIVER: Final = "mgmt-drivers-kubernetes"
WORKER_CP: Final[dict[ApiVersion, str]] = {"v1": "workerNode_CP2", "v2": "workerNode_CP1"}
_IMAGE: Final = "Files/images/ubuntu-server-cloudimg-amd64.img"
_DRIVER_FILE: Final[dict[ApiVersion, str]] = {"v1": "Scripts/kubernetes_mgmt.py", "v2": "Scripts/kubernetes_mgmt_v2.py"}
PODAFFINITY: Final = "podaffinity"
_MASTERS_OF: Final = {"simple": 1, "complex": 3, PODAFFINITY: 1}
_PHASES: Final = ("instantiate_end", "heal_start", "heal_end", "scale_start", "scale_end")
_SCRIPT: Final = """\
#!/bin/bash
# Installs a node: the arguments say what kind of node.
while getopts "m:w:i:p:n:c" option; do
  case $option in m | w | i | p | n | c) ;; *) exit 1 ;; esac
done
echo "the script of the package was run"
exit 1
"""
_DRIVER_V1: Final = """\
from tacker.vnfm.mgmt_drivers import vnflcm_abstract_driver


class KubernetesMgmtDriver(vnflcm_abstract_driver.VnflcmMgmtAbstractDriver):
    def get_type(self):
        return "mgmt-drivers-kubernetes"

    def instantiate_end(self, context, vnf_instance, instantiate_vnf_request, grant, grant_request, **kwargs):
        raise RuntimeError("the driver of the package was run")
"""
_DRIVER_V2: Final = """\
import pickle
import sys

pickle.load(sys.stdin.buffer)
sys.exit("the driver of the package was run")
"""
_USER_DATA_V1: Final = """\
import tacker.vnfm.lcm_user_data.utils as user_data_util
from tacker.vnfm.lcm_user_data.abstract_user_data import AbstractUserData


class KubernetesClusterUserData(AbstractUserData):
    @staticmethod
    def instantiate(base_hot_dict=None, vnfd_dict=None, inst_req_info=None, grant_info=None):
        wanted = user_data_util.create_initial_param_server_port_dict(base_hot_dict)
        parameters = user_data_util.create_final_param_dict(
            wanted,
            user_data_util.create_vdu_flavor_capability_name_dict(vnfd_dict),
            user_data_util.create_sw_image_dict(vnfd_dict),
            user_data_util.create_network_dict(inst_req_info, wanted),
        )
        return {**parameters, **user_data_util.get_diff_base_hot_param_from_api(base_hot_dict, inst_req_info)}
"""


def guide_package(form: ApiVersion, vnfd_id: str) -> bytes:
    """Return the package of the guide.

    Its flavours are ``simple`` (one master, two workers), ``complex`` (three masters) and ``podaffinity`` (as ``simple``,
    each worker on a compute host of its own).
    """
    files: dict[str, str | bytes] = {
        "Definitions/sample_kubernetes_top.vnfd.yaml": _dumped(_top(vnfd_id)),
        "Definitions/sample_kubernetes_types.yaml": _dumped(_types(vnfd_id)),
        "Scripts/install_k8s_cluster.sh": _SCRIPT,
        _DRIVER_FILE[form]: _DRIVER_V1 if form == "v1" else _DRIVER_V2,
        _IMAGE: b"an image" * 64,
    }
    for flavour, masters in _MASTERS_OF.items():
        files[f"Definitions/sample_kubernetes_df_{flavour}.yaml"] = _dumped(_flavour(form, flavour, masters))
        files[f"BaseHOT/{flavour}/{flavour}_hot_top.yaml"] = _dumped(_hot(form, flavour, masters))
        for role in ("master", "worker"):
            files[f"BaseHOT/{flavour}/nested/{flavour}_nested_{role}.yaml"] = _dumped(_nested(form, role, flavour))
    if form == "v1":
        files["UserData/k8s_cluster_user_data.py"] = _USER_DATA_V1
    else:
        shipped = (CLASSES / "per_machine.py").read_text(encoding="utf-8")
        files["UserData/userdata_standard.py"] = shipped.replace("PerMachineUserData", "StandardUserData")
    scripts = ("Scripts/install_k8s_cluster.sh", _DRIVER_FILE[form])
    packed = with_meta(
        files, entry="Definitions/sample_kubernetes_top.vnfd.yaml", listed=scripts if form == "v1" else ()
    )
    return zipped({name: one.encode() if isinstance(one, str) else one for name, one in packed.items()})


def guide_request(form: ApiVersion, lab: LabProcess, vim_id: str, *, flavour: str = "simple") -> dict[str, Any]:
    """Return the guide's instantiate request for a flavour, on the lab's cloud with its machines' password.

    Only v1 has a request for ``complex``: in v2 it also needs a floating IP of the virtual address.
    """
    login = {"username": "ubuntu", "password": lab.machine_password}
    worker_cp = WORKER_CP[form]
    cluster: dict[str, Any] = {"script_path": "Scripts/install_k8s_cluster.sh", "vim_name": "kubernetes_vim"}
    if form == "v1":
        cluster["master_node"] = {
            "aspect_id": "master_instance",
            "ssh_cp_name": "masterNode_CP1",
            "nic_cp_name": "masterNode_CP1",
            **login,
            "pod_cidr": "192.168.3.0/16",
            "cluster_cidr": "10.199.187.0/24",
            "cluster_cp_name": "vip_CP" if _MASTERS_OF[flavour] > 1 else "masterNode_CP1",
        }
        worker = {"aspect_id": "worker_instance", "ssh_cp_name": worker_cp, "nic_cp_name": worker_cp}
        cluster["proxy"] = {
            "http_proxy": "http://user1:password1@host1:port1",
            "https_proxy": "https://user2:password2@host2:port2",
            "no_proxy": "192.168.246.0/24,10.0.0.1",
            "k8s_node_cidr": "10.10.0.0/24",
        }
    else:
        cluster["master_node"] = {
            "vdu_id": "masterNode",
            "ssh_cp_name": "masterNode_CP1_floating_ip",
            "nic_cp_name": "masterNode_CP1",
            **login,
            "pod_cidr": "10.200.0.0/16",
            "cluster_cp_name": "masterNode_CP1",
        }
        worker = {"vdu_id": "workerNode", "ssh_cp_name": f"{worker_cp}_floating_ip", "nic_cp_name": worker_cp}
    cluster["worker_node"] = {**worker, **login}
    file, class_name = (
        ("k8s_cluster_user_data.py", "KubernetesClusterUserData")
        if form == "v1"
        else ("userdata_standard.py", "StandardUserData")
    )
    return {
        "flavourId": flavour,
        "vimConnectionInfo": _connections(form, lab, vim_id),
        "additionalParams": {
            "k8s_cluster_installation_param": cluster,
            "lcm-operation-user-data": f"./UserData/{file}",
            "lcm-operation-user-data-class": class_name,
        },
        "extVirtualLinks": [_link(form, "net0_master", "masterNode_CP1"), _link(form, "net0_worker", worker_cp)],
    }


def _connections(form: ApiVersion, lab: LabProcess, vim_id: str) -> Any:
    if form == "v1":
        return [{"id": "3cc2c4ff-525c-48b4-94c9-29247223322f", "vimId": vim_id, "vimType": "openstack"}]
    known = lab.endpoints
    access = {
        "username": known["username"],
        "region": "RegionOne",
        "password": known["password"],
        "project": known["project"],
        "projectDomain": known["domain"],
        "userDomain": known["domain"],
    }
    vim = {"vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3", "vimId": vim_id}
    return {"vim1": {**vim, "interfaceInfo": {"endpoint": known["auth_url"]}, "accessInfo": access}}


def _link(form: ApiVersion, link_id: str, cp: str) -> dict[str, Any]:
    protocol: dict[str, Any] = {"layerProtocol": "IP_OVER_ETHERNET"}
    if form == "v2":
        protocol["ipOverEthernet"] = {"ipAddresses": [{"type": "IPV4", "numDynamicAddresses": 1}]}
    config = {"cpProtocolData": [protocol]}
    point = {"cpdId": cp, "cpConfig": [config] if form == "v1" else {f"{cp}_1": config}}
    return {"id": link_id, "resourceId": "net0", "extCps": [point]}


# --- VNFD -------------------------------------------------------------------------------------------------------------

_SOL001: Final = ["etsi_nfv_sol001_common_types.yaml", "etsi_nfv_sol001_vnfd_types.yaml"]


def _dumped(body: dict[str, Any]) -> str:
    return yaml.safe_dump(body, sort_keys=False)


def _document(imports: list[str], **body: Any) -> dict[str, Any]:
    return {"tosca_definitions_version": "tosca_simple_yaml_1_2", "imports": [*_SOL001, *imports], **body}


def _top(vnfd_id: str) -> dict[str, Any]:
    properties = {
        "flavour_id": {"get_input": "selected_flavour"},
        "descriptor_id": vnfd_id,
        "provider": "kubevnfm",
        "product_name": "Cluster of the guide",
        "software_version": "1.0",
        "descriptor_version": "1.0",
        "vnfm_info": ["Tacker"],
    }
    # `requirements` without a value: in the guide's package only comments follow.
    node = {"type": "company.provider.VNF", "properties": properties, "requirements": None}
    names = ["types", *(f"df_{flavour}" for flavour in _MASTERS_OF)]
    return _document(
        [f"sample_kubernetes_{name}.yaml" for name in names],
        topology_template={"inputs": {"selected_flavour": {"type": "string"}}, "node_templates": {"VNF": node}},
    )


def _types(vnfd_id: str) -> dict[str, Any]:
    fixed = {
        "descriptor_id": vnfd_id,
        "descriptor_version": "1.0",
        "provider": "kubevnfm",
        "product_name": "Cluster of the guide",
        "software_version": "1.0",
    }
    properties: dict[str, Any] = {
        "id": {"type": "string", "default": "vnf_id"},
        "version": {"type": "version", "default": 1.0},
    }
    for name, value in fixed.items():
        properties[name] = {"type": "string", "constraints": [{"valid_values": [value]}], "default": value}
    only_tacker = {"type": "string", "constraints": [{"valid_values": ["Tacker"]}]}
    properties["vnfm_info"] = {"type": "list", "entry_schema": only_tacker, "default": ["Tacker"]}
    flavours = [{"valid_values": [*_MASTERS_OF]}]
    properties["flavour_id"] = {"type": "string", "constraints": flavours, "default": "simple"}
    properties["flavour_description"] = {"type": "string", "default": "no description"}
    internal = {"capability": "tosca.capabilities.nfv.VirtualLinkable", "occurrences": [0, "UNBOUNDED"]}
    node = {
        "derived_from": "tosca.nodes.nfv.VNF",
        "properties": properties,
        "requirements": [{"virtual_link_internal": internal}],
        "interfaces": {"Vnflcm": {"type": "tosca.interfaces.nfv.Vnflcm"}},
    }
    return _document([], node_types={"company.provider.VNF": node})


def _flavour(form: ApiVersion, flavour: str, masters: int) -> dict[str, Any]:
    phases = (*_PHASES, "terminate_end") if form == "v1" else _PHASES
    # v1 counts the driver's file from the package's root, v2 from Definitions/.
    driver_file = _DRIVER_FILE[form] if form == "v1" else f"../{_DRIVER_FILE[form]}"
    vnf = {
        "type": "company.provider.VNF",
        "properties": {"flavour_description": f"A {flavour} flavour"},
        "interfaces": {"Vnflcm": {phase: {"implementation": DRIVER} for phase in phases}},
        "artifacts": {
            DRIVER: {
                "description": "Management driver",
                "type": "tosca.artifacts.Implementation.Python",
                "file": driver_file,
            }
        },
    }
    nodes: dict[str, Any] = {"VNF": vnf}
    for vdu, cp, least, most in (
        ("masterNode", "masterNode_CP1", masters, masters + 2),
        ("workerNode", WORKER_CP[form], 2, 4),
    ):
        nodes[vdu] = _vdu(vdu, least, most)
        nodes[cp] = {
            "type": "tosca.nodes.nfv.VduCp",
            "properties": {"layer_protocols": ["ipv4"], "order": 0},
            "requirements": [{"virtual_binding": vdu}],
        }
    substitution = {
        "node_type": "company.provider.VNF",
        "properties": {"flavour_id": flavour},
        "requirements": {
            "virtual_link_external1_1": ["masterNode_CP1", "virtual_link"],
            "virtual_link_external1_2": [WORKER_CP[form], "virtual_link"],
        },
    }
    inputs = {name: {"type": "string"} for name in ("descriptor_id", "provider", "flavour_id", "flavour_description")}
    topology: dict[str, Any] = {
        "inputs": inputs,
        "substitution_mappings": substitution,
        "node_templates": nodes,
        "policies": _policies(form, masters),
    }
    if flavour == PODAFFINITY:
        topology["policies"].append(_policy("apart", "AntiAffinityRule", "workerNode", scope="nfvi_node"))
    return _document(["sample_kubernetes_types.yaml"], topology_template=topology)


def _vdu(vdu: str, least: int, most: int) -> dict[str, Any]:
    asked = {
        "requested_additional_capability_name": "m1.medium",
        "support_mandatory": True,
        "target_performance_parameters": {"entry_schema": "test"},
    }
    image = {
        "name": f"Image for {vdu}",
        "version": "22.04",
        "container_format": "bare",
        "disk_format": "qcow2",
        "min_disk": "0 GB",
        "size": "2 GB",
    }
    compute = {
        "requested_additional_capabilities": {"properties": asked},
        "virtual_memory": {"virtual_mem_size": "4 GB"},
        "virtual_cpu": {"num_virtual_cpu": 2},
        "virtual_local_storage": [{"size_of_storage": "45 GB"}],
    }
    return {
        "type": "tosca.nodes.nfv.Vdu.Compute",
        "properties": {
            "name": vdu,
            "description": f"{vdu} compute node",
            "vdu_profile": {"min_number_of_instances": least, "max_number_of_instances": most},
            "sw_image_data": image,
        },
        "artifacts": {"sw_image": {"type": "tosca.artifacts.nfv.SwImage", "file": f"../{_IMAGE}"}},
        "capabilities": {"virtual_compute": {"properties": compute}},
    }


def _policies(form: ApiVersion, masters: int) -> list[dict[str, Any]]:
    scaled = {"masterNode": "master_instance", "workerNode": "worker_instance"}
    if form == "v2":
        scaled = {"workerNode": "workerNode_scale"}
    aspects = {
        name: {"name": name, "description": name, "max_scale_level": 2, "step_deltas": ["delta_1"]}
        for name in scaled.values()
    }
    levels = {
        f"instantiation_level_{number}": {
            "description": size,
            "scale_info": {name: {"scale_level": level} for name in aspects},
        }
        for number, size, level in ((1, "Smallest size", 0), (2, "Largest size", 2))
    }
    policies = [
        _policy("scaling_aspects", "ScalingAspects", aspects=aspects),
        _policy("instantiation_levels", "InstantiationLevels", levels=levels, default_level="instantiation_level_1"),
    ]
    for vdu, count in (("masterNode", masters), ("workerNode", 2)):
        most = count + 2 if vdu in scaled else count
        initial = {"number_of_instances": count}
        policies.append(_policy(f"{vdu}_initial_delta", "VduInitialDelta", vdu, initial_delta=initial))
        if vdu in scaled:
            deltas = {"delta_1": {"number_of_instances": 1}}
            policies.append(
                _policy(f"{vdu}_scaling_deltas", "VduScalingAspectDeltas", vdu, aspect=scaled[vdu], deltas=deltas)
            )
        counts = {
            f"instantiation_level_{number}": {"number_of_instances": n} for number, n in enumerate((count, most), 1)
        }
        policies.append(_policy(f"{vdu}_instantiation_levels", "VduInstantiationLevels", vdu, levels=counts))
    return policies


def _policy(name: str, kind: str, *targets: str, **properties: Any) -> dict[str, Any]:
    body = {"type": f"tosca.policies.nfv.{kind}", "properties": properties}
    return {name: {**body, **({"targets": list(targets)} if targets else {})}}


# --- Heat -------------------------------------------------------------------------------------------------------------


def _hot(form: ApiVersion, flavour: str, masters: int) -> dict[str, Any]:
    """Return the top template: groups in v1; in v2 one resource for each VDU, which user data multiply."""
    flavor, image = ("flavor", "image") if form == "v1" else ("computeFlavourId", "vcImageId")
    resources: dict[str, Any] = {}
    for role, cp, least in (("master", "masterNode_CP1", masters), ("worker", WORKER_CP[form], 2)):
        member: dict[str, Any] = {
            "type": f"{flavour}_nested_{role}.yaml",
            "properties": {
                "flavor": {"get_param": ["nfv", "VDU", f"{role}Node", flavor]},
                "image": {"get_param": ["nfv", "VDU", f"{role}Node", image]},
                "net1": {"get_param": ["nfv", "CP", cp, "network"]},
            },
        }
        if role == "master" and masters > 1:
            member["properties"]["vip_port_ip"] = {"get_attr": ["vip_CP", "fixed_ips", 0, "ip_address"]}
        if role == "worker" and flavour == PODAFFINITY:
            member["properties"]["affinity"] = {"get_resource": "ServerGroup"}
        if form == "v2":
            resources[f"{role}Node"] = member
            continue
        group = f"{role}_instance"
        resources[group] = {
            "type": "OS::Heat::AutoScalingGroup",
            "properties": {"min_size": least, "max_size": least + 2, "desired_capacity": least, "resource": member},
        }
        for name, step in (("scale_out", 1), ("scale_in", -1)):
            policy = {"scaling_adjustment": step, "adjustment_type": "change_in_capacity"}
            resources[f"{group}_{name}"] = {
                "type": "OS::Heat::ScalingPolicy",
                "properties": {**policy, "auto_scaling_group_id": {"get_resource": group}},
            }
    if masters > 1:
        resources["vip_CP"] = {"type": "OS::Neutron::Port", "properties": {"network": "net0"}}
    if flavour == PODAFFINITY:
        apart = {"name": "ServerGroup", "policies": ["anti-affinity"]}
        resources["ServerGroup"] = {"type": "OS::Nova::ServerGroup", "properties": apart}
    return {
        "heat_template_version": "2013-05-23",
        "description": f"{flavour} Base HOT",
        "parameters": {"nfv": {"type": "json"}},
        "resources": resources,
        "outputs": {},
    }


def _nested(form: ApiVersion, role: str, flavour: str) -> dict[str, Any]:
    cp = "masterNode_CP1" if role == "master" else WORKER_CP[form]
    port: dict[str, Any] = {"network": {"get_param": "net1"}}
    parameters = ["flavor", "image", "net1"]
    if role == "master" and _MASTERS_OF[flavour] > 1:
        parameters.append("vip_port_ip")
        port["allowed_address_pairs"] = [{"ip_address": {"get_param": "vip_port_ip"}}]
    server: dict[str, Any] = {
        "flavor": {"get_param": "flavor"},
        "name": f"{role}Node",
        "image": {"get_param": "image"},
        "networks": [{"port": {"get_resource": cp}}],
    }
    if role == "worker" and flavour == PODAFFINITY:
        parameters.append("affinity")
        server["scheduler_hints"] = {"group": {"get_param": "affinity"}}
    resources = {
        f"{role}Node": {"type": "OS::Nova::Server", "properties": server},
        cp: {"type": "OS::Neutron::Port", "properties": port},
    }
    if form == "v2":
        resources[f"{cp}_floating_ip"] = {
            "type": "OS::Neutron::FloatingIP",
            "properties": {"floating_network": "public", "port_id": {"get_resource": cp}},
        }
    return {
        "heat_template_version": "2013-05-23",
        "description": f"{role}Node HOT",
        "parameters": {name: {"type": "string"} for name in parameters},
        "resources": resources,
    }
