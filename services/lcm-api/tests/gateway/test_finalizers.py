"""The decision to remove finalizers, with a termination or with its retry (capi.md CR-109)."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_events.objects import DeleteObjects, LeftObject, ObjectsDeleted
from worlds.lcm_world import World

DELETE = "infra.k8s.delete_objects"
FORCE = {"additionalParams": {"capi": {"force_remove_finalizers": True}}}


async def instantiated(world: World) -> str:
    await world.sample("cnf")
    world.vims.add("VIM_ID", "kubernetes")
    instance_id = await world.create("cnf")
    await world.reached(await world.instantiate(instance_id, "cnf"), "COMPLETED")
    return instance_id


def forced(world: World) -> list[bool]:
    """Return of each deletion that was sent whether it may remove finalizers."""
    return [each.data.force_remove_finalizers for each in world.twins.commands if isinstance(each.data, DeleteObjects)]


async def test_a_termination_removes_finalizers_only_if_asked(world: World) -> None:
    """CR-109."""
    for more, expected in (({}, False), (FORCE, True)):
        instance_id = await instantiated(world) if not forced(world) else await again(world)
        operation_id = await world.ask(instance_id, "terminate", {"terminationType": "GRACEFUL", **more})
        await world.reached(operation_id, "COMPLETED")
        assert forced(world)[-1] is expected


async def again(world: World) -> str:
    instance_id = await world.create("cnf")
    await world.reached(await world.instantiate(instance_id, "cnf"), "COMPLETED")
    return instance_id


async def test_the_retry_of_a_termination_may_ask_for_it_and_shows_what_is_left(world: World) -> None:
    """CR-109: a machine without its finalizer is not REMOVED; an empty retry, as in SOL003, asks for nothing."""
    instance_id = await instantiated(world)
    world.twins.failing.add(DELETE)
    operation_id = await world.ask(instance_id, "terminate", {"terminationType": "GRACEFUL"})
    await world.reached(operation_id, "FAILED_TEMP")
    path = f"/vnf_lcm_op_occs/{operation_id}/retry"
    (await world.lcm("POST", path)).must(202)
    await world.until(lambda: len(forced(world)) == 2)
    await world.reached(operation_id, "FAILED_TEMP")
    world.twins.failing.clear()
    left = LeftObject(api_version="a/v1", kind="A", name="a", uid="u", finalizers=("f",), vdu_id="web")
    world.twins.answers[DELETE] = ObjectsDeleted(count=1, left=(left,))
    (await world.lcm("POST", path, FORCE)).must(202)
    changes = (await world.reached(operation_id, "COMPLETED"))["resourceChanges"]
    assert forced(world) == [False, False, True]
    assert [each["finalizers"] for each in changes["metadata"]["kubevnfm_left"]] == [["f"]]
    assert not changes.get("affectedVnfcs")


@pytest.mark.parametrize(
    ("capi", "status", "says"),
    [
        ({"force_remove_finalizers": "yes"}, 400, "true or false expected"),
        ({"rollout": True}, 422, "capi/rollout"),
        ([], 400, "an object expected"),
    ],
)
async def test_a_malformed_decision_is_refused(world: World, capi: Any, status: int, says: str) -> None:
    """CR-109: nothing is deleted then."""
    instance_id = await instantiated(world)
    body = {"terminationType": "GRACEFUL", "additionalParams": {"capi": capi}}
    answer = await world.lcm("POST", f"/vnf_instances/{instance_id}/terminate", body)
    assert says in answer.problem(status)["detail"]
    assert forced(world) == []


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (FORCE, 422, "TERMINATE of a CNF"),
        ({"force_remove_finalizers": True}, 400, "force_remove_finalizers"),
        ({"additionalParams": {"wait": 5}}, 422, "additionalParams/wait"),
        ({"additionalParams": 5}, 400, "an object expected"),
        ([], 400, "an object expected"),
    ],
)
async def test_a_retry_that_asks_for_something_else_is_refused(world: World, body: Any, status: int, says: str) -> None:
    """CR-109: the operation stays FAILED_TEMP."""
    await world.sample()
    operation_id = await world.an_operation_in("FAILED_TEMP")
    answer = await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/retry", body)
    assert says in answer.problem(status)["detail"]
    assert (await world.operation(operation_id))["operationState"] == "FAILED_TEMP"
