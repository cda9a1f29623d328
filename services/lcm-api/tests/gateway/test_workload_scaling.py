"""Scale of workload clusters: what is refused, what is sent, and what is shown; without a server, but for what HTTP adds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from kubevnfm_events.capi import AwaitCluster
from kubevnfm_events.objects import ScaleObjects
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_lcm_api.lifecycle.core.states import RollbackUnsupported
from kubevnfm_sol.lcm import OperationState, ScaleVnfRequest, ScaleVnfToLevelRequest
from packages.package_variants import SAMPLES
from worlds.lcm_world import World
from worlds.workload_requests import WorkloadVnf, a_workload_vnf
from worlds.workload_world import AWAIT, KINDS, SCALE, SHOWN, TOPOLOGY, VNFD, built, machines, sent, shown

OUT = {"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": 1}


def scaling(**changes: Any) -> ScaleVnfRequest:
    """Return the request."""
    return ScaleVnfRequest.model_validate({**OUT, **changes})


def to_level(level_id: str = "instantiation_level_2") -> ScaleVnfToLevelRequest:
    """Return the request."""
    return ScaleVnfToLevelRequest.model_validate({"instantiationLevelId": level_id})


def counts(commands: Sequence[ScaleObjects]) -> list[list[tuple[str, str, int]]]:
    """Return the objects and counts of each scaling that was sent."""
    return [[(one.kind, one.name, one.count) for one in each.objects] for each in commands]


def levels(instance: Any) -> dict[str, int]:
    return {one["aspectId"]: one["scaleLevel"] for one in instance["instantiatedVnfInfo"]["scaleStatus"]}


async def test_workers_are_scaled_and_the_vnfcs_are_the_machines() -> None:
    """CR-087, CR-089, CR-092: one MachineDeployment, a wait before and after; the VIM of the cluster stays."""
    vnf = await a_workload_vnf()
    before = vnf.record.vnf
    vnf.answers[AWAIT] = machines([0, 1])
    assert await vnf.ask(scaling()) is OperationState.COMPLETED
    assert counts(vnf.of_kind(ScaleObjects)) == [[("MachineDeployment", "workload-md-0", 2)]]
    assert [each.is_settled for each in vnf.of_kind(AwaitCluster)] == [True, True]
    assert vnf.levels == {"control_plane": 0, "workers": 1}
    assert {one.id: (one.metadata or {})["providerId"] for one in vnf.info.vnfc_resource_info} == {
        name: f"openstack:///{name}" for name in ("cp-0", "md-0", "md-1")
    }
    after = vnf.record.vnf
    assert (after.vim_connection_info, after.metadata) == (before.vim_connection_info, before.metadata)
    assert vnf.changed == {("md-1", "ADDED")}

    # Cluster API chooses the Machine that goes.
    vnf.answers[AWAIT] = machines([1])
    assert await vnf.ask(scaling(type="SCALE_IN")) is OperationState.COMPLETED
    assert counts(vnf.of_kind(ScaleObjects))[-1] == [("MachineDeployment", "workload-md-0", 1)]


async def test_chosen_machines_leave_first() -> None:
    """CR-090: by the id of vnfcInfo or of vnfcResourceInfo; what does not leave cannot be chosen."""
    vnf = await a_workload_vnf()
    vnf.answers[AWAIT] = machines([0, 1])
    assert await vnf.ask(scaling()) is OperationState.COMPLETED
    refusals: list[tuple[Any, type[InvalidInput | Unprocessable], str]] = [
        ("md-0", InvalidInput, "additionalParams/vnfc_instance_ids"),
        ([], InvalidInput, "additionalParams/vnfc_instance_ids"),
        (["md-7"], InvalidInput, "additionalParams/vnfc_instance_ids[0]: the VNF has no VNFC md-7"),
        (["md-0", "md-1"], Unprocessable, "names 2 VNFCs of VDU worker, of which 1 leave"),
        (["cp-0"], Unprocessable, "names 1 VNFCs of VDU controlPlane, of which 0 leave"),
    ]
    for given, refusal, field in refusals:
        with pytest.raises(refusal, match=re.escape(field)):
            await vnf.draft(scaling(type="SCALE_IN", additionalParams={"vnfc_instance_ids": given}))
    vnf.answers[AWAIT] = machines([1])
    chosen = {"vnfc_instance_ids": ["worker-md-0", "md-0"]}
    assert await vnf.ask(scaling(type="SCALE_IN", additionalParams=chosen)) is OperationState.COMPLETED
    (machine,) = vnf.of_kind(ScaleObjects)[-1].leaving
    assert (machine.kind, machine.api_version, machine.name, machine.uid) == (
        "Machine", "cluster.x-k8s.io/v1beta2", "md-0", "uid-md-0"
    )  # fmt: skip


async def test_scale_to_level_scales_what_differs() -> None:
    """CR-087: control plane and workers in one operation."""
    vnf = await a_workload_vnf()
    vnf.answers[AWAIT] = machines([0, 1, 2], 3)
    assert await vnf.ask(to_level()) is OperationState.COMPLETED
    assert counts(vnf.of_kind(ScaleObjects)) == [
        [("KubeadmControlPlane", "workload-control-plane", 3), ("MachineDeployment", "workload-md-0", 3)]
    ]
    assert vnf.levels == {"control_plane": 1, "workers": 2}
    vnf.answers[AWAIT] = machines([0, 1], 3)
    assert await vnf.ask(scaling(type="SCALE_IN")) is OperationState.COMPLETED
    assert await vnf.ask(to_level()) is OperationState.COMPLETED
    assert counts(vnf.of_kind(ScaleObjects))[-1] == [("MachineDeployment", "workload-md-0", 3)]


async def test_a_scale_out_goes_back_to_the_stored_count_and_a_scale_in_does_not() -> None:
    """CR-093: after the reversal the Machines are read once more."""
    vnf = await a_workload_vnf()
    vnf.failing = {SCALE}
    assert await vnf.ask(scaling()) is OperationState.FAILED_TEMP
    vnf.failing = set()
    vnf.answers[AWAIT] = machines([4])
    assert vnf.roll_back() is OperationState.ROLLED_BACK
    assert counts(vnf.of_kind(ScaleObjects))[-1] == [("MachineDeployment", "workload-md-0", 1)]
    assert [one.id for one in vnf.info.vnfc_resource_info] == ["cp-0", "md-4"]
    assert vnf.levels["workers"] == 0

    # New machines that never come up hold up no reversal: the counts go back first.
    vnf.failing = {f"{AWAIT}/await_settled_cluster/after"}
    assert await vnf.ask(scaling()) is OperationState.FAILED_TEMP
    before = len(vnf.sent)
    assert vnf.roll_back() is OperationState.ROLLED_BACK
    assert [type(each) for each in vnf.sent[before:]] == [ScaleObjects, AwaitCluster]
    assert counts(vnf.of_kind(ScaleObjects))[-1] == [("MachineDeployment", "workload-md-0", 1)]
    assert vnf.of_kind(ScaleObjects)[-1].is_undo

    vnf.failing = set()
    vnf.answers[AWAIT] = machines([4, 5])
    assert await vnf.ask(scaling()) is OperationState.COMPLETED
    vnf.failing = {SCALE}
    assert await vnf.ask(scaling(type="SCALE_IN")) is OperationState.FAILED_TEMP
    with pytest.raises(RollbackUnsupported):
        vnf.roll_back()
    vnf.fail()
    assert vnf.levels["workers"] == 1


async def test_tackers_version_of_the_api_scales_too(world: World) -> None:
    """CR-087: ``/vnflcm/v1``."""
    instance_id = await built(world)
    world.twins.answers[AWAIT] = machines([0, 1])
    answer = (await world.v1("POST", f"{SHOWN.format(instance_id)}/scale", OUT)).must(202)
    await world.reached(answer.headers["Location"].rpartition("/")[2], "COMPLETED")
    assert counts(sent(world, ScaleObjects)) == [[("MachineDeployment", "workload-md-0", 2)]]
    after = await shown(world, instance_id)
    assert levels(after)["workers"] == 1
    assert {"scale", "scaleToLevel", "heal"} <= after["_links"].keys()


def descriptor_with(old: str, new: str) -> str:
    """Return the descriptor of the sample with another text in the first place of a text."""
    text = (SAMPLES / "capi-workload" / VNFD).read_text(encoding="utf-8")
    assert old in text
    return text.replace(old, new, 1)


async def test_an_even_number_of_control_plane_machines_is_refused(world: World) -> None:
    """CR-088: before anything is sent, by either version of the API, also in a topology."""
    odd = descriptor_with("number_of_instances: 2\n", "number_of_instances: 3\n")
    instance_id = await built(world, TOPOLOGY, descriptor=odd)
    body = {"type": "SCALE_OUT", "aspectId": "control_plane", "numberOfSteps": 1}
    for call in (world.v1, world.lcm):
        problem = (await call("POST", f"{SHOWN.format(instance_id)}/scale", body)).problem(422)
        assert (
            "aspectId: leads to 4 machines of the control plane (the topology of Cluster workload)" in problem["detail"]
        )
    assert not sent(world, ScaleObjects)
    vnf = await a_workload_vnf(descriptor=odd)
    named = r"leads to 4 machines of the control plane \(the KubeadmControlPlane workload-control-plane\)"
    with pytest.raises(Unprocessable, match=named) as refused:
        await vnf.draft(scaling(aspectId="control_plane"))
    assert refused.value.field == "aspectId"


async def test_a_control_plane_without_machines_is_refused() -> None:
    """CR-088: there would be no cluster."""
    level = "instantiation_level_2: {{ number_of_instances: {} }}".format
    vnf = await a_workload_vnf(descriptor=descriptor_with(level(3), level(0)))
    with pytest.raises(Unprocessable, match="leads to 0 machines of the control plane") as refused:
        await vnf.draft(to_level())
    assert refused.value.field == "instantiationLevelId"


async def test_the_numbers_of_a_topology_are_those_of_the_cluster() -> None:
    """CR-086, CR-087, CR-093: the Cluster with the part of its topology; the rollback of a scale out sets the earlier number."""
    vnf = await a_workload_vnf(TOPOLOGY)
    vnf.answers[AWAIT] = machines([0, 1, 2], 3)
    assert await vnf.ask(to_level()) is OperationState.COMPLETED
    assert parts(vnf)[-1] == [("workload", "controlPlane", 3), ("workload", "md-0", 3)]
    assert vnf.levels == {"control_plane": 1, "workers": 2}
    vnf.failing = {SCALE}
    assert await vnf.ask(scaling()) is OperationState.FAILED_TEMP
    vnf.failing = set()
    assert vnf.roll_back() is OperationState.ROLLED_BACK
    assert [each[0][2] for each in parts(vnf)[-2:]] == [4, 3]


def parts(vnf: WorkloadVnf) -> list[list[tuple[str, str | None, int]]]:
    """Return the Clusters, the parts of their topology, and the counts of each scaling that was sent."""
    return [[(one.name, one.topology, one.count) for one in each.objects] for each in vnf.of_kind(ScaleObjects)]


async def test_a_vdu_that_no_object_implements_is_refused_with_the_reason() -> None:
    """CR-086: before anything is sent."""
    vnf = await a_workload_vnf(KINDS[:1])
    with pytest.raises(Unprocessable, match=r"VDU worker .*no Cluster whose spec\.topology has it"):
        await vnf.draft(scaling())


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"aspectId": "none"}, "aspectId"),
        ({"numberOfSteps": 5}, "numberOfSteps"),
        ({"type": "SCALE_IN"}, "numberOfSteps"),
    ],
)
async def test_what_the_descriptor_does_not_allow_is_refused_by_field(changes: dict[str, Any], field: str) -> None:
    """CR-087: before anything is sent."""
    vnf = await a_workload_vnf()
    with pytest.raises(InvalidInput) as refused:
        await vnf.draft(scaling(**changes))
    assert refused.value.field == field


async def test_what_a_workload_cluster_does_not_support_is_404_with_the_reason(world: World) -> None:
    instance_id = await built(world)
    problem = (await world.lcm("POST", f"{SHOWN.format(instance_id)}/operate", {"changeStateTo": "STOPPED"})).problem(
        404
    )
    assert "workload clusters support instantiate, scale" in problem["detail"]
