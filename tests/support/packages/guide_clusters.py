"""Packages and requests in the form of Tacker's guides for a Kubernetes cluster on machines (sequences.md chapter 6).

Both have an install script and a management driver of their own, which the built-in driver neither runs nor loads. The
texts here are ours; files, names, node types, interfaces, templates and parameters are as users of Tacker have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from callers.user import ApiVersion
from clouds.lab_process import LabProcess
from clusters.storage_clusters import (
    PORT,
    add_storage_to_flavour,
    add_storage_to_template,
    manifests,
    storage_parameters,
)

from packages.guide_parts import USER_DATA_V1, Vnfd, connections, dumped, link, packed, policy, template, topology
from packages.user_data_packages import CLASSES

DRIVER: Final = "mgmt-drivers-kubernetes"
WORKER_CP: Final[dict[ApiVersion, str]] = {"v1": "workerNode_CP2", "v2": "workerNode_CP1"}
_DRIVER_FILE: Final[dict[ApiVersion, str]] = {"v1": "Scripts/kubernetes_mgmt.py", "v2": "Scripts/kubernetes_mgmt_v2.py"}
PODAFFINITY: Final = "podaffinity"
REGISTRY_NAME: Final = "registry.example.com"
PODAFFINITY_HA: Final = "podaffinity_ha"
_MASTERS_OF: Final = {"simple": 1, "complex": 3, PODAFFINITY: 1, PODAFFINITY_HA: 3}
_WITH_AFFINITY: Final = (PODAFFINITY, PODAFFINITY_HA)
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
_USER_DATA_V2: Final = """\
from tacker.sol_refactored.infra_drivers.openstack import userdata_standard


class StandardUserData(userdata_standard.StandardUserData):
    pass
"""


def guide_package(
    form: ApiVersion, vnfd_id: str, *, has_storage: bool = False, more: Mapping[str, bytes] = {}
) -> bytes:
    """Return the package of the guide.

    Its flavours are ``simple`` (one master, two workers), ``complex`` (three masters), ``podaffinity`` (as ``simple``, each
    worker on a compute host of its own) and, which the guide does not have, ``podaffinity_ha`` (three masters). ``has_storage``: all have a storage server. ``more``: further files.
    """
    files: dict[str, str | bytes] = {
        "Scripts/install_k8s_cluster.sh": _SCRIPT,
        _DRIVER_FILE[form]: _DRIVER_V1 if form == "v1" else _DRIVER_V2,
        **more,
    }
    flavours = {}
    for flavour, masters in _MASTERS_OF.items():
        flavours[flavour], top = _flavour(form, flavour, masters), _hot(form, flavour, masters)
        if has_storage:
            _add_storage(form, flavours[flavour], top)
        files[f"BaseHOT/{flavour}/{flavour}_hot_top.yaml"] = dumped(top)
        for role in ("master", "worker"):
            files[f"BaseHOT/{flavour}/nested/{flavour}_nested_{role}.yaml"] = dumped(_nested(form, role, flavour))
    if form == "v1":
        files["UserData/k8s_cluster_user_data.py"] = USER_DATA_V1
    elif has_storage:
        files["UserData/userdata_standard.py"] = _USER_DATA_V2
    else:
        shipped = (CLASSES / "per_machine.py").read_text(encoding="utf-8")
        files["UserData/userdata_standard.py"] = shipped.replace("PerMachineUserData", "StandardUserData")
    scripts = ("Scripts/install_k8s_cluster.sh", _DRIVER_FILE[form])
    if has_storage:
        files |= manifests()
    vnfd = Vnfd(vnfd_id, "sample_kubernetes", "Cluster of the guide", flavours)
    return packed(vnfd.files() | files, entry=vnfd.entry, listed=scripts if form == "v1" else ())


def guide_request(
    form: ApiVersion,
    lab: LabProcess,
    vim_id: str,
    *,
    flavour: str = "simple",
    api: ApiVersion | None = None,
    has_storage: bool = False,
    registries: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the guide's instantiate request for a flavour, on the lab's cloud with its machines' password.

    ``api``: the version that it is sent to, as the package is made for by default. ``has_storage``: the package has it.
    """
    login = {"username": "ubuntu", "password": lab.machine_password}
    api, worker_cp = api or form, WORKER_CP[form]
    cluster: dict[str, Any] = {"script_path": "Scripts/install_k8s_cluster.sh", "vim_name": "kubernetes_vim"}
    master: dict[str, Any]
    if form == "v1":
        master = {
            "aspect_id": "master_instance",
            "ssh_cp_name": "masterNode_CP1",
            "nic_cp_name": "masterNode_CP1",
            **login,
            "pod_cidr": "192.168.3.0/16",
            "cluster_cidr": "10.199.187.0/24",
        }
        worker = {"aspect_id": "worker_instance", "ssh_cp_name": worker_cp, "nic_cp_name": worker_cp}
        cluster["proxy"] = {
            "http_proxy": "http://user1:password1@host1:port1",
            "https_proxy": "https://user2:password2@host2:port2",
            "no_proxy": f"192.168.246.0/24,10.0.0.1,{REGISTRY_NAME}",
            "k8s_node_cidr": "10.10.0.0/24",
        }
    else:
        master = {"ssh_cp_name": "masterNode_CP1_floating_ip", "nic_cp_name": "masterNode_CP1", **login}
        master["pod_cidr"] = "10.200.0.0/16"
        worker = {"ssh_cp_name": f"{worker_cp}_floating_ip", "nic_cp_name": worker_cp}
    if "v2" in (form, api):
        for group, vdu in ((master, "masterNode"), (worker, "workerNode")):
            group.pop("aspect_id", None)
            group["vdu_id"] = vdu
    master["cluster_cp_name"] = "masterNode_CP1"
    if _MASTERS_OF[flavour] > 1:
        master["cluster_cp_name"] = "vip_CP"
        if form == "v2":
            master["cluster_fip_name"] = "vip_CP_floating_ip"
    cluster |= {"master_node": master, "worker_node": {**worker, **login}}
    links = [link(api, "net0_master", "masterNode_CP1"), link(api, "net0_worker", worker_cp)]
    if registries:
        cluster["private_registry_connection_info"] = list(registries)
    if has_storage:
        cluster |= storage_parameters(lab.machine_password)
        links.append(link(api, "net0_storage", PORT))
    file, class_name = (
        ("k8s_cluster_user_data.py", "GuideUserData") if form == "v1" else ("userdata_standard.py", "StandardUserData")
    )
    return {
        "flavourId": flavour,
        "vimConnectionInfo": connections(api, lab, vim_id),
        "additionalParams": {
            "k8s_cluster_installation_param": cluster,
            "lcm-operation-user-data": f"./UserData/{file}",
            "lcm-operation-user-data-class": class_name,
        },
        "extVirtualLinks": links,
    }


def _flavour(form: ApiVersion, flavour: str, masters: int) -> dict[str, Any]:
    # v1 counts the driver's file from the package's root, v2 from Definitions/.
    driver_file = _DRIVER_FILE[form] if form == "v1" else f"../{_DRIVER_FILE[form]}"
    policies = _policies(form, masters)
    if flavour in _WITH_AFFINITY:
        policies.append(policy("apart", "AntiAffinityRule", "workerNode", scope="nfvi_node"))
    vdus = {"masterNode": ("masterNode_CP1", masters, masters + 2), "workerNode": (WORKER_CP[form], 2, 4)}
    phases = (*_PHASES, "terminate_end") if form == "v1" else _PHASES
    return topology(flavour, vdus, policies, driver=(DRIVER, driver_file), phases=phases)


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
        policy("scaling_aspects", "ScalingAspects", aspects=aspects),
        policy("instantiation_levels", "InstantiationLevels", levels=levels, default_level="instantiation_level_1"),
    ]
    for vdu, count in (("masterNode", masters), ("workerNode", 2)):
        most = count + 2 if vdu in scaled else count
        initial = {"number_of_instances": count}
        policies.append(policy(f"{vdu}_initial_delta", "VduInitialDelta", vdu, initial_delta=initial))
        if vdu in scaled:
            deltas = {"delta_1": {"number_of_instances": 1}}
            policies.append(
                policy(f"{vdu}_scaling_deltas", "VduScalingAspectDeltas", vdu, aspect=scaled[vdu], deltas=deltas)
            )
        counts = {
            f"instantiation_level_{number}": {"number_of_instances": n} for number, n in enumerate((count, most), 1)
        }
        policies.append(policy(f"{vdu}_instantiation_levels", "VduInstantiationLevels", vdu, levels=counts))
    return policies


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
        if role == "worker" and flavour in _WITH_AFFINITY:
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
            change = {"scaling_adjustment": step, "adjustment_type": "change_in_capacity"}
            resources[f"{group}_{name}"] = {
                "type": "OS::Heat::ScalingPolicy",
                "properties": {**change, "auto_scaling_group_id": {"get_resource": group}},
            }
    if masters > 1:
        resources["vip_CP"] = {"type": "OS::Neutron::Port", "properties": {"network": "net0"}}
        if form == "v2":
            resources["vip_CP_floating_ip"] = _floating_ip("vip_CP")
    if flavour in _WITH_AFFINITY:
        apart = {"name": "ServerGroup", "policies": ["anti-affinity"]}
        resources["ServerGroup"] = {"type": "OS::Nova::ServerGroup", "properties": apart}
    return template(f"{flavour} Base HOT", {"nfv": "json"}, resources)


def _floating_ip(port: str) -> dict[str, Any]:
    properties = {"floating_network": "public", "port_id": {"get_resource": port}}
    return {"type": "OS::Neutron::FloatingIP", "properties": properties}


def _add_storage(form: ApiVersion, descriptor: dict[str, Any], top: dict[str, Any]) -> None:
    """Add the storage server of document 002; user data for v2 give networks to the ports of nested templates only."""
    add_storage_to_flavour(descriptor)
    links = descriptor["substitution_mappings"]["requirements"]
    links["virtual_link_external1_3"] = [PORT, "virtual_link"]
    if form == "v1":
        add_storage_to_template(top)
    else:
        add_storage_to_template(top, flavor="computeFlavourId", image="vcImageId", network="net0")


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
    if role == "worker" and flavour in _WITH_AFFINITY:
        parameters.append("affinity")
        server["scheduler_hints"] = {"group": {"get_param": "affinity"}}
    resources = {
        f"{role}Node": {"type": "OS::Nova::Server", "properties": server},
        cp: {"type": "OS::Neutron::Port", "properties": port},
    }
    if form == "v2":
        resources[f"{cp}_floating_ip"] = _floating_ip(cp)
    return template(f"{role}Node HOT", dict.fromkeys(parameters, "string"), resources)
