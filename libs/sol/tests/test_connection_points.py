"""The one reading of connection points: which entry of cpConfig is which instance, and what a change of links changes."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_sol.connection_points import AskedAddresses, AskedPort, asked_points, assigned, merged_links
from kubevnfm_sol.connectivity import IpAddressesData, IpOverEthernetAddressData
from pydantic import ValidationError


def config(mac: str | None = None, **addresses: Any) -> dict[str, Any]:
    given = [{"type": "IPV4", **addresses}] if addresses else []
    ethernet = {**({"macAddress": mac} if mac else {}), "ipAddresses": given}
    return {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": ethernet}]}


def a_link(link_id: str, network: str, /, **cps: Any) -> dict[str, Any]:
    return {
        "id": link_id,
        "resourceId": network,
        "extCps": [{"cpdId": name, "cpConfig": configs} for name, configs in cps.items()],
    }


def test_every_attribute_of_a_port_is_read() -> None:
    link = a_link(
        "l", "net",
        CP1={
            "a": {"linkPortId": "given"},
            "b": config("fa:16:3e:AA:00:01", fixedAddresses=["10.0.0.5", "10.0.0.6"], subnetId="s"),
            "c": config(addressRange={"minAddress": "10.0.0.8", "maxAddress": "10.0.0.9"}),
            "d": config(numDynamicAddresses=2),
            "e": None,
        },
    )  # fmt: skip
    link["extLinkPorts"] = [{"id": "given", "resourceHandle": {"resourceId": "port-1"}}]
    point = asked_points([link])["CP1"]
    assert (point.link_id, point.network) == ("l", "net")
    assert point.ports == (
        AskedPort("a", link_port_id="given", port_id="port-1"),
        AskedPort(
            "b", mac="fa:16:3e:aa:00:01", addresses=(AskedAddresses(False, ("10.0.0.5", "10.0.0.6"), subnet_id="s"),)
        ),
        AskedPort("c", addresses=(AskedAddresses(False, within=("10.0.0.8", "10.0.0.9")),)),
        AskedPort("d", addresses=(AskedAddresses(False, dynamic=2),)),
    )
    assert [port.is_for_one for port in point.ports] == [True, True, False, False]
    assert [one.amount for port in point.ports for one in port.addresses] == [2, 1, 2]
    assert point.ports[2].addresses[0].is_within("10.0.0.8")
    assert not point.ports[2].addresses[0].is_within("10.0.0.10")


def test_the_first_source_that_names_a_point_counts() -> None:
    assert asked_points([a_link("g", "granted", CP1={})], [a_link("r", "net", CP1={}, CP2={})]).keys() == {"CP1", "CP2"}
    assert asked_points([a_link("g", "granted", CP1={})], [a_link("r", "net", CP1={})])["CP1"].network == "granted"


ONE, TWO, ANY = AskedPort("one", mac="fa:16:3e:00:00:01"), AskedPort("two", mac="fa:16:3e:00:00:02"), AskedPort("any")


@pytest.mark.parametrize(
    ("ports", "known", "expected"),
    [
        ((ANY,), {}, {0: "any", 1: "any"}),
        ((ONE,), {}, {0: "one"}),
        ((ONE, TWO), {}, {0: "one", 1: "two"}),
        ((ONE, TWO), {1: "one"}, {0: "two", 1: "one"}),
        ((TWO,), {0: "one", 1: "two"}, {1: "two"}),
        ((ONE, ANY), {}, {0: "one", 1: "any"}),
        ((ANY, ONE), {0: "gone", 1: "any"}, {0: "one", 1: "any"}),
        ((), {0: "gone"}, {}),
    ],
    ids=["for all", "for one", "in order", "kept", "kept without the first", "rest", "gone", "none"],
)
def test_an_entry_is_one_instance_and_stays_so(
    ports: tuple[AskedPort, ...], known: dict[int, str], expected: dict[int, str]
) -> None:
    assert {number: port.config_id for number, port in assigned(ports, (0, 1), known).items()} == expected


def test_a_change_moves_only_the_points_that_it_names() -> None:
    present = [a_link("X", "net0", CP1={"a": config()}, CP2={"b": config(fixedAddresses=["10.0.0.5"])})]
    after = merged_links(present, [a_link("X", "net1", CP2={"c": config()})], keeps_configs=True)
    assert {point.cpd_id: point.network for point in asked_points(after).values()} == {"CP1": "net0", "CP2": "net1"}
    assert [port.config_id for port in asked_points(after)["CP2"].ports] == ["b", "c"]
    granted = merged_links(present, [a_link("X", "net1", CP2={"c": config()})], keeps_configs=False)
    assert [port.config_id for port in asked_points(granted)["CP2"].ports] == ["c"]
    back = merged_links(after, [a_link("X", "net0", CP2={"b": None})], keeps_configs=True)
    (link,) = back
    assert [cp["cpdId"] for cp in link["extCps"]] == ["CP1", "CP2"], "on one network the link is there once"
    assert merged_links(after, [a_link("X", "net1", CP2={"b": None, "c": None})], keeps_configs=True) == [
        a_link("X", "net0", CP1={"a": config()})
    ]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"type": "IPV6", "fixedAddresses": ["2001:db8:6::13/64"]}, "IP address"),
        ({"type": "IPV4", "fixedAddresses": ["010.066.000.012"]}, "IP address"),
        ({"type": "IPV6", "fixedAddresses": ["fe80::1%eth0"]}, "IP address"),
        ({"type": "IPV4", "fixedAddresses": ["2001:db8:6::12"]}, "type IPV4"),
        ({"type": "IPV4", "fixedAddresses": ["10.0.0.1"], "numDynamicAddresses": 1}, "exactly one"),
        ({"type": "IPV4", "numDynamicAddresses": 0}, "numDynamicAddresses"),
        ({"type": "IPV4", "numDynamicAddresses": 10**9}, "numDynamicAddresses"),
        ({"type": "IPV4", "addressRange": {"minAddress": "10.0.0.9"}}, "maxAddress"),
        ({"type": "IPV4", "addressRange": {"minAddress": "10.0.0.9", "maxAddress": "10.0.0.8"}}, "greater"),
        ({"type": "IPV4", "addressRange": {"minAddress": "10.0.0.9", "maxAddress": "::1"}}, "type IPV4"),
        ({"type": "IPV5"}, "type"),
    ],
)
def test_addresses_are_of_the_type_that_they_name(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        IpAddressesData.model_validate(given)


@pytest.mark.parametrize("mac", ["fa:16:3e:00:00", "fa:16:3e:00:00:0g", "fa:16-3e:00:00:01", "fa163e000001"])
def test_a_mac_address_is_one(mac: str) -> None:
    with pytest.raises(ValidationError, match="MAC"):
        IpOverEthernetAddressData.model_validate({"macAddress": mac})
    assert (
        IpOverEthernetAddressData.model_validate({"macAddress": "FA-16-3E-00-00-01"}).mac_address == "fa:16:3e:00:00:01"
    )
