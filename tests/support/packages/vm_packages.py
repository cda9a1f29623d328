"""Variants of the sample package `vm`: another descriptor, a second flavour, another image."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any, Final

import yaml
from kubevnfm_csar.pack import pack

from packages.made_once import made_once

SAMPLE: Final = Path(__file__).parents[3] / "deploy/samples/vm"
TWO_FLAVOURS: Final = "2b38d01b-7d90-4f54-84e2-3f5b73c20ab4"
TWO_MACHINES: Final = "4d5af23d-9fb2-4176-a604-517d95e26cd6"
OTHER_IMAGE: Final = "3c49e12c-8ea1-4065-95f3-406c84d31bc5"
TWO_POINTS: Final = "7c8fd45e-2b0f-4a39-9c57-840a7f1e3d92"
ON_LINK: Final = {number: f"8d90e56f-3c1a-4b4a-ad68-951b8a2f4e0{number}" for number in (1, 2, 3)}
WITH_VOLUME: Final = "1c4f2f0c-5a4b-4d3a-8d5b-6f3b2d9c7a11"
MISSING_IMAGE: Final = "5e6b034e-0ac3-4287-b715-628ea6f37de7"
BOOT_VOLUME: Final = {
    "hot": "8d90e56f-3c1a-4b4a-8d68-951b80a4e201",
    "hot-changed": "8d90e56f-3c1a-4b4a-8d68-951b80a4e202",
    "tosca": "8d90e56f-3c1a-4b4a-8d68-951b80a4e203",
    "tosca-changed": "8d90e56f-3c1a-4b4a-8d68-951b80a4e204",
}
_VNFD: Final = "Definitions/vm.vnfd.yaml"
_DECLARED: Final = {
    "modifiable_attributes": {"extensions": {"site": "here"}},
    "configurable_properties": {"is_autoscale_enabled": False},
}
"""Attributes that requests can set."""


@made_once
def two_flavours(folder: Path) -> bytes:
    """Return a package with the flavours ``simple`` and ``large``, which has a larger Nova flavor and two machines."""
    root = folder / "two-flavours"
    shutil.copytree(SAMPLE, root, ignore=shutil.ignore_patterns("requests"))
    whole = yaml.safe_load((root / _VNFD).read_text(encoding="utf-8"))
    node = whole["topology_template"]["node_templates"]["VNF"]
    for name in ("simple", "large"):
        one = copy.deepcopy(whole)
        topology = one["topology_template"]
        topology["substitution_mappings"]["properties"]["flavour_id"] = name
        topology["node_templates"]["VNF"]["properties"] = {"flavour_id": name, "flavour_description": name}
        if name == "large":
            _enlarge(topology)
        (root / f"Definitions/df_{name}.yaml").write_text(yaml.safe_dump(one), encoding="utf-8")
    shutil.copytree(root / "BaseHOT/simple", root / "BaseHOT/large")
    node["properties"].update(_DECLARED, descriptor_id=TWO_FLAVOURS, flavour_id={"get_input": "selected_flavour"})
    top = {
        **{name: whole[name] for name in ("tosca_definitions_version", "description")},
        "imports": [*whole["imports"], "df_simple.yaml", "df_large.yaml"],
        "topology_template": {
            "inputs": {"selected_flavour": {"type": "string", "default": "simple"}},
            "node_templates": {"VNF": node},
        },
    }
    (root / _VNFD).write_text(yaml.safe_dump(top), encoding="utf-8")
    return _packed(root)


def _enlarge(topology: dict[str, Any]) -> None:
    compute = topology["node_templates"]["VDU1"]["capabilities"]["virtual_compute"]["properties"]
    asked = compute["requested_additional_capabilities"]["properties"]
    asked["requested_additional_capability_name"] = "m1.small"
    for policy in topology["policies"]:
        for body in policy.values():
            levels = body["properties"].get("levels", {})
            if "default_level" in body["properties"]:
                body["properties"]["default_level"] = "three"
            if "number_of_instances" in levels.get("three", {}):
                levels["three"]["number_of_instances"] = 2


@made_once
def other_image(folder: Path) -> bytes:
    """Return the sample with another descriptor and another image: what S3 lets a modification change to."""
    return _with_image(folder / "other-image", OTHER_IMAGE, "dummy")


@made_once
def missing_image(folder: Path) -> bytes:
    """Return the sample with another descriptor and an image that no cloud has."""
    return _with_image(folder / "missing-image", MISSING_IMAGE, "no-such-image")


def _with_image(root: Path, vnfd_id: str, image: str) -> bytes:
    shutil.copytree(SAMPLE, root, ignore=shutil.ignore_patterns("requests"))
    vnfd = yaml.safe_load((root / _VNFD).read_text(encoding="utf-8"))
    nodes = vnfd["topology_template"]["node_templates"]
    nodes["VNF"]["properties"].update(_DECLARED, descriptor_id=vnfd_id, software_version="2.0")
    nodes["VDU1"]["properties"]["sw_image_data"]["name"] = image
    (root / _VNFD).write_text(yaml.safe_dump(vnfd), encoding="utf-8")
    return _packed(root)


@made_once
def without_base_hot(folder: Path) -> bytes:
    """Return the sample without Base HOT: its VNFD decides, and its ports can be all that a request says."""
    root = folder / "without-base-hot"
    shutil.copytree(SAMPLE, root, ignore=shutil.ignore_patterns("requests", "BaseHOT"))
    return _packed(root)


@made_once
def with_volume(folder: Path) -> bytes:
    """Return a package without Base HOT, whose machines have a volume beside their disk."""
    root = folder / "with-volume"
    shutil.copytree(SAMPLE, root, ignore=shutil.ignore_patterns("requests", "BaseHOT"))
    vnfd = yaml.safe_load((root / _VNFD).read_text(encoding="utf-8"))
    nodes = vnfd["topology_template"]["node_templates"]
    nodes["VNF"]["properties"]["descriptor_id"] = WITH_VOLUME
    nodes["data"] = {
        "type": "tosca.nodes.nfv.Vdu.VirtualBlockStorage",
        "properties": {"virtual_block_storage_data": {"size_of_storage": "1 GB", "rdma_enabled": False}},
    }
    nodes["VDU1"].setdefault("requirements", []).append({"virtual_storage": "data"})
    (root / _VNFD).write_text(yaml.safe_dump(vnfd, sort_keys=False), encoding="utf-8")
    return _packed(root)


@made_once
def two_points(folder: Path) -> bytes:
    """Return a package without Base HOT: a VDU of up to three machines with two external points and an internal one."""
    root = folder / "two-points"
    shutil.copytree(SAMPLE, root, ignore=shutil.ignore_patterns("requests", "BaseHOT"))
    vnfd = yaml.safe_load((root / _VNFD).read_text(encoding="utf-8"))
    topology = vnfd["topology_template"]
    nodes = topology["node_templates"]
    nodes["VNF"]["properties"].update(_DECLARED, descriptor_id=TWO_POINTS)
    for order, name in enumerate(("VDU1_CP2", "VDU1_CP3"), start=1):
        nodes[name] = copy.deepcopy(nodes["VDU1_CP1"])
        nodes[name]["properties"]["order"] = order
    topology["substitution_mappings"]["requirements"]["link_VDU1_CP2"] = ["VDU1_CP2", "virtual_link"]
    nodes["VDU1_CP3"]["requirements"] = [{"virtual_binding": "VDU1"}, {"virtual_link": "internalVL"}]
    nodes["internalVL"] = {
        "type": "tosca.nodes.nfv.VnfVirtualLink",
        "properties": {
            "connectivity_type": {"layer_protocols": ["ipv4"]},
            "description": "between the machines",
            "vl_profile": {
                "max_bitrate_requirements": {"root": 1048576},
                "min_bitrate_requirements": {"root": 1048576},
                "virtual_link_protocol_data": [
                    {
                        "associated_layer_protocol": "ipv4",
                        "l3_protocol_data": {"ip_version": "ipv4", "cidr": "10.79.0.0/24"},
                    }
                ],
            },
        },
    }
    (root / _VNFD).write_text(yaml.safe_dump(vnfd), encoding="utf-8")
    return _packed(root)


@made_once
def on_link(folder: Path, number: int) -> bytes:
    """Return version 1, 2 or 3 of a package whose machines are on an internal network that each version names otherwise.

    VDU1 is a group whose nested template is another file in each version; VDU2 is a machine of the top template with a file;
    version 1 lacks VDU3, which is like VDU2. A port refers to the network and not to its subnet, as in most templates.
    In version 3 VDU2 has an address that its network does not have.
    """
    root = folder / f"on-link-{number}"
    shutil.copytree(SAMPLE, root, ignore=shutil.ignore_patterns("requests", "nested"))
    vnfd = yaml.safe_load((root / _VNFD).read_text(encoding="utf-8"))
    topology = vnfd["topology_template"]
    nodes = topology["node_templates"]
    nodes["VNF"]["properties"].update(descriptor_id=ON_LINK[number], software_version=f"{number}.0")
    link, single = f"internalVL{number}", ("VDU2", "VDU3")[:number]
    for vdu_id in single:
        nodes[vdu_id] = copy.deepcopy(nodes["VDU1"])
        nodes[vdu_id]["properties"].update(
            name=vdu_id, vdu_profile={"min_number_of_instances": 1, "max_number_of_instances": 1}
        )
        nodes[f"{vdu_id}_CP1"] = copy.deepcopy(nodes["VDU1_CP1"])
        nodes[f"{vdu_id}_CP1"]["requirements"] = [{"virtual_binding": vdu_id}]
        topology["substitution_mappings"]["requirements"][f"link_{vdu_id}"] = [f"{vdu_id}_CP1", "virtual_link"]
    for vdu_id in ("VDU1", *single):
        nodes[f"{vdu_id}_CP2"] = copy.deepcopy(nodes["VDU1_CP1"])
        nodes[f"{vdu_id}_CP2"]["properties"]["order"] = 1
        nodes[f"{vdu_id}_CP2"]["requirements"] = [{"virtual_binding": vdu_id}, {"virtual_link": link}]
    nodes[link] = {
        "type": "tosca.nodes.nfv.VnfVirtualLink",
        "properties": {"connectivity_type": {"layer_protocols": ["ipv4"]}, "vl_profile": {}},
    }
    for policy in topology["policies"]:
        if "VDU1_initial_delta" in policy:
            policy["VDU1_initial_delta"]["targets"] = ["VDU1", *single]
    (root / _VNFD).write_text(yaml.safe_dump(vnfd), encoding="utf-8")
    hots = root / "BaseHOT/simple"
    subnet = {"network": {"get_resource": link}, "cidr": f"10.8{number}.0.0/24"}
    resources: dict[str, dict[str, Any]] = {
        link: {"type": "OS::Neutron::Net"},
        f"{link}_subnet": {"type": "OS::Neutron::Subnet", "properties": subnet},
        "VDU1_group": {
            "type": "OS::Heat::AutoScalingGroup",
            "properties": {
                "min_size": 1,
                "max_size": 3,
                "desired_capacity": {"get_param": ["nfv", "VDU", "VDU1", "desired_capacity"]},
                "resource": {
                    "type": f"machine{number}.yaml",
                    "properties": {**_given("VDU1"), "inner": {"get_resource": link}},
                },
            },
        },
    }
    for vdu_id in single:
        given = _given(vdu_id)
        resources |= _machine(vdu_id, given.pop("network"), {"get_resource": link}, given)
        if number == 3 and vdu_id == "VDU2":
            resources["VDU2_CP2"]["properties"]["fixed_ips"] = [{"ip_address": "192.0.2.9"}]
        resources[vdu_id]["properties"]["user_data"] = {"get_file": f"boot{number}.sh"}
    parameters = {name: {"get_param": name} for name in ("flavor", "image")}
    nested = _machine("VDU1", {"get_param": "network"}, {"get_param": "inner"}, parameters)
    declared = {name: {"type": "string"} for name in ("flavor", "image", "network", "inner")}
    hots.joinpath("vm_hot.yaml").write_text(_hot({"nfv": {"type": "json"}}, resources), encoding="utf-8")
    hots.joinpath("nested").mkdir()
    hots.joinpath(f"nested/machine{number}.yaml").write_text(_hot(declared, nested), encoding="utf-8")
    hots.joinpath(f"boot{number}.sh").write_text(f"#!/bin/sh\necho version {number}\n", encoding="utf-8")
    return _packed(root)


def on_link_request(number: int) -> dict[str, Any]:
    """Return the extVirtualLinks for all external connection points of a version of `on_link`."""
    config = {"a": {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]}}
    points = [{"cpdId": f"{vdu_id}_CP1", "cpConfig": config} for vdu_id in ("VDU1", "VDU2", "VDU3")[: number + 1]]
    return {"extVirtualLinks": [{"id": "external", "resourceId": "net0", "extCps": points}]}


def _given(vdu_id: str) -> dict[str, Any]:
    return {
        "flavor": {"get_param": ["nfv", "VDU", vdu_id, "computeFlavourId"]},
        "image": {"get_param": ["nfv", "VDU", vdu_id, "vcImageId"]},
        "network": {"get_param": ["nfv", "CP", f"{vdu_id}_CP1", "network"]},
    }


def _machine(vdu_id: str, outer: object, inner: object, properties: dict[str, Any]) -> dict[str, Any]:
    networks = {f"{vdu_id}_CP1": outer, f"{vdu_id}_CP2": inner}
    ports = {name: {"type": "OS::Neutron::Port", "properties": {"network": net}} for name, net in networks.items()}
    nics = [{"port": {"get_resource": name}} for name in networks]
    return {**ports, vdu_id: {"type": "OS::Nova::Server", "properties": {**properties, "networks": nics}}}


def _hot(parameters: dict[str, Any], resources: dict[str, Any]) -> str:
    return yaml.safe_dump({"heat_template_version": "2018-08-31", "parameters": parameters, "resources": resources})


@made_once
def two_machines(folder: Path, link_port: str) -> bytes:
    """Return a package with two VDUs in one stack, which get their ports in three ways, and a router with a port.

    Its template reads the zones. The port of VDU1_CP1 is in the template, that of VDU1_CP2 is ``link_port``, and Nova makes that of VDU2_CP1.
    """
    root = folder / "two-machines"
    shutil.copytree(SAMPLE, root, ignore=shutil.ignore_patterns("requests", "nested"))
    vnfd = yaml.safe_load((root / _VNFD).read_text(encoding="utf-8"))
    topology = vnfd["topology_template"]
    nodes = topology["node_templates"]
    nodes["VNF"]["properties"]["descriptor_id"] = TWO_MACHINES
    nodes["VDU1"]["properties"]["vdu_profile"]["max_number_of_instances"] = 1
    nodes["VDU2"] = copy.deepcopy(nodes["VDU1"])
    nodes["VDU2"]["properties"]["name"] = "VDU2"
    for name, vdu_id in (("VDU1_CP2", "VDU1"), ("VDU2_CP1", "VDU2")):
        nodes[name] = copy.deepcopy(nodes["VDU1_CP1"])
        nodes[name]["requirements"] = [{"virtual_binding": vdu_id}]
        topology["substitution_mappings"]["requirements"][f"link_{name}"] = [name, "virtual_link"]
    nodes["VDU1_CP2"]["properties"]["order"] = 1
    (delta,) = [policy for policy in topology["policies"] if "VDU1_initial_delta" in policy]
    delta["VDU1_initial_delta"]["targets"] = ["VDU1", "VDU2"]
    topology["policies"] = [delta]
    (root / _VNFD).write_text(yaml.safe_dump(vnfd), encoding="utf-8")
    networks = {
        "VDU1": [{"port": {"get_resource": "VDU1_CP1"}}, {"port": link_port}],
        "VDU2": [{"network": {"get_param": ["nfv", "CP", "VDU2_CP1", "network"]}}],
    }
    resources: dict[str, dict[str, Any]] = {
        "VDU1_CP1": {
            "type": "OS::Neutron::Port",
            "properties": {"network": {"get_param": ["nfv", "CP", "VDU1_CP1", "network"]}},
        },
        "internal": {"type": "OS::Neutron::Net"},
        "internal_subnet": {
            "type": "OS::Neutron::Subnet",
            "properties": {"network": {"get_resource": "internal"}, "cidr": "10.99.0.0/24"},
        },
        "router": {"type": "OS::Neutron::Router"},
        "router_port": {
            "type": "OS::Neutron::Port",
            "depends_on": "internal_subnet",
            "properties": {"network": {"get_resource": "internal"}},
        },
        "router_interface": {
            "type": "OS::Neutron::RouterInterface",
            "properties": {"router": {"get_resource": "router"}, "port": {"get_resource": "router_port"}},
        },
    }
    for vdu_id, nics in networks.items():
        given = {"flavor": "computeFlavourId", "image": "vcImageId"}
        properties = {name: {"get_param": ["nfv", "VDU", vdu_id, key]} for name, key in given.items()}
        zone = {"availability_zone": {"get_param": ["nfv", "VDU", vdu_id, "locationConstraints"]}}
        resources[vdu_id] = {"type": "OS::Nova::Server", "properties": {**properties, **zone, "networks": nics}}
    template = {
        "heat_template_version": "2018-08-31",
        "parameters": {"nfv": {"type": "json"}},
        "resources": resources,
    }
    (root / "BaseHOT/simple/vm_hot.yaml").write_text(yaml.safe_dump(template), encoding="utf-8")
    return _packed(root)


@made_once
def boot_volume(folder: Path, form: str, change: str = "") -> bytes:
    """Return the sample with machines that boot from a volume; ``form``: ``hot``, or ``tosca`` without a Base HOT.

    ``change``: the package to change it to. That of ``hot`` has other user data and the same volumes, that of ``tosca``
    another image in its volumes.
    """
    root = folder / f"boot-{form}{change}"
    left_out = ["requests", *(["BaseHOT"] if form == "tosca" else [])]
    shutil.copytree(SAMPLE, root, ignore=shutil.ignore_patterns(*left_out))
    vnfd = yaml.safe_load((root / _VNFD).read_text(encoding="utf-8"))
    nodes = vnfd["topology_template"]["node_templates"]
    nodes["VNF"]["properties"].update(descriptor_id=BOOT_VOLUME[form + change], software_version=f"1.0{change}")
    image = nodes["VDU1"]["properties"].pop("sw_image_data")
    nodes["VDU1"]["requirements"] = [{"virtual_storage": "VDU1-root"}]
    nodes["VDU1-root"] = {
        "type": "tosca.nodes.nfv.Vdu.VirtualBlockStorage",
        "properties": {
            "virtual_block_storage_data": {"size_of_storage": "1 GB", "rdma_enabled": False},
            "sw_image_data": {**image, "name": "dummy" if form + change == "tosca-changed" else image["name"]},
        },
    }
    (root / _VNFD).write_text(yaml.safe_dump(vnfd), encoding="utf-8")
    if form == "hot":
        top, nested = (root / "BaseHOT/simple/vm_hot.yaml", root / "BaseHOT/simple/nested/VDU1.yaml")
        text = top.read_text(encoding="utf-8").replace("VDU, VDU1, vcImageId", "VDU, VDU1-root, vcImageId")
        top.write_text(text, encoding="utf-8")
        member = yaml.safe_load(nested.read_text(encoding="utf-8"))
        server = member["resources"]["VDU1"]["properties"]
        volume = {"size": 1, "image": server.pop("image")}
        member["resources"]["VDU1-root"] = {"type": "OS::Cinder::Volume", "properties": volume}
        server["block_device_mapping_v2"] = [{"volume_id": {"get_resource": "VDU1-root"}, "boot_index": 0}]
        server |= {"user_data_format": "RAW", "user_data": f"# {form}{change}"}
        nested.write_text(yaml.safe_dump(member), encoding="utf-8")
    return _packed(root)


def _packed(root: Path) -> bytes:
    archive = root.with_suffix(".zip")
    pack(root, archive)
    return archive.read_bytes()
