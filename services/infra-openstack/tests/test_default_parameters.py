"""The built-in user data."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_csar.files import FolderFiles
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_csar.vnfd.read import read_vnfd
from kubevnfm_infra_openstack.domain.default_parameters import (
    heat_parameters,
    reads_zones,
    with_managed_links,
    with_present,
    with_requested,
)
from kubevnfm_infra_openstack.domain.grant import Granted, zone_among
from kubevnfm_infra_openstack.domain.request import as_v3
from worlds.stack_world import PACKAGE, links


@pytest.fixture(scope="module")
def vnfd() -> Flavour:
    return read_vnfd(FolderFiles(PACKAGE)).flavour("simple")


def a_template(*paths: list[Any], **parameters: Any) -> dict[str, Any]:
    properties = {f"p{n}": {"get_param": path} for n, path in enumerate(paths)}
    return {
        "parameters": {"nfv": {"type": "json"}, **parameters},
        "resources": {"server": {"type": "OS::Nova::Server", "properties": {"deep": [{"in": properties}]}}},
    }


def given(**facts: Any) -> Granted:
    return Granted(**{"request": {"flavourId": "simple", "extVirtualLinks": links()}, **facts})


def test_only_the_paths_that_the_template_reads_are_filled(vnfd: Flavour) -> None:
    template = a_template(["nfv", "VDU", "masterNode", "flavor"], ["nfv", "CP", "masterNode_CP1", "network"])
    assert heat_parameters(template, vnfd, given()) == {
        "nfv": {"VDU": {"masterNode": {"flavor": "m1.small"}}, "CP": {"masterNode_CP1": {"network": "net0"}}}
    }


def test_the_names_of_both_api_versions_are_filled(vnfd: Flavour) -> None:
    names = ["flavor", "computeFlavourId", "image", "vcImageId"]
    template = a_template(*(["nfv", "VDU", "masterNode", name] for name in names))
    (vdu,) = heat_parameters(template, vnfd, given())["nfv"]["VDU"].values()
    assert vdu == {"flavor": "m1.small", "computeFlavourId": "m1.small", "image": "ubuntu", "vcImageId": "ubuntu"}


def test_the_grant_overrides_the_package_and_the_package_overrides_the_vnfd(vnfd: Flavour) -> None:
    grant = {
        "zones": [{"id": "z1", "zoneId": "az-west"}],
        "addResources": [{"resourceDefinitionId": "d1", "zoneId": "z1"}],
        "vimAssets": {
            "computeResourceFlavours": [{"vnfdVirtualComputeDescId": "masterNode", "vimFlavourId": "f-1"}],
            "softwareImages": [{"vnfdSoftwareImageId": "masterNode", "vimSoftwareImageId": "i-1"}],
        },
        "extVirtualLinks": links("granted-net"),
    }
    asked = {"addResources": [{"id": "d1", "type": "COMPUTE", "resourceTemplateId": "masterNode"}]}
    template = a_template(
        *(["nfv", "VDU", "masterNode", name] for name in ("flavor", "image", "locationConstraints")),
        ["nfv", "VDU", "workerNode", "image"],
        ["nfv", "CP", "workerNode_CP1", "network"],
    )
    facts = given(grant=grant, grant_request=asked, image_by_node={"masterNode": "made", "workerNode": "made"})
    assert heat_parameters(template, vnfd, facts)["nfv"] == {
        "VDU": {
            "masterNode": {"flavor": "f-1", "image": "i-1", "locationConstraints": "az-west"},
            "workerNode": {"image": "made"},
        },
        "CP": {"workerNode_CP1": {"network": "granted-net"}},
    }


def test_without_zones_in_the_grant_every_vdu_gets_the_default_zone(vnfd: Flavour) -> None:
    """A grant that has zones decides for all VDUs, also for those that it gives none."""
    template = a_template(["nfv", "VDU", "masterNode", "zone"], ["nfv", "VDU", "workerNode", "locationConstraints"])
    assert reads_zones(template)
    assert not reads_zones(a_template(["nfv", "VDU", "masterNode", "flavor"], ["zone"]))
    for grant, expected in (({}, "nova"), ({"id": "g"}, "nova"), ({"zones": [{"id": "z", "zoneId": "az"}]}, None)):
        found = heat_parameters(template, vnfd, given(grant=grant, default_zone="nova"))["nfv"]["VDU"]
        assert found == {"masterNode": {"zone": expected}, "workerNode": {"locationConstraints": expected}}


@pytest.mark.parametrize(
    ("available", "zone"), [(("az1", "nova"), "nova"), (("az1",), "az1"), (("az1", "az2"), None), ((), None)]
)
def test_the_zone_of_a_cloud_is_tackers_or_the_only_one(available: tuple[str, ...], zone: str | None) -> None:
    assert zone_among(available) == zone


@pytest.mark.parametrize(("level", "count"), [(None, 2), ("small", 2), ("large", 4)])
def test_the_level_decides_capacity_by_vdu_and_by_aspect(vnfd: Flavour, level: str | None, count: int) -> None:
    template = a_template(
        ["nfv", "VDU", "workerNode", "desired_capacity"], ["nfv", "desired_capacity", "worker_instance"]
    )
    facts = given(request={"flavourId": "simple", **({"instantiationLevelId": level} if level else {})})
    assert heat_parameters(template, vnfd, facts)["nfv"] == {
        "VDU": {"workerNode": {"desired_capacity": count}},
        "desired_capacity": {"worker_instance": count},
    }


def test_the_grant_overrides_the_level_in_the_capacity(vnfd: Flavour) -> None:
    asked = [{"id": str(n), "type": "COMPUTE", "resourceTemplateId": "workerNode"} for n in range(3)]
    template = a_template(["nfv", "VDU", "workerNode", "desired_capacity"])
    facts = given(grant_request={"addResources": asked})
    assert heat_parameters(template, vnfd, facts)["nfv"]["VDU"]["workerNode"] == {"desired_capacity": 3}


def test_additional_parameters_are_merged_and_copied_where_declared(vnfd: Flavour) -> None:
    template = a_template(["nfv", "VDU", "masterNode", "flavor"], size={"type": "number"})
    request = {"additionalParams": {"nfv": {"VDU": {"masterNode": {"flavor": "mine"}}}, "size": 3, "other": 4}}
    facts = given(request=request, grant={"additionalParams": {"nfv": {"extra": True}, "size": 5}})
    assert heat_parameters(template, vnfd, facts) == {
        "size": 5,
        "nfv": {"VDU": {"masterNode": {"flavor": "mine"}}, "extra": True},
    }


def test_names_and_sizes_of_groups_are_filled_as_in_tackers_guides(vnfd: Flavour) -> None:
    template = a_template(
        ["nfv", "VDU", "masterNode", "name"],
        ["nfv", "VDU", "masterNode", "computeName"],
        worker_instance_desired_capacity={"type": "number"},
    )
    assert heat_parameters(template, vnfd, given()) == {
        "nfv": {"VDU": {"masterNode": {"name": "masterNode", "computeName": "masterNode"}}},
        "worker_instance_desired_capacity": 2,
    }


def test_what_no_rule_gives_is_kept_from_the_stack() -> None:
    """A class of user data may have given it: a change of package by the built-in rules must not lose it."""
    template: dict[str, Any] = {"parameters": {"nfv": {}, "by_class": {}, "new": {}}}
    present = {"nfv": {"VDU": {"a": {"image": "i", "own": 1}}, "CP": {"c": [1]}}, "by_class": 2, "gone": 3}
    new = {"nfv": {"VDU": {"a": {"image": None, "flavor": "f"}}, "CP": {"c": [2]}}, "new": 4}
    assert with_present(new, template, present) == {
        "nfv": {"VDU": {"a": {"image": "i", "own": 1, "flavor": "f"}}, "CP": {"c": [2]}},
        "by_class": 2,
        "new": 4,
    }


def test_a_class_that_gives_no_zone_or_size_gets_those_that_the_template_reads(vnfd: Flavour) -> None:
    """As Tacker does it for classes of v1, whose arguments have no zone."""
    paths = (["nfv", "VDU", name, "zone"] for name in ("masterNode", "workerNode"))
    template = a_template(*paths, worker_instance_desired_capacity={"default": 1})
    of_class = {"nfv": {"VDU": {"masterNode": {"flavor": "f"}, "workerNode": {"zone": "own"}}, "CP": {}}}
    assert with_requested(of_class, template, vnfd, given(default_zone="nova")) == {
        "nfv": {"VDU": {"masterNode": {"zone": "nova", "flavor": "f"}, "workerNode": {"zone": "own"}}, "CP": {}},
        "worker_instance_desired_capacity": 2,
    }


def _port(*fixed: str) -> dict[str, Any]:
    address: dict[str, Any] = {"type": "IPV4", "subnetId": "s", **({"fixedAddresses": list(fixed)} if fixed else {})}
    return {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": {"ipAddresses": [address]}}]}


def test_a_machine_keeps_its_entry_of_cp_config_when_that_of_another_is_removed(vnfd: Flavour) -> None:
    """Also an entry without values that only one port can have; a member that an entry does not give is null."""
    machines = [
        {"metadata": {"vdu_idx": n}, "vnfcCpInfo": [{"id": f"p{n}", "cpdId": "masterNode_CP1"}]} for n in range(3)
    ]
    shown = [{"associatedVnfcCpId": f"p{n}", "cpdId": "out", "cpConfigId": name} for n, name in enumerate("abc")]
    instance = {"instantiatedVnfInfo": {"vnfcResourceInfo": machines, "extCpInfo": shown}}
    configs = {"b": _port(), "c": _port("10.0.0.3"), "d": _port("10.0.0.4")}
    link = {"id": "l", "resourceId": "n", "extCps": [{"cpdId": "masterNode_CP1", "cpConfig": configs}]}
    template = a_template(
        *(
            ["nfv", "CP", f"masterNode_CP1-{n}", "fixed_ips", 0, member]
            for n in range(3)
            for member in ("subnet", "ip_address")
        )
    )
    nfv = heat_parameters(template, vnfd, given(request={"extVirtualLinks": [link]}, instance=instance))["nfv"]
    assert {name: cp["fixed_ips"] for name, cp in nfv["CP"].items()} == {
        "masterNode_CP1-0": [{"subnet": "s", "ip_address": "10.0.0.4"}],
        "masterNode_CP1-1": [{"subnet": "s", "ip_address": None}],
        "masterNode_CP1-2": [{"subnet": "s", "ip_address": "10.0.0.3"}],
    }


def test_undeclared_parameters_are_left_out(vnfd: Flavour) -> None:
    assert heat_parameters({"resources": {}}, vnfd, given(request={"additionalParams": {"nfv": {}}})) == {}


def test_fixed_addresses_of_a_v1_request_reach_the_port(vnfd: Flavour) -> None:
    address = {"type": "IPV4", "fixedAddresses": ["10.0.0.5"], "subnetId": "s"}
    protocol = {"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": {"ipAddresses": [address]}}
    cp = {"cpdId": "masterNode_CP1", "cpConfig": [{"cpInstanceId": "c", "cpProtocolData": [protocol]}]}
    request = as_v3({"extVirtualLinks": [{"id": "l", "resourceId": "n", "extCps": [cp]}]})
    template = a_template(["nfv", "CP", "masterNode_CP1", "fixed_ips", 0, "ip_address"])
    nfv = heat_parameters(template, vnfd, given(request=request))["nfv"]
    assert nfv["CP"]["masterNode_CP1"] == {"fixed_ips": [{"subnet": "s", "ip_address": "10.0.0.5"}]}


def test_managed_links_replace_the_templates_networks() -> None:
    template = {
        "resources": {
            "internal": {"type": "OS::Neutron::Net"},
            "internal_subnet": {
                "type": "OS::Neutron::Subnet",
                "properties": {"network": {"get_resource": "internal"}},
            },
            "port": {
                "type": "OS::Neutron::Port",
                "depends_on": ["internal_subnet", "router"],
                "properties": {"network": {"get_resource": "internal"}},
            },
        }
    }
    request = {"extManagedVirtualLinks": [{"vnfVirtualLinkDescId": "internal", "resourceId": "net-9"}]}
    changed = with_managed_links(template, given(request=request))
    assert changed is not None
    assert changed["resources"] == {
        "port": {"type": "OS::Neutron::Port", "depends_on": ["router"], "properties": {"network": "net-9"}}
    }
    assert "internal" in template["resources"]
    assert with_managed_links(template, given()) is None


def test_a_parameter_that_a_class_leaves_out_is_taken_from_the_request_where_heat_needs_it(vnfd: Flavour) -> None:
    """Such as the public key of the instance's key pair, which user data need not know."""
    declarations = {"nfv": {"type": "json"}, "ssh_public_key": {"type": "string"}, "size": {"default": 1}, "zone": None}
    facts = given(
        request={"additionalParams": {"ssh_public_key": "ssh-ed25519 A", "size": 2, "other": 3, "nfv": {"a": 1}}},
        grant={"additionalParams": {"zone": "z"}},
    )
    found = with_requested({"nfv": {"b": 2}}, {"parameters": declarations}, vnfd, facts)
    assert found == {"nfv": {"b": 2}, "ssh_public_key": "ssh-ed25519 A", "zone": "z"}
    assert with_requested({"ssh_public_key": "of the class"}, {"parameters": declarations}, vnfd, facts) == {
        "ssh_public_key": "of the class",
        "nfv": {"a": 1},
        "zone": "z",
    }
    assert with_requested({}, {}, vnfd, facts) == {}
