"""VNF snapshots over HTTP, with twins behind: what is judged, what is asked of infra-openstack, what is shown and what stays."""

from __future__ import annotations

from typing import Any

from kubevnfm_events.snapshots import (
    MachineReverted,
    MachineSnapshot,
    RemoveSnapshot,
    RevertMachine,
    SnapshotTaken,
    TakeSnapshot,
    VolumeSnapshot,
)
from kubevnfm_events.stacks import ResourcesChanged, ResourcesCreated, StackResources, StorageFacts
from patience import until
from worlds.lcm_builders import RESOURCES
from worlds.lcm_world import TOKEN, World

UNKNOWN = "00000000-0000-4000-8000-000000000000"
TAKE, REVERT = "infra.openstack.take_snapshot", "infra.openstack.revert_machine"
VOLUME = StorageFacts(name="data", resource_id="volume-1", server_id=RESOURCES.servers[0].server_id)
STACK: StackResources = RESOURCES.model_copy(update={"volumes": (VOLUME,)})


def taken(*, boots_from_volume: bool = False) -> dict[str, SnapshotTaken]:
    """Return the answers of infra-openstack by step."""
    answers = {}
    for number, server in enumerate(STACK.servers):
        volume = VolumeSnapshot(volume_id="volume-1", snapshot_id="snapshot-of-1", is_root=boots_from_volume)
        machine = MachineSnapshot(
            vnfc_id=server.vnfc_id,
            server_id=server.server_id,
            image_id=None if boots_from_volume else f"image-of-{server.server_id}",
            volumes=(volume,) if number == 0 else (),
        )
        answers[f"{TAKE}/snapshot/{server.vnfc_id}"] = SnapshotTaken(machine=machine)
    return answers


async def live(world: World) -> str:
    """Return an INSTANTIATED instance with a volume."""
    await world.sample()
    world.twins.answers["infra.openstack.create_resources"] = ResourcesCreated(resources=STACK)
    world.twins.answers.update(taken())
    for server in STACK.servers:
        reply = MachineReverted(server_id=server.server_id, image_id=f"image-of-{server.server_id}")
        world.twins.answers[f"{REVERT}/revert/{server.vnfc_id}"] = reply
    instance_id = await world.create()
    await world.reached(await world.instantiate(instance_id), "COMPLETED")
    return instance_id


async def made(world: World, body: Any = None) -> str:
    """Return the id of an individual VNF snapshot."""
    answer = (await world.lcm("POST", "/vnf_snapshots", body if body is not None else {})).must(201)
    assert answer.headers["Location"] == answer.json["_links"]["self"]["href"]
    snapshot_id: str = answer.json["id"]
    return snapshot_id


async def show(world: World, snapshot_id: str) -> Any:
    return (await world.lcm("GET", f"/vnf_snapshots/{snapshot_id}")).must(200).json


async def asked_twice(world: World, instance_id: str, task: str, body: Any) -> str:
    """Start an operation after a dry run of it, which leaves the snapshot as it is; return the id of its occurrence."""
    before = await show(world, body["vnfSnapshotInfoId"])
    path = f"/vnf_instances/{instance_id}/{task}"
    plan = (await world.lcm("POST", path, body, params={"dry_run": "true"})).must(200).json
    assert (plan["operation"], bool(plan["plan"])) == (task.upper(), True)
    assert await show(world, body["vnfSnapshotInfoId"]) == before
    return await world.ask(instance_id, task, body)


def asked(world: World, kind: type[Any]) -> list[Any]:
    return [one.data for one in world.twins.commands if isinstance(one.data, kind)]


async def terminated(world: World, instance_id: str) -> None:
    """Terminate a VNF as soon as no snapshot holds its volumes."""

    async def is_accepted() -> bool | None:
        stop = {"terminationType": "FORCEFUL"}
        answer = await world.lcm("POST", f"/vnf_instances/{instance_id}/terminate", stop)
        return answer.status == 202 or None

    await until(is_accepted)


async def test_a_snapshot_is_taken_listed_gone_back_to_and_deleted_with_its_resources(world: World) -> None:
    """API-162, API-171, API-172, API-173, API-174."""
    instance_id = await live(world)
    before = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json
    assert {"createSnapshot", "revertToSnapshot"} <= set(before["_links"])
    info_id = await made(world)
    wanted = {"vnfSnapshotInfoId": info_id, "userDefinedData": {"why": "before the upgrade"}}
    operation_id = await asked_twice(world, instance_id, "create_snapshot", wanted)
    occurrence = await world.reached(operation_id, "COMPLETED")
    assert (occurrence["operation"], occurrence["vnfSnapshotInfoId"]) == ("CREATE_SNAPSHOT", info_id)
    assert occurrence["_links"]["vnfSnapshot"]["href"].endswith(f"/vnflcm/v2/vnf_snapshots/{info_id}")
    in_v1 = (await world.v1("GET", f"/vnf_lcm_op_occs/{operation_id}")).must(200).json
    assert (in_v1["operation"], "vnfSnapshotInfoId" in in_v1) == ("CREATE_SNAPSHOT", False)
    assert {(one.vnfc_id, one.server_id) for one in asked(world, TakeSnapshot)} == {
        (server.vnfc_id, server.server_id) for server in STACK.servers
    }
    shown = await show(world, info_id)
    assert shown["_links"]["takenFrom"]["href"].endswith(f"/vnflcm/v2/vnf_instances/{instance_id}")
    snapshot = shown["vnfSnapshot"]
    assert (snapshot["vnfInstanceId"], snapshot["userDefinedData"]) == (instance_id, {"why": "before the upgrade"})
    assert snapshot["creationStartedAt"] <= snapshot["creationFinishedAt"]
    assert snapshot["vnfInstance"]["instantiatedVnfInfo"]["vnfcResourceInfo"]
    assert {"password", "$sealed", "internal"}.isdisjoint(str(snapshot["vnfInstance"]).split("'"))
    first, *_ = snapshot["vnfcSnapshots"]
    assert first["computeSnapshotResource"]["vimLevelResourceType"] == "OS::Glance::Image"
    assert [one["storageResourceId"] for one in first["storageSnapshotResources"]] == ["volume-1"]

    # Lists: without what is large, by filters and selectors.
    (listed,) = (await world.lcm("GET", "/vnf_snapshots")).must(200).json
    assert {"vnfInstance", "vnfcSnapshots"}.isdisjoint(listed["vnfSnapshot"])
    path = f"/vnf_snapshots?filter=(eq,vnfSnapshot/vnfInstanceId,{instance_id})&fields=vnfSnapshot/vnfcSnapshots"
    (listed,) = (await world.lcm("GET", path)).must(200).json
    assert "vnfcSnapshots" in listed["vnfSnapshot"]
    assert "vnfInstance" not in listed["vnfSnapshot"]
    none = await world.lcm("GET", f"/vnf_snapshots?filter=(eq,vnfSnapshot/vnfdId,{UNKNOWN})")
    assert none.must(200).json == []

    # It cannot be filled again, nor described.
    again = await world.lcm("POST", f"/vnf_instances/{instance_id}/create_snapshot", {"vnfSnapshotInfoId": info_id})
    assert "holds a snapshot already" in again.problem(422)["detail"]
    (await world.lcm("PATCH", f"/vnf_snapshots/{info_id}", {"vnfSnapshotPkgId": "p"})).problem(409)
    state = f"/vnf_snapshots/{info_id}/vnf_state_snapshot"
    assert "has no VNF state snapshot" in (await world.lcm("GET", state)).problem(404)["detail"]

    # Back.
    world.twins.waiting.add(REVERT)
    operation_id = await asked_twice(world, instance_id, "revert_to_snapshot", {"vnfSnapshotInfoId": info_id})
    await world.twins.has_asked(1 + 2 * len(STACK.servers))
    in_use = await world.lcm("DELETE", f"/vnf_snapshots/{info_id}")
    assert "is in use by REVERT_TO_SNAPSHOT" in in_use.problem(409)["detail"]
    await world.twins.release()
    occurrence = await world.reached(operation_id, "COMPLETED")
    commands: list[RevertMachine] = asked(world, RevertMachine)
    assert {one.server_id: one.image_id for one in commands} == {
        server.server_id: f"image-of-{server.server_id}" for server in STACK.servers
    }
    ports = {server.server_id: tuple(port.resource_id for port in server.ports) for server in STACK.servers}
    assert all(set(one.ports) <= set(ports[one.server_id]) and one.state == "STARTED" for one in commands)
    changes = occurrence["resourceChanges"]
    assert {one["changeType"] for one in changes["affectedVnfcs"]} == {"MODIFIED"}
    assert [one["id"] for one in changes["affectedVirtualStorages"]] == ["volume-1"]

    # The snapshot outlives its VNF, whose volumes cannot be deleted while they have snapshots.
    stop = {"terminationType": "FORCEFUL"}
    refused = await world.lcm("POST", f"/vnf_instances/{instance_id}/terminate", stop)
    assert f"VNF snapshot {info_id} has snapshots of volumes" in refused.problem(409)["detail"]
    internal = {"Authorization": f"Bearer {TOKEN}"}
    users = await world.call("GET", "/internal/v1/vims/vim-1/users", headers=internal)
    assert users.must(200).json["users"] == [instance_id]
    tag = (await world.lcm("GET", f"/vnf_snapshots/{info_id}")).headers["ETag"]
    other = {"If-Match": '"another"', "Version": "2.0.0"}
    (await world.call("DELETE", f"/vnflcm/v2/vnf_snapshots/{info_id}", headers=other)).problem(412)
    right = {"If-Match": tag, "Version": "2.0.0"}
    (await world.call("DELETE", f"/vnflcm/v2/vnf_snapshots/{info_id}", headers=right)).must(204)
    (await world.lcm("GET", f"/vnf_snapshots/{info_id}")).problem(404)
    await world.twins.has_asked(1 + 3 * len(STACK.servers))
    removed: list[RemoveSnapshot] = asked(world, RemoveSnapshot)
    assert {one.made.image_id for one in removed if one.made} == {f"image-of-{one.server_id}" for one in STACK.servers}
    await terminated(world, instance_id)


async def test_a_machine_that_fails_is_retried_alone_or_everything_is_taken_back(world: World) -> None:
    """API-171, API-172."""
    instance_id = await live(world)
    broken = STACK.servers[1]
    world.twins.failing.add(f"{TAKE}/snapshot/{broken.vnfc_id}")
    info_id = await made(world)
    operation_id = await world.ask(instance_id, "create_snapshot", {"vnfSnapshotInfoId": info_id})
    await world.reached(operation_id, "FAILED_TEMP")
    shown = await show(world, info_id)
    assert "creationFinishedAt" not in shown["vnfSnapshot"]
    (await world.lcm("GET", f"/vnf_snapshots/{info_id}/vnf_state_snapshot")).problem(409)
    (await world.lcm("DELETE", f"/vnf_snapshots/{info_id}")).problem(409)
    count = len(asked(world, TakeSnapshot))
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/retry")).must(202)
    await world.reached(operation_id, "FAILED_TEMP")
    assert [one.vnfc_id for one in asked(world, TakeSnapshot)[count:]] == [broken.vnfc_id]
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
    await world.reached(operation_id, "ROLLED_BACK")
    assert {one.vnfc_id for one in asked(world, RemoveSnapshot)} == {one.vnfc_id for one in STACK.servers}
    assert "vnfSnapshot" not in await show(world, info_id)
    # Free again.
    world.twins.failing.clear()
    await world.reached(await world.ask(instance_id, "create_snapshot", {"vnfSnapshotInfoId": info_id}), "COMPLETED")
    # Given up: what was made stays until the individual VNF snapshot is deleted.
    world.twins.failing.add(f"{TAKE}/snapshot/{broken.vnfc_id}")
    other_id = await made(world)
    operation_id = await world.ask(instance_id, "create_snapshot", {"vnfSnapshotInfoId": other_id})
    await world.reached(operation_id, "FAILED_TEMP")
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/fail")).must(200)
    back = await world.lcm("POST", f"/vnf_instances/{instance_id}/revert_to_snapshot", {"vnfSnapshotInfoId": other_id})
    assert "holds no complete snapshot" in back.problem(409)["detail"]
    for further in ({"all": True}, {"x_keep_volume": False}):
        heal = await world.lcm("POST", f"/vnf_instances/{instance_id}/heal", {"additionalParams": further})
        assert all(one in heal.problem(409)["detail"] for one in (info_id, other_id, "delete the VNF snapshot first"))
    # The operation that was given up may have made snapshots of volumes that no reply has reported.
    (await world.lcm("DELETE", f"/vnf_snapshots/{info_id}")).must(204)
    stop = {"terminationType": "FORCEFUL"}
    path = f"/vnf_instances/{instance_id}/terminate"
    assert f"VNF snapshot {other_id} has snapshots" in (await world.lcm("POST", path, stop)).problem(409)["detail"]
    # Deleted, and not yet gone from the cloud.
    world.twins.waiting.add("infra.openstack.remove_snapshot")
    count = len(world.twins.commands)
    (await world.lcm("DELETE", f"/vnf_snapshots/{other_id}")).must(204)
    await world.twins.has_asked(count + 1)
    assert "still has snapshots of volumes" in (await world.lcm("POST", path, stop)).problem(409)["detail"]


async def test_what_cannot_be_gone_back_to_is_refused_by_name(world: World) -> None:
    """API-172."""
    instance_id = await live(world)
    path = f"/vnf_instances/{instance_id}/revert_to_snapshot"
    unknown = await world.lcm("POST", path, {"vnfSnapshotInfoId": UNKNOWN})
    assert unknown.problem(422)["invalidParams"][0]["name"] == "vnfSnapshotInfoId"
    empty_id = await made(world)
    assert (
        "holds no complete snapshot"
        in (await world.lcm("POST", path, {"vnfSnapshotInfoId": empty_id})).problem(409)["detail"]
    )
    older, newer = await made(world), await made(world)
    for info_id in (older, newer):
        await world.reached(
            await world.ask(instance_id, "create_snapshot", {"vnfSnapshotInfoId": info_id}), "COMPLETED"
        )
    refused = await world.lcm("POST", path, {"vnfSnapshotInfoId": older})
    assert f"VNF snapshot {newer} has a newer snapshot" in refused.problem(409)["detail"]
    # Another number of machines.
    fewer = STACK.model_copy(update={"servers": STACK.servers[:-1]})
    world.twins.answers["infra.openstack.scale_resources"] = ResourcesChanged(resources=fewer)
    out = {"type": "SCALE_OUT", "aspectId": "VDU1_scale"}
    await world.reached(await world.ask(instance_id, "scale", out), "COMPLETED")
    detail = (await world.lcm("POST", path, {"vnfSnapshotInfoId": newer})).problem(409)["detail"]
    assert "scale it to the machines of the snapshot first" in detail
    world.twins.answers["infra.openstack.scale_resources"] = ResourcesChanged(resources=STACK)
    back = {"type": "SCALE_IN", "aspectId": "VDU1_scale"}
    await world.reached(await world.ask(instance_id, "scale", back), "COMPLETED")
    # A machine that boots from a volume.
    world.twins.answers.update(taken(boots_from_volume=True))
    volume_id = await made(world)
    await world.reached(await world.ask(instance_id, "create_snapshot", {"vnfSnapshotInfoId": volume_id}), "COMPLETED")
    compute = (await show(world, volume_id))["vnfSnapshot"]["vnfcSnapshots"][0]["computeSnapshotResource"]
    assert compute["vimLevelResourceType"] == "OS::Cinder::Snapshot"
    assert (
        "boots from a volume"
        in (await world.lcm("POST", path, {"vnfSnapshotInfoId": volume_id})).problem(422)["detail"]
    )
    # Another VNF, and no VNF.
    other = await world.create()
    not_there = await world.lcm("POST", f"/vnf_instances/{other}/create_snapshot", {"vnfSnapshotInfoId": empty_id})
    assert "NOT_INSTANTIATED" in not_there.problem(409)["detail"]
    await world.reached(await world.instantiate(other), "COMPLETED")
    foreign = await world.lcm("POST", f"/vnf_instances/{other}/revert_to_snapshot", {"vnfSnapshotInfoId": newer})
    assert f"is of VNF instance {instance_id}" in foreign.problem(422)["detail"]


async def test_a_snapshot_of_a_package_is_described_and_not_gone_back_to(world: World) -> None:
    """API-173, API-174."""
    instance_id = await live(world)
    snapshot = {"id": "s", "vnfInstanceId": "i", "vnfdId": "d", "vnfcSnapshots": [{"id": "c", "vnfcInstanceId": "v"}]}
    info_id = await made(world)
    change = {"vnfSnapshotPkgId": "p", "vnfSnapshot": snapshot}
    for body, status, text in (
        ({"vnfSnapshotPkgId": None}, 400, "null"),
        ({"vnfSnapshotPkg": "p"}, 400, "vnfSnapshotPkg"),
        (
            {"vnfSnapshot": {**snapshot, "vnfdID": "d"}},
            400,
            "vnfSnapshot/vnfdID: no such attribute: did you mean vnfdId?",
        ),
        ({"vnfSnapshot": {**snapshot, "creationStartedAt": "yesterday"}}, 400, "creationStartedAt"),
        (
            {
                "vnfSnapshot": {
                    **snapshot,
                    "vnfStateSnapshotInfo": {"checksum": {"algorithm": "a", "hash": "h"}, "isEncrypted": False},
                }
            },
            422,
            "vnfStateSnapshotInfo",
        ),
    ):
        assert text in (await world.lcm("PATCH", f"/vnf_snapshots/{info_id}", body)).problem(status)["detail"]
    assert (await world.lcm("PATCH", f"/vnf_snapshots/{info_id}", change)).must(200).json == change
    shown = await show(world, info_id)
    assert (shown["vnfSnapshotPkgId"], shown["vnfSnapshot"], "takenFrom" in shown["_links"]) == ("p", snapshot, False)
    for task in ("revert_to_snapshot", "create_snapshot"):
        (await world.lcm("POST", f"/vnf_instances/{instance_id}/{task}", {"vnfSnapshotInfoId": info_id})).problem(422)
    (await world.lcm("DELETE", f"/vnf_snapshots/{info_id}")).must(204)
