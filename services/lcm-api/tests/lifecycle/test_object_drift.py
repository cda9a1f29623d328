"""CNFs and workload clusters whose objects others have deleted or changed: what is asked, shown, published and refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_bus.port import Again, Delivery
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_events import Envelope
from kubevnfm_events.objects import (
    DriftedObject,
    ObjectsCompared,
    ObjectsDrift,
    ObjectsFinding,
    ObjectsRepaired,
    ObjectsScaled,
    RepairObjects,
)
from worlds.cnf_world import OBJECTS, deployed, of_pods
from worlds.drift_world import Watched, watched_world
from worlds.workload_world import KINDS, built, machines

WEB, PAGES = OBJECTS
SCALE = "infra.k8s.scale_objects"
OUT = {"type": "SCALE_OUT", "aspectId": "web_aspect"}
REPAIR = {"additionalParams": {"repair": True}}


def drifted(**what: Any) -> ObjectsDrift:
    """Return the drift of these objects of the sample: by name what happened to them."""
    kinds = {one.name: one.kind for one in OBJECTS} | {name: kind for _, kind, name in KINDS}
    counts = {each: list(what.values()).count(each) for each in ("missing", "replaced", "changed")}
    is_gone = counts["missing"] or counts["replaced"]
    return ObjectsDrift(
        state="INCOMPLETE" if is_gone else "CHANGED",
        objects=tuple(
            DriftedObject(kind=kinds[name], namespace="default", name=name, what=each)
            for name, each in ((name.replace("_", "-"), each) for name, each in what.items())
        ),
        **counts,
    )


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[Watched]:
    async with watched_world(tmp_path) as found:
        found.world.vims.add("k8s", "kubernetes", status="ACTIVE")
        yield found


async def cnf(watched: Watched) -> str:
    """Return the sample CNF, INSTANTIATED with two pods on an ACTIVE VIM."""
    instance_id = await deployed(watched.world)
    watched.world.vims.records["k8s"]["status"] = "ACTIVE"
    return instance_id


async def test_drift_is_shown_and_published_once_until_a_repair_has_ended_it(watched: Watched) -> None:
    """CR-121, API-154: both versions show it, a filter finds it, and a GET sends no command."""
    world, instance_id = watched.world, await cnf(watched)
    (command,) = await watched.object_questions()
    (one,) = command.expected
    assert (command.vim.vim_id, one.vnf_instance_id, one.known) == ("k8s", instance_id, None)
    found = drifted(web="missing", web_pages="changed")
    finding = await watched.find_objects(found, "one is gone")
    mark = await watched.shown(instance_id)
    assert mark is not None
    assert {name: mark[name] for name in ("state", "reason", "missing", "changed", "vnfc_ids")} == {
        "state": "INCOMPLETE", "reason": "one is gone", "missing": 1, "changed": 1, "vnfc_ids": ["web-0", "web-1"],
    }  # fmt: skip
    assert mark["objects"] == [
        {"kind": "Deployment", "namespace": "default", "name": "web", "what": "missing"},
        {"kind": "ConfigMap", "namespace": "default", "name": "web-pages", "what": "changed"},
    ]
    await watched.publish(ObjectsCompared(findings=(finding,)))  # at least once: now about an earlier revision
    ((again,),) = [each.expected for each in await watched.object_questions()]
    assert (again.known, again.revision) == (found, one.revision + 1), "infra-k8s reports only what is not known"
    world.twins.commands.clear()
    query = "/vnf_instances?filter=(eq,metadata/kubevnfm_drift/state,INCOMPLETE)"
    assert [each["id"] for each in (await world.lcm("GET", query)).must(200).json] == [instance_id]
    assert world.twins.commands == []

    world.twins.answers["infra.k8s.repair_objects"] = of_pods(ObjectsRepaired, 2, repaired=2)
    await world.reached(await world.ask(instance_id, "heal", REPAIR), "COMPLETED")
    assert await watched.shown(instance_id) is None
    await world.bus.quiet()
    assert [(each.state, each.vnfc_ids, each.objects) for each in watched.events] == [
        ("INCOMPLETE", ("web-0", "web-1"), found.objects),
        ("NONE", (), ()),
    ]


async def test_drift_that_others_have_ended_is_shown_no_more(watched: Watched) -> None:
    """CR-121: also another drift takes its place; the time stays while the state does."""
    instance_id = await cnf(watched)
    await watched.find_objects(drifted(web_pages="missing"), "one")
    first = await watched.shown(instance_id)
    await watched.find_objects(drifted(web_pages="missing", web="changed"), "two")
    second = await watched.shown(instance_id)
    assert first is not None
    assert second is not None
    assert (second["since"], second["reason"], second["changed"]) == (first["since"], "two", 1)
    assert "vnfc_ids" not in second, "the pods of a workload that was changed exist"
    await watched.find_objects(None, "as they were applied")
    assert await watched.shown(instance_id) is None
    assert [each.state for each in watched.events] == ["INCOMPLETE", "INCOMPLETE", "NONE"]


async def test_only_idle_instances_on_vims_that_answer_are_asked_about(watched: Watched) -> None:
    """CR-121: an answer about an instance that was written since counts for nothing."""
    world = watched.world
    assert await watched.object_questions() == []
    instance_id = await cnf(watched)
    (command,) = await watched.object_questions()
    world.twins.waiting.add(SCALE)
    world.twins.answers[SCALE] = of_pods(ObjectsScaled, 3)
    operation_id = await world.ask(instance_id, "scale", OUT)
    assert await watched.object_questions() == []
    (one,) = command.expected
    late = ObjectsFinding(vnf_instance_id=instance_id, revision=one.revision, drift=drifted(web="missing"), reason="x")
    await watched.publish(ObjectsCompared(findings=(late,)))
    await world.twins.release()
    await world.reached(operation_id, "COMPLETED")
    assert await watched.shown(instance_id) is None
    world.vims.records["k8s"]["status"] = "UNREACHABLE"
    assert await watched.object_questions() == []


async def test_a_cnf_on_a_vim_that_is_not_registered_is_asked_about(watched: Watched) -> None:
    """CR-121: the access data come from its request."""
    world = watched.world
    await world.sample("cnf")
    instance_id = await world.create("cnf")
    vim = {
        "vimType": "kubernetes", "interfaceInfo": {"endpoint": "https://192.0.2.1:6443", "ssl_ca_cert": "system"},
        "accessInfo": {"bearer_token": "t"},
    }  # fmt: skip
    await world.reached(await world.instantiate(instance_id, "cnf", vimConnectionInfo={"k": vim}), "COMPLETED")
    (command,) = await watched.object_questions()
    assert command.vim.interface_info["endpoint"] == "https://192.0.2.1:6443"
    assert [one.vnf_instance_id for one in command.expected] == [instance_id]


async def test_what_cannot_work_without_an_object_is_refused_with_the_way_out(watched: Watched) -> None:
    """CR-121: a scaling of a missing workload, and a heal of its pods; an object that was only changed hinders nothing."""
    world, instance_id = watched.world, await cnf(watched)
    await watched.find_objects(drifted(web="changed", web_pages="missing"), "x")
    world.twins.answers[SCALE] = of_pods(ObjectsScaled, 3)
    await world.reached(await world.ask(instance_id, "scale", OUT), "COMPLETED")
    mark = await watched.shown(instance_id)
    assert mark is not None, "what a scaling leaves as it is stays shown"
    await watched.find_objects(drifted(web="missing"), "x")
    for task, body in (("scale", OUT), ("heal", {"vnfcInstanceId": ["web-0"]})):
        refused = (await world.lcm("POST", f"/vnf_instances/{instance_id}/{task}", body)).problem(409)
        assert refused["type"] == "instance-drifted"
        assert (
            f"{task}: another party has deleted Deployment web, as found at {(await mark_of(watched, instance_id))}"
            in (refused["detail"])
        )
        assert "additionalParams.repair: true" in refused["detail"]
    await world.reached(await world.ask(instance_id, "heal", {}), "COMPLETED")
    assert await watched.shown(instance_id) is None, "all objects were created again"


async def mark_of(watched: Watched, instance_id: str) -> str:
    mark = await watched.shown(instance_id)
    assert mark is not None
    return str(mark["since"])


@pytest.mark.parametrize("kind", ["GRACEFUL", "FORCEFUL"])
async def test_a_terminate_ends_the_drift_of_objects(watched: Watched, kind: str) -> None:
    """CR-121."""
    instance_id = await cnf(watched)
    await watched.find_objects(drifted(web="missing"), "x")
    await watched.world.reached(
        await watched.world.ask(instance_id, "terminate", {"terminationType": kind}), "COMPLETED"
    )
    assert await watched.shown(instance_id) is None
    assert await watched.object_questions() == []


async def test_a_failed_repair_leaves_the_mark(watched: Watched) -> None:
    """CR-121: it ends with a retry, or with the next comparison."""
    world, instance_id = watched.world, await cnf(watched)
    await watched.find_objects(drifted(web_pages="missing"), "x")
    world.twins.failing = {"infra.k8s.repair_objects"}
    operation_id = await world.ask(instance_id, "heal", REPAIR)
    await world.reached(operation_id, "FAILED_TEMP")
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/fail")).must(200)
    assert (await watched.shown(instance_id) or {})["missing"] == 1
    world.twins.failing = set()
    world.twins.answers["infra.k8s.repair_objects"] = of_pods(ObjectsRepaired, 2)
    await world.reached(await world.ask(instance_id, "heal", REPAIR), "COMPLETED")
    assert await watched.shown(instance_id) is None


async def test_a_lost_workload_cluster_can_only_be_built_again_or_terminated(watched: Watched) -> None:
    """CR-117, CR-121: 409 at once, also for its repair; other objects are repaired, and Machines of a lost owner are not healed."""
    world = watched.world
    instance_id = await built(world, reached=machines([0]))
    world.vims.records["k8s"]["status"] = "ACTIVE"
    (command,) = await watched.object_questions()
    assert [one.vnf_instance_id for one in command.expected] == [instance_id]
    await watched.find_objects(drifted(workload="missing"), "x")
    for task, body in (
        ("heal", REPAIR), ("heal", {}), ("scale", {"type": "SCALE_OUT", "aspectId": "workers"}),
    ):  # fmt: skip
        refused = (await world.lcm("POST", f"/vnf_instances/{instance_id}/{task}", body)).problem(409)
        assert refused["type"] == "instance-drifted"
        assert "another party has deleted Cluster workload" in refused["detail"]
        assert "additionalParams.capi.recreate: true" in refused["detail"]
    assert not [each for each in world.twins.commands if isinstance(each.data, RepairObjects)]
    again = {"additionalParams": {"capi": {"recreate": True}}}
    await world.reached(await world.ask(instance_id, "heal", again), "COMPLETED")
    assert await watched.shown(instance_id) is None
    await watched.find_objects(drifted(workload_md_0="missing"), "x")
    refused = (
        await world.lcm("POST", f"/vnf_instances/{instance_id}/scale", {"type": "SCALE_OUT", "aspectId": "workers"})
    ).problem(409)
    assert "MachineDeployment workload-md-0" in refused["detail"]
    await world.reached(await world.ask(instance_id, "heal", REPAIR), "COMPLETED")
    assert await watched.shown(instance_id) is None


async def test_findings_wait_for_the_database(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """CR-121: they are delivered again."""
    instance_id = await cnf(watched)
    monkeypatch.setattr(watched.world.store, "is_down", True)
    finding = ObjectsFinding(vnf_instance_id=instance_id, revision=1, drift=drifted(web="missing"), reason="x")
    envelope = Envelope(data=ObjectsCompared(findings=(finding,)), source="/kubevnfm/twin")
    assert isinstance(await watched.watch.record_findings(Delivery(envelope, deliveries=1)), Again)


async def test_drift_is_silent_while_its_instance_or_region_is_suspended(watched: Watched) -> None:
    """MC-139: it is published once when that has ended."""
    world, instance_id = watched.world, await cnf(watched)
    (command,) = await watched.object_questions()
    (asked,) = command.expected
    path = f"/multicloud/v1/vnf_instances/{instance_id}/suspension"
    (await world.call("PUT", path, {"reason": "new disks"})).must(200)
    world.twins.commands.clear()
    assert await watched.object_questions() == []
    drift = drifted(web_pages="missing")
    late = ObjectsFinding(vnf_instance_id=instance_id, revision=asked.revision, drift=drift, reason="one")
    await watched.publish(ObjectsCompared(findings=(late,)))
    (await world.call("DELETE", path)).must(204)

    suspension = Suspension(by="ann", since="2026-11-26T10:00:00.000Z", reason="new switches", scope="region")
    (command,) = await watched.object_questions()
    world.regions.suspended["k8s"] = suspension
    world.twins.commands.clear()
    assert await watched.object_questions() == []
    late = late.model_copy(update={"revision": command.expected[0].revision})
    await watched.publish(ObjectsCompared(findings=(late,)))
    assert (await watched.shown(instance_id), watched.events) == (None, [])
    world.regions.suspended.clear()
    await watched.find_objects(drift, "one")
    assert await watched.shown(instance_id) is not None
    assert [each.state for each in watched.events] == ["INCOMPLETE"]
