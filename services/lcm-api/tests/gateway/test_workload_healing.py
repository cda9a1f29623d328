"""Heal of workload clusters: what is refused, what is sent, and what is shown; without a server, but for what HTTP adds."""

from __future__ import annotations

from collections.abc import Mapping
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
from kubevnfm_events.credentials import WithdrawCredentials
from kubevnfm_events.objects import ApplyObjects, ObjectFacts, ObjectsApplied
from kubevnfm_events.vim import RegisterReceived, VimRegistered
from kubevnfm_kit.errors import Conflict, InvalidInput, NotFound, Unprocessable
from kubevnfm_lcm_api.lifecycle.core.states import RollbackUnsupported
from kubevnfm_sol.lcm import HealVnfRequest, OperationState, OperationType
from worlds.lcm_builders import CREDENTIALS_SENT
from worlds.lcm_world import World, sample_request
from worlds.workload_requests import WorkloadVnf, a_workload_vnf
from worlds.workload_world import APPLY, AWAIT, KINDS, SHOWN, built, machines, sent, shown

CHECK, REPLACE = "infra.k8s.check_machines", "infra.k8s.replace_machine"


async def healable(world: World, control_planes: int = 1) -> tuple[str, tuple[MachineFacts, ...]]:
    """Return a cluster with two workers, md-0 and md-1, and its Machines."""
    reached = machines([0, 1], control_planes)
    instance_id = await built(world, reached=reached)
    return instance_id, reached.machines


async def a_healable_vnf(control_planes: int = 1) -> WorkloadVnf:
    """Return the same without a server."""
    return await a_workload_vnf(reached=machines([0, 1], control_planes))


def heal(body: Mapping[str, Any] = {}) -> HealVnfRequest:
    """Return the request."""
    return HealVnfRequest.model_validate(body)


def named(found: tuple[MachineFacts, ...], *names: str) -> tuple[MachineFacts, ...]:
    return tuple(each for name in names for each in found if each.name == name)


async def test_named_machines_are_replaced_one_after_the_other() -> None:
    """CR-113: a step for each, with the uids that existed before; the VNFCs and resourceChanges are the new Machines."""
    vnf = await a_healable_vnf()
    before = machines([0, 1]).machines
    vnf.answers[CHECK] = MachinesChecked(machines=before, chosen=named(before, "md-0", "md-1"))
    vnf.answers[REPLACE] = MachineReplaced(machines=machines([1, 2]).machines)
    # By vnfcInfo, as SOL002 says, and by vnfcResourceInfo, as clients of Tacker do.
    assert await vnf.ask(heal({"vnfcInstanceId": ["worker-md-0", "md-1"]})) is OperationState.COMPLETED
    (check,) = vnf.of_kind(CheckMachines)
    assert ([each.name for each in check.chosen], check.is_forced) == (["md-0", "md-1"], False)
    first, second = vnf.of_kind(ReplaceMachine)
    assert (first.machine.uid, set(first.known)) == ("uid-md-0", {"uid-cp-0", "uid-md-0", "uid-md-1"})
    assert (second.machine.uid, set(second.known)) == ("uid-md-1", {"uid-cp-0", "uid-md-1", "uid-md-2"})
    assert vnf.changed == {("md-0", "REMOVED"), ("md-2", "ADDED")}
    assert {one.id: (one.metadata or {})["providerId"] for one in vnf.info.vnfc_resource_info} == {
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


async def test_a_failed_replacement_is_retried_with_the_same_machine() -> None:
    """CR-113: also its uid and those of the others are the same, so that no second Machine is deleted; no rollback."""
    vnf = await a_healable_vnf()
    before = machines([0, 1]).machines
    vnf.answers[CHECK] = MachinesChecked(machines=before, chosen=named(before, "md-0"))
    vnf.failing = {REPLACE}
    assert await vnf.ask(heal()) is OperationState.FAILED_TEMP
    with pytest.raises(RollbackUnsupported):
        vnf.roll_back()
    vnf.failing = set()
    vnf.answers[REPLACE] = MachineReplaced(machines=machines([1, 2]).machines)
    assert vnf.retry() is OperationState.COMPLETED
    assert len(vnf.of_kind(CheckMachines)) == 1
    assert len(vnf.of_kind(ReplaceMachine)) == 2
    assert len({(each.machine, each.known) for each in vnf.of_kind(ReplaceMachine)}) == 1


async def test_all_machines_are_rolled_out() -> None:
    """CR-117: `all: true` is the roll-out of CR-103 without its first wait; names of VNFCs contradict it."""
    vnf = await a_healable_vnf()
    body: dict[str, Any] = {"additionalParams": {"all": True}}
    with pytest.raises(Unprocessable, match="true replaces every Machine") as refused:
        await vnf.draft(heal({**body, "vnfcInstanceId": ["md-0"]}))
    assert refused.value.field == "additionalParams/all"
    vnf.answers[AWAIT] = machines([5, 6])
    assert await vnf.ask(heal(body)) is OperationState.COMPLETED
    (roll_out,) = vnf.of_kind(RollOutMachines)
    # Only that of the end: a broken cluster would not become available by itself.
    assert [each.made_after for each in vnf.of_kind(AwaitCluster)] == [roll_out.roll_out_after]
    assert not vnf.of_kind(CheckMachines)
    assert vnf.operation is OperationType.HEAL
    assert {change for _, change in vnf.changed} == {"ADDED", "REMOVED"}


RECREATE: dict[str, Any] = {"additionalParams": {"capi": {"recreate": True}}}
RELEASE, WITHDRAW, SEND, REGISTER = (
    "vim.release", "mgmt.withdraw_credentials", "mgmt.send_credentials", "vim.register_received"
)  # fmt: skip


def built_again(world: World) -> None:
    """Answer as for another Cluster object with other Machines, at another address."""
    world.twins.answers[APPLY] = ObjectsApplied(
        namespace="default",
        objects=tuple(
            ObjectFacts(api_version=version, kind=kind, namespace="default", name=name, uid=f"new-{name}")
            for version, kind, name in KINDS
        ),
    )
    world.twins.answers[AWAIT] = machines([7, 8])
    world.twins.answers[SEND] = CREDENTIALS_SENT.model_copy(update={"cluster_uid": "new-workload"})
    world.twins.answers[REGISTER] = VimRegistered(
        vim_id="vim-2", name="workload", vim_type="k", endpoint="https://192.0.2.99:6443"
    )


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_a_cluster_is_built_again_at_its_scale_behind_the_same_vim(world: World, version: str) -> None:
    """CR-117: its objects go and come again, the credentials are sent again, and the VIM keeps its id."""
    instance_id, _ = await healable(world)
    before = await shown(world, instance_id)
    scaled = await world.ask(instance_id, "scale", {"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": 1})
    await world.reached(scaled, "COMPLETED")
    built_again(world)
    since = len(world.twins.commands)
    call = world.v1 if version == "v1" else world.lcm
    answer = (await call("POST", f"{SHOWN.format(instance_id)}/heal", RECREATE)).must(202)
    operation_id = answer.headers["Location"].rpartition("/")[2]
    await world.reached(operation_id, "COMPLETED")
    assert [type(each.data).routing_key() for each in world.twins.commands[since:]] == [
        RELEASE, WITHDRAW, "infra.k8s.delete_objects", APPLY, AWAIT, "infra.k8s.apply_addons", AWAIT, SEND, REGISTER
    ]  # fmt: skip
    (withdrawal,) = sent(world, WithdrawCredentials)
    assert withdrawal.cluster_uid == "u"
    applied = sent(world, ApplyObjects)[-1]
    assert {target.name: target.replicas for target in applied.vdus}["workload-md-0"] == 2
    assert (applied.cluster_apart, applied.cluster_name) == (True, "workload")
    assert [each.uid for each in sent(world, AwaitCluster)[-2:]] == ["new-workload"] * 2
    assert sent(world, RegisterReceived)[-1].cluster_uid == "new-workload"
    after = await shown(world, instance_id)
    assert [one["id"] for one in after["instantiatedVnfInfo"]["vnfcResourceInfo"]] == ["cp-0", "md-7", "md-8"]
    assert after["metadata"]["workloadVimId"] == before["metadata"]["workloadVimId"] == "vim-2"
    assert after["vimConnectionInfo"]["workload"]["interfaceInfo"] == {"endpoint": "https://192.0.2.99:6443"}
    view = (await world.lcm("GET", f"/vnf_lcm_op_occs/{operation_id}")).json
    changes = {(one["id"], one["changeType"]) for one in view["resourceChanges"]["affectedVnfcs"]}
    assert {("md-0", "REMOVED"), ("md-7", "ADDED")} <= changes


async def test_a_cluster_that_cnfs_use_is_not_built_again(world: World) -> None:
    """CR-084, CR-117: 409 with their ids, and nothing is sent; a CNF that comes while it is built again is refused too."""
    instance_id, _ = await healable(world)
    await world.sample("cnf")
    world.vims.add("vim-2", "kubernetes")
    on_it = {"vimConnectionInfo": {"k": {"vimId": "vim-2", "vimType": "ETSINFV.KUBERNETES.V_1"}}}
    cnf_id = await world.create("cnf")
    await world.reached(await world.instantiate(cnf_id, "cnf", **on_it), "COMPLETED")
    since = len(world.twins.commands)
    problem = (await world.lcm("POST", f"{SHOWN.format(instance_id)}/heal", RECREATE)).problem(409)
    assert (problem["type"], cnf_id in problem["detail"]) == ("provided-in-use", True)
    assert len(world.twins.commands) == since
    await world.reached(await world.ask(cnf_id, "terminate", {"terminationType": "GRACEFUL"}), "COMPLETED")

    built_again(world)
    world.twins.waiting = {RELEASE}
    operation_id = await world.ask(instance_id, "heal", RECREATE)
    await world.reached(operation_id, "PROCESSING")
    body = {**sample_request("cnf", "instantiate"), **on_it}
    problem = (await world.lcm("POST", f"{SHOWN.format(cnf_id)}/instantiate", body)).problem(409)
    assert (problem["type"], instance_id in problem["detail"]) == ("provider-withdraws", True)
    await world.twins.release()
    await world.reached(operation_id, "COMPLETED")
    await world.reached(await world.instantiate(cnf_id, "cnf", **on_it), "COMPLETED")


async def test_a_heal_that_was_given_up_after_the_deletion_can_be_repeated_and_terminated(world: World) -> None:
    """CR-117: there is no rollback; the instance shows no Machines, and withdraws what the receiver has by then."""
    instance_id, _ = await healable(world)
    built_again(world)
    for failing, vnfcs, expected in ((APPLY, 0, {"REMOVED"}), (SEND, 3, {"ADDED"}), (REGISTER, 3, set[str]())):
        world.twins.failing = {failing}
        operation_id = await world.ask(instance_id, "heal", RECREATE)
        await world.reached(operation_id, "FAILED_TEMP")
        (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/rollback")).problem(404)
        (await world.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/fail")).must(200)
        info = (await shown(world, instance_id))["instantiatedVnfInfo"]
        assert len(info.get("vnfcResourceInfo", [])) == vnfcs
        view = (await world.lcm("GET", f"/vnf_lcm_op_occs/{operation_id}")).json
        changes = view.get("resourceChanges", {}).get("affectedVnfcs", [])
        assert {one["changeType"] for one in changes} == expected
    world.twins.failing = set()
    since = len(world.twins.commands)
    await world.reached(await world.ask(instance_id, "terminate", {"terminationType": "GRACEFUL"}), "COMPLETED")
    assert [type(each.data).routing_key() for each in world.twins.commands[since:]] == [
        "vim.deregister", WITHDRAW, "infra.k8s.delete_objects"
    ]  # fmt: skip
    # Credentials that were sent without an answer are found by the uid of the Cluster.
    assert [each.cluster_uid for each in sent(world, WithdrawCredentials)] == ["u", None, None, "new-workload"]


@pytest.mark.parametrize(
    ("body", "refusal", "field"),
    [
        ({"additionalParams": {"capi": {"recreate": 1}}}, InvalidInput, "additionalParams/capi/recreate"),
        ({"additionalParams": {"capi": {"ready": "initialized"}}}, InvalidInput, "additionalParams/capi/ready"),
        ({"additionalParams": {"capi": [True]}}, InvalidInput, "additionalParams/capi"),
        ({"additionalParams": {"capi": {"recreate": True}, "all": True}}, Unprocessable, "additionalParams/all"),
        ({"additionalParams": {"capi": {"recreate": True}, "force": True}}, Unprocessable, "additionalParams/force"),
        ({"additionalParams": {"capi": {"recreate": True}, "repair": True}}, Unprocessable, "additionalParams/repair"),
        ({**RECREATE, "vnfcInstanceId": ["md-0"]}, Unprocessable, "vnfcInstanceId"),
    ],
)
async def test_a_request_to_build_a_cluster_again_says_nothing_else(
    body: dict[str, Any], refusal: type[InvalidInput | Unprocessable], field: str
) -> None:
    """CR-117: the answer names the field."""
    vnf = await a_healable_vnf()
    with pytest.raises(refusal) as refused:
        await vnf.draft(heal(body))
    assert refused.value.field == field


async def test_a_cluster_whose_package_lacks_its_addons_is_not_deleted() -> None:
    """CR-117: another package came without addons, and the present ones stayed."""
    vnf = await a_healable_vnf()
    vnf.files -= {"Files/addons/cni.yaml"}
    with pytest.raises(Unprocessable, match=r"the package lacks the addons Files/addons/cni\.yaml"):
        await vnf.draft(heal(RECREATE))


async def test_all_unknown_vnfcs_are_listed_before_anything_is_sent() -> None:
    """CR-118: 404."""
    vnf = await a_healable_vnf()
    with pytest.raises(NotFound) as refused:
        await vnf.draft(heal({"vnfcInstanceId": ["worker-md-0", "worker-md-7", "none"]}))
    assert str(refused.value) == "vnfcInstanceId: the VNF has no VNFCs worker-md-7, none"


async def test_the_only_machine_of_a_control_plane_is_healed_by_force_alone() -> None:
    """CR-114: 409 at once, unless `force: true`, which infra-k8s gets too."""
    vnf = await a_healable_vnf()
    before = machines([0, 1]).machines
    body: dict[str, Any] = {"vnfcInstanceId": ["controlPlane-cp-0"]}
    with pytest.raises(Conflict, match=r"cp-0 is the only Machine of the control plane.*additionalParams/force"):
        await vnf.draft(heal(body))
    vnf.answers[CHECK] = MachinesChecked(machines=before, chosen=named(before, "cp-0"))
    vnf.answers[REPLACE] = MachineReplaced(machines=before)
    assert await vnf.ask(heal({**body, "additionalParams": {"force": True}})) is OperationState.COMPLETED
    commands = [*vnf.of_kind(CheckMachines), *vnf.of_kind(ReplaceMachine)]
    assert [each.is_forced for each in commands] == [True, True]


async def test_one_of_three_control_planes_is_left_to_the_check_of_its_health() -> None:
    """CR-114: what is stored does not say which Machines are healthy."""
    vnf = await a_healable_vnf(3)
    vnf.answers[CHECK] = MachinesChecked(machines=machines([0, 1], 3).machines)
    assert await vnf.ask(heal({"vnfcInstanceId": ["controlPlane-cp-0"]})) is OperationState.COMPLETED
    assert [[one.name for one in each.chosen] for each in vnf.of_kind(CheckMachines)] == [["cp-0"]]


@pytest.mark.parametrize(
    ("parameters", "field"), [({"force": "yes"}, "additionalParams/force"), ({"all": 1}, "additionalParams/all")]
)
async def test_parameters_are_read_strictly(parameters: Any, field: str) -> None:
    """CR-114: the answer names the field."""
    vnf = await a_healable_vnf()
    with pytest.raises(InvalidInput) as refused:
        await vnf.draft(heal({"additionalParams": parameters}))
    assert refused.value.field == field
