"""The id of a request at the gateway: in each answer, and in all that follows from it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kubevnfm_bus.port import Ack, Delivery, Verdict
from worlds.lcm_world import JSON_HEADERS, World, lcm_world, sample_request

CREATE = "infra.openstack.create_resources"
KEYS = ["lcm.operation.changed", "lcm.step.changed"]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path) as running:
        await running.sample()
        yield running


def named(request_id: str) -> dict[str, str]:
    return {**JSON_HEADERS, "X-Request-ID": request_id}


@pytest.mark.parametrize(
    ("path", "status"),
    [("/vnflcm/v2/vnf_instances", 200), ("/vnflcm/v2/vnf_instances/none", 404), ("/nowhere", 404), ("/vnflcm/v2", 404)],
)
async def test_each_answer_has_the_id_of_the_caller_or_one_of_ours(world: World, path: str, status: int) -> None:
    """API-260."""
    answer = await world.call("GET", path, headers=named("r-1"))
    assert (answer.status, answer.headers["X-Request-ID"]) == (status, "r-1")
    if status >= 400:
        assert answer.problem(status)["requestId"] == "r-1"
    ours = {(await world.call("GET", path, headers=named("no id"))).headers["X-Request-ID"] for _ in range(2)}
    assert len(ours) == 2
    assert not ours & {"no id", ""}


async def test_all_that_follows_from_a_request_names_it_and_a_retry_is_a_request_of_its_own(world: World) -> None:
    """API-261."""
    events = []

    async def keep(delivery: Delivery) -> Verdict:
        events.append(delivery.envelope)
        return Ack()

    await world.bus.consume_events("tests.requests", KEYS, keep)
    world.twins.failing.add(CREATE)
    path = f"/vnf_instances/{await world.create()}/instantiate"
    asked = await world.lcm("POST", path, sample_request("vm", "instantiate"), headers=named("first/1"))
    operation_id = asked.must(202).headers["Location"].rpartition("/")[2]
    await world.reached(operation_id, "FAILED_TEMP")
    await world.bus.quiet()
    assert {each.requestid for each in [*world.twins.commands, *events]} == {"first/1"}

    world.twins.failing.clear()
    commands, said = len(world.twins.commands), len(events)
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/retry", headers=named("second/2"))).must(202)
    await world.reached(operation_id, "COMPLETED")
    await world.bus.quiet()
    later = [*world.twins.commands[commands:], *events[said:]]
    assert {each.requestid for each in later} == {"second/2"}
    assert len(world.twins.commands) > commands
