"""``.../suspension`` over HTTP: of VNF instances, and operations in suspended regions (multicloud.md MC-139, chapter 8)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_kit.errors import OutsideUnavailable
from worlds.cnf_world import deployed
from worlds.lcm_world import Answer, World

KEY = "kubevnfm_suspended"
BAD_REASONS: list[Any] = [{}, {"reason": ""}, {"reason": "  "}, {"reason": "x" * 1025}, {"reason": 5}, {"reason": None}]
OUT = {"type": "SCALE_OUT", "aspectId": "web_aspect"}
TASKS: list[tuple[str, dict[str, Any]]] = [
    ("scale", OUT),
    ("scale_to_level", {"instantiationLevelId": "instantiation_level_1"}),
    ("heal", {"additionalParams": {"repair": True}}),
    ("terminate", {"terminationType": "FORCEFUL"}),
]


async def put(world: World, instance_id: str, body: Any) -> Answer:
    return await world.call("PUT", f"/multicloud/v1/vnf_instances/{instance_id}/suspension", body)


async def refusals(world: World, instance_id: str) -> list[str]:
    """Return the texts with which each operation is refused."""
    answers = [await world.lcm("POST", f"/vnf_instances/{instance_id}/{task}", body) for task, body in TASKS]
    answers.append(await world.v1("POST", f"/vnf_instances/{instance_id}/{TASKS[0][0]}", TASKS[0][1]))
    answers.append(await world.lcm("PATCH", f"/vnf_instances/{instance_id}", {"vnfInstanceName": "other"}))
    found = [answer.problem(409) for answer in answers]
    assert [problem["type"] for problem in found] == ["suspended"] * len(found)
    return [str(problem["detail"]) for problem in found]


async def shown(world: World, instance_id: str) -> Any:
    """Return what the instance shows, in one answer and in the list."""
    one = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).must(200).json
    (listed,) = (await world.lcm("GET", "/vnf_instances?all_fields")).must(200).json
    found = one.get("metadata", {}).get(KEY)
    assert listed.get("metadata", {}).get(KEY) == found
    return found


async def test_nothing_begins_on_a_suspended_instance(world: World) -> None:
    instance_id = await deployed(world)
    path = f"/multicloud/v1/vnf_instances/{instance_id}/suspension"
    (await world.call("GET", path)).problem(404)
    (await world.call("DELETE", path)).problem(404)
    tag = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).headers["ETag"]
    begun = (await put(world, instance_id, {"reason": "new disks"})).must(200).json
    assert (begun["by"], begun["reason"], begun["scope"]) == ("anybody", "new disks", "instance")
    other = (await put(world, instance_id, {"reason": "new fans"})).must(200).json
    assert other == {**begun, "reason": "new fans"}
    assert (await world.call("GET", path)).must(200).json == other
    assert await shown(world, instance_id) == other
    assert (await world.lcm("GET", f"/vnf_instances/{instance_id}")).headers["ETag"] != tag
    found = (await world.lcm("GET", f"/vnf_instances?filter=(eq,metadata/{KEY}/scope,instance)")).must(200).json
    assert [each["id"] for each in found] == [instance_id]
    for detail in await refusals(world, instance_id):
        assert "new fans" in detail
        assert begun["since"] in detail
    # The key is no request's.
    mine = {"metadata": {KEY: {"by": "me"}}}
    (await world.lcm("PATCH", f"/vnf_instances/{instance_id}", mine)).problem(400)
    asked = len(world.twins.asked())
    (await world.call("DELETE", path)).must(204)
    assert await shown(world, instance_id) is None
    await world.reached(await world.ask(instance_id, "scale", OUT), "COMPLETED")
    assert len(world.twins.asked()) > asked


async def test_an_operation_and_a_suspension_exclude_one_another(world: World) -> None:
    """Also if they come at the same moment: one of the two is refused."""
    instance_id = await deployed(world)
    world.twins.waiting.add("infra.k8s.scale_objects")
    operation = world.lcm("POST", f"/vnf_instances/{instance_id}/scale", OUT)
    began, suspended = await asyncio.gather(operation, put(world, instance_id, {"reason": "now"}))
    assert sorted((began.status, suspended.status)) in ([200, 409], [202, 409])
    if suspended.status == 200:
        (await world.call("DELETE", f"/multicloud/v1/vnf_instances/{instance_id}/suspension")).must(204)
        (await world.lcm("POST", f"/vnf_instances/{instance_id}/scale", OUT)).must(202)
    assert (await put(world, instance_id, {"reason": "now"})).problem(409)["type"] == "operation-running"


async def test_bad_suspensions_of_instances_are_refused(world: World) -> None:
    """Chapter 8; and kinds that are not suspended."""
    instance_id = await deployed(world)
    for body in BAD_REASONS:
        problem = (await put(world, instance_id, body)).problem(422)
        assert [error["pointer"] for error in problem["errors"]] == ["/reason"], body
    assert (await put(world, instance_id, {"reason": "x", "until": "noon"})).problem(422)["errors"][0][
        "pointer"
    ] == "/until"
    (await put(world, instance_id, [])).problem(400)
    unknown = "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed"
    (await put(world, unknown, {"reason": "x"})).problem(404)
    (await world.call("DELETE", f"/multicloud/v1/vnf_instances/{unknown}/suspension")).problem(404)
    await world.sample()
    idle = await world.create()
    (await put(world, idle, {"reason": "x"})).problem(409)
    await world.reached(await world.instantiate(idle), "COMPLETED")
    assert "containers" in (await put(world, idle, {"reason": "x"})).problem(409)["detail"]
    assert await shown_of(world, instance_id) is None


async def shown_of(world: World, instance_id: str) -> Any:
    return (await world.lcm("GET", f"/vnf_instances/{instance_id}")).must(200).json.get("metadata", {}).get(KEY)


async def test_machines_do_not_wait_for_the_suspensions_of_regions(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MC-139: an OpenStack is no cloud region."""

    async def no_answer() -> Mapping[str, Suspension]:
        raise OutsideUnavailable("vim-registry does not answer")

    monkeypatch.setattr(world.regions, "suspensions", no_answer)
    await world.sample()
    instance_id = await world.create()
    await world.reached(await world.instantiate(instance_id), "COMPLETED")
    assert await shown_of(world, instance_id) is None
    await world.reached(await world.ask(instance_id, *TASKS[-1]), "COMPLETED")


async def test_nothing_begins_in_a_suspended_region(world: World) -> None:
    """A running operation ends; a retry or a rollback of what has failed does not begin."""
    instance_id = await deployed(world)
    (vim,) = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json["vimConnectionInfo"].values()
    world.twins.failing = {"infra.k8s.scale_objects"}
    world.twins.waiting.add("infra.k8s.scale_objects")
    operation_id = await world.ask(instance_id, "scale", OUT)
    await world.reached(operation_id, "PROCESSING")
    suspension = Suspension(by="ann", since="2026-11-26T10:00:00.000Z", reason="new switches", scope="region")
    world.regions.suspended[vim["vimId"]] = suspension
    world.twins.waiting.clear()
    await world.twins.release()
    await world.reached(operation_id, "FAILED_TEMP")
    for task in ("retry", "rollback"):
        problem = (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/{task}")).problem(409)
        assert (problem["type"], "new switches" in problem["detail"]) == ("suspended", True)
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/fail")).must(200)
    for detail in await refusals(world, instance_id):
        assert "since 2026-11-26T10:00:00.000Z by ann: new switches" in detail
    assert await shown(world, instance_id) == suspension.model_dump(mode="json")
    shown_here = await world.call("GET", f"/multicloud/v1/vnf_instances/{instance_id}/suspension")
    assert shown_here.must(200).json["scope"] == "region"
    (await world.call("DELETE", f"/multicloud/v1/vnf_instances/{instance_id}/suspension")).problem(404)
    world.regions.suspended.clear()
    world.twins.failing = set()
    await world.reached(await world.ask(instance_id, "scale", OUT), "COMPLETED")
