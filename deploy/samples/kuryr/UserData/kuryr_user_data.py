# SPDX-License-Identifier: Apache-2.0
"""Turns an instantiate request into the parameters of the Heat template of a cluster with Kuryr-Kubernetes.

Written for the user data interface of OpenStack Tacker's v1 API, which kubevnfm offers too: it runs on both.
"""

from ipaddress import ip_network

from tacker.vnfm.lcm_user_data import abstract_user_data

NODE_CIDR = "10.10.0.0/24"
"""The network of the nodes, unless additionalParams has another node_cidr."""
EXTERNAL_NETWORK = "public"
"""The cloud's network for floating IPs, unless additionalParams has another external_network."""


class KuryrUserData(abstract_user_data.AbstractUserData):
    """Flavor and image by VDU, the ranges of the networks of nodes, pods and Services, and the number of workers."""

    @staticmethod
    def instantiate(base_hot_dict=None, vnfd_dict=None, inst_req_info=None, grant_info=None):
        topology = vnfd_dict["topology_template"]
        vdus = {
            name: node
            for name, node in topology["node_templates"].items()
            if node.get("type") == "tosca.nodes.nfv.Vdu.Compute"
        }
        given = inst_req_info.additional_params
        master = given["k8s_cluster_installation_param"]["master_node"]
        level = getattr(inst_req_info, "instantiation_level_id", None)
        return {
            "nfv": {
                "VDU": {
                    name: {"flavor": _flavor(vdu), "image": _image(name, vdu, grant_info)}
                    for name, vdu in vdus.items()
                },
                "subnets": {
                    "node": {"cidr": given.get("node_cidr", NODE_CIDR)},
                    "pod": {"cidr": master["pod_cidr"]},
                    "service": _service_subnet(master["cluster_cidr"]),
                },
                "external_network": given.get("external_network", EXTERNAL_NETWORK),
                "desired_capacity": {"worker_instance": _instances(topology, "workerNode", level)},
            }
        }


def _service_subnet(cluster_cidr):
    """The subnet of twice the size: Services have its lower half, Octavia's ports and the gateway the upper one."""
    services = ip_network(cluster_cidr)
    whole = services.supernet()
    return {
        "cidr": str(whole),
        "api": str(services[1]),
        "first": str(services[-1] + 2),
        "last": str(whole[-3]),
        "gateway": str(whole[-2]),
    }


def _flavor(vdu):
    compute = vdu["capabilities"]["virtual_compute"]["properties"]
    return compute["requested_additional_capabilities"]["properties"]["requested_additional_capability_name"]


def _image(name, vdu, grant_info):
    """The id of the image that was made for this VDU from the package, else the name of one that exists."""
    for resource in (grant_info or {}).get(name) or []:
        if getattr(resource, "resource_identifier", None):
            return resource.resource_identifier
    return vdu["properties"]["sw_image_data"]["name"]


def _instances(topology, vdu, level):
    """The number of instances of a VDU at an instantiation level, the default one when none was asked for."""
    policies = [policy for entry in topology.get("policies", []) for policy in entry.values()]
    if not level:
        for policy in policies:
            if policy["type"] == "tosca.policies.nfv.InstantiationLevels":
                level = policy["properties"]["default_level"]
    for policy in policies:
        if policy["type"] == "tosca.policies.nfv.VduInstantiationLevels" and vdu in policy["targets"]:
            return policy["properties"]["levels"][level]["number_of_instances"]
    return 1
