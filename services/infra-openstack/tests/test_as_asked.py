"""The comparison of a stack with the request for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kubevnfm_csar.vnfd.model import Cp, Flavour, Vdu
from kubevnfm_events.stacks import PortFacts, ServerFacts, StackResources
from kubevnfm_infra_openstack.domain.as_asked import AskedStack, as_before, differences, in_one
from kubevnfm_infra_openstack.domain.passed_on import check_passed_on
from kubevnfm_infra_openstack.domain.quota import Flavor
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_sol.connection_points import AskedAddresses, AskedPoint, AskedPort

MAC = "fa:16:3e:00:00:0"
VNFD = Flavour(
    flavour_id="simple",
    file="vnfd.yaml",
    vdus={"VDU1": Vdu(vdu_id="VDU1"), "VDU2": Vdu(vdu_id="VDU2")},
    cps={"CP1": Cp(cp_id="CP1", vdu_id="VDU1")},
)


def shown(amount: int = 2, name: str = "CP1") -> StackResources:
    servers = [
        ServerFacts(
            vnfc_id=f"v{n}", name=f"VDU1-{n}", vdu_id="VDU1", server_id=f"s{n}", stack_id="s", flavor="m1.small",
            image_id="image-1", zone="nova",
            ports=(
                PortFacts(
                    name=f"{name}-{n}", clone_of=name, resource_id=f"port-{n}", mac=f"{MAC}{n}",
                    addresses=(f"10.0.0.{n}", f"fd00::{n}"), network_id="net-0", subnet_ids=("s4", "s6"),
                ),
            ),
        )
        for n in range(1, amount + 1)
    ]  # fmt: skip
    return StackResources(stack_id="s", stack_name="s", servers=tuple(servers))


def point(*ports: AskedPort) -> AskedStack:
    return AskedStack({"CP1": AskedPoint("CP1", "l", "net0", ports)}, {"net0": "net-0"})


def fixed(*addresses: str) -> AskedAddresses:
    return AskedAddresses(":" in addresses[0], addresses)


def ranged(first: str, last: str) -> AskedAddresses:
    return AskedAddresses(False, within=(first, last))


FITTING = [
    AskedStack(),
    AskedStack(counts={"VDU1": 2}, flavors={"VDU1": "id-1"}, images={"VDU1": "image-1"}, zones={"VDU1": ["nova"]}),
    point(AskedPort("a")),
    point(AskedPort("a", addresses=(ranged("10.0.0.1", "10.0.0.2"), AskedAddresses(True, dynamic=1)))),
    point(AskedPort("a", mac=f"{MAC}2"), AskedPort("b", addresses=(fixed("10.0.0.1"),))),
    point(
        AskedPort("a", link_port_id="p", port_id="port-2"),
        AskedPort("b", mac=f"{MAC}1"),
        AskedPort("later", mac=f"{MAC}9"),
    ),
    AskedStack({"CP9": AskedPoint("CP9", "l", "net0", (AskedPort("a", mac=f"{MAC}1"),))}, {"net0": "net-9"}),
    AskedStack(zones={"VDU1": ["nova:host-1"]}),
    replace(
        point(AskedPort("a", addresses=(AskedAddresses(False, dynamic=1, subnet_id="by-name"),))),
        subnet_ids={"by-name": "s4"},
    ),
]
DIFFERING: list[tuple[AskedStack, str]] = [
    (AskedStack(counts={"VDU1": 3}), "VDU VDU1: asked for 3 machines, shown 2"),
    (AskedStack(counts={"VDU2": 1}), "VDU VDU2: asked for 1 machines, shown 0"),
    (AskedStack(flavors={"VDU1": "m1.large"}), "asked for flavor m1.large, shown m1.small"),
    (AskedStack(images={"VDU1": "image-2"}), "asked for image image-2, shown image-1"),
    (AskedStack(zones={"VDU1": ["west", "east"]}), "asked for zone west or east, shown nova"),
    (
        AskedStack({"CP1": AskedPoint("CP1", "l", "net0")}, {"net0": "net-1"}),
        "CP1 of VDU1-1: asked for network net0, shown net-0",
    ),
    (point(AskedPort("a", mac=f"{MAC}9"), AskedPort("b")), f"(a): asked for MAC {MAC}9; shown port port-2"),
    (point(AskedPort("a", link_port_id="p", port_id="port-9"), AskedPort("b")), "asked for port port-9"),
    (
        point(AskedPort("a", addresses=(fixed("10.0.0.1", "10.0.0.3"),)), AskedPort("b")),
        "asked for 10.0.0.1, 10.0.0.3; shown",
    ),
    (
        point(AskedPort("a", addresses=(ranged("10.0.0.2", "10.0.0.9"),))),
        "10.0.0.2 to 10.0.0.9; shown port port-1 of VDU1-1",
    ),
    (point(AskedPort("a", addresses=(AskedAddresses(False, dynamic=2),))), "2 IPv4 addresses"),
    (point(AskedPort("a", addresses=(AskedAddresses(False, dynamic=1, subnet_id="s9"),))), "of subnet s9"),
    (AskedStack({"CP9": AskedPoint("CP9", "l", "net0", (AskedPort("a", mac=f"{MAC}9"),))}), "CP9 (a): asked for MAC"),
]


@pytest.mark.parametrize("asked", FITTING)
def test_what_is_as_asked_has_no_difference(asked: AskedStack) -> None:
    flavors = {"id-1": Flavor(1, 2048), "m1.small": Flavor(1, 2048)}
    assert differences(asked, shown(), VNFD, flavors) == []


@pytest.mark.parametrize(("asked", "text"), DIFFERING)
def test_a_difference_names_both(asked: AskedStack, text: str) -> None:
    flavors = {"m1.large": Flavor(4, 8192), "m1.small": Flavor(1, 2048)}
    assert text in in_one(differences(asked, shown(), VNFD, flavors))


def test_servers_with_names_of_their_own_may_be_those_of_any_vdu() -> None:
    named = [server.model_copy(update={"vdu_id": "router"}) for server in shown().servers]
    stack = shown().model_copy(update={"servers": tuple(named)})
    assert differences(AskedStack(counts={"VDU1": 1, "VDU2": 1}), stack, VNFD, {}) == []
    assert differences(AskedStack(counts={"VDU1": 3}), stack, VNFD, {}) == ["VDU VDU1: asked for 3 machines, shown 0"]


def test_a_vdu_without_machines_needs_no_ports_and_many_differences_are_counted() -> None:
    asked: Any = point(AskedPort("a", mac=f"{MAC}9"))
    assert differences(asked, shown(0), VNFD, {}) == []
    assert in_one([str(n) for n in range(7)]) == "0; 1; 2; 3; 4 (and 2 more)"


def test_the_machine_in_the_place_of_a_reverted_one_has_the_image_of_the_stack() -> None:
    first, second = shown().servers
    reverted = first.model_copy(update={"image_id": "image-of-snapshot", "is_reverted": True})
    for others in ((), (second,)):
        before = shown().model_copy(update={"servers": (reverted, *others)})
        after = shown(len(before.servers))
        assert differences(as_before(before, [], {}), after, VNFD, {}) == []
    moved = shown().model_copy(update={"servers": (first, second.model_copy(update={"image_id": "image-2"}))})
    found = differences(as_before(before, [], {}), moved, VNFD, {})
    assert found == ["machine VDU1-2 of VDU VDU1: asked for image image-1, shown image-2"]


HEAT = [
    "heat_template_version: 2018-08-31",
    {"nfv": {"CP": {"CP1": {"mac": f"{MAC.upper()}1", "ips": ["10.0.0.1", "FD00:0::1"]}}}},
]


@pytest.mark.parametrize(
    ("ports", "heat", "missed"),
    [
        ([AskedPort("a"), AskedPort("b", addresses=(ranged("10.0.0.1", "10.0.0.2"),))], [], None),
        ([AskedPort("a", mac=f"{MAC}1", addresses=(fixed("10.0.0.1"), fixed("fd00::1")))], HEAT, None),
        ([AskedPort("a", link_port_id="p", port_id="port-2")], ["{port: port-2}"], None),
        ([AskedPort("a", link_port_id="p", port_id="port-2")], HEAT, "port port-2 of linkPortId"),
        ([AskedPort("a", mac=f"{MAC}2")], HEAT, f"macAddress {MAC}2"),
        ([AskedPort("a", addresses=(fixed("10.0.0.1", "10.0.0.2"),))], HEAT, "fixedAddresses 10.0.0.2"),
        ([AskedPort("a", addresses=(fixed("0.0.0.1"),))], HEAT, "fixedAddresses 0.0.0.1"),
        ([AskedPort("a", addresses=(fixed("fd00::2"),))], HEAT, "fixedAddresses fd00::2"),
        # VDU1 has two machines; a third entry waits for a scaling.
        ([AskedPort("a", mac=f"{MAC}1"), AskedPort("b", mac=f"{MAC}2")], HEAT, f"macAddress {MAC}2"),
        ([AskedPort(n, mac=f"{MAC}{m}") for n, m in (("a", 1), ("b", 1), ("c", 3))], HEAT, None),
        # Heat composes the text.
        ([AskedPort("a", mac=f"{MAC}2")], ["{list_join: [':', [fa, '16']]}"], None),
    ],
)
def test_what_user_data_leave_out_is_refused_before_anything_is_made(
    ports: list[AskedPort], heat: list[Any], missed: str | None
) -> None:
    """api.md 3.3: the template or its parameters must have what only one port can have."""
    points = point(*ports).points
    if missed is None:
        check_passed_on(points, {"VDU1": 2}, VNFD, heat)
        return
    with pytest.raises(Unprocessable, match=rf"extVirtualLinks/CP1: {missed}: neither"):
        check_passed_on(points, {"VDU1": 2}, VNFD, heat)
