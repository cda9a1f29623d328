# SPDX-License-Identifier: Apache-2.0
"""Turns an instantiate request into the parameters of the cluster's Heat template.

Written for the user data interface of OpenStack Tacker's v1 API, which kubevnfm offers too: it runs on both.
"""

from tacker.vnfm.lcm_user_data import abstract_user_data

DEFAULT_NETWORK = "net0"
"""For a connection point that extVirtualLinks does not mention."""


class ClusterUserData(abstract_user_data.AbstractUserData):
    """Flavor and image by VDU, network by connection point, and the numbers of masters and workers."""

    @staticmethod
    def instantiate(base_hot_dict=None, vnfd_dict=None, inst_req_info=None, grant_info=None):
        topology = vnfd_dict["topology_template"]
        nodes = topology["node_templates"]
        vdus = _of_type(nodes, "tosca.nodes.nfv.Vdu.Compute")
        cps = _of_type(nodes, "tosca.nodes.nfv.VduCp")
        networks = _networks(inst_req_info)
        level = getattr(inst_req_info, "instantiation_level_id", None)
        return {
            "nfv": {
                "VDU": {
                    name: {"flavor": _flavor(vdu), "image": _image(name, vdu, grant_info)}
                    for name, vdu in vdus.items()
                },
                "CP": {name: {"network": networks.get(name, DEFAULT_NETWORK)} for name in cps},
                "desired_capacity": {
                    "master_instance": _instances(topology, "masterNode", level),
                    "worker_instance": _instances(topology, "workerNode", level),
                },
            }
        }


def _of_type(nodes, kind):
    return {name: node for name, node in nodes.items() if node.get("type") == kind}


def _flavor(vdu):
    compute = vdu["capabilities"]["virtual_compute"]["properties"]
    return compute["requested_additional_capabilities"]["properties"]["requested_additional_capability_name"]


def _image(name, vdu, grant_info):
    """The id of the image that was made for this VDU from the package, else the name of one that exists."""
    for resource in (grant_info or {}).get(name) or []:
        if getattr(resource, "resource_identifier", None):
            return resource.resource_identifier
    return vdu["properties"]["sw_image_data"]["name"]


def _networks(request):
    """Network id by connection point."""
    found = {}
    for link in getattr(request, "ext_virtual_links", None) or []:
        for cp in getattr(link, "ext_cps", None) or []:
            found[cp.cpd_id] = link.resource_id
    return found


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
