"""The common parts of packages in the form of Tacker's guides, for clusters and registries (sequences.md chapter 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml
from callers.user import ApiVersion
from clouds.lab_process import LabProcess

from packages.own_packages import zipped
from packages.package_builder import with_meta

_VNF_TYPE: Final = "company.provider.VNF"
IMAGE: Final = "Files/images/ubuntu-server-cloudimg-amd64.img"
USER_DATA_V1: Final = """\
import tacker.vnfm.lcm_user_data.utils as user_data_util
from tacker.vnfm.lcm_user_data.abstract_user_data import AbstractUserData


class GuideUserData(AbstractUserData):
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


# --- VNFD -------------------------------------------------------------------------------------------------------------

_SOL001: Final = ["etsi_nfv_sol001_common_types.yaml", "etsi_nfv_sol001_vnfd_types.yaml"]


@dataclass(frozen=True)
class Vnfd:
    """A VNFD of several files, as the guides have it."""

    vnfd_id: str
    prefix: str
    """The beginning of the files' names."""
    product: str
    flavours: Mapping[str, Mapping[str, Any]]
    """The document of each flavour by its id; see `flavour`."""

    @property
    def entry(self) -> str:
        """The path of the file that imports the others."""
        return f"Definitions/{self.prefix}_top.vnfd.yaml"

    def files(self) -> dict[str, str]:
        """Return text by path."""
        found = {self.entry: dumped(self._top()), f"Definitions/{self.prefix}_types.yaml": dumped(self._types())}
        for flavour_id, topology in self.flavours.items():
            body = _document([f"{self.prefix}_types.yaml"], topology_template=topology)
            found[f"Definitions/{self.prefix}_df_{flavour_id}.yaml"] = dumped(body)
        return found

    def _top(self) -> dict[str, Any]:
        properties = {
            "flavour_id": {"get_input": "selected_flavour"},
            **self._identity(),
            "vnfm_info": ["Tacker"],
        }
        # `requirements` without a value: in the guide's package only comments follow.
        node = {"type": _VNF_TYPE, "properties": properties, "requirements": None}
        names = ["types", *(f"df_{flavour_id}" for flavour_id in self.flavours)]
        return _document(
            [f"{self.prefix}_{name}.yaml" for name in names],
            topology_template={"inputs": {"selected_flavour": {"type": "string"}}, "node_templates": {"VNF": node}},
        )

    def _identity(self) -> dict[str, str]:
        return {
            "descriptor_id": self.vnfd_id,
            "descriptor_version": "1.0",
            "provider": "kubevnfm",
            "product_name": self.product,
            "software_version": "1.0",
        }

    def _types(self) -> dict[str, Any]:
        properties: dict[str, Any] = {
            "id": {"type": "string", "default": "vnf_id"},
            "version": {"type": "version", "default": 1.0},
        }
        for name, value in self._identity().items():
            properties[name] = {"type": "string", "constraints": [{"valid_values": [value]}], "default": value}
        only_tacker = {"type": "string", "constraints": [{"valid_values": ["Tacker"]}]}
        properties["vnfm_info"] = {"type": "list", "entry_schema": only_tacker, "default": ["Tacker"]}
        flavours = [{"valid_values": [*self.flavours]}]
        properties["flavour_id"] = {"type": "string", "constraints": flavours, "default": "simple"}
        properties["flavour_description"] = {"type": "string", "default": "no description"}
        internal = {"capability": "tosca.capabilities.nfv.VirtualLinkable", "occurrences": [0, "UNBOUNDED"]}
        node = {
            "derived_from": "tosca.nodes.nfv.VNF",
            "properties": properties,
            "requirements": [{"virtual_link_internal": internal}],
            "interfaces": {"Vnflcm": {"type": "tosca.interfaces.nfv.Vnflcm"}},
        }
        return _document([], node_types={_VNF_TYPE: node})


def dumped(body: Mapping[str, Any]) -> str:
    """Return YAML in the order of the keys."""
    return yaml.safe_dump(dict(body), sort_keys=False)


def _document(imports: list[str], **body: Any) -> dict[str, Any]:
    return {"tosca_definitions_version": "tosca_simple_yaml_1_2", "imports": [*_SOL001, *imports], **body}


def topology(
    flavour_id: str,
    vdus: Mapping[str, tuple[str, int, int]],
    policies: Sequence[Mapping[str, Any]],
    *,
    driver: tuple[str, str],
    phases: Sequence[str],
) -> dict[str, Any]:
    """Return a flavour's topology_template.

    ``vdus``: connection point, least and largest number of machines by VDU. ``driver``: the name of the management driver
    of all ``phases``, and its file.
    """
    name, file = driver
    artifact = {"description": "Management driver", "type": "tosca.artifacts.Implementation.Python", "file": file}
    vnf = {
        "type": _VNF_TYPE,
        "properties": {"flavour_description": f"A {flavour_id} flavour"},
        "interfaces": {"Vnflcm": {phase: {"implementation": name} for phase in phases}},
        "artifacts": {name: artifact},
    }
    nodes: dict[str, Any] = {"VNF": vnf}
    links = {}
    for number, (vdu, (cp, least, most)) in enumerate(vdus.items(), 1):
        nodes[vdu] = _compute(vdu, least, most)
        nodes[cp] = {
            "type": "tosca.nodes.nfv.VduCp",
            "properties": {"layer_protocols": ["ipv4"], "order": 0},
            "requirements": [{"virtual_binding": vdu}],
        }
        links[f"virtual_link_external1_{number}"] = [cp, "virtual_link"]
    inputs = {name: {"type": "string"} for name in ("descriptor_id", "provider", "flavour_id", "flavour_description")}
    substitution = {"node_type": _VNF_TYPE, "properties": {"flavour_id": flavour_id}, "requirements": links}
    return {
        "inputs": inputs,
        "substitution_mappings": substitution,
        "node_templates": nodes,
        "policies": list(policies),
    }


def _compute(vdu: str, least: int, most: int) -> dict[str, Any]:
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
        "artifacts": {"sw_image": {"type": "tosca.artifacts.nfv.SwImage", "file": f"../{IMAGE}"}},
        "capabilities": {"virtual_compute": {"properties": compute}},
    }


def policy(name: str, kind: str, *targets: str, **properties: Any) -> dict[str, Any]:
    """Return an entry of ``policies``."""
    body = {"type": f"tosca.policies.nfv.{kind}", "properties": properties}
    return {name: {**body, **({"targets": list(targets)} if targets else {})}}


# --- Heat, requests, the package --------------------------------------------------------------------------------------


def template(description: str, parameters: Mapping[str, str], resources: Mapping[str, Any]) -> dict[str, Any]:
    """Return a template; ``parameters``: type by name."""
    return {
        "heat_template_version": "2013-05-23",
        "description": description,
        "parameters": {name: {"type": kind} for name, kind in parameters.items()},
        "resources": dict(resources),
        "outputs": {},
    }


def connections(api: ApiVersion, lab: LabProcess, vim_id: str) -> Any:
    """Return the guide's ``vimConnectionInfo`` with one entry, for a VIM that is registered."""
    if api == "v1":
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


def link(api: ApiVersion, link_id: str, cp: str) -> dict[str, Any]:
    """Return an entry of ``extVirtualLinks``: the lab's network for a connection point."""
    protocol: dict[str, Any] = {"layerProtocol": "IP_OVER_ETHERNET"}
    if api == "v2":
        protocol["ipOverEthernet"] = {"ipAddresses": [{"type": "IPV4", "numDynamicAddresses": 1}]}
    config = {"cpProtocolData": [protocol]}
    point = {"cpdId": cp, "cpConfig": [config] if api == "v1" else {f"{cp}_1": config}}
    return {"id": link_id, "resourceId": "net0", "extCps": [point]}


def packed(files: Mapping[str, str | bytes], *, entry: str, listed: Sequence[str] = ()) -> bytes:
    """Return the package; TOSCA.meta has the digests of the ``listed`` files."""
    whole = with_meta({IMAGE: b"an image" * 64, **files}, entry=entry, listed=tuple(listed))
    return zipped({name: one.encode() if isinstance(one, str) else one for name, one in whole.items()})
