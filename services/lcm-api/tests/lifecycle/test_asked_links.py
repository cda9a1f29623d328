"""The connection points that an instance has, compared with what a change of it asks for and with the template that it leads to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from kubevnfm_csar.hot import BaseHot, Template
from kubevnfm_csar.vnfd.model import Cp, Flavour, LinkSubnet, VirtualLink
from kubevnfm_events.stacks import PortFacts, StackResources
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_lcm_api.lifecycle.machines.asked_links import LinkRules, check_added, check_kept, check_links
from kubevnfm_lcm_api.lifecycle.machines.connectivity import shown_links, with_known_entries
from kubevnfm_lcm_api.lifecycle.machines.inventory import CpPlace, info_of_stack, known_configs
from kubevnfm_lcm_api.lifecycle.machines.package_fit import check_subnets
from kubevnfm_sol.connectivity import ExtVirtualLinkData
from kubevnfm_sol.resources import InstantiatedVnfInfo
from worlds.lcm_builders import RESOURCES

MAC = "fa:16:3e:00:00:01"
FLAVOUR = Flavour(flavour_id="simple", file="vnfd.yaml", vdus={}, cps={"CP1": Cp(cp_id="CP1", vdu_id="VDU1")})
FIXED: dict[str, Any] = {"type": "IPV4", "fixedAddresses": ["10.0.0.5"]}
READ = [["network"], ["fixed_ips"]]


def config(*addresses: dict[str, Any], **members: Any) -> dict[str, Any]:
    ethernet = {"ipAddresses": list(addresses), **members}
    return {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": ethernet}]}


def link(configs: dict[str, Any], link_id: str = "x") -> dict[str, Any]:
    return {"id": link_id, "resourceId": "net0", "extCps": [{"cpdId": "CP1", "cpConfig": configs}]}


def hot(*paths: list[Any], name: str = "CP1") -> BaseHot:
    """Return a template whose ports read these attributes of the connection point."""
    properties = {f"p{n}": {"get_param": ["nfv", "CP", name, *path]} for n, path in enumerate(paths)}
    top = Template(name="t", path="t", text="", body={"resources": {"port": {"properties": properties}}})
    return BaseHot(flavour_id="simple", top=top, nested={})


def info(*shown: tuple[str, str, str | None], machines: int = 1) -> InstantiatedVnfInfo:
    """Return an instance with these external connection points: id, cpConfigId, MAC."""
    cps = [
        {
            "id": cp_id,
            "cpdId": "CP1",
            "cpConfigId": name,
            "cpProtocolInfo": [
                {
                    "layerProtocol": "IP_OVER_ETHERNET",
                    "ipOverEthernet": {
                        "macAddress": mac,
                        "ipAddresses": [{"type": "IPV4", "addresses": ["10.0.0.5"]}],
                    },
                }
            ]
            if mac
            else [],
        }
        for cp_id, name, mac in shown
    ]
    vnfcs = [{"id": f"v{n}", "vduId": "VDU1", "computeResource": {"resourceId": f"s{n}"}} for n in range(machines)]
    return InstantiatedVnfInfo.model_validate(
        {"flavourId": "simple", "extCpInfo": cps, "vnfcResourceInfo": vnfcs, "vnfState": "STARTED"}
    )


def rules(template: BaseHot | None, configs: dict[str, Any] | None = None, **facts: Any) -> LinkRules:
    before: Any = {"before": info(), "links_before": [link(configs)]} if configs is not None else {}
    return LinkRules(FLAVOUR, template, ("vim",), **{"counts": {"VDU1": 1}, **before, **facts})


@pytest.mark.parametrize(
    ("addresses", "paths"),
    [
        ([{"type": "IPV4"}, {"type": "IPV6", "numDynamicAddresses": 1}], [["network"]]),
        ([{**FIXED, "subnetId": "s"}], [["network"], ["fixed_ips", 0, "ip_address"]]),
        ([{"type": "IPV4", "subnetId": "s"}], [["network"], ["fixed_ips", 0, "subnet"]]),
    ],
)
def test_what_a_port_has_without_a_parameter_needs_none(addresses: list[Any], paths: list[Any]) -> None:
    links = [ExtVirtualLinkData.model_validate(link({"a": config(*addresses)}))]
    check_links(links, rules(hot(*paths)))
    with pytest.raises(Unprocessable, match=r"ipAddresses\[1\]: .* for address 2"):
        check_links(
            [ExtVirtualLinkData.model_validate(link({"a": config(FIXED, {**FIXED, "fixedAddresses": ["10.0.0.6"]})}))],
            rules(hot(["network"], ["fixed_ips", 0, "ip_address"])),
        )


def test_a_connection_point_is_at_one_link_unless_a_class_reads_the_request() -> None:
    links = [ExtVirtualLinkData.model_validate(link({"a": config()}, name)) for name in ("x", "y")]
    check_links(links, rules(hot(["network"]), has_user_data=True))
    for template in (None, hot(["network"])):
        with pytest.raises(
            Unprocessable, match=r"extVirtualLinks\[1\]/extCps\[0\]/cpdId: CP1 is at extVirtualLinks\[0\]"
        ):
            check_links(links, rules(template))


@pytest.mark.parametrize(
    ("template", "configs", "reason"),
    [
        (hot(*READ), {"a": config(FIXED)}, "2 machines cannot have 10.0.0.5"),
        (
            hot(["mac_address"]),
            {"a": config(macAddress=MAC)},
            f"2 machines cannot have {MAC}: .* VDU1 the same port at CP1",
        ),
        (hot(["port"]), {"a": {"linkPortId": "p"}}, "2 machines cannot have p"),
        (hot(*READ), {"a": config({"type": "IPV4"})}, ""),
        (hot(["network"]), {"a": config(FIXED)}, ""),
        (hot(*READ, name="CP1-0"), {"a": config(FIXED)}, ""),
        (None, {"a": config(FIXED)}, ""),
    ],
)
def test_machines_of_a_group_that_would_have_one_ports_addresses_are_refused_at_the_scaling(
    template: BaseHot | None, configs: dict[str, Any], reason: str
) -> None:
    wanted = rules(template, configs, counts={"VDU1": 2})
    if not reason:
        check_added("numberOfSteps", wanted)
        return
    with pytest.raises(Unprocessable, match=f"numberOfSteps: {reason}"):
        check_added("numberOfSteps", wanted)
    check_added("numberOfSteps", replace(wanted, has_user_data=True))
    # A class has made a resource for each machine, so each has parameters of its own.
    check_added("numberOfSteps", replace(wanted, is_numbered=True))
    # Machines that are there already, and fewer.
    check_added("numberOfSteps", replace(wanted, before=info(machines=3)))


def test_a_new_template_that_has_no_place_for_what_the_ports_have_is_refused() -> None:
    links = [link({"a": config(FIXED)})]
    known = rules(hot(["network"]), {"a": config(FIXED)})
    with pytest.raises(Unprocessable, match=r"newFlavourId: .*CP1/cpConfig/a.*CP1, fixed_ips\] for address 1"):
        check_kept("newFlavourId", links, known, {"VDU1": 1})
    check_kept("newFlavourId", links, replace(known, hot=hot(*READ)), {"VDU1": 1})
    with pytest.raises(Unprocessable, match="newFlavourId: 2 machines cannot have"):
        check_kept("newFlavourId", links, replace(known, hot=hot(*READ)), {"VDU1": 2})


@pytest.mark.parametrize(
    ("entries", "shown", "expected"),
    [
        (["CP1-0"], [("cp-1", "CP1-0", None)], ["CP1-0"]),
        (["a"], [("cp-1", "CP1", None)], ["a"]),
        (["a", "b"], [("cp-0", "a", None), ("cp-1", "b", None)], ["b"]),
        # One entry for both is not that of one of them.
        (["a"], [("cp-0", "a", None), ("cp-1", "a", None)], ["cp-1"]),
        (["a"], [("other", "a", None)], ["cp-1"]),
    ],
)
def test_the_id_of_an_instance_in_a_request_of_v1_means_its_entry(
    entries: list[str], shown: list[tuple[str, str, None]], expected: list[str]
) -> None:
    """SOL003 V2.6.1 4.4.1.10a: cpInstanceId is the id of a connection point instance that is there."""
    wanted = [ExtVirtualLinkData.model_validate(link({"cp-1": config()}))]
    (named,) = with_known_entries(wanted, [link({name: config() for name in entries})], info(*shown))
    assert list(named.ext_cps[0].cp_config) == expected


def test_what_an_earlier_version_stored_and_left_out_is_not_asked_for_at_a_change() -> None:
    left_out = config({"type": "IPV4", "fixedAddresses": ["10.0.0.9"]}, macAddress="fa:16:3e:00:00:09")
    (shown,) = shown_links([link({"a": left_out})], info(("cp-0", "CP1", MAC)))
    assert shown == link({"a": config({"type": "IPV4"})})
    (port,) = shown_links([link({"a": {"linkPortId": "p"}})], info(("cp-0", "CP1", MAC)))
    assert port == link({"a": {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]}})
    done = [link({"a": config(FIXED, macAddress=MAC.upper())})]
    assert shown_links(done, info(("cp-0", "a", MAC))) == done
    # Entries for machines that are not there yet, and an instance that shows no ports.
    waiting = [link({"a": config(FIXED), "b": left_out})]
    assert shown_links(waiting, info(("cp-0", "a", MAC))) == waiting
    assert shown_links(done, info(("cp-0", "a", None))) == done


def a_stack(*networks: str) -> StackResources:
    """Return a stack with two machines of VDU1, each with a port of CP1 in one of the networks."""
    server = RESOURCES.servers[0]
    servers = tuple(
        server.model_copy(
            update={
                "vdu_id": "VDU1", "group": f"VDU1-{n}", "server_id": f"s{n}", "vnfc_id": f"c{n}",
                "ports": (PortFacts(name="CP1", resource_id=f"{network}-{n}", network_id=network),),
            }
        )
        for n, network in enumerate(networks)
    )  # fmt: skip
    return RESOURCES.model_copy(update={"servers": servers, "volumes": ()})


def test_an_entry_of_cp_config_stays_with_its_machine_when_ports_are_made_again() -> None:
    """Also one without values that only one port can have, on another network, when null has removed another one."""

    def shown(resources: StackResources, links: dict[str, Any], known: Mapping[CpPlace, str]) -> InstantiatedVnfInfo:
        return info_of_stack(
            resources, vnfd_id="v", vim_key="vim", flavour_id="simple", scale_status=(), max_scale_levels=(),
            external_cps={"CP1": "CP1"}, ext_virtual_links=[links], ext_managed_links=(), node_names={}, known_configs=known,
        )  # fmt: skip

    def on(network: str, *names: str) -> dict[str, Any]:
        entry = {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]}
        return {"id": "l", "resourceId": network, "extCps": [{"cpdId": "CP1", "cpConfig": dict.fromkeys(names, entry)}]}

    before = shown(a_stack("one", "one"), on("one", "a", "b"), {})
    known = known_configs(before.model_dump(by_alias=True, exclude_none=True))
    after = shown(a_stack("two", "two"), on("two", "b", "c"), known)
    assert [one.cp_config_id for one in before.ext_cp_info] == ["a", "b"]
    assert [one.cp_config_id for one in after.ext_cp_info] == ["c", "b"]


RANGE = "10.1.0.0/24"


@pytest.mark.parametrize(
    ("subnet", "reason"),
    [
        (LinkSubnet(), None),
        (LinkSubnet(cidr="10.1.0.7/24", gateway="10.1.0.1", pools=(("10.1.0.10", "10.1.0.10"),)), None),
        (LinkSubnet(is_ipv6=True, cidr="fd01::/64", ipv6_address_mode="slaac"), None),
        (LinkSubnet(cidr="banana"), "cidr banana: a range of IPv4 expected"),
        (LinkSubnet(cidr="fd01::/64"), "cidr fd01::/64: a range of IPv4 expected"),
        (LinkSubnet(gateway="nope"), "gateway_ip nope: an IPv4 address expected"),
        (LinkSubnet(is_ipv6=True, gateway="10.1.0.1"), "gateway_ip 10.1.0.1: an IPv6 address expected"),
        (LinkSubnet(pools=(("10.1.0.1", "10.1.0.5"),)), "ip_allocation_pools: a cidr expected with them"),
        (LinkSubnet(cidr=RANGE, pools=(("10.1.0.9", "10.1.0.5"),)), "a range of addresses in 10.1.0.0/24 expected"),
        (LinkSubnet(cidr=RANGE, pools=(("10.1.0.9", "10.2.0.5"),)), "a range of addresses in 10.1.0.0/24 expected"),
        (LinkSubnet(cidr=RANGE, pools=(("", "fd01::1"),)), "a range of addresses in 10.1.0.0/24 expected"),
        (LinkSubnet(is_ipv6=True, ipv6_address_mode="other"), "ipv6_address_mode other: slaac, dhcpv6-stateful"),
    ],
)
def test_a_subnet_that_no_network_can_have_is_refused_at_the_request(subnet: LinkSubnet, reason: str | None) -> None:
    vl = VirtualLink(virtual_link_id="VL", subnets=(subnet,))
    flavour = FLAVOUR.model_copy(update={"virtual_links": {"VL": vl}})
    check_subnets("flavourId", flavour, ["VL"])
    if reason is None:
        check_subnets("flavourId", flavour, [])
        return
    with pytest.raises(Unprocessable) as error:
        check_subnets("flavourId", flavour, [])
    assert error.value.field == "flavourId"
    assert error.value.reason.startswith("virtual link VL of the VNFD: ")
    assert reason in error.value.reason
