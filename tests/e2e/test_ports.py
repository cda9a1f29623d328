"""The ports of machines as kubevnfm shows them, compared with Neutron's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from callers.user import GRACEFUL, User
from clouds.machine_vnfs import package_of
from packages.vm_packages import TWO_MACHINES, TWO_POINTS, two_machines, two_points
from real.real_cloud import connected

OVER_ETHERNET: Final[dict[str, Any]] = {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]}


async def test_machines_of_one_stack_have_the_ports_that_neutron_has_bound_to_them(user: User, tmp_path: Path) -> None:
    """A port of the template, one that was made before, and one that Nova makes; not the router's.

    ``user.do`` compares the ports of each machine with Neutron's.
    """
    cloud = await asyncio.to_thread(connected, user.installation.lab.vim())
    network = await asyncio.to_thread(cloud.network.find_network, "net0")
    assert network is not None
    port = await asyncio.to_thread(cloud.network.create_port, network_id=network.id, name="made-before")
    try:
        package = await user.upload(two_machines(tmp_path, port.id))
        assert package["onboardingState"] == "ONBOARDED", package
        instance_id = await user.create(TWO_MACHINES)
        configs: dict[str, dict[str, Any]] = {"VDU1_CP1": {}, "VDU1_CP2": {"linkPortId": "given"}, "VDU2_CP1": {}}
        link = {
            "id": "external",
            "resourceId": "net0",
            "extLinkPorts": [{"id": "given", "resourceHandle": {"resourceId": port.id}}],
            "extCps": [
                {"cpdId": cpd_id, "cpConfig": {"a": config or OVER_ETHERNET}} for cpd_id, config in configs.items()
            ],
        }
        await user.do(instance_id, "instantiate", {"flavourId": "simple", "extVirtualLinks": [link]})

        info = (await user.instance(instance_id))["instantiatedVnfInfo"]
        cps_by_vdu = {vnfc["vduId"]: vnfc["vnfcCpInfo"] for vnfc in info["vnfcResourceInfo"]}
        assert {vdu_id: {cp["cpdId"] for cp in cps} for vdu_id, cps in cps_by_vdu.items()} == {
            "VDU1": {"VDU1_CP1", "VDU1_CP2"},
            "VDU2": {"VDU2_CP1"},
        }
        assert [vnfc["metadata"].get("zone") for vnfc in info["vnfcResourceInfo"]] == [
            vnfc["zoneId"] for vnfc in info["vnfcResourceInfo"]
        ], "without an NFVO, each machine is asked for in a zone of the cloud"
        assert {cp["cpdId"] for cp in info["extCpInfo"]} == set(configs)
        (external,) = info["extVirtualLinkInfo"]
        handles = {one["id"]: one["resourceHandle"]["resourceId"] for one in external["extLinkPorts"]}
        assert len(handles) == 3
        assert handles["given"] == port.id
        await user.terminate(instance_id)
    finally:
        await asyncio.to_thread(cloud.network.delete_port, port.id)
        (await user.call("PATCH", f"/vnfpkgm/v1/vnf_packages/{package['id']}", {"operationalState": "DISABLED"})).must(
            200
        )
        (await user.call("DELETE", f"/vnfpkgm/v1/vnf_packages/{package['id']}")).must(204)


@asynccontextmanager
async def two_networks(cloud: Any) -> AsyncIterator[tuple[str, str, str]]:
    """Yield two networks of the tenant, which may choose MAC addresses in them, and a port in the first."""
    made: list[Any] = []
    port: Any = None
    try:
        for number in (77, 78):
            made.append(await asyncio.to_thread(cloud.network.create_network, name=f"ports-{number}"))
            await asyncio.to_thread(
                cloud.network.create_subnet,
                network_id=made[-1].id, ip_version=4, cidr=f"10.{number}.0.0/24", name=f"ports-{number}",
            )  # fmt: skip
        port = await asyncio.to_thread(cloud.network.create_port, network_id=made[0].id, name="given")
        yield made[0].id, made[1].id, port.id
    finally:
        if port is not None:
            await asyncio.to_thread(cloud.network.delete_port, port.id)
        for network in made:
            await asyncio.to_thread(cloud.network.delete_network, network.id)


def a_port(*addresses: dict[str, Any], **members: Any) -> dict[str, Any]:
    ethernet = {"ipAddresses": [{"type": "IPV4", **one} for one in addresses], **members}
    return {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": ethernet}]}


async def test_each_connection_point_has_what_its_own_entry_says(user: User, tmp_path: Path) -> None:
    """SOL003 4.4.1.10 to 4.4.1.12: MAC, fixed, free and ranged addresses, a given port; over scale, heal and a change of links."""
    cloud = await asyncio.to_thread(connected, user.installation.lab.vim())
    async with two_networks(cloud) as (first, second, port_id):
        instance_id = await user.create(await package_of(user, TWO_POINTS, two_points(tmp_path)))
        mac, fixed = "fa:16:3e:77:00:01", ["10.77.0.70", "10.77.0.71"]
        point_1 = {"a": a_port({"fixedAddresses": fixed}, macAddress=mac.upper()), "b": {"linkPortId": "given"}}
        within = {"minAddress": "10.77.0.80", "maxAddress": "10.77.0.90"}
        point_2 = {name: a_port({"addressRange": within}) for name in ("r", "s")}
        link: dict[str, Any] = {
            "id": "X",
            "resourceId": first,
            "extLinkPorts": [{"id": "given", "resourceHandle": {"resourceId": port_id}}],
            "extCps": [{"cpdId": "VDU1_CP1", "cpConfig": point_1}, {"cpdId": "VDU1_CP2", "cpConfig": point_2}],
        }
        operation = await user.start(instance_id, "instantiate", {"flavourId": "simple", "extVirtualLinks": [link]})
        view = await user.rest(operation)
        assert view["state"] == "COMPLETED", view
        assert await affected_ports(user, operation) == await all_ports(user, instance_id, "ADDED")
        at_first = await ports_by_config(user, cloud, instance_id)
        assert {key: (one.mac_address, addresses(one)) for key, one in at_first.items() if key == "a"} == {
            "a": (mac, fixed)
        }
        assert addresses(at_first["r"])[0] in {f"10.77.0.{n}" for n in range(80, 91)}

        operation = await user.start(
            instance_id, "scale", {"type": "SCALE_OUT", "aspectId": "VDU1_scale", "numberOfSteps": 1}
        )
        view = await user.rest(operation)
        assert view["state"] == "COMPLETED", view
        changes = (await user.occurrence(operation))["resourceChanges"]
        (added,) = changes["affectedVirtualLinks"]
        assert (added["changeType"], added["vnfVirtualLinkDescId"]) == ("LINK_PORT_ADDED", "internalVL")
        assert {one["changeType"] for one in changes["affectedExtLinkPorts"]} == {"ADDED"}
        scaled = await ports_by_config(user, cloud, instance_id)
        assert (scaled["a"].id, scaled["r"].id) == (at_first["a"].id, at_first["r"].id)
        assert scaled["b"].id == port_id
        assert set(scaled) == {"a", "b", "r", "s"}
        info = (await user.instance(instance_id))["instantiatedVnfInfo"]
        (internal,) = info["vnfVirtualLinkResourceInfo"]
        assert set(added["vnfLinkPortIds"]) < {one["id"] for one in internal["vnfLinkPorts"]}
        cps = [cp for vnfc in info["vnfcResourceInfo"] for cp in vnfc["vnfcCpInfo"]]
        assert {cp["cpdId"]: ("vnfExtCpId" in cp, "vnfLinkPortId" in cp) for cp in cps} == {
            "VDU1_CP1": (True, False), "VDU1_CP2": (True, False), "VDU1_CP3": (False, True),
        }  # fmt: skip

        (healed,) = [one["id"] for one in info["vnfcResourceInfo"] if one["metadata"]["vdu_idx"] == 0]
        await user.do(instance_id, "heal", {"vnfcInstanceId": [healed]})
        after = await ports_by_config(user, cloud, instance_id)
        assert {name: (one.mac_address, addresses(one)) for name, one in after.items()} == {
            name: (one.mac_address, addresses(one)) for name, one in scaled.items()
        }

        # One link of that id, and one of its points named: the other one stays where it is.
        moved = [{"cpdId": "VDU1_CP2", "cpConfig": {name: a_port({"numDynamicAddresses": 2}) for name in ("r", "s")}}]
        await user.do(
            instance_id, "change_ext_conn", {"extVirtualLinks": [{"id": "X", "resourceId": second, "extCps": moved}]}
        )
        last = await ports_by_config(user, cloud, instance_id)
        assert (last["a"].id, last["b"].id) == (after["a"].id, port_id)
        assert [(len(addresses(last[name])), last[name].network_id) for name in ("r", "s")] == [(2, second)] * 2
        refused = {"a": a_port(macAddress="fa:16:3e:77:00:02")}
        again = [{"id": "X", "resourceId": first, "extCps": [{"cpdId": "VDU1_CP1", "cpConfig": refused}]}]
        assert (
            "macAddress"
            in (await user.ask(instance_id, "change_ext_conn", {"extVirtualLinks": again})).must(422).detail
        )
        there = await all_ports(user, instance_id, "REMOVED")
        operation = await user.start(instance_id, "terminate", GRACEFUL)
        assert (await user.rest(operation))["state"] == "COMPLETED"
        assert await affected_ports(user, operation) == there
        await user.delete(instance_id)


async def affected_ports(user: User, operation: str) -> set[tuple[str, str]]:
    """Return the ports that an operation shows as affected on internal and external links, with the kind of change."""
    changes = (await user.occurrence(operation))["resourceChanges"]
    internal = [one for one in changes["affectedVirtualLinks"] if "vnfLinkPortIds" in one]
    found = {(one["changeType"], port) for one in internal for port in one["vnfLinkPortIds"]}
    return found | {(one["changeType"], one["id"]) for one in changes["affectedExtLinkPorts"]}


async def all_ports(user: User, instance_id: str, kind: str) -> set[tuple[str, str]]:
    """Return the ports of the instance, as an operation shows them that adds or removes all."""
    info = (await user.instance(instance_id))["instantiatedVnfInfo"]
    internal = [port for one in info["vnfVirtualLinkResourceInfo"] for port in one["vnfLinkPorts"]]
    external = [port for one in info["extVirtualLinkInfo"] for port in one["extLinkPorts"]]
    assert internal
    assert external
    return {(f"LINK_PORT_{kind}", one["id"]) for one in internal} | {(kind, one["id"]) for one in external}


async def ports_by_config(user: User, cloud: Any, instance_id: str) -> dict[str, Any]:
    """Return Neutron's ports by the entry of cpConfig that the instance shows for them."""
    info = (await user.instance(instance_id))["instantiatedVnfInfo"]
    port_by_cp = {
        one["cpInstanceId"]: one["resourceHandle"]["resourceId"]
        for link in info["extVirtualLinkInfo"]
        for one in link["extLinkPorts"]
    }
    config_by_cp = {cp["id"]: cp["cpConfigId"] for cp in info["extCpInfo"]}
    return {
        config_by_cp[cp_id]: await asyncio.to_thread(cloud.network.get_port, port_id)
        for cp_id, port_id in port_by_cp.items()
    }


def addresses(port: Any) -> list[str]:
    return sorted(ip["ip_address"] for ip in port.fixed_ips)
