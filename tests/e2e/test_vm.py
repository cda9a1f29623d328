"""A plain VM over both API versions: the smallest VNF from upload to delete."""

from __future__ import annotations

import pytest
from callers.user import GRACEFUL, User, sample_body
from clouds.lab_process import LabControl
from servers.wirings import in_six


@in_six
async def test_a_vm_is_instantiated_shown_terminated_and_deleted(user: User, lab: LabControl) -> None:
    """SEQ-044, API-020, API-029, API-033, API-054, API-055."""
    vnfd_id = await user.sample("vm")
    made = (await user.lcm("POST", "/vnf_instances", {"vnfdId": vnfd_id, "vnfInstanceName": "machine"})).must(201)
    instance_id = made.json["id"]
    assert made.headers["Location"].endswith(f"/vnflcm/v2/vnf_instances/{instance_id}")
    assert made.json["instantiationState"] == "NOT_INSTANTIATED"
    assert set(made.json["_links"]) == {"self", "instantiate"}
    assert "instantiatedVnfInfo" not in made.json

    operation = await user.start(instance_id, "instantiate", sample_body("vm", "instantiate"))
    view = await user.rest(operation)
    assert view["state"] == "COMPLETED"
    shown = await user.instance(instance_id)
    assert shown["instantiationState"] == "INSTANTIATED"
    tasks = {"terminate", "scale", "scaleToLevel", "heal", "operate", "changeExtConn", "changeCurrentVnfPkg"}
    tasks |= {"createSnapshot", "revertToSnapshot"}
    assert set(shown["_links"]) == {"self", *tasks}
    (server,) = [one for one in (await lab.inventory())["servers"] if instance_id in one["name"]]
    (vnfc,) = shown["instantiatedVnfInfo"]["vnfcResourceInfo"]
    assert vnfc["vduId"] == "VDU1"
    assert vnfc["computeResource"]["resourceId"] == server["id"]
    assert f"stacks/vnf-{instance_id}" in await lab.names()
    occurrence = await user.occurrence(operation)
    assert occurrence["operationParams"] == sample_body("vm", "instantiate")
    added = occurrence["resourceChanges"]["affectedVnfcs"]
    assert [(each["changeType"], each["vduId"]) for each in added] == [("ADDED", "VDU1")]
    (await user.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(409)

    await user.do(instance_id, "terminate", sample_body("vm", "terminate"))
    ended = await user.instance(instance_id)
    assert ended["instantiationState"] == "NOT_INSTANTIATED"
    assert "instantiatedVnfInfo" not in ended
    await user.delete(instance_id)
    (await user.lcm("GET", f"/vnf_instances/{instance_id}")).must(404)


@pytest.mark.parametrize("builder_is_v1", [True, False], ids=["v1 builds, v2 ends", "v2 builds, v1 ends"])
async def test_an_instance_created_by_one_api_version_is_terminated_by_the_other(
    user: User, v1: User, builder_is_v1: bool
) -> None:
    """API-034, API-023."""
    builder, ender = (v1, user) if builder_is_v1 else (user, v1)
    instance_id = await builder.create(await builder.sample("vm"))
    body = "instantiate" if builder_is_v1 else "instantiate.v1"
    await ender.do(instance_id, "instantiate", sample_body("vm", body))
    (connection,) = (await v1.instance(instance_id))["vimConnectionInfo"]
    (key,) = (await user.instance(instance_id))["vimConnectionInfo"]
    assert (connection["id"], connection["vimType"]) == (key, "openstack")
    assert instance_id in {one["id"] for one in (await ender.lcm("GET", "/vnf_instances")).must(200).json}
    await builder.do(instance_id, "terminate", GRACEFUL)
    await ender.delete(instance_id)
