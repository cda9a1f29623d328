"""Heat templates made from a VNFD's topology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given as given_by_chance
from hypothesis import settings
from hypothesis import strategies as st
from kubevnfm_csar.vnfd.model import (
    AffinityRule,
    ComputeDemand,
    Cp,
    Flavour,
    LinkSubnet,
    ScalingAspect,
    SoftwareImage,
    Storage,
    Vdu,
    VirtualLink,
)
from kubevnfm_infra_openstack.domain.asked_ports import NetworkView, SubnetView
from kubevnfm_infra_openstack.domain.grant import Granted
from kubevnfm_infra_openstack.domain.link_subnets import needs_ranges
from kubevnfm_infra_openstack.domain.quota import Flavor
from kubevnfm_infra_openstack.domain.topology import indexes_after, template_of, with_present_vdus
from kubevnfm_kit.errors import Unprocessable

GIB = 1024**3
FLAVORS = {"m1.small": Flavor(1, 2048), "m1.large": Flavor(4, 8192)}
VNFD = Flavour(
    flavour_id="simple",
    file="Definitions/vnfd.yaml",
    vdus={
        "masterNode": Vdu(
            vdu_id="masterNode",
            name="master",
            image=SoftwareImage(image_id="masterNode", name="ubuntu"),
            compute=ComputeDemand(vcpus=2, memory_bytes=4 * GIB),
            storages=("data",),
            min_instances=1,
        ),
    },
    cps={
        "external": Cp(cp_id="external", vdu_id="masterNode", order=1),
        "internal": Cp(cp_id="internal", vdu_id="masterNode", order=0, virtual_link="internalVL"),
    },
    virtual_links={"internalVL": VirtualLink(virtual_link_id="internalVL", cidr="10.10.0.0/24", ip_version="ipv4")},
    storages={"data": Storage(storage_id="data", size_bytes=5 * GIB + 1)},
    initial_deltas={"masterNode": 1},
)


def given(**facts: Any) -> Granted:
    links = [{"id": "l", "resourceId": "net0", "extCps": [{"cpdId": "external", "cpConfig": {}}]}]
    return Granted({"extVirtualLinks": links, **facts})


def resources(given_: Granted, vnfd: Flavour = VNFD) -> dict[str, Any]:
    return dict(template_of(vnfd, given_, FLAVORS)["resources"])


def test_a_vdu_becomes_a_server_with_its_ports_in_order_and_its_volume() -> None:
    made = resources(given())
    assert set(made) == {"masterNode", "external", "internal", "internalVL", "internalVL_subnet", "data"}
    assert made["masterNode"]["properties"] == {
        "name": "master",
        "flavor": "m1.large",
        "image": "ubuntu",
        "networks": [{"port": {"get_resource": "internal"}}, {"port": {"get_resource": "external"}}],
        "block_device_mapping_v2": [{"volume_id": {"get_resource": "data"}, "boot_index": -1}],
    }
    assert made["external"]["properties"] == {"network": "net0"}
    assert made["internal"]["properties"] == {"network": {"get_resource": "internalVL"}}
    assert made["internal"]["depends_on"] == "internalVL_subnet"
    assert made["internalVL_subnet"]["properties"]["cidr"] == "10.10.0.0/24"
    assert made["data"]["properties"] == {"size": 6}


def test_several_instances_are_clones_with_ports_of_their_own() -> None:
    made = resources(given(), VNFD.model_copy(update={"initial_deltas": {"masterNode": 2}}))
    assert {"masterNode-0", "masterNode-1", "internal-1", "external-0", "data-1"} <= set(made)
    assert made["masterNode-1"]["properties"]["networks"][0] == {"port": {"get_resource": "internal-1"}}


def test_a_managed_link_is_not_created() -> None:
    link = {"vnfVirtualLinkDescId": "internalVL", "resourceId": "net-9"}
    made = resources(given(extManagedVirtualLinks=[link]))
    assert "internalVL" not in made
    assert made["internal"] == {"type": "OS::Neutron::Port", "properties": {"network": "net-9"}}


def dual_stack(**subnets: Any) -> Flavour:
    """Return a VNFD with another internal link on which the machine has a port; ``subnets``: of each link."""
    links = {name: VirtualLink(virtual_link_id=name, subnets=given) for name, given in subnets.items()}
    cps = {"other": Cp(cp_id="other", vdu_id="masterNode", order=2, virtual_link="otherVL")}
    return VNFD.model_copy(update={"virtual_links": links, "cps": {**VNFD.cps, **cps}})


def test_a_dual_stack_link_has_a_subnet_for_each_of_its_data() -> None:
    ipv6 = LinkSubnet(
        is_ipv6=True, cidr="2001:db8::/64", gateway="2001:db8::9", pools=(("2001:db8::20", "2001:db8::2f"),),
        ipv6_address_mode="slaac",
    )  # fmt: skip
    made = resources(given(), dual_stack(internalVL=(LinkSubnet(cidr="10.7.0.0/24"), ipv6), otherVL=()))
    network = {"get_resource": "internalVL"}
    assert made["internalVL_subnet"]["properties"] == {
        "network": network, "cidr": "10.7.0.0/24", "ip_version": 4, "enable_dhcp": True,
    }  # fmt: skip
    assert made["internalVL_subnet_2"]["properties"] == {
        "network": network, "cidr": "2001:db8::/64", "ip_version": 6, "enable_dhcp": True, "gateway_ip": "2001:db8::9",
        "allocation_pools": [{"start": "2001:db8::20", "end": "2001:db8::2f"}],
        "ipv6_address_mode": "slaac", "ipv6_ra_mode": "slaac",
    }  # fmt: skip
    assert made["internal"]["depends_on"] == ["internalVL_subnet", "internalVL_subnet_2"]
    assert made["other"]["depends_on"] == "otherVL_subnet"


def test_links_without_a_range_get_ranges_that_no_other_network_of_the_vnf_has() -> None:
    either = (LinkSubnet(), LinkSubnet(is_ipv6=True))
    used = replace(given(), used_cidrs=["10.10.0.128/25", "no range", "fd00:10:0:2::/63"])
    vnfd = dual_stack(internalVL=either, otherVL=either, third=(LinkSubnet(cidr="10.10.2.7/23"),))

    def ranges(given_: Granted, changed: Flavour = vnfd) -> dict[str, str]:
        found = resources(given_, changed).items()
        return {name: one["properties"]["cidr"] for name, one in found if one["type"] == "OS::Neutron::Subnet"}

    assert ranges(used) == {
        "internalVL_subnet": "10.10.1.0/24", "internalVL_subnet_2": "fd00:10::/64",
        "otherVL_subnet": "10.10.4.0/24", "otherVL_subnet_2": "fd00:10:0:1::/64", "third_subnet": "10.10.2.7/23",
    }  # fmt: skip
    # A change of package does not move a network that is there.
    there = replace(used, present_cidrs={"otherVL_subnet": "10.10.9.0/24"})
    assert ranges(there)["otherVL_subnet"] == "10.10.9.0/24"
    # Nor does another order of its subnets.
    turned = ranges(there, dual_stack(internalVL=(), otherVL=either[::-1]))
    assert turned["otherVL_subnet"] == "10.10.9.0/24"
    assert turned["otherVL_subnet_2"] == "fd00:10::/64"
    both = replace(there, present_cidrs={"otherVL_subnet": "fd00:10:0:9::/64", "otherVL_subnet_2": "10.10.7.0/24"})
    fixed = (LinkSubnet(cidr="10.10.8.0/24"), LinkSubnet(cidr="10.10.7.0/24"), LinkSubnet(is_ipv6=True))
    assert ranges(both, dual_stack(internalVL=(), otherVL=fixed)) == {
        "internalVL_subnet": "10.10.1.0/24", "otherVL_subnet": "fd00:10:0:9::/64",
        "otherVL_subnet_2": "10.10.7.0/24", "otherVL_subnet_3": "10.10.8.0/24",
    }  # fmt: skip
    assert needs_ranges(dual_stack(otherVL=either[1:]), (), there.present_cidrs)
    with pytest.raises(Unprocessable, match="a cidr for internalVL_subnet expected"):
        ranges(replace(given(), used_cidrs=["10.0.0.0/8"]))


def test_a_scaling_leaves_networks_as_they_are() -> None:
    vnfd = dual_stack(internalVL=(LinkSubnet(), LinkSubnet(is_ipv6=True)), otherVL=())
    # As version 0.1.0 has made it: one subnet a link, all with the same range.
    one = VirtualLink(virtual_link_id="one", subnets=(LinkSubnet(cidr="10.10.0.0/24"),))
    links = {"internalVL": one, "otherVL": one}
    before = template_of(vnfd.model_copy(update={"virtual_links": links}), given(), FLAVORS)
    after = template_of(vnfd, given(), FLAVORS, {"masterNode": [0]}, before)
    assert after["resources"] == before["resources"]


def test_a_connection_point_without_a_link_is_named() -> None:
    with pytest.raises(Unprocessable, match="connection point external"):
        resources(Granted({}))


@pytest.mark.parametrize(
    "flavors",
    [
        {"m1.small": Flavor(1, 2048)},
        {"m1.flat": Flavor(4, 8192, disk_gib=9)},
        {"vnf-1-masterNode_kubevnfm_flavor-abc": Flavor(2, 4096, disk_gib=10, is_of_a_stack=True)},
    ],
    ids=["too small", "disk too small", "of another stack"],
)
def test_a_flavor_of_the_vdus_size_is_made_if_none_fits(flavors: dict[str, Flavor]) -> None:
    compute = ComputeDemand(vcpus=2, memory_bytes=4 * GIB - 5, disk_bytes=10 * GIB)
    vdu = VNFD.vdus["masterNode"].model_copy(update={"compute": compute, "min_instances": 2})
    vnfd = VNFD.model_copy(update={"vdus": {"masterNode": vdu}, "initial_deltas": {"masterNode": 2}})
    made: Any = template_of(vnfd, given(), flavors)["resources"]
    assert made["masterNode_2x4096x10_kubevnfm_flavor"] == {
        "type": "OS::Nova::Flavor",
        "properties": {"vcpus": 2, "ram": 4096, "disk": 10, "is_public": False},
    }
    for name in ("masterNode-0", "masterNode-1"):
        assert made[name]["properties"]["flavor"] == {"get_resource": "masterNode_2x4096x10_kubevnfm_flavor"}
    fitting: Any = template_of(vnfd, given(), {**flavors, "m1.right": Flavor(2, 4096, disk_gib=0)})["resources"]
    assert fitting["masterNode-0"]["properties"]["flavor"] == "m1.right"
    assert "masterNode_2x4096x10_kubevnfm_flavor" not in fitting


APART = AffinityRule(name="apart", kind="anti-affinity", scope="nfvi_node", targets=("masterNode",))
TWO = VNFD.model_copy(update={"initial_deltas": {"masterNode": 2}, "affinity_rules": (APART,)})


@pytest.mark.parametrize("kind", ["affinity", "anti-affinity"])
def test_a_placement_rule_becomes_a_server_group_of_its_machines(kind: Any) -> None:
    """SEQ-163."""
    rule = APART.model_copy(update={"kind": kind})
    made = resources(given(), TWO.model_copy(update={"affinity_rules": (rule,)}))
    assert made[f"apart_{kind}"] == {"type": "OS::Nova::ServerGroup", "properties": {"policies": [kind]}}
    hints = {"group": {"get_resource": f"apart_{kind}"}}
    assert [made[f"masterNode-{n}"]["properties"]["scheduler_hints"] for n in (0, 1)] == [hints, hints]
    assert "scheduler_hints" not in resources(given())["masterNode"]["properties"]


def test_a_change_keeps_the_machines_that_are_there() -> None:
    """Any other flavor, zone or group would make Heat replace them."""
    present = template_of(TWO.model_copy(update={"affinity_rules": ()}), given(), {})
    bigger = {"m1.huge": Flavor(9, 90000)}
    made: Any = template_of(TWO, given(), bigger, {"masterNode": [0, 1, 2]}, present)["resources"]
    before: Any = present["resources"]
    for name in ("masterNode-0", "masterNode-1", "data-0", "masterNode_2x4096x0_kubevnfm_flavor"):
        assert made[name] == before[name]
    # The machine that is added has the flavor of the others, and the group that they would have today.
    added = made["masterNode-2"]["properties"]
    assert added["flavor"] == before["masterNode-0"]["properties"]["flavor"]
    assert added["scheduler_hints"] == {"group": {"get_resource": "apart_anti-affinity"}}


def test_each_added_machine_has_the_zone_that_was_granted_for_it() -> None:
    def granted(*zones: str, first: int = 0) -> Granted:
        ids = range(first, first + len(zones))
        asked = [{"id": f"r{n}", "type": "COMPUTE", "resourceTemplateId": "masterNode"} for n in ids]
        grant = {
            "zones": [{"id": f"z{n}", "zoneId": zone} for n, zone in zip(ids, zones, strict=True)],
            "addResources": [{"resourceDefinitionId": f"r{n}", "zoneId": f"z{n}"} for n in ids],
        }
        return Granted(given().request, grant, {"addResources": asked})

    present = template_of(TWO, granted("az1", "az2"), FLAVORS)
    made: Any = template_of(TWO, granted("az3", first=7), FLAVORS, {"masterNode": [0, 1, 2]}, present)["resources"]
    zones = [made[f"masterNode-{n}"]["properties"]["availability_zone"] for n in range(3)]
    assert zones == ["az1", "az2", "az3"]


def test_vdus_that_a_change_does_not_name_keep_their_machines_ports_and_volumes() -> None:
    present = template_of(VNFD, given(), FLAVORS)
    master = VNFD.vdus["masterNode"].model_copy(update={"image": SoftwareImage(image_id="masterNode", name="new")})
    changed = VNFD.model_copy(update={"vdus": {"masterNode": master, "other": Vdu(vdu_id="other")}})
    wanted = template_of(changed, given(), FLAVORS)
    first: Any = with_present_vdus(wanted, present, changed, ("other",))
    assert first["resources"]["masterNode"]["properties"]["image"] == "ubuntu"
    # With what its resources refer to, which the new package may not have.
    grouped = template_of(
        VNFD.model_copy(update={"initial_deltas": {"masterNode": 2}, "affinity_rules": (APART,)}), given(), {}
    )
    without = VNFD.model_copy(update={"initial_deltas": {"masterNode": 2}, "virtual_links": {}, "cps": {}})
    changed_parts: Any = with_present_vdus(template_of(without, given(), FLAVORS), grouped, without, ("other",))[
        "resources"
    ]
    referred_to = {
        "apart_anti-affinity",
        "masterNode_2x4096x0_kubevnfm_flavor",
        "internal-0",
        "internalVL",
        "internalVL_subnet",
    }
    assert referred_to <= set(changed_parts)
    replaced: Any = with_present_vdus(wanted, present, changed, ("masterNode",))
    assert replaced["resources"]["masterNode"]["properties"]["image"] == "new"


def overlapping(counts: Mapping[str, int], cps: Mapping[str, str], *, cidr: str = "10.0.0.0/24") -> Flavour:
    """Return a VNFD with so many instances of each VDU; ``cps``: the connection point of each."""
    return Flavour(
        flavour_id="simple",
        file="Definitions/vnfd.yaml",
        vdus={name: Vdu(vdu_id=name, compute=ComputeDemand(vcpus=1), min_instances=1) for name in counts},
        cps={
            cps[name]: Cp(cp_id=cps[name], vdu_id=name, order=0, virtual_link="net", vnic_type=f"of {name} {cidr}")
            for name in counts
        },
        virtual_links={"net": VirtualLink(virtual_link_id="net", cidr=cidr, ip_version="ipv4")},
        initial_deltas=dict(counts),
    )


def parts(template: Any) -> dict[str, dict[str, Any]]:
    """Return the servers and ports by VDU: the properties of each say whose it is, whatever its name."""
    found: dict[str, dict[str, Any]] = {}
    for name, resource in template["resources"].items():
        properties = resource.get("properties", {})
        vdu_id = properties.get("binding:vnic_type", "of ").split(" ")[1] or properties.get("name")
        if vdu_id:
            found.setdefault(vdu_id, {})[name] = resource
    return found


@given_by_chance(
    counts=st.dictionaries(
        st.sampled_from(["db", "db-1", "db-1-1", "db-replica", "db-replica-1"]), st.integers(1, 3), min_size=2
    ),
    names=st.permutations(["net-0", "cp", "cp-1", "cp-1-1", "cp-2"]),
    scaled=st.integers(0, 4),
    wanted=st.integers(1, 3),
)
@settings(max_examples=100, deadline=None)
def test_machines_whose_names_overlap_keep_to_their_vdu(
    counts: dict[str, int], names: list[str], scaled: int, wanted: int
) -> None:
    """A VDU is scaled, and changed, with what is its own; names that would be those of two parts are refused."""
    cps = dict(zip(counts, names, strict=False))
    vnfd = overlapping(counts, cps)
    try:
        before: Any = template_of(vnfd, given(), FLAVORS)
    except Unprocessable:  # see the next test
        return
    assert {vdu_id: len(found) for vdu_id, found in parts(before).items()} == {n: 2 * c for n, c in counts.items()}
    vdu_id = sorted(counts)[scaled % len(counts)]
    wanted = min(wanted, counts[vdu_id])
    indexes = indexes_after(before, vnfd, {vdu_id: wanted})
    assert {name: len(found) for name, found in indexes.items()} == {**counts, vdu_id: wanted}
    after: Any = template_of(vnfd, given(), FLAVORS, indexes, before)
    assert len(parts(after)[vdu_id]) == 2 * wanted
    assert parts(after)[vdu_id].items() <= parts(before)[vdu_id].items()
    assert {**parts(after), vdu_id: None} == {**parts(before), vdu_id: None}
    # Another package, in which all ports are others.
    other = overlapping(counts, cps, cidr="10.9.0.0/24")
    changed: Any = with_present_vdus(template_of(other, given(), FLAVORS), before, other, [vdu_id])
    assert {**parts(changed), vdu_id: None} == {**parts(before), vdu_id: None}
    assert parts(changed)[vdu_id] == parts(template_of(other, given(), FLAVORS))[vdu_id]


@pytest.mark.parametrize("name", ["masterNode-1", "internal-0"])
def test_a_name_that_an_instance_of_another_vdu_gets_is_refused(name: str) -> None:
    vdus = {**VNFD.vdus, name: Vdu(vdu_id=name, min_instances=1)}
    vnfd = VNFD.model_copy(update={"vdus": vdus, "initial_deltas": {"masterNode": 2, name: 1}})
    with pytest.raises(Unprocessable, match=f"would be the resource {name}"):
        resources(given(), vnfd)


def test_names_are_compared_at_once_whatever_the_highest_scale_level_is() -> None:
    aspect = ScalingAspect(aspect_id="a", max_scale_level=2**53, deltas=({"masterNode": 1},))
    many = VNFD.model_copy(update={"aspects": {"a": aspect}})
    assert "masterNode-0" in resources(given(), many)
    taken = {**many.virtual_links, "masterNode-4503599627370496": VirtualLink(virtual_link_id="x")}
    assert "masterNode-4503599627370496" in resources(given(), many.model_copy(update={"virtual_links": taken}))
    other = many.vdus["masterNode"].model_copy(update={"vdu_id": "masterNode-4503599627370496", "storages": ()})
    with pytest.raises(Unprocessable, match="would be the resource masterNode-4503599627370496"):
        resources(given(), many.model_copy(update={"vdus": {**many.vdus, other.vdu_id: other}}))


def asked_of_external(*configs: dict[str, Any], **link: Any) -> dict[str, Any]:
    entries = {f"c{number}": config for number, config in enumerate(configs)}
    return {
        "extVirtualLinks": [
            {"id": "l", "resourceId": "net0", "extCps": [{"cpdId": "external", "cpConfig": entries}], **link}
        ]
    }


def over_ethernet(*addresses: dict[str, Any], mac: str | None = None) -> dict[str, Any]:
    ethernet = {"ipAddresses": list(addresses), **({"macAddress": mac} if mac else {})}
    return {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": ethernet}]}


NET0 = NetworkView("net-0", [SubnetView("s4", "10.0.0.0/29", "10.0.0.1"), SubnetView("s6", "fd00::/64")], {"10.0.0.4"})


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (over_ethernet(mac="fa:16:3e:00:00:01"), {"mac_address": "fa:16:3e:00:00:01"}),
        (over_ethernet({"type": "IPV4", "numDynamicAddresses": 1}), {}),
        (
            over_ethernet({"type": "IPV4", "fixedAddresses": ["10.0.0.5", "10.0.0.6"], "subnetId": "s4"}),
            {"fixed_ips": [{"subnet": "s4", "ip_address": "10.0.0.5"}, {"subnet": "s4", "ip_address": "10.0.0.6"}]},
        ),
        (over_ethernet({"type": "IPV4", "numDynamicAddresses": 2}), {"fixed_ips": [{"subnet": "s4"}] * 2}),
        (
            over_ethernet({"type": "IPV4", "fixedAddresses": ["10.0.0.5"]}, {"type": "IPV6", "numDynamicAddresses": 1}),
            {"fixed_ips": [{"ip_address": "10.0.0.5"}, {"subnet": "s6"}]},
        ),
        (
            # .1 is the gateway's, .4 another port's, .0 and .7 no host's.
            over_ethernet(
                {"type": "IPV4", "fixedAddresses": ["10.0.0.2"]},
                {"type": "IPV4", "fixedAddresses": ["10.0.0.3"]},
                {"type": "IPV4", "addressRange": {"minAddress": "10.0.0.4", "maxAddress": "10.0.0.5"}},
            ),
            {"fixed_ips": [{"ip_address": f"10.0.0.{n}"} for n in (2, 3, 5)]},
        ),
    ],
    ids=["MAC", "any", "two fixed", "two of the network", "both types", "range"],
)
def test_a_port_is_as_its_entry_says(config: dict[str, Any], wanted: dict[str, Any]) -> None:
    made = resources(Granted(asked_of_external(config), networks={"net0": NET0}))
    assert made["external"]["properties"] == {"network": "net0", **wanted}


def test_an_address_of_a_range_stays_and_is_no_other_ports() -> None:
    config = over_ethernet({"type": "IPV4", "addressRange": {"minAddress": "10.0.0.1", "maxAddress": "10.0.0.200"}})
    asked = Granted(asked_of_external(config), networks={"net0": NET0})
    two = VNFD.model_copy(update={"initial_deltas": {"masterNode": 2}})
    made = resources(asked, two)
    chosen = [made[f"external-{n}"]["properties"]["fixed_ips"][0]["ip_address"] for n in (0, 1)]
    assert len({*chosen} & {f"10.0.0.{n}" for n in (2, 3, 5, 6)}) == 2
    present = {f"external-{n}": made[f"external-{n}"]["properties"]["fixed_ips"] for n in (0, 1)}
    again = resources(replace(asked, present_ips=present), two)
    assert [again[f"external-{n}"] for n in (0, 1)] == [made[f"external-{n}"] for n in (0, 1)]
    with pytest.raises(Unprocessable, match=r"no free address of 10\.0\.0\.1 to 10\.0\.0\.200"):
        resources(asked, VNFD.model_copy(update={"initial_deltas": {"masterNode": 5}}))


def test_each_entry_is_one_machines_and_stays_so_when_another_leaves() -> None:
    configs = [over_ethernet({"type": "IPV4", "fixedAddresses": [f"10.0.0.{n}"]}) for n in (2, 3)]
    two = VNFD.model_copy(update={"initial_deltas": {"masterNode": 2}})

    def addresses(asked: Granted, *numbers: int) -> dict[int, object]:
        made: Any = template_of(two, asked, FLAVORS, {"masterNode": numbers})["resources"]
        return {n: made[f"external-{n}"]["properties"].get("fixed_ips") for n in numbers}

    first, second = [{"ip_address": "10.0.0.2"}], [{"ip_address": "10.0.0.3"}]
    assert addresses(Granted(asked_of_external(*configs)), 0, 1, 2) == {0: first, 1: second, 2: None}
    shown = {
        "vnfcResourceInfo": [
            {"metadata": {"vdu_idx": n}, "vnfcCpInfo": [{"id": f"cp-{n}", "cpdId": "external"}]} for n in (0, 1)
        ],
        "extCpInfo": [{"cpdId": "external", "cpConfigId": f"c{n}", "associatedVnfcCpId": f"cp-{n}"} for n in (0, 1)],
    }
    instance = {"instantiatedVnfInfo": shown}
    assert addresses(Granted(asked_of_external(*configs), instance=instance), 1, 2) == {1: second, 2: first}


def test_a_scaling_leaves_the_ports_of_machines_that_run_as_they_are() -> None:
    """Instances of version 0.1.0 have MAC addresses and ports in their links that their machines never got."""
    two = VNFD.model_copy(update={"initial_deltas": {"masterNode": 2}})
    present = template_of(two, given(), FLAVORS, {"masterNode": [0, 1]})
    mac = {
        "cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": {"macAddress": "fa:16:3e:00:00:01"}}]
    }
    asked = Granted(
        asked_of_external(
            mac, {"linkPortId": "p"}, extLinkPorts=[{"id": "p", "resourceHandle": {"resourceId": "port-1"}}]
        )
    )
    scaled: Any = template_of(two, asked, FLAVORS, {"masterNode": [0, 1, 2]}, present)["resources"]
    before: Any = present["resources"]
    assert {name: scaled[name] for name in before} == before
    assert scaled.keys() - before.keys() == {"masterNode-2", "external-2", "internal-2", "data-2"}
    named: Any = template_of(two, asked, FLAVORS, {"masterNode": [0, 1]}, present, ["external"])["resources"]
    assert named["external-0"]["properties"]["mac_address"] == "fa:16:3e:00:00:01"
    assert [named["masterNode-1"]["properties"]["networks"], named["internal-1"]] == [
        [{"port": {"get_resource": "internal-1"}}, {"port": "port-1"}], before["internal-1"],
    ]  # fmt: skip


def test_a_given_port_is_attached_to_a_machine_that_runs_and_no_other_is_made() -> None:
    present = template_of(VNFD, given(), FLAVORS)
    port = {"id": "p", "resourceHandle": {"resourceId": "port-1"}}
    asked = Granted(asked_of_external({"linkPortId": "p"}, extLinkPorts=[port]))
    changed: Any = template_of(VNFD, asked, {}, {"masterNode": [0]}, present, ["external"])["resources"]
    assert "external" not in changed
    before = resources(given())["masterNode"]["properties"]
    networks = [{"port": {"get_resource": "internal"}}, {"port": "port-1"}]
    assert changed["masterNode"]["properties"] == {**before, "networks": networks}
