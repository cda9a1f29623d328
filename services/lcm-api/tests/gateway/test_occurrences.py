"""Operation occurrences over HTTP: what each state shows and takes, failure, retry, rollback, giving up, cleaning up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kubevnfm_events.stacks import DeleteResources
from worlds.lcm_builders import RESOURCES
from worlds.lcm_world import TOKEN, World, sample_request

CREATE, DELETE = "infra.openstack.create_resources", "infra.openstack.delete_resources"
UNKNOWN = "00000000-0000-4000-8000-000000000000"
STATES = ["PROCESSING", "FAILED_TEMP", "ROLLING_BACK", "COMPLETED", "FAILED", "ROLLED_BACK"]
FORCEFUL = {"terminationType": "FORCEFUL"}


@pytest.mark.parametrize("task", ["retry", "rollback", "fail"])
@pytest.mark.parametrize("state", STATES)
async def test_error_handling_is_taken_in_failed_temp_only_and_linked_then_only(
    world: World, state: str, task: str
) -> None:
    await world.sample()
    operation_id = await world.an_operation_in(state)
    links = (await world.operation(operation_id))["_links"]
    assert (task in links) == (state == "FAILED_TEMP")
    path = f"/vnf_lcm_op_occs/{operation_id}"
    answer = await world.lcm("POST", f"{path}/{task}")
    if state != "FAILED_TEMP":
        assert state in answer.problem(409)["detail"]
    elif task == "fail":
        assert answer.must(200).json["operationState"] == "FAILED"
    else:
        assert answer.must(202).raw == b""
        assert answer.headers["Location"] == f"{world.url}/vnflcm/v2{path}"
        end = "COMPLETED" if task == "retry" else "ROLLED_BACK"
        assert (await world.reached(operation_id, end))["operationState"] == end
    await world.twins.release()


@pytest.mark.parametrize("task", ["retry", "rollback", "fail", "cancel"])
async def test_nothing_is_done_to_an_occurrence_that_does_not_exist(world: World, task: str) -> None:
    body = {"cancelMode": "GRACEFUL"} if task == "cancel" else None
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{UNKNOWN}/{task}", body)).problem(404)


async def test_a_completed_instantiate_shows_what_it_added(world: World) -> None:
    await world.sample()
    operation_id = await world.an_operation_in("COMPLETED")
    occ = await world.operation(operation_id)
    assert occ["operation"] == "INSTANTIATE"
    assert occ["operationParams"]["flavourId"] == "simple"
    assert occ["isAutomaticInvocation"] is False
    assert occ["isCancelPending"] is False
    assert occ["grantId"]
    assert {each["changeType"] for each in occ["resourceChanges"]["affectedVnfcs"]} == {"ADDED"}
    assert "error" not in occ
    assert set(occ["_links"]) == {"self", "vnfInstance"}
    assert occ["startTime"] < occ["stateEnteredTime"]
    v1 = (await world.v1("GET", f"/vnf_lcm_op_occs/{operation_id}")).must(200).json
    assert v1["_links"]["vnfInstance"]["href"].startswith(f"{world.url}/vnflcm/v1/")


async def test_a_failed_create_lists_what_is_left_until_it_is_rolled_back(world: World) -> None:
    await world.sample()
    world.twins.remains = RESOURCES.model_dump(mode="json")
    operation_id = await world.an_operation_in("FAILED_TEMP")
    occ = await world.operation(operation_id)
    assert occ["error"]["status"] == 422
    assert occ["error"]["title"] == "Stack creation failed"
    assert "create_resources" in occ["error"]["detail"]
    assert len(occ["resourceChanges"]["affectedVnfcs"]) == len(RESOURCES.servers)
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
    occ = await world.reached(operation_id, "ROLLED_BACK")
    assert "resourceChanges" not in occ
    assert occ["error"]
    shown = (await world.lcm("GET", f"/vnf_instances/{occ['vnfInstanceId']}")).json
    assert shown["instantiationState"] == "NOT_INSTANTIATED"
    (await world.lcm("DELETE", f"/vnf_instances/{occ['vnfInstanceId']}")).must(204)


async def test_a_retry_that_works_takes_the_error_away(world: World) -> None:
    await world.sample()
    operation_id = await world.an_operation_in("FAILED_TEMP")
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/retry")).must(202)
    assert "error" not in await world.reached(operation_id, "COMPLETED")
    first, second = world.twins.commands
    assert (first.attempt, second.attempt) == (1, 2)
    assert first.id != second.id


async def test_a_rollback_that_fails_may_be_repeated(world: World) -> None:
    await world.sample()
    operation_id = await world.an_operation_in("FAILED_TEMP")
    path = f"/vnf_lcm_op_occs/{operation_id}"
    world.twins.failing.add(DELETE)
    (await world.lcm("POST", f"{path}/rollback")).must(202)
    await world.until(lambda: [c.state for c in world.changes][-2:] == ["ROLLING_BACK", "FAILED_TEMP"])
    world.twins.failing.clear()
    (await world.lcm("POST", f"{path}/rollback")).must(202)
    await world.reached(operation_id, "ROLLED_BACK")


async def test_of_retry_and_rollback_at_once_one_is_accepted(world: World) -> None:
    await world.sample()
    for _ in range(3):
        operation_id = await world.an_operation_in("FAILED_TEMP")
        world.twins.waiting |= {CREATE, DELETE}
        path = f"/vnf_lcm_op_occs/{operation_id}"
        answers = await asyncio.gather(*(world.lcm("POST", f"{path}/{task}") for task in ("retry", "rollback")))
        assert sorted(answer.status for answer in answers) == [202, 409]
        await world.reached(operation_id, "PROCESSING", "ROLLING_BACK")
        await world.twins.release()
        await world.reached(operation_id, "COMPLETED", "ROLLED_BACK")


async def test_a_failed_terminate_leaves_the_instance_instantiated_and_has_no_way_back(world: World) -> None:
    await world.sample()
    instance_id = (await world.operation(await world.an_operation_in("COMPLETED")))["vnfInstanceId"]
    world.twins.failing.add(DELETE)
    operation_id = await world.ask(instance_id, "terminate", FORCEFUL)
    occ = await world.reached(operation_id, "FAILED_TEMP")
    assert {"retry", "fail"} == set(occ["_links"]) - {"self", "vnfInstance"}
    path = f"/vnf_lcm_op_occs/{operation_id}"
    (await world.lcm("POST", f"{path}/rollback")).problem(404)
    busy = (await world.lcm("POST", f"/vnf_instances/{instance_id}/terminate", FORCEFUL)).problem(409)
    assert busy["detail"].endswith("is running on this VNF instance; retry or fail it first")
    (await world.lcm("POST", f"{path}/fail")).must(200)
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json
    assert shown["instantiationState"] == "INSTANTIATED"
    assert shown["instantiatedVnfInfo"]
    world.twins.failing.clear()
    await world.reached(await world.ask(instance_id, "terminate", FORCEFUL), "COMPLETED")
    (await world.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(204)


async def test_what_a_given_up_instantiate_left_goes_with_the_instance(world: World) -> None:
    await world.sample()
    world.twins.remains = RESOURCES.model_dump(mode="json")
    operation_id = await world.an_operation_in("FAILED")
    occ = await world.operation(operation_id)
    assert occ["resourceChanges"]["affectedVnfcs"]
    assert await users_of(world, "vim-1") == [occ["vnfInstanceId"]]
    world.twins.waiting.add(DELETE)
    (await world.lcm("DELETE", f"/vnf_instances/{occ['vnfInstanceId']}")).must(204)
    commands = await world.twins.has_asked(2)
    assert isinstance(commands[1].data, DeleteResources)
    assert commands[1].data.vnf_instance_id == occ["vnfInstanceId"]
    # until it is all gone, its VIM is in use
    assert await users_of(world, "vim-1") == [occ["vnfInstanceId"]]
    await world.twins.release()
    await world.bus.quiet()
    assert await users_of(world, "vim-1") == []
    listed = (await world.lcm("GET", "/vnf_lcm_op_occs")).json
    assert [each["id"] for each in listed] == [operation_id]


async def test_a_clean_up_is_nobodys_to_handle(world: World) -> None:
    await world.sample()
    operation_id = await world.an_operation_in("FAILED")
    instance_id = (await world.operation(operation_id))["vnfInstanceId"]
    world.twins.failing.add(DELETE)
    (await world.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(204)
    clean_up = (await world.twins.has_asked(2))[1].operationid
    assert clean_up != operation_id
    for task in ("retry", "rollback", "fail"):
        (await world.lcm("POST", f"/vnf_lcm_op_occs/{clean_up}/{task}")).problem(404)
    (await world.lcm("GET", f"/vnf_lcm_op_occs/{clean_up}")).problem(404)
    # it failed, and is begun again by itself until nothing is left
    world.twins.failing.clear()
    await world.twins.has_asked(3)
    await world.bus.quiet()
    assert [command.attempt for command in world.twins.commands] == [1, 2, 3]
    assert await users_of(world, "vim-1") == []


async def test_a_new_instantiate_on_another_vim_removes_the_remains_from_the_first(world: World) -> None:
    await world.sample()
    world.vims.add("vim-9", "openstack")
    operation_id = await world.an_operation_in("FAILED")
    instance_id = (await world.operation(operation_id))["vnfInstanceId"]
    elsewhere = {"there": {"vimId": "vim-9", "vimType": "openstack"}}
    world.twins.waiting.add(DELETE)
    again = await world.instantiate(instance_id, vimConnectionInfo=elsewhere)
    await world.twins.has_asked(2)
    assert await users_of(world, "vim-1") == [instance_id]
    assert await users_of(world, "vim-9") == [instance_id]
    await world.twins.release()
    await world.reached(again, "COMPLETED")
    _, removed, made = world.twins.commands
    assert (type(removed.data).routing_key(), vim_of(removed.data)) == (DELETE, "vim-1")
    assert (type(made.data).routing_key(), vim_of(made.data)) == (CREATE, "vim-9")
    assert await users_of(world, "vim-1") == []
    assert await users_of(world, "vim-9") == [instance_id]


async def test_a_change_that_brings_another_vim_uses_both_until_it_is_done(world: World) -> None:
    """API-132."""
    await world.sample()
    instance_id = (await world.operation(await world.an_operation_in("COMPLETED")))["vnfInstanceId"]
    world.vims.add("vim-9", "openstack")
    world.twins.waiting.add("infra.openstack.change_connections")
    change = sample_request("vm", "change_ext_conn")
    change["vimConnectionInfo"] = {"vim-1": {"vimId": "vim-9", "vimType": "openstack"}}
    operation_id = await world.ask(instance_id, "change_ext_conn", change)
    assert [await users_of(world, each) for each in ("vim-1", "vim-9")] == [[instance_id]] * 2
    await world.twins.has_asked(2)
    await world.twins.release()
    await world.reached(operation_id, "COMPLETED")
    assert [await users_of(world, each) for each in ("vim-1", "vim-9")] == [[], [instance_id]]


async def test_remains_of_two_given_up_instantiates_on_two_vims_all_go(world: World) -> None:
    await world.sample()
    world.vims.add("vim-9", "openstack")
    instance_id = (await world.operation(await world.an_operation_in("FAILED")))["vnfInstanceId"]
    world.twins.failing |= {CREATE}
    again = await world.instantiate(
        instance_id, vimConnectionInfo={"there": {"vimId": "vim-9", "vimType": "openstack"}}
    )
    await world.reached(again, "FAILED_TEMP")
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{again}/fail")).must(200)
    (await world.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(204)
    await world.twins.has_asked(4)
    await world.bus.quiet()
    assert [(k, vim_of(c.data)) for k, c in zip(world.twins.asked(), world.twins.commands, strict=True)] == [
        (CREATE, "vim-1"),
        (DELETE, "vim-1"),
        (CREATE, "vim-9"),
        (DELETE, "vim-9"),
    ]


def vim_of(command: Any) -> str:
    return str(command.vim.vim_id)


async def users_of(world: World, vim_id: str) -> list[str]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    users: list[str] = (
        (await world.call("GET", f"/internal/v1/vims/{vim_id}/users", headers=headers)).must(200).json["users"]
    )
    return users


async def test_other_services_learn_which_operation_runs_on_an_instance(world: World) -> None:
    """CR-101: vim-registry tolerates a silent cluster while one does."""
    await world.sample()
    operation_id = await world.an_operation_in("PROCESSING")
    instance_id = (await world.operation(operation_id))["vnfInstanceId"]
    headers = {"Authorization": f"Bearer {TOKEN}"}

    async def running() -> str | None:
        answer = await world.call("GET", f"/internal/v1/instances/{instance_id}", headers=headers)
        found: dict[str, str | None] = answer.must(200).json
        assert found["id"] == instance_id
        return found["operation"]

    assert await running() == operation_id
    await world.twins.release()
    await world.reached(operation_id, "COMPLETED")
    assert await running() is None
