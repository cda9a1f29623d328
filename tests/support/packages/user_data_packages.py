"""VNF packages of machines in the forms that users of Tacker ship: two VDUs, one with an image file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

import yaml
from callers.user import ApiVersion

from packages.own_packages import zipped
from packages.package_builder import with_meta

CLASSES: Final = Path(__file__).parents[2] / "fixtures/user_data"
VDUS: Final = ("VDU1", "VDU2")
_PHASES: Final = tuple(
    f"{operation}_{end}"
    for operation in ("instantiate", "terminate", "scale", "heal", "change_external_connectivity", "modify_information")
    for end in ("start", "end")
)


@dataclass(frozen=True)
class Form:
    """One form of user data."""

    file: str | None
    """Below ``tests/fixtures/user_data``; None: the request names no user data."""
    class_name: str = ""
    has_groups: bool = False
    """A scaling group for each VDU; otherwise a resource for each machine."""
    has_hot: bool = True
    """False: TOSCA alone describes the machines, in the layout of SOL004 without TOSCA-Metadata."""
    driver: str | None = None
    """The management driver of every phase."""
    has_policies: bool = False
    """As the templates of Tacker's v1 guides: groups ``<aspect>`` with scaling policies, sizes at ``nfv.desired_capacity``, a zone that
    no parameter has, and the names ``flavor`` and ``image``."""
    is_named_once: bool = False
    """Only instantiate names the class; the other requests are those of a user who relies on the built-in behaviour."""

    @property
    def names(self) -> tuple[str, str]:
        """Return the names of the parameters for flavor and image."""
        return ("flavor", "image") if self.has_policies else ("computeFlavourId", "vcImageId")

    @property
    def parameters(self) -> dict[str, Any]:
        """additionalParams that name the class."""
        if self.file is None:
            return {}
        return {"lcm-operation-user-data": f"UserData/{self.file}", "lcm-operation-user-data-class": self.class_name}


FORMS: Final = {
    "shipped-standard": Form("per_machine.py", "PerMachineUserData"),
    "shipped-default": Form("by_group.py", "ByGroupUserData", has_groups=True),
    "v1": Form("v1.py", "V1UserData", has_groups=True),
    "v1-changes": Form("v1_changes.py", "V1ChangesUserData", has_groups=True, has_policies=True),
    "derived-standard": Form("derived.py", "OwnStandardUserData"),
    "derived-default": Form("derived.py", "OwnDefaultUserData", has_groups=True),
    "named-once-standard": Form("per_machine.py", "PerMachineUserData", is_named_once=True),
    "named-once-default": Form("by_group.py", "ByGroupUserData", has_groups=True, is_named_once=True),
    "named-once-v1": Form("v1.py", "V1UserData", has_groups=True, is_named_once=True),
    "none": Form(None, has_groups=True, driver="vnflcm_noop"),
    "tosca": Form(None, has_hot=False),
}


def user_data_package(
    vnfd_id: str,
    form: Form,
    *,
    version: str = "1.0",
    flavor: str = "m1.tiny",
    scripts: Mapping[str, str] = {},
    extra: Mapping[str, str] = {},
) -> bytes:
    """Return a package of the form; ``version`` also decides the image file of VDU1, ``flavor`` the Nova flavor.

    ``scripts``: file of ``extra`` by phase of the life cycle; ``extra``: further files.
    """
    vnfd = _vnfd(vnfd_id, form, version, flavor)
    vnfd["topology_template"]["node_templates"]["VNF"] |= _scripted(scripts, "../" if form.has_hot else "")
    files: dict[str, str | bytes] = {
        "version": version,
        **extra,
        "Files/images/vdu1.img": f"image of version {version}".encode() * 64,
        **{f"UserData/{one.name}": one.read_text(encoding="utf-8") for one in CLASSES.glob("*.py")},
    }
    if form.has_hot:
        files["Definitions/vnfd.yaml"] = yaml.safe_dump(vnfd)
        files["BaseHOT/simple/top.yaml"] = yaml.safe_dump(_top(form))
        files |= {f"BaseHOT/simple/nested/{vdu}.yaml": _nested(vdu) for vdu in VDUS}
        if form.driver is not None:
            files[f"Scripts/{form.driver}.py"] = "raise RuntimeError('the driver of the package was run')\n"
        files = with_meta(files, entry="Definitions/vnfd.yaml")
    else:
        files["vnfd.yaml"] = yaml.safe_dump(vnfd)
        files["vnfd.mf"] = _manifest(files)
    return zipped({name: one.encode() if isinstance(one, str) else one for name, one in files.items()})


def _manifest(files: Mapping[str, str | bytes]) -> str:
    """Return SOL004's manifest with the digest of every file."""
    blocks = ["metadata:\n  vnf_product_name: Machines\n  vnf_provider_id: kubevnfm\n  vnf_package_version: 1.0\n"]
    for name, content in files.items():
        digest = hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()
        blocks.append(f"Source: {name}\nAlgorithm: SHA-256\nHash: {digest}\n")
    return "\n".join(blocks)


def instantiate_body(form: Form, network: str = "net0", *, version: ApiVersion = "v2") -> dict[str, Any]:
    """Return the request that makes one machine of each VDU, in the form of the API version."""
    return {
        "flavourId": "simple",
        "extVirtualLinks": links(network, version=version),
        "additionalParams": {**form.parameters},
    }


def links(network: str, *, version: ApiVersion = "v2") -> list[dict[str, Any]]:
    """Return an external link for the connection points of both VDUs."""
    config = {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]}
    cps = []
    for vdu in VDUS:
        configs: Any = [config] if version == "v1" else {f"{vdu}_CP1_1": config}
        cps.append({"cpdId": f"{vdu}_CP1", "cpConfig": configs})
    return [{"id": "external", "resourceId": network, "extCps": cps}]


def _vnfd(vnfd_id: str, form: Form, version: str, flavor: str) -> dict[str, Any]:
    nodes: dict[str, Any] = {
        "VNF": {
            "type": "tosca.nodes.nfv.VNF",
            "properties": {
                "descriptor_id": vnfd_id,
                "provider": "kubevnfm",
                "product_name": "User data",
                "software_version": version,
                "descriptor_version": version,
                "flavour_id": "simple",
                "flavour_description": "Two kinds of machines",
                "vnfm_info": ["kubevnfm"],
            },
        }
    }
    if form.driver is not None:
        nodes["VNF"]["interfaces"] = {"Vnflcm": {phase: {"implementation": form.driver} for phase in _PHASES}}
        artifact = {"type": "tosca.artifacts.Implementation.Python", "file": f"../Scripts/{form.driver}.py"}
        nodes["VNF"]["artifacts"] = {form.driver: artifact}
    policies: list[dict[str, Any]] = []
    for vdu in VDUS:
        nodes |= _vdu(vdu, version, flavor)
        if vdu == "VDU1":
            # VDU2's image is in Glance already.
            file = "../Files/images/vdu1.img" if form.has_hot else "Files/images/vdu1.img"
            nodes[vdu]["artifacts"] = {"sw_image": {"type": "tosca.artifacts.nfv.SwImage", "file": file}}
        policies += _scaling(vdu)
    aspects = {
        f"{vdu}_scale": {"name": vdu, "description": vdu, "max_scale_level": 2, "step_deltas": ["delta_1"]}
        for vdu in VDUS
    }
    levels = {"one": {"description": "one each", "scale_info": {name: {"scale_level": 0} for name in aspects}}}
    policies += [
        _policy("scaling_aspects", "ScalingAspects", {"aspects": aspects}),
        _policy("levels", "InstantiationLevels", {"levels": levels, "default_level": "one"}),
    ]
    if not form.has_hot:
        policies.append(_policy("apart", "AntiAffinityRule", {"scope": "nfvi_node"}, "spread"))
    spread = {"type": "tosca.groups.nfv.PlacementGroup", "properties": {"description": "d"}, "members": ["VDU1"]}
    return {
        "tosca_definitions_version": "tosca_simple_yaml_1_2",
        "imports": ["etsi_nfv_sol001_common_types.yaml", "etsi_nfv_sol001_vnfd_types.yaml"],
        "topology_template": {
            "substitution_mappings": {"node_type": "tosca.nodes.nfv.VNF", "properties": {"flavour_id": "simple"}},
            "node_templates": nodes,
            "groups": {"spread": spread},
            "policies": policies,
        },
    }


def _scripted(scripts: Mapping[str, str], to_root: str) -> dict[str, Any]:
    """Return the VNF node's interface and the artifacts that it names; ``to_root``: the way there from the VNFD."""
    artifacts = {
        file: {"description": "a script", "type": "tosca.artifacts.Implementation.Python", "file": f"{to_root}{file}"}
        for file in scripts.values()
    }
    phases = {phase: {"implementation": file} for phase, file in scripts.items()}
    return {"interfaces": {"Vnflcm": phases}, "artifacts": artifacts} if scripts else {}


def _vdu(vdu: str, version: str, flavor: str) -> dict[str, Any]:
    capability = {"requested_additional_capability_name": flavor, "support_mandatory": True}
    capability["target_performance_parameters"] = {"entry_schema": "none"}
    compute = {
        "requested_additional_capabilities": {"properties": capability},
        "virtual_memory": {"virtual_mem_size": "512 MiB"},
        "virtual_cpu": {"num_virtual_cpu": 1},
    }
    image = {
        "name": "ubuntu" if vdu == "VDU2" else "vdu1",
        "version": version,
        "container_format": "bare",
        "disk_format": "raw",
        "min_disk": "1 GB",
        "size": "1 MB",
    }
    node: dict[str, Any] = {
        "type": "tosca.nodes.nfv.Vdu.Compute",
        "properties": {
            "name": vdu,
            "description": vdu,
            "vdu_profile": {"min_number_of_instances": 1, "max_number_of_instances": 3},
            "sw_image_data": image,
        },
        "capabilities": {"virtual_compute": {"properties": compute}},
    }
    cp = {
        "type": "tosca.nodes.nfv.VduCp",
        "properties": {"layer_protocols": ["ipv4"], "order": 0},
        "requirements": [{"virtual_binding": vdu}],
    }
    return {vdu: node, f"{vdu}_CP1": cp}


def _scaling(vdu: str) -> list[dict[str, Any]]:
    one = {"number_of_instances": 1}
    return [
        _policy(f"{vdu}_initial", "VduInitialDelta", {"initial_delta": one}, vdu),
        _policy(f"{vdu}_deltas", "VduScalingAspectDeltas", {"aspect": f"{vdu}_scale", "deltas": {"delta_1": one}}, vdu),
        _policy(f"{vdu}_levels", "VduInstantiationLevels", {"levels": {"one": one}}, vdu),
    ]


def _policy(name: str, kind: str, properties: dict[str, Any], *targets: str) -> dict[str, Any]:
    body = {"type": f"tosca.policies.nfv.{kind}", "properties": properties}
    return {name: {**body, **({"targets": list(targets)} if targets else {})}}


def _top(form: Form) -> dict[str, Any]:
    resources: dict[str, Any] = {}
    flavor, image = form.names
    for vdu in VDUS:
        properties: dict[str, Any] = {
            "flavor": {"get_param": ["nfv", "VDU", vdu, flavor]},
            f"image-{vdu}": {"get_param": ["nfv", "VDU", vdu, image]},
            "net1": {"get_param": ["nfv", "CP", f"{vdu}_CP1", "network"]},
        }
        member = {"type": f"{vdu}.yaml", "properties": properties}
        if form.has_policies:
            properties["zone"] = {"get_param": ["nfv", "vdu", vdu, "zone"]}
            resources |= _with_policies(vdu, member)
            continue
        if not form.has_groups:
            resources[vdu] = member
            continue
        size = {"get_param": ["nfv", "VDU", vdu, "desired_capacity"]}
        resources[f"{vdu}_group"] = {
            "type": "OS::Heat::AutoScalingGroup",
            "properties": {"min_size": 1, "max_size": 3, "desired_capacity": size, "resource": member},
        }
    return {
        "heat_template_version": "2018-08-31",
        "parameters": {"nfv": {"type": "json"}},
        "resources": resources,
    }


def _with_policies(vdu: str, member: dict[str, Any]) -> dict[str, Any]:
    """Return a group with the policies that Tacker's v1 signals."""
    group = f"{vdu}_scale"
    size = {"get_param": ["nfv", "desired_capacity", group]}
    resources: dict[str, Any] = {
        group: {
            "type": "OS::Heat::AutoScalingGroup",
            "properties": {"min_size": 1, "max_size": 3, "desired_capacity": size, "resource": member},
        }
    }
    for direction, step in (("out", 1), ("in", -1)):
        resources[f"{group}_scale_{direction}"] = {
            "type": "OS::Heat::ScalingPolicy",
            "properties": {
                "auto_scaling_group_id": {"get_resource": group},
                "adjustment_type": "change_in_capacity",
                "scaling_adjustment": step,
            },
        }
    return resources


def _nested(vdu: str) -> str:
    return dedent(f"""\
        heat_template_version: 2018-08-31
        parameters:
          flavor: {{type: string}}
          image-{vdu}: {{type: string}}
          net1: {{type: string}}
          zone: {{type: string, default: ''}}
        resources:
          {vdu}:
            type: OS::Nova::Server
            properties:
              flavor: {{get_param: flavor}}
              image: {{get_param: image-{vdu}}}
              availability_zone: {{get_param: zone}}
              networks: [{{port: {{get_resource: {vdu}_CP1}}}}]
          {vdu}_CP1:
            type: OS::Neutron::Port
            properties: {{network: {{get_param: net1}}}}
        """)
