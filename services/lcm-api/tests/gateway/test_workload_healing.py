"""Heal of workload clusters over HTTP, with twins behind: what is refused, what is sent, and what is shown."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_events.capi import (
    AwaitCluster,
    CheckMachines,
    MachineFacts,
    MachineReplaced,
    MachinesChecked,
    ReplaceMachine,
    RollOutMachines,
)
from lcm_world import World
from workload_world import AWAIT, SHOWN, built, machines, sent, shown

CHECK, REPLACE = "infra.k8s.check_machines", "infra.k8s.replace_machine"


async def healable(world: World, control_planes: int = 1) -> tuple[str, tuple[MachineFacts, ...]]:
    """Return a cluster with two workers, md-0 and md-1, and its Machines."""
    reached = machines([0, 1], control_planes)
    instance_id = await built(world, reached=reached)
    return instance_id, reached.machines


def named(found: tuple[MachineFacts, ...], *names: str) -> tuple[MachineFacts, ...]:
    return tuple(each for name in names for each in found if each.name == name)


async def test_named_machines_are_replaced_one_after_the_other(world: World) -> None:
    """CR-113: a step for each, with the uids that existed before; the VNFCs and resourceChanges are the new Machines."""
    instance_id, before = await healable(world)
    world.twins.answers[CHECK] = MachinesChecked(machines=before, chosen=named(before, "md-0", "md-1"))
    world.twins.answers[REPLACE] = MachineReplaced(machines=machines([1, 2]).machines)
    # By vnfcInfo, as SOL002 says, and by vnfcResourceInfo, as clients of Tacker do.
    body = {"vnfcInstanceId": ["worker-md-0", "md-1"]}
    operation_id = await world.ask(instance_id, "heal", body)
    await world.reached(operation_id, "COMPLETED")
    (check,) = sent(world, CheckMachines)
    assert ([each.name for each in check.chosen], check.is_forced) == (["md-0", "md-1"], False)
    first, second = sent(world, ReplaceMachine)
    assert (first.machine.uid, set(first.known)) == ("uid-md-0", {"uid-cp-0", "uid-md-0", "uid-md-1"})
    assert (second.machine.uid, set(second.known)) == ("uid-md-1", {"uid-cp-0", "uid-md-1", "uid-md-2"})
    view = (await world.lcm("GET", f"/vnf_lcm_op_occs/{operation_id}")).json
    assert {(one["id"], one["changeType"]) for one in view["resourceChanges"]["affectedVnfcs"]} == {
        ("md-0", "REMOVED"), ("md-2", "ADDED")
    }  # fmt: skip
    vnfcs = (await shown(world, instance_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    assert {one["id"]: one["metadata"]["providerId"] for one in vnfcs} == {
        name: f"openstack:///{name}" for name in ("cp-0", "md-1", "md-2")
    }


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_without_names_there_may_be_nothing_to_do(world: World, version: str) -> None:
    """CR-116: infra-k8s finds the Machines; none leads to COMPLETED, by either version of the API."""
    instance_id, before = await healable(world)
    world.twins.answers[CHECK] = MachinesChecked(machines=before)
    call = world.v1 if version == "v1" else world.lcm
    answer = (await call("POST", f"{SHOWN.format(instance_id)}/heal", {})).must(202)
    await world.reached(answer.headers["Location"].rpartition("/")[2], "COMPLETED")
    assert [each.chosen for each in sent(world, CheckMachines)] == [()]
    assert not sent(world, ReplaceMachine)


async def test_a_failed_replacement_is_retried_with_the_same_machine(world: World) -> None:
    """CR-113: also its uid and those of the others are the same, so that no second Machine is deleted; no rollback."""
    instance_id, before = await healable(world)
    world.twins.answers[CHECK] = MachinesChecked(machines=before, chosen=named(before, "md-0"))
    world.twins.failing = {REPLACE}
    operation_id = await world.ask(instance_id, "heal", {})
    await world.reached(operation_id, "FAILED_TEMP")
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).problem(404)
    world.twins.failing = set()
    world.twins.answers[REPLACE] = MachineReplaced(machines=machines([1, 2]).machines)
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/retry")).must(202)
    await world.reached(operation_id, "COMPLETED")
    assert len(sent(world, CheckMachines)) == 1
    assert len({(each.machine, each.known) for each in sent(world, ReplaceMachine)}) == 1


async def test_all_machines_are_rolled_out(world: World) -> None:
    """CR-117: `all: true` is the roll-out of CR-103 without its first wait; names of VNFCs contradict it."""
    instance_id, _ = await healable(world)
    body: dict[str, Any] = {"additionalParams": {"all": True}}
    problem = (
        await world.lcm("POST", f"{SHOWN.format(instance_id)}/heal", {**body, "vnfcInstanceId": ["md-0"]})
    ).problem(422)
    assert "additionalParams/all: true replaces every Machine" in problem["detail"]
    world.twins.answers[AWAIT] = machines([5, 6])
    before = len(sent(world, AwaitCluster))
    operation_id = await world.ask(instance_id, "heal", body)
    await world.reached(operation_id, "COMPLETED")
    (roll_out,) = sent(world, RollOutMachines)
    # Only that of the end: a broken cluster would not become available by itself.
    assert [each.made_after for each in sent(world, AwaitCluster)[before:]] == [roll_out.roll_out_after]
    assert not sent(world, CheckMachines)
    view = (await world.lcm("GET", f"/vnf_lcm_op_occs/{operation_id}")).json
    assert view["operation"] == "HEAL"
    assert {one["changeType"] for one in view["resourceChanges"]["affectedVnfcs"]} == {"ADDED", "REMOVED"}


async def test_all_unknown_vnfcs_are_listed_before_anything_is_sent(world: World) -> None:
    """CR-118: 404."""
    instance_id, _ = await healable(world)
    body = {"vnfcInstanceId": ["worker-md-0", "worker-md-7", "none"]}
    problem = (await world.lcm("POST", f"{SHOWN.format(instance_id)}/heal", body)).problem(404)
    assert problem["detail"] == "vnfcInstanceId: the VNF has no VNFCs worker-md-7, none"
    assert not sent(world, CheckMachines)


async def test_the_only_machine_of_a_control_plane_is_healed_by_force_alone(world: World) -> None:
    """CR-114: 409 at once, unless `force: true`, which infra-k8s gets too."""
    instance_id, before = await healable(world)
    body: dict[str, Any] = {"vnfcInstanceId": ["controlPlane-cp-0"]}
    problem = (await world.lcm("POST", f"{SHOWN.format(instance_id)}/heal", body)).problem(409)
    assert "cp-0 is the only Machine of the control plane" in problem["detail"]
    assert "additionalParams/force" in problem["detail"]
    world.twins.answers[CHECK] = MachinesChecked(machines=before, chosen=named(before, "cp-0"))
    world.twins.answers[REPLACE] = MachineReplaced(machines=before)
    operation_id = await world.ask(instance_id, "heal", {**body, "additionalParams": {"force": True}})
    await world.reached(operation_id, "COMPLETED")
    commands = [*sent(world, CheckMachines), *sent(world, ReplaceMachine)]
    assert [each.is_forced for each in commands] == [True, True]


async def test_one_of_three_control_planes_is_left_to_the_check_of_its_health(world: World) -> None:
    """CR-114: what is stored does not say which Machines are healthy."""
    instance_id, before = await healable(world, 3)
    world.twins.answers[CHECK] = MachinesChecked(machines=before)
    operation_id = await world.ask(instance_id, "heal", {"vnfcInstanceId": ["controlPlane-cp-0"]})
    await world.reached(operation_id, "COMPLETED")


@pytest.mark.parametrize(
    ("parameters", "status", "field"),
    [
        ({"force": "yes"}, 400, "additionalParams/force"),
        ({"all": 1}, 400, "additionalParams/all"),
        ({"capi": {"recreate": True}}, 400, "additionalParams/capi"),
    ],
)
async def test_parameters_are_read_strictly(world: World, parameters: Any, status: int, field: str) -> None:
    """CR-114: the answer names the field."""
    instance_id, _ = await healable(world)
    body = {"additionalParams": parameters}
    problem = (await world.lcm("POST", f"{SHOWN.format(instance_id)}/heal", body)).problem(status)
    assert field in problem["detail"]
    assert not sent(world, CheckMachines)
