"""Definitions between two others: which parts change, what comes with them, and what they cannot be separated from."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_csar.documents import parse_heat_yaml
from kubevnfm_infra_openstack.domain.rolling import (
    ReadDefinition,
    lacks_shared,
    put_back,
    separable,
    with_earlier,
    with_parts,
)
from kubevnfm_infra_openstack.domain.stack import StackDefinition, attempt_tag

MACHINE = "heat_template_version: 2018-08-31\nresources: {}\n"


def read(
    resources: dict[str, Any], files: dict[str, str] | None = None, parameters: dict[str, Any] | None = None, **nfv: Any
) -> ReadDefinition:
    """Return a stack whose parameter ``nfv`` has these entries below ``VDU``."""
    template = {"parameters": {"nfv": {"type": "json"}}, "resources": resources}
    definition = StackDefinition(template, {**(parameters or {}), "nfv": {"VDU": nfv}}, files or {})
    return ReadDefinition(definition, {name: parse_heat_yaml(text, name=name) for name, text in (files or {}).items()})


def clone(name: str, file: str = "vdu.yaml") -> dict[str, Any]:
    return {"type": file, "properties": {"flavor": {"get_param": ["nfv", "VDU", name, "computeFlavourId"]}}}


def server(*ports: str, flavor: object = "small") -> dict[str, Any]:
    networks = [{"port": {"get_resource": port}} for port in ports]
    return {"type": "OS::Nova::Server", "properties": {"flavor": flavor, "networks": networks}}


def port(network: str, label: str = "old") -> dict[str, Any]:
    return {"type": "OS::Neutron::Port", "properties": {"network": {"get_resource": network}, "name": label}}


def clones(flavor: str, *, text: str = MACHINE) -> ReadDefinition:
    resources = {f"VDU1-{number}": clone(f"VDU1-{number}") for number in range(3)}
    return read(resources, {"vdu.yaml": text}, None, **{name: {"computeFlavourId": flavor} for name in resources})


def flavors(definition: StackDefinition) -> dict[str, str]:
    return {name: entry["computeFlavourId"] for name, entry in definition.parameters["nfv"]["VDU"].items()}


def test_a_machine_with_parameters_of_its_own_keeps_their_earlier_values() -> None:
    old, new = clones("small"), clones("large")
    assert separable(new, old, ["VDU1-1", "VDU1-2"]) == {"VDU1-1", "VDU1-2"}
    between = with_earlier(new, old, ["VDU1-1", "VDU1-2"])
    assert flavors(between) == {"VDU1-0": "large", "VDU1-1": "small", "VDU1-2": "small"}
    assert between.template == new.definition.template, "nothing of the way there is left in the template"
    assert flavors(new.definition) == {f"VDU1-{number}": "large" for number in range(3)}, "the input stays as it was"


def test_a_file_in_another_form_with_the_same_content_is_no_difference() -> None:
    old = clones("small", text=MACHINE)
    new = clones("large", text="resources: {}\nheat_template_version: 2018-08-31\n")
    assert separable(new, old, ["VDU1-2"]) == {"VDU1-2"}


def test_machines_of_one_changed_file_change_together_and_go_back_together() -> None:
    old = clones("small")
    new = clones("large", text=f"{MACHINE}description: changed\n")
    assert separable(new, old, ["VDU1-1", "VDU1-2"]) == frozenset()
    assert put_back(new, old, ["VDU1-2"]) == {"VDU1-0", "VDU1-1", "VDU1-2"}
    assert with_earlier(new, old, put_back(new, old, ["VDU1-2"])) == old.definition


def test_a_file_of_one_part_keeps_its_earlier_content_and_what_it_names() -> None:
    def both(text: str) -> ReadDefinition:
        outer = "resources: {inner: {type: inner.yaml}}"
        files = {"a.yaml": MACHINE, "b.yaml": outer, "inner.yaml": text}
        return read({"A": clone("A", "a.yaml"), "B": clone("B", "b.yaml")}, files)

    old, new = both("description: old"), both("description: new")
    assert separable(new, old, ["B"]) == {"B"}
    assert with_earlier(new, old, ["B"]).files["inner.yaml"] == "description: old"
    assert with_earlier(new, old, ["A"]).files["inner.yaml"] == "description: new"


@pytest.mark.parametrize("path", ["nfv", ["nfv", "VDU"], ["nfv", "VDU", "VDU1", "computeFlavourId"]])
def test_parts_that_read_the_same_value_change_together(path: object) -> None:
    resources = {name: server(flavor={"get_param": path}) for name in ("one", "two")}
    old, new = (read(resources, VDU1={"computeFlavourId": flavor}) for flavor in ("small", "large"))
    assert separable(new, old, ["two"]) == frozenset()
    assert put_back(new, old, ["two"]) == {"one", "two"}
    same = read(resources, VDU1={"computeFlavourId": "small"}, other={})
    assert separable(same, old, ["two"]) == (
        {"two"} if path == ["nfv", "VDU", "VDU1", "computeFlavourId"] else frozenset()
    )


def test_a_machine_keeps_its_port_and_the_address_of_it_but_not_the_network() -> None:
    def stack(label: str) -> ReadDefinition:
        resources: dict[str, Any] = {"net": {"type": "OS::Neutron::Net", "properties": {"name": label}}}
        for name in ("one", "two"):
            resources[name] = server(f"{name}_port", flavor=label)
            resources[f"{name}_port"] = port("net", label)
            address = {"port_id": {"get_resource": f"{name}_port"}, "description": label}
            resources[f"{name}_ip"] = {"type": "OS::Neutron::FloatingIP", "properties": address}
        return read(resources)

    old, new = stack("old"), stack("new")
    between = with_earlier(new, old, ["two"]).template["resources"]
    earlier = {"two", "two_port", "two_ip"}
    assert {name for name, one in between.items() if one == old.resources[name]} == earlier
    assert {name for name, one in between.items() if one == new.resources[name]} == old.resources.keys() - earlier


def test_what_only_the_earlier_form_has_stays_as_long_as_a_machine_needs_it() -> None:
    image = {"get_param": "image"}
    resources = {"old_net": {"type": "OS::Neutron::Net"}, "p": port("old_net"), "q": port("old_net")}
    old = read(resources | {"one": server("p", flavor=image), "two": server("q", flavor=image)}, None, {"image": "i-1"})
    old.definition.template["parameters"]["image"] = {"type": "string"}
    new = read({"new_net": {"type": "OS::Neutron::Net"}, "r": port("new_net"), "one": server("r"), "two": server("r")})
    between = with_earlier(new, old, separable(new, old, ["two"]))
    assert between.template["resources"].keys() == {"old_net", "q", "two", "new_net", "r", "one"}
    assert between.template["parameters"].keys() == {"nfv", "image"}
    assert between.parameters["image"] == "i-1"


def subnet(network: str, cidr: object = "10.1.0.0/24") -> dict[str, Any]:
    return {"type": "OS::Neutron::Subnet", "properties": {"network": {"get_resource": network}, "cidr": cidr}}


def on_net(name: str, *servers: str, cidr: object = "10.1.0.0/24") -> dict[str, Any]:
    """Return servers with a port each on a network, whose subnet no port refers to."""
    parts: dict[str, Any] = {name: {"type": "OS::Neutron::Net"}, f"{name}_subnet": subnet(name, cidr)}
    for one in servers:
        parts |= {f"{one}_port": port(name), one: server(f"{one}_port")}
    return parts


def test_nothing_that_is_gone_leaves_before_the_last_change_and_the_way_back_is_the_same() -> None:
    """A subnet has the addresses of ports that do not refer to it."""
    old = read(on_net("net", "one", "two", "gone"))
    new = read(on_net("other", "one", "two", "more"))
    between = with_earlier(new, old, ["two"])
    resources = between.template["resources"]
    assert resources.keys() == old.resources.keys() | new.resources.keys()
    earlier = {"net", "net_subnet", "gone", "gone_port", "two_port"}
    assert {name for name, one in resources.items() if one != new.resources.get(name)} == earlier
    back = with_earlier(new, old, put_back(new, old, ["two"]))
    assert back == between
    assert lacks_shared(new, old)
    assert lacks_shared(new, read(on_net("other", "one", "two", "gone"))) is False, "a machine takes its port with it"


def test_what_is_gone_leaves_with_the_machines_that_share_its_value() -> None:
    """One value cannot be that of the earlier network and that of the new one."""
    cidr = {"get_param": ["nfv", "VDU", "net", "cidr"]}
    old = read(on_net("net", "one", "two", cidr=cidr), net={"cidr": "10.1.0.0/24"})
    new = read(on_net("other", "one", "two", cidr=cidr), net={"cidr": "10.2.0.0/24"})
    assert separable(new, old, ["two"]) == frozenset()
    assert with_earlier(new, old, ()) == new.definition
    same = read(on_net("other", "one", "two", cidr=cidr), net={"cidr": "10.1.0.0/24"})
    assert separable(same, old, ["two"]) == {"two"}


def test_only_the_named_parts_follow_another_package_with_the_networks_that_they_need() -> None:
    present = read(on_net("net", "one", "two"))
    other = read(on_net("other", "one", "two", "more"))
    followed = with_parts(present, other, ["two"]).template["resources"]
    assert followed.keys() == present.resources.keys() | {"other", "other_subnet"}
    assert {name for name, one in followed.items() if one != present.resources.get(name)} == {
        "two_port",
        "other",
        "other_subnet",
    }
    added = with_parts(present, other, ["more"]).template["resources"]
    assert added.keys() == present.resources.keys() | {"other", "other_subnet", "more", "more_port"}
    resources = {name: server(flavor={"get_param": ["nfv", "VDU", "VDU1", "flavor"]}) for name in ("one", "two")}
    small, large = (read(resources, VDU1={"flavor": flavor}) for flavor in ("small", "large"))
    assert with_parts(small, large, ["two"]) == small.definition, "its value is that of a machine that is not named"
    assert with_parts(small, large, ["one", "two"]) == large.definition


def test_a_value_that_only_the_new_form_has_is_taken_back() -> None:
    resources = {"one": clone("one"), "two": clone("two")}
    new = read(resources, {"vdu.yaml": MACHINE}, None, one={"computeFlavourId": "b"}, two={"computeFlavourId": "b"})
    old = read(resources, {"vdu.yaml": MACHINE}, None, one={"computeFlavourId": "a"})
    assert with_earlier(new, old, ["two"]).parameters["nfv"]["VDU"] == {"one": {"computeFlavourId": "b"}}


def test_steps_with_long_names_have_tags_of_their_own() -> None:
    names = [f"change/{'a-long-name-of-a-machine' * 2}-{number}" for number in range(2)]
    tags = {attempt_tag("3f2504e0-4f89-11d3-9a0c-0305e82c3301", name, 12) for name in names}
    assert len(tags) == 2
    assert all(len(tag) <= 80 for tag in tags)
    assert attempt_tag("op", "x" * 32, 1) == f"op/{'x' * 32}/1", "a stack that an earlier version changed is recognised"
