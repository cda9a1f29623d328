"""Every plan is interrupted at each step and continued, failed at each step and retried, and rolled back completely."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kubevnfm_events import CommandFailed, Envelope, Message
from kubevnfm_events.lcm import OperationChanged, StepChanged
from kubevnfm_events.objects import ObjectsOrder, VduTarget
from kubevnfm_events.stacks import StackOrder, UserData
from kubevnfm_lcm_api.lifecycle.containers.changing import HealCnfDraft, ScaleCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.order import ObjectsDraft
from kubevnfm_lcm_api.lifecycle.containers.replacing import ReplaceCnfDraft
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, Release
from kubevnfm_lcm_api.lifecycle.core.plan import StepState
from kubevnfm_lcm_api.lifecycle.core.saga import Move
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.core.states import IllegalTransition, RollbackUnsupported
from kubevnfm_lcm_api.lifecycle.core.step import STEP_KINDS, Step
from kubevnfm_lcm_api.lifecycle.core.workload_cluster import CapiParameters
from kubevnfm_lcm_api.lifecycle.machines.changing import ConnectVmDraft, ReplaceVmDraft
from kubevnfm_lcm_api.lifecycle.machines.healing import HealVmDraft
from kubevnfm_lcm_api.lifecycle.machines.order import StackDraft
from kubevnfm_lcm_api.lifecycle.machines.scaling import ScaleVmDraft
from kubevnfm_secrets import Secret, hide
from kubevnfm_sol.lcm import InstantiationState, OperationState
from worlds.lcm_builders import (
    ACCESS,
    ANSWERS,
    CLUSTER_PARAMETERS,
    CNF_BEFORE,
    NETWORK,
    NOW,
    PACKAGE,
    RESOURCES,
    RING,
    VOLUME,
    a_change_draft,
    a_cnf_change,
    a_cnf_draft,
    a_cnf_modification,
    a_cnf_terminate_draft,
    a_revert_draft,
    a_snapshot_draft,
    a_terminate_draft,
    a_workload_draft,
    a_workload_heal_draft,
    a_workload_recreation_draft,
    a_workload_repair_draft,
    a_workload_replacement_draft,
    a_workload_roll_out_draft,
    a_workload_scale_draft,
    a_workload_terminate_draft,
    an_instance,
    an_instantiate_draft,
    an_operate_draft,
    an_operation,
    answer_to,
    later,
)
from worlds.lcm_moves import SAGA, answered, commands_of, granted, reread

NODE_PORTS = dict.fromkeys(("instantiate_end", "terminate_end"), "mgmt-drivers-cnf-nodeport")


def scripted(draft: Any, operation: str, *others: str) -> Any:
    scripts = dict.fromkeys((f"{operation}_start", f"{operation}_end", *others), "own.py")
    return draft.model_copy(update={"scripts": scripts, "instance": INSTANCE})


INSTANCE = (
    a_cnf_draft().with_release(Release(namespace="default")).completed(an_instance()).vnf.model_dump(by_alias=True)
)
LIVE_CNF = a_cnf_draft().with_release(CNF_BEFORE).completed(an_instance()).document(RING)
OWN_SENDER = CapiParameters(sender="package", addon_def_files=("Files/addons/cni.yaml",))
OTHER_NETWORKS = (NETWORK.model_copy(update={"virtual_link_id": "link-2"}),)
OTHER_VOLUMES = (VOLUME.model_copy(update={"persistent_volume_id": "volume-2"}),)
DRAFTS = {
    "cluster": an_instantiate_draft(),
    "cluster after remains": an_instantiate_draft(remains_of="op-0"),
    "plain vm": an_instantiate_draft(phases={}, cluster_vim_name=None),
    "cnf": a_cnf_draft(),
    "cnf on links": a_cnf_draft(networks=(NETWORK,)),
    "cnf with volumes": a_cnf_draft(volumes=(VOLUME,)),
    "workload": a_workload_draft(),
    "workload with a sender": scripted(a_workload_draft(capi=OWN_SENDER), "instantiate"),
    "scale out workload": a_workload_scale_draft(),
    "scale out workload with a sender": scripted(a_workload_scale_draft(capi=OWN_SENDER), "scale"),
    "scale in workload": a_workload_scale_draft(vdu_counts={"web": -1}),
    "change package of workload": a_workload_replacement_draft(),
    "change package of workload with addons": a_workload_replacement_draft(addon_files=("Files/addons/cni.yaml",)),
    "roll out workload": a_workload_roll_out_draft(),
    "heal all of workload": a_workload_roll_out_draft(is_heal=True),
    "heal workload": a_workload_heal_draft(),
    "heal all of workload by building it again": a_workload_recreation_draft(),
    "heal workload by building it again with scripts": scripted(a_workload_recreation_draft(), "heal"),
    "heal workload by building it again with a sender": scripted(
        a_workload_recreation_draft(capi=OWN_SENDER), "heal", "instantiate_end", "terminate_start"
    ),
    "heal workload with scripts": scripted(a_workload_heal_draft(), "heal"),
    "heal workload by a repair": a_workload_repair_draft(),
    "terminate workload": a_workload_terminate_draft(),
    "terminate workload with a sender": scripted(
        a_workload_terminate_draft(capi=OWN_SENDER, package=PACKAGE, has_scripts=True), "terminate"
    ),
    "terminate cluster": a_terminate_draft(),
    "terminate cnf": a_cnf_terminate_draft(),
    "terminate cnf on links": a_cnf_terminate_draft(holds_links=True),
    "terminate cnf with volumes": a_cnf_terminate_draft(holds_volumes=True),
    "terminate management": a_cnf_terminate_draft(is_management=True),
    "scale out": a_change_draft(ScaleVmDraft),
    "scale in": a_change_draft(ScaleVmDraft, leaving=("server-w1",)),
    "heal": a_change_draft(HealVmDraft, servers=("server-w1",)),
    "heal whole": a_change_draft(HealVmDraft, is_recreated=True),
    "connect": a_change_draft(ConnectVmDraft),
    "change flavour": a_change_draft(ReplaceVmDraft),
    "rolling change": a_change_draft(ReplaceVmDraft, rolling=("master_instance", "worker_instance")),
    "operate": an_operate_draft(),
    "create snapshot": a_snapshot_draft(),
    "create snapshot with scripts": scripted(a_snapshot_draft(), "create_snapshot"),
    "revert to snapshot": a_revert_draft(),
    "modify cnf": a_cnf_modification(),
    "scale out cnf": a_cnf_change(ScaleCnfDraft),
    "scale in cnf": a_cnf_change(ScaleCnfDraft, vdu_counts={"web": -1}),
    "scale cnf with scripts": scripted(a_cnf_change(ScaleCnfDraft), "scale"),
    "change package of cnf": a_cnf_change(ReplaceCnfDraft),
    "change images of cnf": a_cnf_change(ReplaceCnfDraft, images_of=("web",)),
    "change cnf to other links and volumes": a_cnf_change(
        ReplaceCnfDraft,
        networks=(NETWORK,),
        volumes=(VOLUME,),
        networks_before=OTHER_NETWORKS,
        volumes_before=OTHER_VOLUMES,
    ),
    "change package of cnf with scripts": scripted(a_cnf_change(ReplaceCnfDraft), "change_current_package"),
    "heal cnf": a_cnf_change(HealCnfDraft, pods=CNF_BEFORE.pods),
    "heal whole cnf": a_cnf_change(HealCnfDraft, is_whole=True),
    "heal whole cnf behind a load balancer": a_cnf_change(
        HealCnfDraft, is_whole=True, phases=NODE_PORTS, release=CNF_BEFORE
    ),
    "heal cnf by a repair": a_cnf_change(HealCnfDraft, is_repair=True),
    "heal cnf by a repair behind a load balancer": scripted(
        a_cnf_change(HealCnfDraft, is_repair=True, phases=NODE_PORTS), "heal"
    ),
    "heal cnf with scripts": scripted(a_cnf_change(HealCnfDraft, pods=CNF_BEFORE.pods), "heal"),
    "cnf behind a load balancer": a_cnf_draft(phases=NODE_PORTS),
    "terminate cnf behind a load balancer": a_cnf_terminate_draft(phases=NODE_PORTS, package=PACKAGE),
    "cnf with scripts": scripted(a_cnf_draft(), "instantiate"),
    "modify cnf with scripts": scripted(a_cnf_modification(), "modify_information"),
    "terminate cnf with scripts": scripted(a_cnf_terminate_draft(package=PACKAGE, has_scripts=True), "terminate"),
}
OBJECTS_WANTED = {
    "multi_namespace": True,
    "variables": {"registry": Secret("local")},
    "vdus": (VduTarget(vdu_id="web", name="web", replicas=3),),
}
STACK_WANTED = {
    "instantiation_level_id": "level-2",
    "api_version": "v1",
    "request": {"flavourId": "simple"},
    "grant": {"id": "grant-1"},
    "grant_request": {"flavourId": "simple"},
    "instance": {"id": "vnf-1"},
    "user_data": UserData(path="UserData/lcm.py", class_name="Own"),
}
OTHER_THAN_ORDERED = {
    "recreate_resources": {"request", "grant_request", "instance"},
    "restore_scale": {"user_data"},
}
"""By kind of step, the attributes that its command has otherwise."""
IRREVERSIBLE = tuple(
    name
    for name in DRAFTS
    if name.startswith(("terminate", "scale in", "heal", "roll out", "revert to")) and name != "heal"
)
"""All heals but that of single machines, which restores the stack."""


def failure(command: Envelope[Message]) -> Envelope[Message]:
    failed = CommandFailed(
        command=command.type, code="stack-failed", title="Stack creation failed", detail="no host", status=422, node="w1",
        task="join",
    )  # fmt: skip
    return command.follow_up(failed, source="/kubevnfm/twin")


def run_to_end(move: Move) -> tuple[Move, list[str]]:
    """Answer every command until none is left; return the last move and the ids of the steps that were sent."""
    asked: list[str] = []
    out = commands_of(move)
    while out:
        command = out.pop(0)
        asked.append(command.stepid)
        move = answered(move, answer_to(command))
        out += commands_of(move)
    return move, asked


def test_a_command_has_every_attribute_of_its_order() -> None:
    """Types do not show it: the commands are made of the order's attributes by name."""
    other: dict[str, set[str]] = {}
    for plain in DRAFTS.values():
        if not isinstance(plain, ObjectsDraft | StackDraft):
            continue
        draft = plain.model_copy(update=OBJECTS_WANTED if isinstance(plain, ObjectsDraft) else STACK_WANTED)
        for step in (SEQUENCES.step(one) for one in SEQUENCES.planned(draft)):
            if issubclass(step.command, ObjectsOrder | StackOrder):
                command, order = step.ask(draft), draft.order
                shared = type(order).model_fields.keys() & step.command.model_fields.keys()
                differing = {one for one in shared if getattr(command, one) != getattr(order, one)}
                other.setdefault(step.kind, set()).update(differing)
    assert {kind: names for kind, names in other.items() if names} == OTHER_THAN_ORDERED
    of_orders = {kind for kind, step in STEP_KINDS.items() if issubclass(step.command, ObjectsOrder | StackOrder)}
    # HealMaster, which only the heal of a cluster has, is a HealVnfcs.
    assert other.keys() == of_orders - {"heal_master_resources"}


@pytest.mark.parametrize("name", DRAFTS)
def test_a_plan_runs_to_completed_and_sends_each_step_once(name: str) -> None:
    move, asked = run_to_end(granted(DRAFTS[name]))
    assert move.record.occ.operation_state is OperationState.COMPLETED
    assert sorted(asked) == sorted(step.id for step in move.record.steps)
    assert all(step.state is StepState.DONE for step in move.record.steps)


def test_the_steps_of_a_cluster_instantiation_follow_its_sequence() -> None:
    """SEQ-002, SEQ-003."""
    _, asked = run_to_end(granted(DRAFTS["cluster"]))
    assert asked == ["create_resources", "instantiate_end", "register_vim"]


def test_a_load_balancer_gets_the_node_ports_that_a_repair_has_changed() -> None:
    """CR-121: before the scripts at the end; it is left alone while they are the same, and a failure is made good later."""
    draft = DRAFTS["heal cnf by a repair behind a load balancer"]
    move, asked = run_to_end(granted(draft))
    assert asked == ["heal_start", "repair_objects", "terminate_end", "instantiate_end", "heal_end"]
    repaired = HealCnfDraft.from_document(move.record.draft)
    assert repaired.release is not None
    same = draft.model_copy(update={"before": repaired.release})
    assert run_to_end(granted(same))[1] == ["heal_start", "repair_objects", "heal_end"]
    shown = repaired.failed(InstanceRecord.from_document(LIVE_CNF), "op-1").release
    assert shown is not None
    assert shown.release is not None
    assert (shown.release.services, shown.release.pods) == ((), repaired.release.pods)


def test_a_workload_cluster_is_awaited_before_its_credentials_are_sent() -> None:
    """CR-048, CR-105: addons before the workers are awaited; the VIM and the credentials go before the cluster."""
    _, asked = run_to_end(granted(DRAFTS["workload"]))
    assert asked == [
        "apply_cluster_objects", "await_cluster/initialized", "apply_addons", "await_cluster/available",
        "send_credentials", "register_workload_vim",
    ]  # fmt: skip
    _, asked = run_to_end(granted(DRAFTS["terminate workload"]))
    assert asked == ["deregister_vim", "withdraw_credentials", "delete_cluster_objects"]


def test_a_workload_cluster_is_built_again_behind_the_same_vim() -> None:
    """CR-117: the VIM is released before the credentials are erased, and takes the new ones; without a VIM none waits."""
    _, asked = run_to_end(granted(a_workload_recreation_draft()))
    assert asked == [
        "release_workload_vim", "withdraw_credentials", "delete_cluster_objects", "apply_cluster_objects",
        "await_cluster/initialized", "apply_addons", "await_cluster/available", "send_credentials",
        "register_workload_vim",
    ]  # fmt: skip
    workload = a_workload_recreation_draft().workload.model_copy(
        update={"vim_id": None, "credentials": None, "capi": CapiParameters(register_vim=False)}
    )
    _, asked = run_to_end(granted(a_workload_recreation_draft(workload=workload)))
    assert (asked[0], asked[-1]) == ("withdraw_credentials", "send_credentials")


def test_a_workload_cluster_without_registration_sends_its_credentials_and_registers_nothing() -> None:
    """CR-085."""
    _, asked = run_to_end(granted(a_workload_draft(capi=CapiParameters(register_vim=False))))
    assert asked[-1] == "send_credentials"
    assert "register_workload_vim" not in asked


def test_the_packages_own_sender_takes_the_place_of_the_driver() -> None:
    """CR-009, CR-105: before the VIM is registered, and after it is removed; the driver does not send as well."""
    _, asked = run_to_end(granted(DRAFTS["workload with a sender"]))
    assert asked == [
        "instantiate_start", "apply_cluster_objects", "await_cluster/initialized", "apply_addons",
        "await_cluster/available", "instantiate_end", "register_workload_vim",
    ]  # fmt: skip
    _, asked = run_to_end(granted(DRAFTS["terminate workload with a sender"]))
    assert asked == ["deregister_vim", "terminate_start", "delete_cluster_objects", "terminate_end", "forget_machines"]
    never_sent = DRAFTS["terminate workload with a sender"].model_copy(update={"credentials_sent": None})
    _, asked = run_to_end(granted(never_sent))
    assert asked[:2] == ["terminate_start", "deregister_vim"], "an ordinary script: there is nothing to erase"


def test_the_packages_own_sender_erases_and_sends_when_a_cluster_is_built_again() -> None:
    """CR-009, CR-117: as in a termination and an instantiation; a script of heal can send once more."""
    draft = DRAFTS["heal workload by building it again with a sender"]
    _, asked = run_to_end(granted(draft))
    assert asked == [
        "heal_start", "release_workload_vim", "terminate_start", "delete_cluster_objects", "apply_cluster_objects",
        "await_cluster/initialized", "apply_addons", "await_cluster/available", "instantiate_end", "register_workload_vim",
        "heal_end",
    ]  # fmt: skip
    _, asked = run_to_end(granted(draft.with_credentials_sent(None)))
    assert asked[1:3] == ["release_workload_vim", "withdraw_credentials"], "the driver erases what a lost answer hid"


def test_terminate_removes_the_stack_before_the_vim() -> None:
    """SEQ-035."""
    _, asked = run_to_end(granted(DRAFTS["terminate cluster"]))
    assert asked[0] == "delete_resources"
    assert set(asked[1:]) == {"deregister_vim", "forget_machines"}


def test_steps_that_do_not_depend_on_one_another_are_sent_together() -> None:
    move = granted(DRAFTS["terminate cluster"])
    move = answered(move, answer_to(commands_of(move)[0]))
    assert {command.stepid for command in commands_of(move)} == {"deregister_vim", "forget_machines"}


def before_each_reply(draft: Draft) -> Iterator[tuple[Move, list[Envelope[Message]]]]:
    """Yield, for each step, the operation in which it is the next to be answered, and all commands without an answer."""
    move = granted(draft)
    out = commands_of(move)
    answers = 0
    while out:
        yield move, list(out)
        answers += 1
        move = answered(move, answer_to(out.pop(0)))
        out += commands_of(move)
    assert answers == len(move.record.steps) > 0


@pytest.mark.parametrize("name", DRAFTS)
def test_a_reply_that_is_delivered_twice_changes_nothing(name: str) -> None:
    for move, out in before_each_reply(DRAFTS[name]):
        reply = answer_to(out[0])
        after = answered(move, reply)
        assert SAGA.handle_reply(reread(after.record), reply, later(9)) is None, reply.stepid


@pytest.mark.parametrize("name", DRAFTS)
def test_a_failed_step_stops_the_operation_and_retry_continues_there(name: str) -> None:
    for move, (broken, *others) in before_each_reply(DRAFTS[name]):
        stops_and_continues(move, broken, others)


def stops_and_continues(move: Move, broken: Envelope[Message], others: list[Envelope[Message]]) -> None:
    move = answered(move, failure(broken))
    for other in others:  # steps that run at the same time may end
        move = answered(move, answer_to(other))
    assert move.record.occ.operation_state is OperationState.FAILED_TEMP
    error = move.record.occ.error
    assert error is not None
    assert "w1" in error.detail
    assert error.status == 422
    done_before = {step.id for step in move.record.steps if step.state is StepState.DONE}
    again = SAGA.retry(reread(move.record), later(5))
    last, asked = run_to_end(again)
    assert broken.stepid in asked, broken.stepid
    assert not done_before & set(asked), "a step that was done is not sent again"
    assert last.record.occ.operation_state is OperationState.COMPLETED
    assert last.record.occ.error is None


@pytest.mark.parametrize("name", [name for name in DRAFTS if name not in IRREVERSIBLE])
def test_rollback_runs_the_compensations_backwards(name: str) -> None:
    for move, out in before_each_reply(DRAFTS[name]):
        touched = [step for step in move.record.steps if step.state is not StepState.WAITING]
        failed = answered(move, failure(out[0]))
        last, undone = run_to_end(SAGA.rollback(reread(failed.record), later(5)))
        draft = SEQUENCES.draft(failed.record.plan, failed.record.draft)
        assert undone == [step.id for step in reversed(touched) if SEQUENCES.step(step).undo(draft) is not None]
        assert last.record.occ.operation_state is OperationState.ROLLED_BACK
        assert last.record.occ.error is not None


def without_effect(command: Envelope[Message]) -> Envelope[Message]:
    refused = CommandFailed(
        command=command.type, code="vim-refused", title="VIM", detail="log-in rejected", status=422, made_nothing=True
    )
    return command.follow_up(refused, source="/kubevnfm/twin")


def test_a_rollback_of_a_step_that_made_nothing_sends_nothing() -> None:
    (command,) = commands_of(move := granted(DRAFTS["plain vm"]))
    move = answered(move, without_effect(command))
    # Again, as an operator would: this attempt makes nothing either.
    (command,) = commands_of(move := SAGA.retry(reread(move.record), later(2)))
    move = answered(move, without_effect(command), 3)
    move = SAGA.rollback(reread(move.record), later(4))
    assert commands_of(move) == []
    assert move.record.occ.operation_state is OperationState.ROLLED_BACK


def test_what_an_earlier_attempt_may_have_made_is_undone() -> None:
    (command,) = commands_of(move := granted(DRAFTS["plain vm"]))
    move = answered(move, failure(command))
    (command,) = commands_of(move := SAGA.retry(reread(move.record), later(2)))
    move = answered(move, without_effect(command), 3)
    (command,) = commands_of(SAGA.rollback(reread(move.record), later(4)))
    assert command.type.endswith("infra.openstack.delete_resources.v1")


def test_what_a_later_attempt_made_is_undone() -> None:
    """The first attempt made nothing, the second made the stack, and the step after it failed."""
    (command,) = commands_of(move := granted(DRAFTS["cluster"]))
    move = answered(move, without_effect(command))
    (command,) = commands_of(move := SAGA.retry(reread(move.record), later(2)))
    (install,) = commands_of(move := answered(move, answer_to(command), 3))
    move = answered(move, failure(install), 4)
    _, undone = run_to_end(SAGA.rollback(reread(move.record), later(5)))
    assert undone == ["instantiate_end", "create_resources"]


def test_what_a_later_attempt_without_an_answer_may_have_made_is_undone() -> None:
    (command,) = commands_of(move := granted(DRAFTS["plain vm"]))
    move = answered(move, without_effect(command))
    move = SAGA.retry(reread(move.record), later(2))
    overdue = SAGA.overdue(reread(move.record), later(100_000))
    assert overdue is not None
    (command,) = commands_of(SAGA.rollback(reread(overdue.record), later(100_001)))
    assert command.type.endswith("infra.openstack.delete_resources.v1")


def test_a_failed_compensation_stops_and_rollback_repeats_it() -> None:
    move = granted(DRAFTS["plain vm"])
    move = answered(move, failure(commands_of(move)[0]))
    move = SAGA.rollback(reread(move.record), later(2))
    move = answered(move, failure(commands_of(move)[0]))
    assert move.record.occ.operation_state is OperationState.FAILED_TEMP
    last, undone = run_to_end(SAGA.rollback(reread(move.record), later(3)))
    assert undone == ["create_resources"]
    assert last.record.occ.operation_state is OperationState.ROLLED_BACK


@pytest.mark.parametrize("name", IRREVERSIBLE)
def test_an_operation_without_compensation_cannot_be_rolled_back(name: str) -> None:
    """API-051."""
    move = granted(DRAFTS[name])
    move = answered(move, failure(commands_of(move)[0]))
    with pytest.raises(RollbackUnsupported):
        SAGA.rollback(move.record, later(1))


def test_a_reply_to_an_older_attempt_is_ignored() -> None:
    move = granted(DRAFTS["plain vm"])
    old = commands_of(move)[0]
    move = answered(move, failure(old))
    again = SAGA.retry(reread(move.record), later(5))
    assert SAGA.handle_reply(again.record, answer_to(old), later(6)) is None


def test_a_command_that_is_computed_twice_has_the_same_id() -> None:
    record = an_operation(DRAFTS["cluster"])
    first, second = SAGA.grant(record, "g", NOW), SAGA.grant(record, "g", later(1))
    assert [c.id for c in commands_of(first)] == [c.id for c in commands_of(second)]


def test_each_move_publishes_the_state_and_the_steps() -> None:
    move = granted(DRAFTS["plain vm"])
    operation, step = (message.data for message in move.messages if not message.is_command)
    assert isinstance(operation, OperationChanged)
    assert operation.state == "PROCESSING"
    assert isinstance(step, StepChanged)
    assert (step.step, step.state, step.number, step.of) == ("create_resources", "started", 1, 1)


def test_a_name_without_a_resource_fails_the_step_before_its_command_is_sent() -> None:
    cluster = CLUSTER_PARAMETERS["k8s_cluster_installation_param"]
    master = {**cluster["master_node"], "ssh_cp_name": "nowhere"}
    draft = an_instantiate_draft(
        parameters=hide({"k8s_cluster_installation_param": {**cluster, "master_node": master}})
    )
    move = granted(draft)
    move = answered(move, answer_to(commands_of(move)[0]))
    assert commands_of(move) == []
    assert move.record.occ.operation_state is OperationState.FAILED_TEMP
    assert move.record.occ.error is not None
    assert "nowhere" in move.record.occ.error.detail


def test_a_completed_instance_shows_its_machines_and_its_cluster() -> None:
    move, _ = run_to_end(granted(DRAFTS["cluster"]))
    draft = SEQUENCES.draft(move.record.plan, move.record.draft)
    instance = draft.completed(an_instance())
    info = instance.vnf.instantiated_vnf_info
    assert instance.vnf.instantiation_state is InstantiationState.INSTANTIATED
    assert info is not None
    assert {vnfc.vdu_id for vnfc in info.vnfc_resource_info} == {
        "masterNode",
        "workerNode",
    }
    assert set(instance.vnf.vim_connection_info) == {"vim1", "cluster-1"}
    entry = instance.vnf.vim_connection_info["cluster-1"]
    assert entry.vim_id == "vim-2"
    assert entry.interface_info["endpoint"] == ACCESS.server
    assert entry.access_info["bearer_token"].reveal(RING) == "token-of-the-cluster"
    assert "token-of-the-cluster" not in str(instance.document(RING))


def test_a_terminated_instance_is_as_never_instantiated() -> None:
    """SEQ-036."""
    move, _ = run_to_end(granted(DRAFTS["cluster"]))
    built = SEQUENCES.draft(move.record.plan, move.record.draft).completed(an_instance())
    gone = DRAFTS["terminate cluster"].completed(built)
    assert gone.vnf.instantiated_vnf_info is None
    assert gone.vnf.vim_connection_info == {}
    assert gone.internals.deployments == ()


def test_resource_changes_grow_as_steps_end() -> None:
    move = granted(DRAFTS["cluster"])
    assert move.record.occ.resource_changes is None
    move = answered(move, answer_to(commands_of(move)[0]))
    changes = move.record.occ.resource_changes
    assert changes is not None
    assert [vnfc.change_type for vnfc in changes.affected_vnfcs] == ["ADDED"] * 3


def test_a_stored_operation_has_no_secret_in_clear() -> None:
    move, _ = run_to_end(granted(DRAFTS["cluster"]))
    assert "token-of-the-cluster" not in str(move.record.document(RING))


def test_a_clean_up_runs_the_compensations_of_a_failed_operation() -> None:
    move = granted(DRAFTS["plain vm"])
    move = answered(move, failure(commands_of(move)[0]))
    failed = SAGA.fail(reread(move.record), later(2)).record
    with pytest.raises(IllegalTransition):
        SAGA.retry(failed, later(3))
    last, undone = run_to_end(SAGA.clean_up(failed, "clean-1", later(4)))
    assert undone == ["create_resources"]
    assert last.record.is_internal
    assert last.record.occ.id == "clean-1"


def test_a_step_without_a_reply_fails_after_its_deadline() -> None:
    move = granted(DRAFTS["plain vm"])
    assert SAGA.overdue(move.record, later(SEQUENCES.kinds["create_resources"].base_timeout_s)) is None
    late = SAGA.overdue(reread(move.record), later(SEQUENCES.kinds["create_resources"].base_timeout_s + 200))
    assert late is not None
    assert late.record.occ.operation_state is OperationState.FAILED_TEMP
    assert late.record.occ.error is not None
    assert late.record.occ.error.status == 504
    assert "deadline" not in late.record.document(RING)["internal"]


LEFT = RESOURCES.model_copy(update={"servers": RESOURCES.servers[:1]})


def failed_with_remains(name: str) -> Move:
    move = granted(DRAFTS[name])
    command = commands_of(move)[0]
    left = LEFT if name == "plain vm" else ANSWERS["infra.k8s.apply_objects"]
    failed = CommandFailed(
        command=command.type,
        code="stack-failed",
        title="t",
        detail="d",
        status=422,
        remains=left.model_dump(mode="json"),
    )
    return answered(move, command.follow_up(failed, source="/kubevnfm/twin"))


@pytest.mark.parametrize("name", ["plain vm", "cnf", "workload"])
def test_remains_of_a_failed_step_are_listed_until_they_are_rolled_back(name: str) -> None:
    move = failed_with_remains(name)
    assert move.record.occ.operation_state is OperationState.FAILED_TEMP
    changes = move.record.occ.resource_changes
    assert changes is not None
    assert [vnfc.change_type for vnfc in changes.affected_vnfcs] == ["ADDED"]
    (event,) = [m.data for m in move.messages if isinstance(m.data, OperationChanged)]
    assert len(event.affected_vnfcs) == 1

    move, _ = run_to_end(SAGA.rollback(reread(move.record), later(5)))
    assert move.record.occ.operation_state is OperationState.ROLLED_BACK
    assert move.record.occ.resource_changes is None


def test_remains_of_a_failed_step_stay_listed_when_the_operation_is_failed() -> None:
    move = SAGA.fail(reread(failed_with_remains("plain vm").record), later(5))
    assert move.record.occ.operation_state is OperationState.FAILED
    assert move.record.occ.resource_changes is not None


def test_a_retry_lists_its_resources_instead_of_the_earlier_remains() -> None:
    move, _ = run_to_end(SAGA.retry(reread(failed_with_remains("plain vm").record), later(5)))
    changes = move.record.occ.resource_changes
    assert changes is not None
    assert len(changes.affected_vnfcs) == len(RESOURCES.servers)


@pytest.mark.parametrize(
    ("draft", "seconds"),
    [
        (a_terminate_draft(), 1800.0),
        (a_terminate_draft(graceful_wait_s=86_400.0), 88_200.0),
        (a_cnf_terminate_draft(), 2400.0),
        (a_cnf_terminate_draft(is_forceful=False, graceful_wait_s=86_400.0), 88_800.0),
        (a_cnf_draft(), 2400.0),
        (a_cnf_draft(wait_timeout_s=86_400.0), 87_000.0),
        (an_operate_draft(), 3600.0),
        (an_operate_draft(graceful_wait_s=86_400.0), 90_000.0),
    ],
)
def test_the_deadline_of_a_step_includes_the_wait_that_the_request_asks_for(draft: Draft, seconds: float) -> None:
    (command,) = commands_of(granted(draft))
    assert command.deadline is not None
    assert (command.deadline - command.time).total_seconds() == seconds


@pytest.mark.parametrize("kind", SEQUENCES.kinds.values(), ids=SEQUENCES.kinds.keys())
def test_the_contract_names_the_event_that_answers_each_step(kind: type[Step[Any, Any]]) -> None:
    assert kind.command.reply is not None, "a step that no event can answer fails only when its time is over"
