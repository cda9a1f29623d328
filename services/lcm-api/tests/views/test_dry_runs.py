"""``?dry_run=true`` of requests for VNF instances and their operations."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest
from kubevnfm_bus.port import Ack, Delivery, Verdict
from packages.vm_packages import OTHER_IMAGE, other_image, two_flavours
from patience import until
from worlds.lcm_builders import RESOURCES
from worlds.lcm_world import LINKED, World, sample_request

DRY = {"dry_run": "true"}
TASKS: dict[str, dict[str, Any]] = {
    "scale": {"type": "SCALE_OUT", "aspectId": "VDU1_scale"},
    "scale_to_level": {"instantiationLevelId": "three"},
    "heal": {"vnfcInstanceId": [RESOURCES.servers[0].vnfc_id]},
    "operate": {"changeStateTo": "STOPPED"},
    "change_ext_conn": {
        "extVirtualLinks": [{"id": "external", "resourceId": "net1", "extCps": [{"cpdId": "VDU1_CP1"}]}]
    },
    "change_flavour": {"newFlavourId": "large"},
    "change_vnfpkg": {"vnfdId": OTHER_IMAGE},
    "terminate": {"terminationType": "FORCEFUL", "gracefulTerminationTimeout": 5},
}
_BY_TIME = ("documents_clocks", "documents_event_log")
V2_ONLY = frozenset({"change_vnfpkg", "create_snapshot", "revert_to_snapshot"})


@dataclass
class Everything:
    """A world, and all that is stored in it, sent and reported."""

    world: World
    events: list[str] = field(default_factory=list)

    async def hear(self, delivery: Delivery) -> Verdict:
        self.events.append(delivery.envelope.id)
        return Ack()

    async def now(self) -> Any:
        """Return them once what was done before is reported."""
        return await until(self._settled)

    async def _settled(self) -> Any:
        await self.world.bus.quiet()
        with closing(sqlite3.connect(f"file:{self.world.folder / 'store.db'}?mode=ro", uri=True)) as store:
            # Those two are written by the time: the log of events a moment after them.
            found = [line for line in store.iterdump() if not set(_BY_TIME).intersection(line.split('"')[1:2])]
        if any(line.startswith('INSERT INTO "outbox"') for line in found):
            return None
        await self.world.bus.quiet()
        return found, [one.id for one in self.world.twins.commands], list(self.events)


@pytest.fixture
async def everything(world: World) -> Everything:
    found = Everything(world)
    await world.bus.consume_events("tests.all", ["#"], found.hear)
    return found


async def foreseen(everything: Everything, method: str, path: str, body: Any, version: str = "v2") -> Any:
    """Ask for a dry run; return its answer once nothing has changed by it."""
    world, before = everything.world, await everything.now()
    call = world.v1 if version == "v1" else world.lcm
    answer = (await call(method, path, body, params=DRY)).must(200)
    after = await everything.now()
    assert [set(now) ^ set(then) for now, then in zip(after, before, strict=True)] == [set(), set(), set()]
    assert after == before
    assert "Location" not in answer.headers
    return answer.json


async def test_a_dry_run_answers_the_plan_of_the_operation_and_stores_nothing(everything: Everything) -> None:
    """API-162: each request in each version; the plan is the one with which the operation begins."""
    world = everything.world
    package = await world.upload(two_flavours(world.folder))
    await world.upload(other_image(world.folder))
    created = {"vnfdId": package["vnfdId"], "vnfInstanceName": "n"}
    body = {**LINKED, "additionalParams": {"qqqqqq": 1}}
    for version in ("v1", "v2"):
        shown = await foreseen(everything, "POST", "/vnf_instances", created, version)
        assert (shown["plan"], shown["warnings"], "operation" in shown) == ([], [], False)
    instance_id = (await world.lcm("POST", "/vnf_instances", created)).must(201).json["id"]
    one = f"/vnf_instances/{instance_id}"
    for version in ("v1", "v2"):
        shown = await foreseen(everything, "POST", f"{one}/instantiate", body, version)
        assert shown["operation"] == "INSTANTIATE"
        assert [each["field"] for each in shown["warnings"]] == ["/additionalParams/qqqqqq"]
        shown = await foreseen(everything, "PATCH", one, {"vnfInstanceName": "other"}, version)
        assert shown["operation"] == "MODIFY_INFO"
    await _as_foreseen(
        world, instance_id, "instantiate", body, await foreseen(everything, "POST", f"{one}/instantiate", body)
    )

    snapshot_id = (await world.lcm("POST", "/vnf_snapshots", {})).must(201).json["id"]
    tasks = {**TASKS, "create_snapshot": {"vnfSnapshotInfoId": snapshot_id}}
    plans = {}
    for task, request in tasks.items():
        for version in ("v2",) if task in V2_ONLY else ("v1", "v2"):
            shown = await foreseen(everything, "POST", f"{one}/{task}", request, version)
            assert shown["operation"] == task.upper().replace("OPERATE_", "")
            assert shown["plan"], task
            assert shown["sequence"]
            plans[task] = shown
    assert [each["field"] for each in plans["terminate"]["warnings"]] == ["/gracefulTerminationTimeout"]
    await _as_foreseen(world, instance_id, "scale", tasks["scale"], plans["scale"])
    await _as_foreseen(world, instance_id, "terminate", tasks["terminate"], plans["terminate"])


async def _as_foreseen(world: World, instance_id: str, task: str, body: Any, plan: Any) -> None:
    """Run the operation: it has the steps and the warnings that the dry run has shown."""
    operation_id = await world.ask(instance_id, task, body)
    await world.reached(operation_id, "COMPLETED")
    view = (await world.call("GET", f"/kubevnfm/v1/operations/{operation_id}")).must(200).json
    begun = [{name: step[name] for name in ("name", "kind", "title", "after")} for step in view["steps"]]
    assert [step for step in begun if step in plan["plan"]] == plan["plan"]
    assert view.get("warnings", []) == plan["warnings"]


async def test_a_dry_run_is_refused_as_the_request_itself(everything: Everything) -> None:
    """API-162: before anything is stored; a value that is not understood never begins an operation."""
    world = everything.world
    await world.sample()
    instance_id = await world.create()
    one = f"/vnf_instances/{instance_id}"
    body = sample_request("vm", "instantiate")
    before = await everything.now()
    for wrong in ({**body, "flavourId": "none"}, {**body, "extVirtualLinks": []}, {"flavourId": 1}, {**body, "a": 1}):
        dry = await world.lcm("POST", f"{one}/instantiate", wrong, params=DRY)
        real = await world.lcm("POST", f"{one}/instantiate", wrong)
        assert (dry.status, dry.detail, dry.json["type"]) == (real.status, real.detail, real.json["type"])
        assert dry.status in {400, 422}
    (await world.lcm("POST", f"{one}/terminate", TASKS["terminate"], params=DRY)).problem(409)
    (await world.lcm("POST", "/vnf_instances/none/terminate", TASKS["terminate"], params=DRY)).problem(404)
    (await world.lcm("POST", "/vnf_instances", {"vnfdId": "none"}, params=DRY)).problem(422)
    for value in ("false", "", "True", "server"):
        (await world.lcm("POST", f"{one}/instantiate", body, params={"dry_run": value})).problem(400)
        (await world.lcm("PATCH", one, {}, params={"dry_run": value})).problem(400)
        (await world.lcm("POST", "/vnf_instances", {"vnfdId": "x"}, params={"dry_run": value})).problem(400)
    (await world.lcm("PATCH", one, {}, params=DRY, headers={"Version": "2.0.0", "If-Match": '"x"'})).problem(412)
    accepts = {"Version": "2.0.0", "Accept": "text/html"}
    (await world.lcm("POST", f"{one}/instantiate", body, params=DRY, headers=accepts)).problem(406)
    assert await everything.now() == before
