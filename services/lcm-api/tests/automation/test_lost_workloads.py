"""Workloads of containers that others have deleted: an alarm for each, and a heal that applies the missing objects again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_events.objects import DriftedObject, ObjectsDrift, ObjectsRepaired, RepairObjects
from kubevnfm_lcm_api.automation.domain.action import COLLECTION, Action
from kubevnfm_store.query import Query, by
from patience import until
from worlds.cnf_world import OBJECTS, deployed, of_pods
from worlds.drift_world import Watched, watched_world
from worlds.engine_world import SetClock

WEB, PAGES = OBJECTS
WORKLOAD = f"{WEB.kind} default/{WEB.name}"


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
async def watched(tmp_path: Path, clock: SetClock) -> AsyncIterator[Watched]:
    async with watched_world(tmp_path, clock=clock) as found:
        found.world.twins.answers["infra.k8s.repair_objects"] = of_pods(ObjectsRepaired, 2, repaired=1)
        yield found


async def cnf(watched: Watched, *, pods: int) -> str:
    """Return a CNF whose instance shows so many pods, and that may be healed automatically."""
    allowed = {"isAutohealEnabled": True}
    instance_id = await deployed(watched.world, pods=pods, vnfConfigurableProperties=allowed)
    watched.world.vims.records["k8s"]["status"] = "ACTIVE"
    return instance_id


def missing(*objects: Any) -> ObjectsDrift:
    named = [DriftedObject(kind=each.kind, namespace="default", name=each.name, what="missing") for each in objects]
    state = "MISSING" if len(named) == len(OBJECTS) else "INCOMPLETE"
    return ObjectsDrift(state=state, missing=len(named), objects=tuple(named))


async def lost_of(watched: Watched, instance_id: str) -> list[dict[str, Any]]:
    """Return the alarms about what is lost."""
    listed = await watched.world.call("GET", "/vnffm/v1/alarms", headers={"Version": "1.5.0"})
    shown = [each for each in listed.must(200).json if each["managedObjectId"] == instance_id]
    return [each for each in shown if each["faultType"] == "machine-lost"]


async def actions_of(watched: Watched, instance_id: str) -> list[Action]:
    found = await watched.world.store.find(COLLECTION, Query(by(vnfInstanceId=instance_id)))
    return [Action.from_document(each.body) for each in found]


async def decided(watched: Watched, instance_id: str, clock: SetClock) -> Action:
    """Let the time pass for which an alarm must last, and return the one action when it has ended."""

    async def ended() -> Action | None:
        await watched.world.automation.work.look()
        found = await actions_of(watched, instance_id)
        assert len(found) <= 1
        return found[0] if found and found[0].ended_at is not None else None

    async def asked() -> bool | None:
        return bool(await actions_of(watched, instance_id)) or None

    await until(asked)
    clock.ahead_s += 61
    return await until(ended)


@pytest.mark.parametrize("pods", [2, 0])
@pytest.mark.parametrize("gone", [(WEB,), (WEB, PAGES)])
async def test_it_has_one_alarm_and_is_applied_again(
    watched: Watched, clock: SetClock, pods: int, gone: tuple[Any, ...]
) -> None:
    """API-187, API-247: whether its pods are still known or gone with it, and whether anything else is left."""
    instance_id = await cnf(watched, pods=pods)
    await watched.find_objects(missing(*gone), "the Deployment does not exist")
    (alarm,) = await lost_of(watched, instance_id)
    assert WORKLOAD in alarm["faultDetails"][0]
    assert alarm["rootCauseFaultyResource"]["faultyResource"] == {
        "vimConnectionId": "k", "resourceId": WEB.uid, "vimLevelResourceType": "Deployment",
    }  # fmt: skip
    action = await decided(watched, instance_id, clock)
    assert (action.state, action.vnfc_ids, action.triggers[0].id) == ("DONE", (), alarm["id"])
    repairs = [each.data for each in watched.world.twins.commands if isinstance(each.data, RepairObjects)]
    assert len(repairs) == 1
    (again,) = await lost_of(watched, instance_id)
    assert (again["id"], "alarmClearedTime" in again) == (alarm["id"], True)


async def test_one_that_is_there_again_is_left_alone(watched: Watched, clock: SetClock) -> None:
    instance_id = await cnf(watched, pods=0)
    await watched.find_objects(missing(WEB), "the Deployment does not exist")
    await watched.find_objects(None, "as they were applied")
    action = await decided(watched, instance_id, clock)
    assert action.state == "NOT_DONE"
    assert "was cleared" in str(action.reason)


async def test_another_object_is_no_workload(watched: Watched) -> None:
    """API-187: a missing ConfigMap is drift, which a person repairs."""
    instance_id = await cnf(watched, pods=2)
    await watched.find_objects(missing(PAGES), "the ConfigMap does not exist")
    await watched.world.bus.quiet()
    assert await lost_of(watched, instance_id) == []
    assert await actions_of(watched, instance_id) == []
