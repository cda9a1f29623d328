"""Our own view of an operation: the tasks of its nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kubevnfm_events import Envelope, Message
from kubevnfm_events.mgmt import TaskProgressed
from worlds.lcm_world import World, lcm_world, sample_request

PHASE = "mgmt.run_phase"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path) as running:
        await running.sample("cluster")
        running.twins.waiting.add(PHASE)
        yield running


async def report(world: World, command: Envelope[Message], node: str, task: str, state: str) -> None:
    """Have mgmt-executor report the progress of a task."""
    news = TaskProgressed.model_validate({"node": node, "task": task, "state": state})
    await world.bus.publish(command.follow_up(news, source="/kubevnfm/mgmt-executor"))
    await world.bus.quiet()


async def shown(world: World, operation_id: str) -> dict[str, str]:
    """Return the state of each task, by ``task node``."""
    view = (await world.call("GET", f"/kubevnfm/v1/operations/{operation_id}")).must(200).json
    return {f"{task['task']} {node['name']}": task["state"] for node in view["nodes"] for task in node["tasks"]}


async def test_tasks_that_had_not_ended_when_their_step_did_are_cancelled(world: World) -> None:
    """Also without an event: their worker was stopped, or has died."""
    body = sample_request("cluster", "instantiate")
    masters = body["additionalParams"]["k8s_cluster_installation_param"]["master_node"]
    masters["pod_cdir"] = masters.pop("pod_cidr")
    masters["for_user_data"] = "x"
    operation_id = await world.ask(await world.create("cluster"), "instantiate", body)
    view = (await world.call("GET", f"/kubevnfm/v1/operations/{operation_id}")).must(200).json
    assert [(each["field"].rpartition("/")[2], each["nearest"]) for each in view["warnings"]] == [
        ("pod_cdir", "pod_cidr")
    ]
    phase = (await world.twins.has_asked(2))[-1]
    for node, task, state in (
        ("master1", "init", "started"),
        ("worker1", "prepare", "started"),
        ("worker2", "prepare", "started"),
        ("worker3", "prepare", "started"),
        ("worker3", "prepare", "finished"),
    ):
        await report(world, phase, node, task, state)
    assert (await shown(world, operation_id))["prepare worker1"] == "started"
    await report(world, phase, "worker2", "prepare", "cancelled")
    await report(world, phase, "master1", "init", "failed")
    world.twins.failing.add(PHASE)
    await world.twins.release()
    await world.reached(operation_id, "FAILED_TEMP")
    ended = {
        "init master1": "failed",
        "prepare worker1": "cancelled",
        "prepare worker2": "cancelled",
        "prepare worker3": "finished",
    }
    assert await shown(world, operation_id) == ended

    world.twins.failing.clear()
    world.twins.waiting.add(PHASE)
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/retry")).must(202)
    again = (await world.twins.has_asked(3))[-1]
    assert await shown(world, operation_id) == ended, "until they are begun again"
    await report(world, again, "worker1", "prepare", "started")
    assert await shown(world, operation_id) == {**ended, "prepare worker1": "started"}
    await world.twins.release()
    await world.reached(operation_id, "COMPLETED")
