"""A world of lcm-api with a watch over drift that the test calls, and the events about drift so far."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events import Envelope
from kubevnfm_events.lcm import InstanceDrifted
from kubevnfm_events.objects import CompareObjects, ObjectsCompared, ObjectsDrift, ObjectsFinding
from kubevnfm_events.stacks import CompareStacks, StackDrift, StackFinding, StacksCompared
from kubevnfm_kit.clock import Clock, SystemClock
from kubevnfm_lcm_api.lifecycle.core.drift import KEY
from kubevnfm_lcm_api.lifecycle.core.drift_watch import DriftWatch
from kubevnfm_lcm_api.lifecycle.core.idle_instances import Questions
from kubevnfm_lcm_api.lifecycle.core.suspension import RegionSuspensions
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.relay import OutboxRelay

from worlds.lcm_world import RING, World, lcm_world

GONE: Final = "the stack vnf-1 (s) does not exist"


class Watched:
    """A world whose VIM is ACTIVE, with a watch that the test calls, and the drift events so far."""

    def __init__(self, world: World, watch: DriftWatch) -> None:
        self.world, self.watch = world, watch
        self.events: list[InstanceDrifted] = []

    async def keep(self, delivery: Delivery) -> Verdict:
        assert isinstance(delivery.envelope.data, InstanceDrifted)
        self.events.append(delivery.envelope.data)
        return Ack()

    async def round(self) -> None:
        """Ask once; the commands of the round are then those that the twins have."""
        self.world.twins.commands.clear()
        await self.watch.look()
        await self.world.bus.quiet()

    async def questions(self) -> list[CompareStacks]:
        """Return the commands of one round to infra-openstack."""
        await self.round()
        return [one.data for one in self.world.twins.commands if isinstance(one.data, CompareStacks)]

    async def object_questions(self) -> list[CompareObjects]:
        """Return the commands of one round to infra-k8s."""
        await self.round()
        return [one.data for one in self.world.twins.commands if isinstance(one.data, CompareObjects)]

    async def publish(self, found: StacksCompared | ObjectsCompared) -> None:
        """Publish what an infrastructure service would have found."""
        await self.world.bus.publish(Envelope(data=found, source="/kubevnfm/twin"))
        await self.world.bus.quiet()

    async def answer(self, *findings: StackFinding) -> None:
        """Publish what infra-openstack would have found."""
        await self.publish(StacksCompared(findings=findings))

    async def find(self, drift: StackDrift | None, reason: str = GONE) -> str:
        """Have a round find this drift of the one instance; return the instance's id."""
        (command,) = await self.questions()
        (one,) = command.expected
        await self.answer(
            StackFinding(vnf_instance_id=one.vnf_instance_id, revision=one.revision, drift=drift, reason=reason)
        )
        return one.vnf_instance_id

    async def find_objects(self, drift: ObjectsDrift | None, reason: str) -> ObjectsFinding:
        """Have a round find this drift of the objects of the one instance; return the finding."""
        (command,) = await self.object_questions()
        (one,) = command.expected
        finding = ObjectsFinding(vnf_instance_id=one.vnf_instance_id, revision=one.revision, drift=drift, reason=reason)
        await self.publish(ObjectsCompared(findings=(finding,)))
        return finding

    async def shown(self, instance_id: str) -> dict[str, Any] | None:
        """Return the mark, which both API versions show alike."""
        found = [
            (await call("GET", f"/vnf_instances/{instance_id}")).must(200).json.get("metadata", {}).get(KEY)
            for call in (self.world.lcm, self.world.v1)
        ]
        assert found[0] == found[1]
        mark: dict[str, Any] | None = found[0]
        return mark

    async def built(self) -> str:
        instance_id = await self.world.create()
        assert (await self.world.reached(await self.world.instantiate(instance_id)))["operationState"] == "COMPLETED"
        return instance_id


@asynccontextmanager
async def watched_world(folder: Path, *, clock: Clock | None = None) -> AsyncIterator[Watched]:
    """Yield a world whose VIM of the sample vm is ACTIVE."""
    clock = clock or SystemClock()
    async with (
        lcm_world(folder, clock=clock) as world,
        OutboxRelay(world.store, world.bus, collections=["vnf_instances"]) as relay,
    ):
        world.vims.records["vim-1"]["status"] = "ACTIVE"
        watch = DriftWatch(
            store=world.store, outbox=Outbox(world.store, relay, RING), questions=Questions(world.bus, clock, 60.0),
            vims=world.vims, suspensions=RegionSuspensions(world.regions), ring=RING, clock=clock,
        )  # fmt: skip
        found = Watched(world, watch)
        await world.bus.consume_events("tests.drift", ["lcm.instance.drifted"], found.keep)
        await world.sample()
        yield found
