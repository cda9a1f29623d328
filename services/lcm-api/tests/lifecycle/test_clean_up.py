"""What a FAILED instantiate left is removed in the background: visible, told, tried again, and after a restart too."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events.lcm import RemainsRemoved
from lcm_world import World, lcm_world

DELETE = "infra.openstack.delete_resources"


class Gone:
    """The event that all is gone."""

    def __init__(self) -> None:
        self.of: list[str] = []
        self.told = asyncio.Event()

    async def __call__(self, delivery: Delivery) -> Verdict:
        assert isinstance(delivery.envelope.data, RemainsRemoved)
        self.of.append(delivery.envelope.data.vnf_instance_id)
        self.told.set()
        return Ack()


async def clean_up(world: World, operation_id: str) -> Any:
    return (await world.call("GET", f"/kubevnfm/v1/operations/{operation_id}")).must(200).json.get("cleanUp")


async def test_a_clean_up_is_shown_with_what_stops_it_and_its_end_is_told(world: World) -> None:
    gone = Gone()
    await world.bus.consume_events("tests.gone", ["lcm.remains.removed"], gone)
    await world.sample()
    operation_id = await world.an_operation_in("FAILED")
    instance_id = (await world.operation(operation_id))["vnfInstanceId"]
    assert await clean_up(world, operation_id) is None
    world.twins.failing.add(DELETE)
    (await world.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(204)
    await world.twins.has_asked(3)  # it failed, and was tried again
    assert (await clean_up(world, operation_id))["steps"][0]["attempt"] >= 3
    assert not gone.of
    world.twins.failing.clear()
    await asyncio.wait_for(gone.told.wait(), 20)
    assert gone.of == [instance_id]
    assert (await clean_up(world, operation_id))["state"] == "ROLLED_BACK"
    (await world.lcm("GET", f"/vnf_instances/{instance_id}")).problem(404)


async def test_a_clean_up_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with lcm_world(tmp_path) as world:
        await world.sample()
        operation_id = await world.an_operation_in("FAILED")
        instance_id = (await world.operation(operation_id))["vnfInstanceId"]
        world.twins.failing.add(DELETE)
        (await world.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(204)
        await world.twins.has_asked(2)
    async with lcm_world(tmp_path) as world:
        gone = Gone()
        await world.bus.consume_events("tests.gone", ["lcm.remains.removed"], gone)
        await asyncio.wait_for(gone.told.wait(), 20)
        assert gone.of == [instance_id]
        assert (await clean_up(world, operation_id))["state"] == "ROLLED_BACK"
