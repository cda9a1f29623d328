"""The ports of machines as kubevnfm shows them, compared with Neutron's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

from callers.user import User
from packages.vm_packages import TWO_MACHINES, two_machines
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
