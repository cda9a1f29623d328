"""The tasks of CNFs over HTTP, with twins behind: what is judged, what is asked of infra-k8s, what is shown."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_events.objects import (
    ApplyObjects,
    HealObjects,
    ObjectsApplied,
    ObjectsHealed,
    ObjectsReplaced,
    ObjectsScaled,
    ObjectsUpdated,
    ReplaceObjects,
    ScaleObjects,
    UpdateObjects,
)
from packages.package_variants import OTHER_CNF, variant
from worlds.cnf_world import APPLY, OBJECTS, deployed, of_pods
from worlds.lcm_world import World

WEB_OUT = {"type": "SCALE_OUT", "aspectId": "web_aspect"}
WEB = "infra.k8s.scale_objects"


async def test_the_scaling_of_a_cnf_asks_for_the_count_of_its_level(world: World) -> None:
    """CR-033, CR-087, API-055: the initial delta and the steps, whatever number of pods runs."""
    instance_id = await deployed(world)
    world.twins.answers[WEB] = of_pods(ObjectsScaled, 4)
    operation_id = await world.ask(instance_id, "scale", {**WEB_OUT, "numberOfSteps": 2})
    await world.reached(operation_id, "COMPLETED")
    command = world.twins.last(ScaleObjects)
    assert [(one.kind, one.name, one.count) for one in command.objects] == [("Deployment", "web", 4)]
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json["instantiatedVnfInfo"]
    assert shown["scaleStatus"] == [{"aspectId": "web_aspect", "scaleLevel": 2}]
    assert [one["id"] for one in shown["vnfcInfo"]] == [f"VDU1-web-{n}" for n in range(4)]
    changes = (await world.lcm("GET", f"/vnf_lcm_op_occs/{operation_id}")).json["resourceChanges"]["affectedVnfcs"]
    assert [(one["id"], one["changeType"]) for one in changes] == [("web-2", "ADDED"), ("web-3", "ADDED")]

    world.twins.answers[WEB] = of_pods(ObjectsScaled, 5)
    level = {"instantiationLevelId": "instantiation_level_2"}
    await world.reached(await world.ask(instance_id, "scale_to_level", level), "COMPLETED")
    assert [one.count for one in world.twins.last(ScaleObjects).objects] == [5]
    world.twins.answers[WEB] = of_pods(ObjectsScaled, 4)
    await world.reached(await world.ask(instance_id, "scale", {**WEB_OUT, "type": "SCALE_IN"}), "COMPLETED")
    assert [one.count for one in world.twins.last(ScaleObjects).objects] == [4]


async def test_the_pods_that_leave_a_cnf_cannot_be_chosen(world: World) -> None:
    """CR-033, CR-090: Kubernetes chooses them; a request that names some is refused with the field."""
    instance_id = await deployed(world)
    body = {**WEB_OUT, "additionalParams": {"vnfc_instance_ids": ["VDU1-web-0"]}}
    problem = (await world.lcm("POST", f"/vnf_instances/{instance_id}/scale", body)).problem(422)
    assert "additionalParams/vnfc_instance_ids: Kubernetes chooses the pods" in problem["detail"]


async def test_a_cnf_scaled_out_goes_back_to_its_count_and_one_scaled_in_does_not(world: World) -> None:
    """CR-093, API-051: what exists after a failure is shown, with the level that it amounts to."""
    instance_id = await deployed(world)
    world.twins.failing = {WEB}
    world.twins.remains = of_pods(ObjectsScaled, 3).model_dump(mode="json")
    operation_id = await world.ask(instance_id, "scale", {**WEB_OUT, "numberOfSteps": 2})
    await world.reached(operation_id, "FAILED_TEMP")
    world.twins.failing = set()
    world.twins.answers[WEB] = of_pods(ObjectsScaled, 2)
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
    await world.reached(operation_id, "ROLLED_BACK")
    assert [one.count for one in world.twins.last(ScaleObjects).objects] == [2]
    world.twins.failing = {WEB}
    operation_id = await world.ask(instance_id, "scale", {**WEB_OUT, "numberOfSteps": 2})
    await world.reached(operation_id, "FAILED_TEMP")
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/fail")).must(200)
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json["instantiatedVnfInfo"]
    assert shown["scaleStatus"] == [{"aspectId": "web_aspect", "scaleLevel": 1}]
    assert len(shown["vnfcResourceInfo"]) == 3
    operation_id = await world.ask(instance_id, "scale", {**WEB_OUT, "type": "SCALE_IN"})
    await world.reached(operation_id, "FAILED_TEMP")
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).problem(404)


@pytest.mark.parametrize("kind", ["DaemonSet", "VirtualMachine", "VirtualMachineInstance"])
async def test_a_vdu_whose_kind_has_no_replicas_is_refused_before_anything_is_sent(world: World, kind: str) -> None:
    """CR-086, MC-062."""
    agent = OBJECTS[0].model_copy(update={"kind": kind, "name": "agent"})
    instance_id = await deployed(world, agent)
    problem = (await world.lcm("POST", f"/vnf_instances/{instance_id}/scale", WEB_OUT)).problem(422)
    assert f"VDU VDU1 is the {kind} agent" in problem["detail"]
    assert WEB not in world.twins.asked()


HEAL = "infra.k8s.heal_objects"


@pytest.mark.parametrize("named", ["VDU1-web-1", "web-1"])
async def test_the_heal_of_a_cnf_replaces_the_named_pods(world: World, named: str) -> None:
    """CR-034: named by vnfcInfo, or by vnfcResourceInfo as by clients of Tacker's v1 API."""
    instance_id = await deployed(world)
    problem = (await world.lcm("POST", f"/vnf_instances/{instance_id}/heal", {"vnfcInstanceId": [named, "x"]})).problem(
        400
    )
    assert "vnfcInstanceId[1]: the VNF has no VNFC x" in problem["detail"]
    assert HEAL not in world.twins.asked()
    new = of_pods(ObjectsHealed, 3)
    world.twins.answers[HEAL] = new.model_copy(update={"pods": (new.pods[0], new.pods[2])})
    operation_id = await world.ask(instance_id, "heal", {"vnfcInstanceId": [named]})
    await world.reached(operation_id, "COMPLETED")
    command = world.twins.last(HealObjects)
    assert [(pod.name, pod.uid) for pod in command.pods] == [("web-1", "u1")]
    assert [(one.vdu_id, one.replicas) for one in command.vdus] == [("VDU1", 2)]
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json["instantiatedVnfInfo"]
    assert [one["id"] for one in shown["vnfcInfo"]] == ["VDU1-web-0", "VDU1-web-2"]
    changes = (await world.lcm("GET", f"/vnf_lcm_op_occs/{operation_id}")).json["resourceChanges"]["affectedVnfcs"]
    assert [(one["id"], one["changeType"]) for one in changes] == [("web-1", "REMOVED"), ("web-2", "ADDED")]


async def test_the_heal_of_a_whole_cnf_creates_it_again_as_it_is_scaled(world: World) -> None:
    """CR-034: also after a failure between the deletion and the creation, which a retry continues."""
    instance_id = await deployed(world)
    world.twins.answers[WEB] = of_pods(ObjectsScaled, 4)
    await world.reached(await world.ask(instance_id, "scale", {**WEB_OUT, "numberOfSteps": 2}), "COMPLETED")
    world.twins.answers[APPLY] = of_pods(ObjectsApplied, 4)
    world.twins.failing = {APPLY}
    operation_id = await world.ask(instance_id, "heal", {})
    await world.reached(operation_id, "FAILED_TEMP")
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).problem(404)
    world.twins.failing = set()
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/retry")).must(202)
    await world.reached(operation_id, "COMPLETED")
    assert world.twins.asked()[-3:] == ["infra.k8s.delete_objects", APPLY, APPLY]
    command = world.twins.last(ApplyObjects)
    assert (command.namespace, [one.replicas for one in command.vdus]) == ("default", [4])
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json["instantiatedVnfInfo"]
    assert shown["scaleStatus"] == [{"aspectId": "web_aspect", "scaleLevel": 2}]
    assert len(shown["vnfcInfo"]) == 4

    world.twins.failing = {APPLY}
    operation_id = await world.ask(instance_id, "heal", {})
    await world.reached(operation_id, "FAILED_TEMP")
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/fail")).must(200)
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json["instantiatedVnfInfo"]
    assert "vnfcInfo" not in shown or shown["vnfcInfo"] == []
    problem = (await world.lcm("POST", f"/vnf_instances/{instance_id}/heal", {"additionalParams": {"all": 1}})).problem(
        400
    )
    assert "additionalParams/all" in problem["detail"]


REPLACE, UPDATE = "infra.k8s.replace_objects", "infra.k8s.update_objects"
DEPLOYMENT = "Files/kubernetes/deployment.yaml"


async def other_cnf(world: World, **changes: Any) -> None:
    """Upload another version of the sample CNF."""
    await world.upload(variant(world.folder, vnfd_id=OTHER_CNF, **changes))


async def test_a_cnf_is_changed_to_the_objects_of_another_package(world: World) -> None:
    """CR-035, CR-094: at its present scale level; the instance follows the new package."""
    instance_id = await deployed(world)
    await other_cnf(world)
    world.twins.answers[WEB] = of_pods(ObjectsScaled, 4)
    await world.reached(await world.ask(instance_id, "scale", {**WEB_OUT, "numberOfSteps": 2}), "COMPLETED")
    world.twins.answers[REPLACE] = of_pods(ObjectsReplaced, 5)
    body = {"vnfdId": OTHER_CNF, "additionalParams": {"lcm-kubernetes-def-files": [DEPLOYMENT]}}
    operation_id = await world.ask(instance_id, "change_vnfpkg", body)
    await world.reached(operation_id, "COMPLETED")
    command = world.twins.last(ReplaceObjects)
    assert (command.package.vnfd_id, command.def_files, command.namespace) == (OTHER_CNF, (DEPLOYMENT,), "default")
    assert [one.replicas for one in command.vdus] == [4]
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json
    assert shown["vnfdId"] == OTHER_CNF
    info = shown["instantiatedVnfInfo"]
    assert info["scaleStatus"] == [{"aspectId": "web_aspect", "scaleLevel": 2}]
    assert info["metadata"]["lcm-kubernetes-def-files"] == [DEPLOYMENT]
    assert len(info["vnfcInfo"]) == 5
    occurrence = (await world.lcm("GET", f"/vnf_lcm_op_occs/{operation_id}")).json
    assert occurrence["modificationsTriggeredByVnfPkgChange"]["vnfdId"] == OTHER_CNF
    world.twins.answers[WEB] = of_pods(ObjectsScaled, 5)
    await world.reached(await world.ask(instance_id, "scale", WEB_OUT), "COMPLETED")
    assert [one.count for one in world.twins.last(ScaleObjects).objects] == [5]


async def test_a_change_of_package_that_failed_goes_back_to_the_earlier_one(world: World) -> None:
    """CR-035: what the rollback asks for is what the CNF was made from."""
    instance_id = await deployed(world)
    before = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json
    await other_cnf(world)
    world.twins.failing = {REPLACE}
    world.twins.remains = of_pods(ObjectsReplaced, 3).model_dump(mode="json")
    body = {"vnfdId": OTHER_CNF, "additionalParams": {"lcm-kubernetes-def-files": [DEPLOYMENT]}}
    operation_id = await world.ask(instance_id, "change_vnfpkg", body)
    await world.reached(operation_id, "FAILED_TEMP")
    world.twins.failing = set()
    world.twins.answers[REPLACE] = of_pods(ObjectsReplaced, 2)
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
    await world.reached(operation_id, "ROLLED_BACK")
    command = world.twins.last(ReplaceObjects)
    files = before["instantiatedVnfInfo"]["metadata"]["lcm-kubernetes-def-files"]
    assert (command.package.vnfd_id, list(command.def_files)) == (before["vnfdId"], files)
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json
    for name in ("vnfdId", "instantiatedVnfInfo"):
        assert shown[name] == before[name]


async def test_the_rolling_update_of_a_cnf_changes_the_images_of_the_named_vdus(world: World) -> None:
    """CR-035: Tacker's form of the request."""
    instance_id = await deployed(world)
    await other_cnf(world)
    files = ("Files/kubernetes/configmap.yaml", DEPLOYMENT)
    world.twins.answers[UPDATE] = of_pods(ObjectsUpdated, 2, def_files=files)
    parameters = {"upgrade_type": "RollingUpdate", "vdu_params": [{"vdu_id": "VDU1"}]}
    parameters["lcm-kubernetes-def-files"] = [DEPLOYMENT]
    body = {"vnfdId": OTHER_CNF, "additionalParams": parameters}
    await world.reached(await world.ask(instance_id, "change_vnfpkg", body), "COMPLETED")
    command = world.twins.last(UpdateObjects)
    assert (command.images_of, command.config_files) == (("VDU1",), (DEPLOYMENT,))
    shown = (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json
    assert shown["vnfdId"] == OTHER_CNF
    assert shown["instantiatedVnfInfo"]["metadata"]["lcm-kubernetes-def-files"] == list(files)


@pytest.mark.parametrize(
    ("parameters", "status", "place"),
    [
        ({}, 400, "additionalParams/lcm-kubernetes-def-files: the files"),
        ({"lcm-kubernetes-def-files": ["x.yaml"]}, 400, "lcm-kubernetes-def-files[0]: the package has no file x.yaml"),
        ({"upgrade_type": "BlueGreen"}, 400, "additionalParams/upgrade_type: RollingUpdate expected"),
        ({"vdu_params": "VDU1"}, 400, "additionalParams/vdu_params: an array"),
        ({"vdu_params": [{}]}, 400, "vdu_params[0]/vdu_id: the VDU's id"),
        ({"vdu_params": [{"vdu_id": "x"}]}, 400, "vdu_params[0]/vdu_id: the VNF has no VDU x; it has VDU1"),
        ({"vdu_params": [{"vdu_id": "VDU1"}] * 2}, 400, "vdu_params[1]/vdu_id: VDU VDU1 is there already"),
        (
            {"vdu_params": [{"vdu_id": "VDU1"}], "replace": ["Job"]},
            422,
            "additionalParams/replace: not with vdu_params",
        ),
        ({"lcm-kubernetes-def-files": [DEPLOYMENT], "replace": "Job"}, 400, "additionalParams/replace: an array"),
        ({"lcm-kubernetes-def-files": [DEPLOYMENT], "replace": ["job"]}, 400, "additionalParams/replace[0]: the kind"),
        ({"lcm-operation-coordinate-new-vnf": "a.py"}, 422, "lcm-operation-coordinate-new-vnf: a CNF has no machines"),
        ({"lcm-kubernetes-def-files": [DEPLOYMENT], "namespace": "other"}, 422, "additionalParams/namespace: default"),
        ({"helm_chart_path": "Files/chart"}, 422, "additionalParams/helm_chart_path: not supported for a change"),
        ({"lcm-kubernetes-def-files": [DEPLOYMENT], "wait_timeout": 0}, 400, "additionalParams/wait_timeout: seconds"),
    ],
)
async def test_a_change_of_a_cnfs_package_is_judged_by_attribute(
    world: World, parameters: Any, status: int, place: str
) -> None:
    """CR-035, API-010."""
    instance_id = await deployed(world)
    await other_cnf(world)
    body = {"vnfdId": OTHER_CNF, "additionalParams": parameters}
    problem = (await world.lcm("POST", f"/vnf_instances/{instance_id}/change_vnfpkg", body)).problem(status)
    assert place in problem["detail"]
    if not parameters:
        machines = {"vnfdId": (await world.sample())["vnfdId"]}
        wrong = (await world.lcm("POST", f"/vnf_instances/{instance_id}/change_vnfpkg", machines)).problem(422)
        assert "vnfdId: flavour simple is one of machines: it has " in wrong["detail"]
    assert {REPLACE, UPDATE}.isdisjoint(world.twins.asked())
