"""Workload clusters whose Machines change between operations: what is asked, and what the instance shows then."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kubevnfm_events import Envelope
from kubevnfm_events.capi import MachinesChanged, MachinesFinding, WatchMachines
from kubevnfm_kit.clock import SystemClock
from kubevnfm_lcm_api.lifecycle.core.idle_instances import Questions
from kubevnfm_lcm_api.lifecycle.workloads.machine_watch import MachineWatch
from worlds.lcm_world import RING, World, lcm_world
from worlds.workload_world import built, machines, sent, shown


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path) as world:
        yield world


def watch_of(world: World) -> MachineWatch:
    clock = SystemClock()
    return MachineWatch(store=world.store, questions=Questions(world.bus, clock, 60.0), ring=RING, clock=clock)


async def questions(world: World) -> list[WatchMachines]:
    """Return the commands of one round."""
    world.twins.commands.clear()
    await watch_of(world).look()
    await world.bus.quiet()
    return sent(world, WatchMachines)


async def answer(world: World, finding: MachinesFinding) -> None:
    """Publish what infra-k8s would have found."""
    world.twins.commands.clear()
    await world.bus.publish(Envelope(data=MachinesChanged(findings=(finding,)), source="/kubevnfm/twin"))
    await world.bus.quiet()


async def test_machines_that_were_replaced_become_the_vnfcs(world: World) -> None:
    """CR-119, CR-120: the instance is written once, is asked about again at once, and a GET sends no command."""
    instance_id = await built(world)
    (command,) = await questions(world)
    (one,) = command.expected
    assert (one.vnf_instance_id, one.cluster.name, one.machines) == (instance_id, "workload", machines([0]).machines)
    assert {(vdu.vdu_id, vdu.name) for vdu in one.vdus} == {
        ("controlPlane", "workload-control-plane"), ("worker", "workload-md-0")
    }  # fmt: skip
    present = machines([3]).machines
    finding = MachinesFinding(
        vnf_instance_id=instance_id, revision=one.revision, machines=present, added=("md-3",), removed=("md-0",)
    )
    await answer(world, finding)
    (again,) = sent(world, WatchMachines)
    assert (again.expected[0].machines, again.expected[0].revision) == (present, one.revision + 1)
    world.twins.commands.clear()
    instance = await shown(world, instance_id)
    vnfcs = instance["instantiatedVnfInfo"]["vnfcResourceInfo"]
    assert {each["id"]: each["metadata"]["providerId"] for each in vnfcs} == {
        name: f"openstack:///{name}" for name in ("cp-0", "md-3")
    }
    assert {each["id"] for each in instance["instantiatedVnfInfo"]["vnfcInfo"]} == {"controlPlane-cp-0", "worker-md-3"}
    assert world.twins.commands == []
    # The same answer once more is about an earlier revision.
    await answer(world, finding.model_copy(update={"machines": machines([0]).machines}))
    assert (await shown(world, instance_id))["instantiatedVnfInfo"] == instance["instantiatedVnfInfo"]
    assert sent(world, WatchMachines) == []
    # A heal by name finds the new VNFC.
    (await world.lcm("POST", f"/vnf_instances/{instance_id}/heal", {"vnfcInstanceId": ["worker-md-0"]})).problem(404)


async def test_only_clusters_without_an_operation_are_asked_about(world: World) -> None:
    """CR-120: an operation reports its own Machines."""
    assert await questions(world) == []
    instance_id = await built(world)
    world.twins.failing = {"infra.k8s.scale_objects"}
    body = {"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": 1}
    operation_id = await world.ask(instance_id, "scale", body)
    await world.reached(operation_id, "FAILED_TEMP")
    assert await questions(world) == []
