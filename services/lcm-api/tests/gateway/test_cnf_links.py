"""CNFs on virtual links by SOL003: what is held, sent, shown and refused (multicloud.md MC-086, MC-099)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest
import pytest_asyncio
from kubevnfm_events.objects import AttachedLink, HoldLinks, ObjectsOrder, ReleaseLinks
from packages.package_variants import variant
from worlds.lcm_world import World, sample_request

_CONNECTION = {"vimConnectionInfo": {"cluster": {"vimId": "VIM_ID", "vimType": "ETSINFV.KUBERNETES.V_1"}}}
_ADDRESS = {"type": "IPV4", "fixedAddresses": ["10.2.0.20"]}


def a_link(**more: Any) -> dict[str, Any]:
    return {"id": "outer", "resourceId": "link-1", "extCps": [{"cpdId": "oam"}], **more}


def a_cp(config: Mapping[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    """Return a connection point; ``members``: of its Ethernet address."""
    data = [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": members}]
    return {"cpdId": "oam", "cpConfig": {"one": config if config is not None else {"cpProtocolData": data}}}


async def prepared(world: World) -> tuple[str, dict[str, Any]]:
    """Return a new instance of a CNF with connection points, and the request to instantiate it."""
    world.vims.add("VIM_ID", "kubernetes")
    cps = {"oam": None, "data": "inner"}
    onboarded = await world.upload(variant(world.folder, cps=cps))
    assert onboarded["onboardingState"] == "ONBOARDED", onboarded
    world.links.attachable["link-1"] = AttachedLink(name="protected", type="kube-ovn", definition="protected")
    return await world.create("cnf"), copy.deepcopy(sample_request("cnf", "instantiate"))


def sent(world: World) -> list[object]:
    return [each.data for each in world.twins.commands]


async def test_a_cnf_holds_its_links_from_before_its_first_object_until_after_its_last(world: World) -> None:
    """MC-060, MC-065, MC-069, MC-086, MC-099: also by each later operation, and shown by SOL003."""
    instance_id, body = await prepared(world)
    managed = {"id": "m", "vnfVirtualLinkDescId": "inner", "resourceId": "link-1"}
    links = {
        "extVirtualLinks": [a_link(extCps=[a_cp(macAddress="02:00:00:00:00:01")])],
        "extManagedVirtualLinks": [managed],
    }
    done = await world.reached(await world.ask(instance_id, "instantiate", {**body, **links}))
    assert done["operationState"] == "COMPLETED", done
    hold, apply = sent(world)
    assert isinstance(hold, HoldLinks)
    assert isinstance(apply, ObjectsOrder)
    assert [(each.vdu_id, each.virtual_link_id, each.mac_address) for each in hold.networks] == [
        ("VDU1", "link-1", "02:00:00:00:00:01"),
        ("VDU1", "link-1", None),
    ]
    assert apply.networks == hold.networks
    (asked,) = world.links.asked
    assert (asked.vim_id, asked.reference) == ("VIM_ID", f"vnf:{instance_id}")
    info = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json["instantiatedVnfInfo"]
    (shown,) = info["extVirtualLinkInfo"]
    assert (shown["id"], shown["resourceHandle"]["resourceId"]) == ("outer", "link-1")
    assert shown["currentVnfExtCpData"][0]["cpdId"] == "oam"
    (inner,) = info["extManagedVirtualLinkInfo"]
    assert (inner["vnfVirtualLinkDescId"], inner["networkResource"]["resourceId"]) == ("inner", "link-1")

    await world.reached(await world.ask(instance_id, "heal", {}))
    later = [each for each in sent(world)[2:] if isinstance(each, ObjectsOrder)]
    assert later
    assert all(each.networks == hold.networks for each in later)
    assert not [each for each in sent(world) if isinstance(each, ReleaseLinks)]
    await world.reached(await world.ask(instance_id, "terminate", {"terminationType": "GRACEFUL"}))
    assert [type(each).__name__ for each in sent(world)[-2:]] == ["DeleteObjects", "ReleaseLinks"]
    assert ReleaseLinks(vnf_instance_id=instance_id) == sent(world)[-1]


_AT_CP = "extVirtualLinks[0]/extCps[0]"
_AT_DATA = f"{_AT_CP}/cpConfig/one/cpProtocolData[0]/ipOverEthernet"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def known(shared_world: World) -> tuple[str, dict[str, Any]]:
    """Return the instance that all refused requests are for, and the request without links."""
    return await prepared(shared_world)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("given", "status", "name"),
    [
        ({"extVirtualLinks": [a_link(resourceId="none")]}, 422, "extVirtualLinks[0]/resourceId"),
        ({"extVirtualLinks": [a_link(vimConnectionId="other")]}, 422, "extVirtualLinks[0]/vimConnectionId"),
        ({"extVirtualLinks": [a_link(extCps=[{"cpdId": "none"}])]}, 400, f"{_AT_CP}/cpdId"),
        (
            {"extVirtualLinks": [a_link(extLinkPorts=[{"id": "p", "resourceHandle": {"resourceId": "r"}}])]},
            422, "extVirtualLinks[0]/extLinkPorts",
        ),
        ({"extVirtualLinks": [a_link(extCps=[a_cp({"linkPortId": "p"})])]}, 422, f"{_AT_CP}/cpConfig/one/linkPortId"),
        (
            {"extVirtualLinks": [a_link(extCps=[a_cp({"netAttDefResourceId": "n"})])]},
            422, f"{_AT_CP}/cpConfig/one/netAttDefResourceId",
        ),
        ({"extVirtualLinks": [a_link(extCps=[a_cp(segmentationId="7")])]}, 422, f"{_AT_DATA}/segmentationId"),
        (
            {"extVirtualLinks": [a_link(extCps=[a_cp(ipAddresses=[{"type": "IPV4", "subnetId": "s"}])])]},
            422, f"{_AT_DATA}/ipAddresses[0]/subnetId",
        ),
        ({"extVirtualLinks": [a_link(extCps=[a_cp(ipAddresses=[_ADDRESS, _ADDRESS])])]}, 422, f"{_AT_DATA}/ipAddresses"),
        # Two replicas by the VNFD.
        ({"extVirtualLinks": [a_link(extCps=[a_cp(ipAddresses=[_ADDRESS])])]}, 422, f"{_AT_DATA}/ipAddresses"),
        (
            {"extVirtualLinks": [a_link(extCps=[a_cp(ipAddresses=[{"type": "IPV4", "fixedAddresses": ["10.9.9.9"]}])])]},
            409, f"{_AT_DATA}/ipAddresses",
        ),
        (
            {"extManagedVirtualLinks": [{"id": "m", "vnfVirtualLinkDescId": "none", "resourceId": "link-1"}]},
            422, "extManagedVirtualLinks[0]/vnfVirtualLinkDescId",
        ),
        (
            {"extManagedVirtualLinks": [{"id": "m", "vnfVirtualLinkDescId": "inner", "resourceId": "none"}]},
            422, "extManagedVirtualLinks[0]/resourceId",
        ),
    ],
)  # fmt: skip
async def test_a_link_that_cannot_be_is_refused_with_its_attribute(
    shared_world: World, known: tuple[str, dict[str, Any]], given: Mapping[str, Any], status: int, name: str
) -> None:
    """MC-099, and the bad input of chapter 10."""
    instance_id, body = known
    answer = await shared_world.lcm("POST", f"/vnf_instances/{instance_id}/instantiate", {**body, **given})
    assert [each["name"] for each in answer.problem(status)["invalidParams"]] == [name]
