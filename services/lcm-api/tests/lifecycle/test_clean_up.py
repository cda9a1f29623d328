"""The remains of a FAILED instantiate are removed in the background: shown, repeated on failure, and announced."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events.lcm import RemainsRemoved
from kubevnfm_kit.traces import read_traceparent
from worlds.lcm_world import World, lcm_world

DELETE = "infra.openstack.delete_resources"


class RemainsSubscriber:
    """Receives the event that nothing is left."""

    def __init__(self) -> None:
        self.instance_ids: list[str] = []
        self.received = asyncio.Event()

    async def __call__(self, delivery: Delivery) -> Verdict:
        assert isinstance(delivery.envelope.data, RemainsRemoved)
        self.instance_ids.append(delivery.envelope.data.vnf_instance_id)
        self.received.set()
        return Ack()


async def clean_up(world: World, operation_id: str) -> Any:
    return (await world.call("GET", f"/kubevnfm/v1/operations/{operation_id}")).must(200).json.get("cleanUp")


async def test_a_clean_up_is_shown_with_its_failures_and_its_end_is_published(world: World) -> None:
    subscriber = RemainsSubscriber()
    await world.bus.consume_events("tests.gone", ["lcm.remains.removed"], subscriber)
    await world.sample()
    operation_id = await world.an_operation_in("FAILED")
    instance_id = (await world.operation(operation_id))["vnfInstanceId"]
    assert await clean_up(world, operation_id) is None
    world.twins.failing.add(DELETE)
    (await world.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(204)
    await world.twins.has_asked(3)  # it failed, and was repeated
    assert (await clean_up(world, operation_id))["steps"][0]["attempt"] >= 3
    assert not subscriber.instance_ids
    traces = {read_traceparent(each.traceparent) for each in world.twins.commands}
    assert len({each.trace_id for each in traces if each}) == 1  # it belongs to what the operation has left
    world.twins.failing.clear()
    await asyncio.wait_for(subscriber.received.wait(), 60)
    assert subscriber.instance_ids == [instance_id]
    assert (await clean_up(world, operation_id))["state"] == "ROLLED_BACK"
    (await world.lcm("GET", f"/vnf_instances/{instance_id}")).problem(404)


async def test_a_clean_up_continues_after_a_restart(tmp_path: Path) -> None:
    async with lcm_world(tmp_path) as world:
        await world.sample()
        operation_id = await world.an_operation_in("FAILED")
        instance_id = (await world.operation(operation_id))["vnfInstanceId"]
        world.twins.failing.add(DELETE)
        (await world.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(204)
        await world.twins.has_asked(2)
    async with lcm_world(tmp_path) as world:
        subscriber = RemainsSubscriber()
        await world.bus.consume_events("tests.gone", ["lcm.remains.removed"], subscriber)
        await asyncio.wait_for(subscriber.received.wait(), 60)
        assert subscriber.instance_ids == [instance_id]
        assert (await clean_up(world, operation_id))["state"] == "ROLLED_BACK"
