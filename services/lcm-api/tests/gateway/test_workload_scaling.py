"""Scale of workload clusters over HTTP, with twins behind: what is refused, what is sent, and what is shown."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_events.capi import AwaitCluster
from kubevnfm_events.objects import ScaleObjects
from packages.package_variants import SAMPLES
from worlds.lcm_world import World
from worlds.workload_world import AWAIT, KINDS, SCALE, SHOWN, TOPOLOGY, VNFD, built, machines, sent, shown

OUT = {"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": 1}


def counts(world: World) -> list[list[tuple[str, str, int]]]:
    """Return the objects and counts of each scaling that was sent."""
    return [[(one.kind, one.name, one.count) for one in each.objects] for each in sent(world, ScaleObjects)]


def levels(instance: Any) -> dict[str, int]:
    return {one["aspectId"]: one["scaleLevel"] for one in instance["instantiatedVnfInfo"]["scaleStatus"]}


async def test_workers_are_scaled_and_the_vnfcs_are_the_machines(world: World) -> None:
    """CR-087, CR-089, CR-092: one MachineDeployment, a wait before and after; the VIM of the cluster stays."""
    instance_id = await built(world)
    before = await shown(world, instance_id)
    assert {"scale", "scaleToLevel", "heal"} <= before["_links"].keys()
    world.twins.answers[AWAIT] = machines([0, 1])
    operation_id = await world.ask(instance_id, "scale", OUT)
    await world.reached(operation_id, "COMPLETED")
    assert counts(world) == [[("MachineDeployment", "workload-md-0", 2)]]
    assert [each.is_settled for each in sent(world, AwaitCluster)[-2:]] == [True, True]
    after = await shown(world, instance_id)
    assert levels(after) == {"control_plane": 0, "workers": 1}
    vnfcs = after["instantiatedVnfInfo"]["vnfcResourceInfo"]
    assert {one["id"]: one["metadata"]["providerId"] for one in vnfcs} == {
        name: f"openstack:///{name}" for name in ("cp-0", "md-0", "md-1")
    }
    assert (after["vimConnectionInfo"], after["metadata"]) == (before["vimConnectionInfo"], before["metadata"])
    changed = (await world.lcm("GET", f"/vnf_lcm_op_occs/{operation_id}")).json["resourceChanges"]["affectedVnfcs"]
    assert [(one["id"], one["changeType"]) for one in changed] == [("md-1", "ADDED")]

    # Cluster API chooses the Machine that goes.
    world.twins.answers[AWAIT] = machines([1])
    operation_id = await world.ask(instance_id, "scale", {**OUT, "type": "SCALE_IN"})
    await world.reached(operation_id, "COMPLETED")
    assert counts(world)[-1] == [("MachineDeployment", "workload-md-0", 1)]


async def test_chosen_machines_leave_first(world: World) -> None:
    """CR-090: by the id of vnfcInfo or of vnfcResourceInfo; what does not leave cannot be chosen."""
    instance_id = await built(world)
    world.twins.answers[AWAIT] = machines([0, 1])
    await world.reached(await world.ask(instance_id, "scale", OUT), "COMPLETED")
    in_ = {**OUT, "type": "SCALE_IN"}
    for given, status, field in (
        ("md-0", 400, "additionalParams/vnfc_instance_ids"),
        ([], 400, "additionalParams/vnfc_instance_ids"),
        (["md-7"], 400, "additionalParams/vnfc_instance_ids[0]: the VNF has no VNFC md-7"),
        (["md-0", "md-1"], 422, "names 2 VNFCs of VDU worker, of which 1 leave"),
        (["cp-0"], 422, "names 1 VNFCs of VDU controlPlane, of which 0 leave"),
    ):
        body = {**in_, "additionalParams": {"vnfc_instance_ids": given}}
        problem = (await world.lcm("POST", f"{SHOWN.format(instance_id)}/scale", body)).problem(status)
        assert field in problem["detail"]
    body = {**in_, "additionalParams": {"vnfc_instance_ids": ["worker-md-0", "md-0"]}}
    world.twins.answers[AWAIT] = machines([1])
    await world.reached(await world.ask(instance_id, "scale", body), "COMPLETED")
    (machine,) = sent(world, ScaleObjects)[-1].leaving
    assert (machine.kind, machine.api_version, machine.name, machine.uid) == (
        "Machine", "cluster.x-k8s.io/v1beta2", "md-0", "uid-md-0"
    )  # fmt: skip


async def test_scale_to_level_scales_what_differs(world: World) -> None:
    """CR-087: control plane and workers in one operation."""
    instance_id = await built(world)
    world.twins.answers[AWAIT] = machines([0, 1, 2], 3)
    level = {"instantiationLevelId": "instantiation_level_2"}
    await world.reached(await world.ask(instance_id, "scale_to_level", level), "COMPLETED")
    assert counts(world) == [
        [("KubeadmControlPlane", "workload-control-plane", 3), ("MachineDeployment", "workload-md-0", 3)]
    ]
    assert levels(await shown(world, instance_id)) == {"control_plane": 1, "workers": 2}


async def test_a_scale_out_goes_back_to_the_stored_count_and_a_scale_in_does_not(world: World) -> None:
    """CR-093: after the reversal the Machines are read once more."""
    instance_id = await built(world)
    world.twins.failing = {SCALE}
    operation_id = await world.ask(instance_id, "scale", OUT)
    await world.reached(operation_id, "FAILED_TEMP")
    world.twins.failing = set()
    world.twins.answers[AWAIT] = machines([4])
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
    await world.reached(operation_id, "ROLLED_BACK")
    assert counts(world)[-1] == [("MachineDeployment", "workload-md-0", 1)]
    after = await shown(world, instance_id)
    assert [one["id"] for one in after["instantiatedVnfInfo"]["vnfcResourceInfo"]] == ["cp-0", "md-4"]
    assert levels(after)["workers"] == 0

    # New machines that never come up hold up no reversal: the counts go back first.
    world.twins.failing = {f"{AWAIT}/await_settled_cluster/after"}
    operation_id = await world.ask(instance_id, "scale", OUT)
    await world.reached(operation_id, "FAILED_TEMP")
    before = len(world.twins.commands)
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
    await world.reached(operation_id, "ROLLED_BACK")
    undone = [type(each.data) for each in world.twins.commands[before:]]
    assert undone == [ScaleObjects, AwaitCluster]
    assert counts(world)[-1] == [("MachineDeployment", "workload-md-0", 1)]
    assert sent(world, ScaleObjects)[-1].is_undo

    world.twins.failing = set()
    world.twins.answers[AWAIT] = machines([4, 5])
    await world.reached(await world.ask(instance_id, "scale", OUT), "COMPLETED")
    world.twins.failing = {SCALE}
    operation_id = await world.ask(instance_id, "scale", {**OUT, "type": "SCALE_IN"})
    await world.reached(operation_id, "FAILED_TEMP")
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).problem(404)
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/fail")).must(200)
    assert levels(await shown(world, instance_id))["workers"] == 1


async def test_tackers_version_of_the_api_scales_too(world: World) -> None:
    """CR-087: ``/vnflcm/v1``."""
    instance_id = await built(world)
    world.twins.answers[AWAIT] = machines([0, 1])
    answer = (await world.v1("POST", f"{SHOWN.format(instance_id)}/scale", OUT)).must(202)
    await world.reached(answer.headers["Location"].rpartition("/")[2], "COMPLETED")
    assert counts(world) == [[("MachineDeployment", "workload-md-0", 2)]]
    assert levels(await shown(world, instance_id))["workers"] == 1


def descriptor_with(old: str, new: str) -> str:
    """Return the descriptor of the sample with another text in the first place of a text."""
    text = (SAMPLES / "capi-workload" / VNFD).read_text(encoding="utf-8")
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_an_even_number_of_control_plane_machines_is_refused(world: World, version: str) -> None:
    """CR-088: before anything is sent, by either version of the API, also in a topology."""
    odd = descriptor_with("number_of_instances: 2\n", "number_of_instances: 3\n")
    instance_id = await built(world, TOPOLOGY if version == "v1" else KINDS, descriptor=odd)
    call = world.v1 if version == "v1" else world.lcm
    body = {"type": "SCALE_OUT", "aspectId": "control_plane", "numberOfSteps": 1}
    problem = (await call("POST", f"{SHOWN.format(instance_id)}/scale", body)).problem(422)
    named = {"v1": "the topology of Cluster workload", "v2": "the KubeadmControlPlane workload-control-plane"}[version]
    assert f"aspectId: leads to 4 machines of the control plane ({named})" in problem["detail"]
    assert not sent(world, ScaleObjects)


async def test_a_control_plane_without_machines_is_refused(world: World) -> None:
    """CR-088: there would be no cluster."""
    level = "instantiation_level_2: {{ number_of_instances: {} }}".format
    instance_id = await built(world, descriptor=descriptor_with(level(3), level(0)))
    body = {"instantiationLevelId": "instantiation_level_2"}
    problem = (await world.lcm("POST", f"{SHOWN.format(instance_id)}/scale_to_level", body)).problem(422)
    assert "instantiationLevelId: leads to 0 machines of the control plane" in problem["detail"]
    assert not sent(world, ScaleObjects)


async def test_the_numbers_of_a_topology_are_those_of_the_cluster(world: World) -> None:
    """CR-086, CR-087, CR-093: the Cluster with the part of its topology; the rollback of a scale out sets the earlier number."""
    instance_id = await built(world, TOPOLOGY)
    world.twins.answers[AWAIT] = machines([0, 1, 2], 3)
    level = {"instantiationLevelId": "instantiation_level_2"}
    await world.reached(await world.ask(instance_id, "scale_to_level", level), "COMPLETED")
    assert parts(world)[-1] == [("workload", "controlPlane", 3), ("workload", "md-0", 3)]
    assert levels(await shown(world, instance_id)) == {"control_plane": 1, "workers": 2}
    world.twins.failing = {SCALE}
    operation_id = await world.ask(instance_id, "scale", OUT)
    await world.reached(operation_id, "FAILED_TEMP")
    world.twins.failing = set()
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).must(202)
    await world.reached(operation_id, "ROLLED_BACK")
    assert [counts[0][2] for counts in parts(world)[-2:]] == [4, 3]


def parts(world: World) -> list[list[tuple[str, str | None, int]]]:
    """Return the Clusters, the parts of their topology, and the counts of each scaling that was sent."""
    return [[(one.name, one.topology, one.count) for one in each.objects] for each in sent(world, ScaleObjects)]


async def test_a_vdu_that_no_object_implements_is_refused_with_the_reason(world: World) -> None:
    """CR-086: before anything is sent."""
    instance_id = await built(world, KINDS[:1])
    problem = (await world.lcm("POST", f"{SHOWN.format(instance_id)}/scale", OUT)).problem(422)
    assert "VDU worker" in problem["detail"]
    assert "no Cluster whose spec.topology has it" in problem["detail"]
    assert not sent(world, ScaleObjects)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({**OUT, "aspectId": "none"}, "aspectId"),
        ({**OUT, "numberOfSteps": 5}, "numberOfSteps"),
        ({**OUT, "type": "SCALE_IN"}, "numberOfSteps"),
    ],
)
async def test_what_the_descriptor_does_not_allow_is_refused_by_field(
    world: World, body: dict[str, Any], field: str
) -> None:
    """CR-087: before anything is sent."""
    instance_id = await built(world)
    problem = (await world.lcm("POST", f"{SHOWN.format(instance_id)}/scale", body)).problem(400)
    assert field in problem["detail"]
    assert not sent(world, ScaleObjects)


async def test_what_a_workload_cluster_does_not_support_is_404_with_the_reason(world: World) -> None:
    instance_id = await built(world)
    problem = (await world.lcm("POST", f"{SHOWN.format(instance_id)}/operate", {"changeStateTo": "STOPPED"})).problem(
        404
    )
    assert "workload clusters support instantiate, scale" in problem["detail"]
