"""Repair of CNFs and of workload clusters over HTTP, with twins behind: what is refused, what is sent, and what is shown."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_events.capi import AwaitCluster
from kubevnfm_events.objects import (
    LeftObject,
    ObjectsDeleted,
    ObjectsRepaired,
    ObjectsScaled,
    RepairObjects,
    ScaleObjects,
)
from worlds.cnf_world import APPLY, deployed, of_pods
from worlds.lcm_world import World
from worlds.workload_world import AWAIT, applied, built, machines, sent, shown

REPAIR, SCALE = "infra.k8s.repair_objects", "infra.k8s.scale_objects"
BODY: dict[str, Any] = {"additionalParams": {"repair": True}}
OUT = {"type": "SCALE_OUT", "aspectId": "web_aspect"}


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_a_cnf_is_repaired_at_its_present_scale(world: World, version: str) -> None:
    """CR-121: one step; the new pods are VNFCs and resourceChanges, which also count the objects that were applied."""
    instance_id = await deployed(world)
    world.twins.answers[SCALE] = of_pods(ObjectsScaled, 3)
    await world.reached(await world.ask(instance_id, "scale", OUT), "COMPLETED")
    after = of_pods(ObjectsRepaired, 4, repaired=2)
    world.twins.answers[REPAIR] = after.model_copy(update={"pods": after.pods[1:]})
    call = world.v1 if version == "v1" else world.lcm
    parameters = {"repair": True, "wait_timeout": 77}
    answer = (await call("POST", f"/vnf_instances/{instance_id}/heal", {"additionalParams": parameters})).must(202)
    operation_id = answer.headers["Location"].rpartition("/")[2]
    await world.reached(operation_id, "COMPLETED")
    (command,) = sent(world, RepairObjects)
    assert [(vdu.vdu_id, vdu.replicas) for vdu in command.vdus] == [("VDU1", 3)]
    assert (command.namespace, command.cluster_apart, command.wait_timeout_s) == ("default", False, 77.0)
    assert command.def_files
    assert world.twins.asked()[-1] == REPAIR
    view = (await world.lcm("GET", f"/vnf_lcm_op_occs/{operation_id}")).json
    assert view["operation"] == "HEAL"
    assert view["resourceChanges"]["metadata"] == {"kubevnfm_repaired": 2}
    assert {(one["id"], one["changeType"]) for one in view["resourceChanges"]["affectedVnfcs"]} == {
        ("web-0", "REMOVED"), ("web-3", "ADDED")
    }  # fmt: skip
    info = (await shown(world, instance_id))["instantiatedVnfInfo"]
    assert [one["id"] for one in info["vnfcResourceInfo"]] == ["web-1", "web-2", "web-3"]
    assert info["scaleStatus"] == [{"aspectId": "web_aspect", "scaleLevel": 1}]


async def test_a_scaling_says_which_objects_get_another_number(world: World) -> None:
    """MC-114: those that do not keep the number of their autoscaler; the way back has the same ones, and refuses none."""
    instance_id = await deployed(world)
    world.twins.answers[SCALE] = of_pods(ObjectsScaled, 2)
    level = {"scaleInfo": [{"aspectId": "web_aspect", "scaleLevel": 0}]}
    await world.reached(await world.ask(instance_id, "scale_to_level", level), "COMPLETED")
    world.twins.failing = {SCALE}
    operation_id = await world.ask(instance_id, "scale", OUT)
    await world.reached(operation_id, "FAILED_TEMP")
    world.twins.failing = set()
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
    await world.reached(operation_id, "ROLLED_BACK")
    scalings = [[(one.count, one.is_change) for one in each.objects] for each in sent(world, ScaleObjects)]
    assert scalings == [[(2, False)], [(3, True)], [(2, True)]]
    assert [each.is_undo for each in sent(world, ScaleObjects)] == [False, False, True]


async def test_a_failed_repair_shows_what_exists_and_is_retried(world: World) -> None:
    """CR-121: it has no rollback, as every heal; the retry asks for the same."""
    instance_id = await deployed(world)
    world.twins.failing = {REPAIR}
    world.twins.remains = of_pods(ObjectsRepaired, 1).model_dump(mode="json")
    operation_id = await world.ask(instance_id, "heal", BODY)
    failed = await world.reached(operation_id, "FAILED_TEMP")
    assert [one["id"] for one in failed["resourceChanges"]["affectedVnfcs"]] == ["web-1"]
    assert "metadata" not in failed["resourceChanges"], "how many were applied is not known yet"
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).problem(404)
    world.twins.failing = set()
    world.twins.answers[REPAIR] = of_pods(ObjectsRepaired, 2, repaired=1)
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/retry")).must(202)
    done = await world.reached(operation_id, "COMPLETED")
    assert done["resourceChanges"]["affectedVnfcs"] == []
    assert done["resourceChanges"]["metadata"] == {"kubevnfm_repaired": 1}
    first, second = sent(world, RepairObjects)
    assert first == second


async def test_a_workload_cluster_is_repaired_and_then_awaited(world: World) -> None:
    """CR-121: its VNFCs are the Machines that it has then, and its objects those that were reported."""
    instance_id = await built(world, reached=machines([0]))
    world.twins.answers[REPAIR] = ObjectsRepaired(namespace="default", objects=applied().objects, repaired=1)
    world.twins.answers[AWAIT] = machines([1])
    operation_id = await world.ask(instance_id, "heal", BODY)
    await world.reached(operation_id, "COMPLETED")
    (command,) = sent(world, RepairObjects)
    assert command.cluster_apart
    assert sent(world, AwaitCluster)[-1].is_settled
    view = (await world.lcm("GET", f"/vnf_lcm_op_occs/{operation_id}")).json
    assert view["resourceChanges"]["metadata"] == {"kubevnfm_repaired": 1}
    assert {(one["id"], one["changeType"]) for one in view["resourceChanges"]["affectedVnfcs"]} == {
        ("md-0", "REMOVED"), ("md-1", "ADDED")
    }  # fmt: skip
    vnfcs = (await shown(world, instance_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    assert {one["id"] for one in vnfcs} == {"cp-0", "md-1"}
    # A later operation knows the objects that were reported.
    await world.reached(
        await world.ask(instance_id, "scale", {"type": "SCALE_OUT", "aspectId": "workers"}), "COMPLETED"
    )


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"additionalParams": {"repair": "yes"}}, 400, "additionalParams/repair: true or false"),
        ({**BODY, "vnfcInstanceId": ["web-0"]}, 422, "additionalParams/repair: true repairs the whole VNF"),
        ({"additionalParams": {"repair": True, "all": True}}, 422, "all is true"),
        ({"additionalParams": {"repair": True, "force": True}}, 422, "force is true"),
        ({"additionalParams": {"repair": True, "force": 1}}, 400, "additionalParams/force"),
        ({"additionalParams": {"repair": True, "wait_timeout": 0}}, 400, "additionalParams/wait_timeout"),
    ],
)
async def test_what_contradicts_a_repair_is_refused(world: World, body: Any, status: int, field: str) -> None:
    """CR-121: before anything is sent, of CNFs and of clusters; the answer names the field."""
    problem = (await world.lcm("POST", f"/vnf_instances/{await deployed(world)}/heal", body)).problem(status)
    assert field in problem["detail"]
    cluster = await built(world)
    names = {"vnfcInstanceId": ["md-0"]} if "vnfcInstanceId" in body else {}
    problem = (await world.lcm("POST", f"/vnf_instances/{cluster}/heal", {**body, **names})).problem(status)
    assert field in problem["detail"]
    assert not sent(world, RepairObjects)


async def test_a_vnf_of_machines_has_nothing_to_repair(world: World) -> None:
    """CR-121: 422; without the check its machines would be replaced. `false` asks for nothing."""
    await world.sample()
    instance_id = await world.create()
    await world.reached(await world.instantiate(instance_id), "COMPLETED")
    problem = (await world.lcm("POST", f"/vnf_instances/{instance_id}/heal", BODY)).problem(422)
    assert "additionalParams/repair: true expects Kubernetes objects" in problem["detail"]
    (await world.lcm("POST", f"/vnf_instances/{instance_id}/heal", {"additionalParams": {"repair": 1}})).problem(400)
    operation_id = await world.ask(instance_id, "heal", {"additionalParams": {"repair": False}})
    await world.reached(operation_id, "COMPLETED")


async def test_a_repair_needs_an_instance_that_is_instantiated_and_free(world: World) -> None:
    """CR-121, API-041."""
    await world.sample("cnf")
    instance_id = await world.create("cnf")
    (await world.lcm("POST", f"/vnf_instances/{instance_id}/heal", BODY)).problem(409)


async def test_a_heal_names_what_its_deletion_has_left_until_it_is_applied_again(world: World) -> None:
    """CR-111, MC-106d: a heal that fails in between names all of it, as a termination does."""
    instance_id = await deployed(world)
    names = {"reason": "others need it", "uid": "u"}
    left = (
        LeftObject(api_version="v1", kind="Namespace", name="mine", **names),
        LeftObject(api_version="v1", kind="ConfigMap", namespace="default", name="web-pages", **names),
    )
    world.twins.answers["infra.k8s.delete_objects"] = ObjectsDeleted(left=left)
    world.twins.failing = {APPLY}
    operation_id = await world.ask(instance_id, "heal", {})

    async def named(state: str) -> list[str]:
        changes = (await world.reached(operation_id, state))["resourceChanges"]
        return [each["name"] for each in changes["metadata"]["kubevnfm_left"]]

    assert await named("FAILED_TEMP") == ["mine", "web-pages"]
    world.twins.failing = set()
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/retry")).must(202)
    assert await named("COMPLETED") == ["mine"]
