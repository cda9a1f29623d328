"""Each operation of a VNF of plain machines; the results are checked in the cloud."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from callers.user import GRACEFUL, User, sample_body
from clouds.lab_process import LabControl
from clouds.machine_vnfs import built, machines, package_of, servers_of
from packages.vm_packages import (
    BOOT_VOLUME,
    ON_LINK,
    OTHER_IMAGE,
    TWO_FLAVOURS,
    WITH_VOLUME,
    boot_volume,
    on_link,
    on_link_request,
    other_image,
    two_flavours,
    with_volume,
)
from patience import until
from real.real_cloud import RealCloud, connected
from servers.wirings import deep_in_single, in_six

CP = "VDU1_CP1"
STORAGE = "tacker_extension_heal_include_block_storage"


def affected(occurrence: dict[str, Any]) -> list[str]:
    return sorted(one["changeType"] for one in occurrence["resourceChanges"]["affectedVnfcs"])


def level_of(shown: dict[str, Any]) -> int:
    (status,) = shown["instantiatedVnfInfo"]["scaleStatus"]
    return int(status["scaleLevel"])


async def test_a_vnf_is_scaled_out_and_in_by_either_version(user: User, v1: User, lab: LabControl) -> None:
    """API-034, API-055, API-056."""
    instance_id = await built(user)
    for caller in (user, v1):
        before = set(await machines(lab, instance_id))
        body = {**sample_body("vm", "scale_out"), "numberOfSteps": "1"}
        operation = await caller.start(instance_id, "scale", body)
        assert (await user.rest(operation))["state"] == "COMPLETED"
        after = set(await machines(lab, instance_id))
        assert before < after
        assert affected(await caller.occurrence(operation)) == ["ADDED"]
    shown = await user.instance(instance_id)
    assert (level_of(shown), servers_of(shown)) == (2, after)
    assert shown["instantiatedVnfInfo"]["maxScaleLevels"] == [{"aspectId": "VDU1_scale", "scaleLevel": 2}]

    for caller, leaves_first in ((user, max), (v1, min)):
        made_at = {
            one["computeResource"]["resourceId"]: one["metadata"]["creation_time"]
            for one in await vnfcs(user, instance_id)
        }
        operation = await caller.start(instance_id, "scale", sample_body("vm", "scale_in"))
        assert (await user.rest(operation))["state"] == "COMPLETED"
        (gone,) = set(made_at) - set(await machines(lab, instance_id))
        assert made_at[gone] == leaves_first(made_at.values()), "v2 removes the newest, v1 the oldest"
        assert affected(await user.occurrence(operation)) == ["REMOVED"]
    assert level_of(await user.instance(instance_id)) == 0
    await user.terminate(instance_id)


async def test_a_vnf_is_scaled_to_levels(user: User, lab: LabControl) -> None:
    """API-060."""
    instance_id = await built(user)
    await user.do(instance_id, "scale_to_level", sample_body("vm", "scale_to_level"))
    assert len(await machines(lab, instance_id)) == 3
    assert level_of(await user.instance(instance_id)) == 2
    await user.do(instance_id, "scale_to_level", {"scaleInfo": [{"aspectId": "VDU1_scale", "scaleLevel": 0}]})
    assert len(await machines(lab, instance_id)) == 1
    await user.terminate(instance_id)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"aspectId": "nowhere"}, "aspectId"),
        ({"numberOfSteps": 0}, "numberOfSteps"),
        ({"numberOfSteps": 3}, "numberOfSteps"),
        ({"type": "SCALE_IN"}, "numberOfSteps"),
    ],
)
async def test_a_scaling_that_cannot_be_is_refused(user: User, change: dict[str, Any], place: str) -> None:
    """API-056."""
    instance_id = await built(user)
    answer = (await user.ask(instance_id, "scale", {**sample_body("vm", "scale_out"), **change})).must(400)
    assert place in answer.detail
    await user.terminate(instance_id)


@pytest.mark.faults
async def test_a_scale_out_that_fails_is_rolled_back_and_a_scale_in_has_no_way_back(
    user: User, lab: LabControl
) -> None:
    """API-051, API-053."""
    instance_id = await built(user)
    before = set(await machines(lab, instance_id))
    async with lab.fault("nova", "server_boot", message="no room", times=-1):
        operation = await user.start(instance_id, "scale", sample_body("vm", "scale_out"))
        assert (await user.rest(operation))["state"] == "FAILED_TEMP"
        occurrence = await user.occurrence(operation)
        assert occurrence["error"]["title"] == "Stack update failed"
        assert "no room" in occurrence["error"]["detail"]
        assert {"retry", "rollback", "fail"} <= set(occurrence["_links"])
    view = await user.act(operation, "rollback")
    assert view["state"] == "ROLLED_BACK", view
    assert set(await machines(lab, instance_id)) == before
    assert level_of(await user.instance(instance_id)) == 0

    await user.do(instance_id, "scale", sample_body("vm", "scale_out"))
    async with lab.fault("heat", "stack_update", status=400, message="no", times=-1):
        operation = await user.start(instance_id, "scale", sample_body("vm", "scale_in"))
        assert (await user.rest(operation))["state"] == "FAILED_TEMP"
    assert "rollback" not in (await user.occurrence(operation))["_links"]
    (await user.lcm("POST", f"/vnf_lcm_op_occs/{operation}/rollback")).must(404)
    assert (await user.act(operation, "retry"))["state"] == "COMPLETED"
    await user.terminate(instance_id)


async def test_a_machine_is_healed_at_its_address_by_either_id(user: User, lab: LabControl) -> None:
    """API-058, API-051."""
    instance_id = await built(user)
    await user.do(instance_id, "scale", sample_body("vm", "scale_out"))
    for name in ("vnfcInfo", "vnfcResourceInfo"):
        before = await machines(lab, instance_id)
        info = (await user.instance(instance_id))["instantiatedVnfInfo"]
        one = info[name][0]
        operation = await user.start(instance_id, "heal", {"vnfcInstanceId": [one["id"]]})
        assert (await user.rest(operation))["state"] == "COMPLETED"
        after = await machines(lab, instance_id)
        assert len(after) == 2
        assert len(set(after) & set(before)) == 1, "the other one was left alone"
        addresses = [sorted(str(server["addresses"]) for server in each.values()) for each in (before, after)]
        assert addresses[0] == addresses[1]
        occurrence = await user.occurrence(operation)
        assert affected(occurrence) == ["ADDED", "REMOVED"]
        assert servers_of(await user.instance(instance_id)) == set(after)
    (await user.ask(instance_id, "heal", {"vnfcInstanceId": ["nowhere"]})).must(400)
    (await user.ask(instance_id, "heal", {"additionalParams": {"all": "yes"}})).must(400)
    await user.terminate(instance_id)


async def test_a_heal_of_all_keeps_the_stack_in_v2_and_replaces_it_in_v1(user: User, v1: User, lab: LabControl) -> None:
    """API-058: with ``{}`` and without a body."""
    instance_id = await built(user)
    await user.do(instance_id, "scale", sample_body("vm", "scale_out"))
    stack = (await user.instance(instance_id))["instantiatedVnfInfo"]["metadata"]["stack_id"]
    before = set(await machines(lab, instance_id))
    await user.do(instance_id, "heal", {})
    healed = set(await machines(lab, instance_id))
    assert not healed & before
    assert (await user.instance(instance_id))["instantiatedVnfInfo"]["metadata"]["stack_id"] == stack

    answer = (await v1.lcm("POST", f"/vnf_instances/{instance_id}/heal")).must(202)
    view = await user.rest(answer.headers["Location"].rsplit("/", 1)[-1])
    assert view["state"] == "COMPLETED", view
    assert [step["name"] for step in view["steps"]] == ["delete_resources", "recreate_resources", "restore_scale"]
    shown = await user.instance(instance_id)
    assert shown["instantiatedVnfInfo"]["metadata"]["stack_id"] != stack
    assert level_of(shown) == 1
    assert len(await machines(lab, instance_id)) == 2
    await user.terminate(instance_id)


@pytest.mark.parametrize("form", ["hot", "tosca"])
async def test_machines_that_boot_from_volumes_pass_each_operation(
    user: User, v1: User, tmp_path: Path, form: str
) -> None:
    """API-058, API-059: a volume is in one machine only, and the one that a machine boots from never leaves it."""
    instance_id = await user.create(await package_of(user, BOOT_VOLUME[form], boot_volume(tmp_path, form)))
    await user.do(instance_id, "instantiate", sample_body("vm", "instantiate"))
    await v1.do(instance_id, "scale", sample_body("vm", "scale_out"))
    before = await drives(user, instance_id)
    assert len(before) == 2
    for caller in (user, v1):
        there = await drives(user, instance_id)
        ill = (await user.instance(instance_id))["instantiatedVnfInfo"]["vnfcResourceInfo"][0]
        given = {STORAGE: False} if caller is v1 else {}
        await caller.do(instance_id, "heal", {"vnfcInstanceId": [ill["id"]], "additionalParams": given})
        now = await drives(user, instance_id)
        assert set(there) - set(now) == {ill["computeResource"]["resourceId"]}
        assert set(now.values()) == set(before.values())
    there = await drives(user, instance_id)
    await user.do(instance_id, "heal", {})
    assert not set(await drives(user, instance_id)) & set(there)
    assert set((await drives(user, instance_id)).values()) == set(before.values())

    there = await drives(user, instance_id)
    changed = await package_of(user, BOOT_VOLUME[f"{form}-changed"], boot_volume(tmp_path, form, "-changed"))
    await user.do(instance_id, "change_vnfpkg", {"vnfdId": changed})
    assert not set(await drives(user, instance_id)) & set(there)
    after = await drives(user, instance_id)
    assert (set(after.values()) == set(before.values())) == (form == "hot"), "another image needs other volumes"
    await v1.do(instance_id, "heal", {})
    assert len(await drives(user, instance_id)) == 2
    await v1.terminate(instance_id)


async def drives(user: User, instance_id: str) -> dict[str, str]:
    """Return the volume of each machine, as the instance shows them."""
    info = (await user.instance(instance_id))["instantiatedVnfInfo"]
    volumes = {one["id"]: one["storageResource"]["resourceId"] for one in info["virtualStorageResourceInfo"]}
    found = {one["computeResource"]["resourceId"]: one["storageResourceIds"] for one in info["vnfcResourceInfo"]}
    return {server: volumes[volume] for server, (volume,) in found.items()}


async def addresses_of(lab: LabControl, servers: Collection[str]) -> list[list[str]]:
    """Return the addresses of servers in the cloud."""
    return [one["addresses"] for one in (await lab.inventory())["servers"] if one["id"] in servers]


@pytest.mark.faults
async def test_a_heal_that_fails_is_rolled_back_to_what_is_known(user: User, lab: LabControl, tmp_path: Path) -> None:
    """API-051: until then the instance shows what exists."""
    instance_id = await user.create(await package_of(user, BOOT_VOLUME["tosca"], boot_volume(tmp_path, "tosca")))
    await user.do(instance_id, "instantiate", sample_body("vm", "instantiate"))
    before = await drives(user, instance_id)
    addresses = await addresses_of(lab, before)
    for task in ("fail", "rollback"):
        async with lab.fault("nova", "server_create", status=403, message="Quota exceeded for instances", times=-1):
            operation = await user.start(instance_id, "heal", {})
            assert (await user.rest(operation))["state"] == "FAILED_TEMP"
        assert "rollback" in (await user.occurrence(operation))["_links"]
        if task == "fail":
            await user.act(operation, "fail")
            assert not servers_of(await user.instance(instance_id)), "the old machine is gone, and no other was made"
            await user.do(instance_id, "heal", {})
    assert (await user.act(operation, "rollback"))["state"] == "ROLLED_BACK"
    after = await drives(user, instance_id)
    assert await addresses_of(lab, after) == addresses
    assert list(after.values()) == list(before.values())
    assert not set(after) & set(before)
    await user.terminate(instance_id)


async def test_machines_are_stopped_and_started(user: User, v1: User, lab: LabControl) -> None:
    """API-060."""
    instance_id = await built(user)
    for caller, body, state, status in (
        (user, "stop", "STOPPED", "SHUTOFF"),
        (v1, "start", "STARTED", "ACTIVE"),
    ):
        operation = await caller.start(instance_id, "operate", sample_body("vm", body))
        assert (await user.rest(operation))["state"] == "COMPLETED"
        assert {server["status"] for server in (await machines(lab, instance_id)).values()} == {status}
        info = (await caller.instance(instance_id))["instantiatedVnfInfo"]
        assert info["vnfState"] == state
        assert {one["vnfcState"] for one in info["vnfcInfo"]} == {state}
        assert affected(await caller.occurrence(operation)) == ["MODIFIED"]
        (await caller.ask(instance_id, "operate", sample_body("vm", body))).must(409)
    await user.do(instance_id, "operate", sample_body("vm", "stop"))
    await user.do(instance_id, "heal", {})
    info = (await user.instance(instance_id))["instantiatedVnfInfo"]
    assert (info["vnfState"], [one["vnfcState"] for one in info["vnfcInfo"]]) == ("STARTED", ["STARTED"])
    assert {server["status"] for server in (await machines(lab, instance_id)).values()} == {"ACTIVE"}
    await user.terminate(instance_id)


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_connection_points_move_to_another_network(user: User, v1: User, lab: LabControl, version: str) -> None:
    """API-034: the request in the form of either version."""
    instance_id = await built(user)
    before = {str(server["addresses"]) for server in (await machines(lab, instance_id)).values()}
    caller, body = (v1, "change_ext_conn.v1") if version == "v1" else (user, "change_ext_conn")
    operation = await caller.start(instance_id, "change_ext_conn", sample_body("vm", body))
    view = await user.rest(operation)
    assert view["state"] == "COMPLETED", view
    after = {str(server["addresses"]) for server in (await machines(lab, instance_id)).values()}
    assert not after & before
    (link,) = (await user.instance(instance_id))["instantiatedVnfInfo"]["extVirtualLinkInfo"]
    assert link["resourceHandle"]["resourceId"] == "net1"
    (changed,) = (await caller.occurrence(operation))["changedExtConnectivity"]
    assert changed["resourceHandle"]["resourceId"] == "net1"
    assert ("currentVnfExtCpData" in changed) == (version == "v2")
    await user.terminate(instance_id)


async def test_information_is_modified_without_a_grant(user: User, v1: User) -> None:
    """API-026, API-027, API-028, API-047."""
    instance_id = await built(user)
    path = f"/vnf_instances/{instance_id}"
    answer = (await user.lcm("PATCH", path, sample_body("vm", "modify"))).must(202)
    operation = answer.headers["Location"].rsplit("/", 1)[-1]
    view = await user.rest(operation)
    assert (view["state"], view["steps"]) == ("COMPLETED", [])
    occurrence = await user.occurrence(operation)
    assert occurrence["operation"] == "MODIFY_INFO"
    assert occurrence["changedInfo"] == sample_body("vm", "modify")
    assert "grantId" not in occurrence
    shown = await user.instance(instance_id)
    assert (shown["vnfInstanceName"], shown["metadata"]) == ("machine of the demo", {"owner": "demo"})

    patch = {"vnfInstanceName": None, "metadata": {"owner": None, "more": {"a": 1}}}
    answer = (await v1.lcm("PATCH", path, patch)).must(202)
    assert (await user.rest(answer.headers["Location"].rsplit("/", 1)[-1]))["state"] == "COMPLETED"
    shown = await user.instance(instance_id)
    assert "vnfInstanceName" not in shown
    assert shown["metadata"] == {"more": {"a": 1}}
    unknown = (await user.lcm("PATCH", path, {"vnfInstanceNam": "misspelled"})).must(400)
    assert "vnfInstanceNam" in unknown.detail
    refused = (await user.lcm("PATCH", path, {"extensions": {"nowhere": 1}})).must(422)
    assert "nowhere" in refused.detail
    await user.terminate(instance_id)


async def test_a_change_of_package_is_judged(user: User, v1: User) -> None:
    """API-059."""
    instance_id = await built(user)
    vnfd_id = await user.sample("vm")
    (await v1.ask(instance_id, "change_vnfpkg", {"vnfdId": vnfd_id})).must(404)
    (await user.ask(instance_id, "change_vnfpkg", {"vnfdId": "nowhere"})).must(422)
    wrong: tuple[dict[str, Any], ...] = ({"upgrade_type": "BlueGreen"}, {"vdu_params": [{"vdu_id": "nowhere"}]})
    for params in wrong:
        (await user.ask(instance_id, "change_vnfpkg", {"vnfdId": vnfd_id, "additionalParams": params})).must(400)
    scripts = {"lcm-operation-coordinate-new-vnf": "./Scripts/coordinate.py"}
    for vdus, status in (
        ([], 400),
        ([{"vdu_id": "VDU1"}], 400),
        ([{"vdu_id": "VDU1", "new_vnfc_param": {"cp_name": "a"}}], 422),
    ):
        params = {**scripts, "vdu_params": vdus}
        (await user.ask(instance_id, "change_vnfpkg", {"vnfdId": vnfd_id, "additionalParams": params})).must(status)
    before = await user.instance(instance_id)
    params = {"upgrade_type": "RollingUpdate", "vdu_params": [{"vdu_id": "VDU1"}]}
    operation = await user.start(instance_id, "change_vnfpkg", {"vnfdId": vnfd_id, "additionalParams": params})
    assert (await user.rest(operation))["state"] == "COMPLETED"
    assert (await user.occurrence(operation))["modificationsTriggeredByVnfPkgChange"]["vnfdId"] == vnfd_id
    assert servers_of(await user.instance(instance_id)) == servers_of(before), "the same package changes no machine"
    await user.terminate(instance_id)


@pytest.mark.faults
async def test_a_flavour_is_changed_and_a_change_that_fails_is_rolled_back(
    user: User, v1: User, lab: LabControl, tmp_path: Path
) -> None:
    """API-060."""
    instance_id = await user.create(await package_of(user, TWO_FLAVOURS, two_flavours(tmp_path)))
    await user.do(instance_id, "instantiate", sample_body("vm", "instantiate"))
    before = set(await machines(lab, instance_id))
    smaller = {one["metadata"]["flavor"] for one in await vnfcs(user, instance_id)}
    async with lab.fault("nova", "server_boot", message="no room", times=-1):
        operation = await user.start(instance_id, "change_flavour", {"newFlavourId": "large"})
        assert (await user.rest(operation))["state"] == "FAILED_TEMP"
    assert (await user.act(operation, "rollback"))["state"] == "ROLLED_BACK"
    shown = await user.instance(instance_id)
    assert (shown["instantiatedVnfInfo"]["flavourId"], level_of(shown)) == ("simple", 0)
    assert servers_of(shown) == set(await machines(lab, instance_id))
    assert len(before) == len(servers_of(shown)) == 1

    await v1.do(instance_id, "change_flavour", {"newFlavourId": "large"})
    shown = await user.instance(instance_id)
    assert (shown["instantiatedVnfInfo"]["flavourId"], level_of(shown)) == ("large", 2)
    assert servers_of(shown) == set(await machines(lab, instance_id))
    assert len(servers_of(shown)) == 2
    larger = {one["metadata"]["flavor"] for one in await vnfcs(user, instance_id)}
    assert len(larger) == 1
    assert larger != smaller
    await user.terminate(instance_id)


async def test_another_package_brings_another_image(user: User, lab: LabControl, tmp_path: Path) -> None:
    """API-059."""
    instance_id = await built(user)
    images = {one["metadata"]["image_id"] for one in (await vnfcs(user, instance_id))}
    await package_of(user, OTHER_IMAGE, other_image(tmp_path))
    operation = await user.start(instance_id, "change_vnfpkg", {"vnfdId": OTHER_IMAGE})
    view = await user.rest(operation)
    assert view["state"] == "COMPLETED", view
    shown = await user.instance(instance_id)
    assert (shown["vnfdId"], shown["vnfSoftwareVersion"]) == (OTHER_IMAGE, "2.0")
    assert not images & {one["metadata"]["image_id"] for one in (await vnfcs(user, instance_id))}
    assert servers_of(shown) == set(await machines(lab, instance_id))
    await user.terminate(instance_id)


async def test_a_rolling_update_to_other_internal_networks_and_back(
    user: User, lab: LabControl, tmp_path: Path
) -> None:
    """API-059."""
    for number in ON_LINK:
        await package_of(user, ON_LINK[number], on_link(tmp_path, number))
    instance_id = await user.create(ON_LINK[1])
    await user.do(instance_id, "instantiate", {"flavourId": "simple", **on_link_request(1)})
    rolling = {"additionalParams": {"upgrade_type": "RollingUpdate"}, **on_link_request(2)}
    operation = await user.start(instance_id, "change_vnfpkg", {"vnfdId": ON_LINK[3], **rolling})
    view = await user.rest(operation)
    assert (view["state"], states(view)) == ("FAILED_TEMP", {"change/VDU1_group": "done", "change/VDU2": "failed"})
    assert (await user.act(operation, "rollback"))["state"] == "ROLLED_BACK"
    shown = await user.instance(instance_id)
    assert (shown["vnfdId"], vdus(shown)) == (ON_LINK[1], ["VDU1", "VDU2"])
    assert servers_of(shown) == set(await machines(lab, instance_id))

    await user.do(instance_id, "change_vnfpkg", {"vnfdId": ON_LINK[2], **rolling})
    await user.do(instance_id, "scale", {"type": "SCALE_OUT", "aspectId": "VDU1_scale"})
    shown = await user.instance(instance_id)
    assert vdus(shown) == ["VDU1", "VDU1", "VDU2", "VDU3"]
    view = await user.do(instance_id, "change_vnfpkg", {"vnfdId": ON_LINK[1], **rolling, **on_link_request(1)})
    assert "REMOVED" in affected(await user.occurrence(view["id"]))
    shown = await user.instance(instance_id)
    assert vdus(shown) == ["VDU1", "VDU1", "VDU2"]
    assert servers_of(shown) == set(await machines(lab, instance_id))
    await user.terminate(instance_id)


async def test_a_modification_to_another_package_is_carried_by_what_stands(
    user: User, v1: User, lab: LabControl, tmp_path: Path
) -> None:
    """API-026, API-059."""
    for number in (1, 2):
        await package_of(user, ON_LINK[number], on_link(tmp_path, number))
    instance_id = await user.create(ON_LINK[1])
    await user.do(instance_id, "instantiate", {"flavourId": "simple", **on_link_request(1)})
    path = f"/vnf_instances/{instance_id}"
    refused = (await user.lcm("PATCH", path, {"vnfdId": await user.sample("vm")})).must(422)
    assert "lacks the VDU VDU2" in refused.detail
    await modified(user, path, {"vnfdId": ON_LINK[2]})
    before = await vnfcs(user, instance_id)
    assert (await user.instance(instance_id))["vnfSoftwareVersion"] == "2.0"

    (single,) = (one["id"] for one in before if one["vduId"] == "VDU2")
    await user.do(instance_id, "heal", {"vnfcInstanceId": [single]})
    assert await networks(user, instance_id) == {"internalVL1", "internalVL2"}, "the group has its earlier form"
    await user.do(instance_id, "scale", {"type": "SCALE_OUT", "aspectId": "VDU1_scale"})
    shown = await user.instance(instance_id)
    assert vdus(shown) == ["VDU1", "VDU1", "VDU2"]
    assert len(servers_of(shown) & {one["computeResource"]["resourceId"] for one in before}) == 1
    members = [one["id"] for one in await vnfcs(user, instance_id) if one["vduId"] == "VDU1"]
    await user.do(instance_id, "heal", {"vnfcInstanceId": members})
    shown = await user.instance(instance_id)
    assert vdus(shown) == ["VDU1", "VDU1", "VDU2"], "a heal adds no VDU"

    # The new package has a connection point for which no request has given a network.
    refused = (await v1.lcm("POST", f"{path}/heal", {})).must(422)
    assert "a virtual link for connection point VDU3_CP1 expected" in refused.detail
    assert servers_of(await user.instance(instance_id)) == set(await machines(lab, instance_id)) == servers_of(shown)

    links = on_link_request(2)
    await user.do(instance_id, "change_vnfpkg", {"vnfdId": ON_LINK[2], **links})
    assert vdus(await user.instance(instance_id)) == ["VDU1", "VDU1", "VDU2", "VDU3"]
    assert await networks(user, instance_id) == {"internalVL2"}
    refused = (await user.lcm("PATCH", path, {"vnfdId": ON_LINK[1]})).must(422)
    assert "lacks the VDU VDU3" in refused.detail
    await user.terminate(instance_id)


async def modified(user: User, path: str, body: dict[str, Any]) -> None:
    answer = (await user.lcm("PATCH", path, body)).must(202)
    assert (await user.rest(answer.headers["Location"].rsplit("/", 1)[-1]))["state"] == "COMPLETED"


async def networks(user: User, instance_id: str) -> set[str]:
    """Return the internal virtual links that the VNF shows."""
    info = (await user.instance(instance_id))["instantiatedVnfInfo"]
    return {one["vnfVirtualLinkDescId"] for one in info["vnfVirtualLinkResourceInfo"]}


def states(view: dict[str, Any]) -> dict[str, str]:
    return {step["name"]: step["state"] for step in view["steps"]}


def vdus(shown: dict[str, Any]) -> list[str]:
    return sorted(one["vduId"] for one in shown["instantiatedVnfInfo"]["vnfcResourceInfo"])


@deep_in_single
async def test_a_vnf_goes_back_to_its_snapshot(user: User, lab: LabControl, tmp_path: Path) -> None:
    """API-171, API-172, API-173, API-174."""
    cloud = await asyncio.to_thread(connected, user.installation.lab.vim())
    vnfd_id = await package_of(user, WITH_VOLUME, with_volume(tmp_path))
    instance_id = await user.create(vnfd_id)
    await user.do(instance_id, "instantiate", sample_body("vm", "instantiate"))
    (server_id,) = servers_of(await user.instance(instance_id))
    (before,) = [one for one in (await lab.inventory())["servers"] if one["id"] == server_id]
    (volume,) = [one for one in (await lab.inventory())["volumes"] if instance_id in one["name"]]
    info_id = (await user.lcm("POST", "/vnf_snapshots", {})).must(201).json["id"]
    path, wanted = f"/vnf_snapshots/{info_id}", {"vnfSnapshotInfoId": info_id}
    async with written(lab):
        await user.do(instance_id, "create_snapshot", wanted)
    (vnfc,) = (await user.lcm("GET", path)).must(200).json["vnfSnapshot"]["vnfcSnapshots"]
    image_id = vnfc["computeSnapshotResource"]["resourceId"]
    (storage,) = vnfc["storageSnapshotResources"]
    assert storage["storageResourceId"] == volume["id"]
    snapshot_id = storage["storageSnapshotResource"]["resourceId"]
    image, snapshot = await asyncio.gather(
        asyncio.to_thread(cloud.image.get_image, image_id),
        asyncio.to_thread(cloud.block_storage.get_snapshot, snapshot_id),
    )
    assert (image.status, snapshot.status, snapshot.volume_id) == ("active", "available", volume["id"])

    operation = await user.start(instance_id, "revert_to_snapshot", wanted)
    view = await user.rest(operation)
    assert view["state"] == "COMPLETED", view
    assert affected(await user.occurrence(operation)) == ["MODIFIED"]
    (after,) = [one for one in (await lab.inventory())["servers"] if one["id"] == server_id]
    same = ("name", "status", "addresses")
    assert [after[name] for name in same] == [before[name] for name in same]
    server = await asyncio.to_thread(cloud.compute.get_server, server_id)
    assert (server.image.id, [one["id"] for one in server.attached_volumes]) == (image_id, [volume["id"]])
    # The machines can still be changed, although one has another image than its template says.
    await user.do(instance_id, "scale", {**sample_body("vm", "scale_out"), "numberOfSteps": "1"})
    refused = (await user.ask(instance_id, "revert_to_snapshot", wanted)).must(409)
    assert "scale it to the machines of the snapshot first" in refused.detail
    assert "delete the VNF snapshot first" in (await user.ask(instance_id, "terminate", GRACEFUL)).must(409).detail

    (await user.lcm("DELETE", path)).must(204)

    async def are_gone() -> bool | None:
        images = await asyncio.to_thread(lambda: {one.id for one in cloud.image.images()})
        snapshots = await asyncio.to_thread(lambda: {one.id for one in cloud.block_storage.snapshots()})
        return (image_id not in images and snapshot_id not in snapshots) or None

    await until(are_gone)

    async def is_free() -> str | None:
        # The operation that has removed them ends a moment later.
        answer = await user.ask(instance_id, "terminate", GRACEFUL)
        return answer.headers["Location"].rpartition("/")[2] if answer.status == 202 else None

    assert (await user.rest(await until(is_free)))["state"] == "COMPLETED"
    await user.delete(instance_id)


def written(lab: LabControl) -> AbstractAsyncContextManager[None]:
    """Return the block in which images of snapshots are written, if the cloud's hypervisor does not do it itself."""
    return lab.snapshots_are_written() if isinstance(lab, RealCloud) else nullcontext()


async def vnfcs(user: User, instance_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await user.instance(instance_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    return found


async def test_what_a_vnf_does_not_support_is_not_found(user: User) -> None:
    """API-060."""
    instance_id = await built(user)
    answer = (await user.ask(instance_id, "change_flavour", {"newFlavourId": "large"})).must(404)
    assert "one flavour only" in answer.detail
    await user.do(instance_id, "terminate", GRACEFUL)
    (await user.ask(instance_id, "scale", sample_body("vm", "scale_out"))).must(409)
    await user.delete(instance_id)


async def cancel(user: User, operation: str, mode: str) -> None:
    path = f"/vnf_lcm_op_occs/{operation}/cancel"
    (await user.lcm("POST", path, {"cancelMode": mode})).must(202)


@in_six
@pytest.mark.faults
@pytest.mark.parametrize("mode", ["GRACEFUL", "FORCEFUL"])
async def test_an_operation_that_runs_is_cancelled(user: User, lab: LabControl, mode: str) -> None:
    """API-052, API-053."""
    instance_id = await built(user)
    await lab.forget_calls()
    async with lab.fault("nova", "server_boot", effect="hang"):
        operation = await user.start(instance_id, "scale", sample_body("vm", "scale_out"))
        await lab.called("nova", "server_boot")
        assert "cancel" in (await user.occurrence(operation))["_links"]
        await cancel(user, operation, mode)
        if mode == "GRACEFUL":
            pending = await user.occurrence(operation)
            assert (pending["operationState"], pending["isCancelPending"]) == ("PROCESSING", True)
            assert pending["cancelMode"] == "GRACEFUL"
        else:
            assert (await user.rest(operation))["state"] == "FAILED_TEMP"
    view = await user.rest(operation)
    if mode == "GRACEFUL":  # the last step ended by itself, so there was nothing to cancel
        assert view["state"] == "COMPLETED", view
    else:
        occurrence = await user.occurrence(operation)
        assert (occurrence["error"]["status"], occurrence["error"]["title"]) == (409, "Operation cancelled")
        assert occurrence["isCancelPending"] is False
        assert (await user.act(operation, "rollback"))["state"] == "ROLLED_BACK"

        async def one_is_left() -> bool | None:
            return len(await machines(lab, instance_id)) == 1 or None

        await until(one_is_left)
    (await user.lcm("POST", f"/vnf_lcm_op_occs/{operation}/cancel", {"cancelMode": mode})).must(409)
    await user.terminate(instance_id)
