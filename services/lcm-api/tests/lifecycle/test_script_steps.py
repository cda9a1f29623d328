"""Scripts of the package in the plans: their order, what they get, what is kept of their answers."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_cluster.request import read_cluster_parameters
from kubevnfm_events import CommandFailed, Envelope, Message
from kubevnfm_events.mgmt import DriverVim, RunPhase, RunScript, ScriptAnswer, ScriptDone, ScriptEdit
from kubevnfm_events.objects import PodFacts, UpdateObjects
from kubevnfm_events.stacks import ChangeTemplate, PortFacts, ResourcesChanged, RestoreResources, StackResources
from kubevnfm_events.vim import DeregisterVim, RegisterVim
from kubevnfm_lcm_api.lifecycle.clusters.healing import HealClusterDraft
from kubevnfm_lcm_api.lifecycle.core.dependencies import Provided
from kubevnfm_lcm_api.lifecycle.core.instance import Release
from kubevnfm_lcm_api.lifecycle.core.modifying import ModifyScriptedDraft
from kubevnfm_lcm_api.lifecycle.core.plan import StepState
from kubevnfm_lcm_api.lifecycle.core.saga import Move
from kubevnfm_lcm_api.lifecycle.core.scripted_draft import ScriptedDraft
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.machines.changing import ChangeVmDraft, ConnectVmDraft, ReplaceVmDraft
from kubevnfm_lcm_api.lifecycle.machines.healing import HealVmDraft
from kubevnfm_lcm_api.lifecycle.machines.scaling import ScaleVmDraft
from kubevnfm_lcm_api.lifecycle.scripts.steps import addresses
from kubevnfm_lcm_api.views.steps import step_views
from kubevnfm_secrets import Secret, hide, sealed
from kubevnfm_sol.lcm import OperationState
from kubevnfm_sol.vim import VimConnectionInfo
from worlds.lcm_builders import ACCESS as ACCESS_OF_CLUSTER
from worlds.lcm_builders import (
    NOW,
    PACKAGE,
    RESOURCES,
    RING,
    a_change_draft,
    a_cnf_draft,
    a_cnf_modification,
    a_cnf_terminate_draft,
    a_terminate_draft,
    an_instance,
    an_instantiate_draft,
    an_operate_draft,
    an_operation,
    answer_to,
    later,
)
from worlds.lcm_moves import SAGA, answered, commands_of, granted, reread

PLAIN = an_instantiate_draft(phases={}, cluster_vim_name=None)
INSTANCE = PLAIN.with_resources(RESOURCES).completed(an_instance())
ACCESS = {"project": "nfv", "password": Secret("of the VIM")}
CONNECTION = VimConnectionInfo(vim_id="vim-1", vim_type="ETSINFV.OPENSTACK_KEYSTONE.V_3", access_info=ACCESS)
INSTANCE = INSTANCE.with_vnf(vim_connection_info={"vim1": CONNECTION})
DUMP = INSTANCE.vnf.model_dump(by_alias=True, exclude_none=True)
NEW = an_instance().vnf.model_dump(by_alias=True, exclude_none=True)


def scripts(operation: str, *moments: str) -> dict[str, str]:
    return {f"{operation}_{moment}": f"Scripts/{moment}.py" for moment in moments or ("start", "end")}


def scripted(draft: Any, operation: str, *moments: str, instance: Any = DUMP) -> Any:
    known = {"scripts": scripts(operation, *moments), "instance": instance, "script_request": hide({"password": "pw"})}
    return draft.model_copy(update=known)


COORDINATION = {
    vdu: {"new_vnfc_param": {"cp_name": f"{vdu}_CP{n}"}, "old_vnfc_param": {"cp_name": f"{vdu}_CP{n}"}}
    for vdu, n in (("masterNode", 1), ("workerNode", 2))
}
EARLIER = PACKAGE.model_copy(update={"package_id": "package-before"})
COORDINATED = a_change_draft(
    ReplaceVmDraft,
    is_new_package=True,
    instance=DUMP,
    grant_request={"vnfLcmOpOccId": "op-1"},
    changed_vdus=("workerNode",),
    coordination={"new": "Scripts/new.py", "old": "Scripts/old.py"},
    before_package=EARLIER,
    coordination_packages={"new": PACKAGE, "old": EARLIER},
    coordination_params=hide(COORDINATION),
)
EVERY = {
    "instantiate": (scripted(PLAIN, "instantiate", instance=NEW), ["create_resources"]),
    "terminate": (
        scripted(a_terminate_draft(cluster_vim_key=None, phases={}, has_scripts=True), "terminate"),
        ["delete_resources"],
    ),
    "scale": (scripted(a_change_draft(ScaleVmDraft), "scale"), ["scale_resources"]),
    "heal": (scripted(a_change_draft(HealVmDraft), "heal"), ["heal_resources"]),
    "heal ": (
        scripted(a_change_draft(HealVmDraft, is_recreated=True), "heal"),
        ["delete_resources", "recreate_resources", "restore_scale"],
    ),
    "change_external_connectivity": (
        scripted(a_change_draft(ConnectVmDraft), "change_external_connectivity"),
        ["change_connections"],
    ),
    "change_flavour": (scripted(a_change_draft(ReplaceVmDraft), "change_flavour"), ["change_template"]),
    "operate": (scripted(an_operate_draft(package=PACKAGE), "operate"), ["operate_servers"]),
    "modify_information": (
        scripted(
            ModifyScriptedDraft(vnf_instance_id="inst-1", package=PACKAGE, resources=RESOURCES), "modify_information"
        ),
        [],
    ),
}

PODS = Release(
    namespace="default",
    pods=(
        PodFacts(
            vdu_id="web", name="web-1", namespace="default", uid="u", owner_kind="Deployment", addresses=("10.2.0.7",)
        ),
    ),
)
CLUSTER = VimConnectionInfo(
    vim_id="vim-k", vim_type="ETSINFV.KUBERNETES.V_1", access_info={"bearer_token": Secret("of the VIM")}
)
CNF = a_cnf_draft(vim_connections={"k": CLUSTER})
LIVE_CNF = CNF.with_release(PODS).completed(an_instance())
CNF_DUMP = LIVE_CNF.vnf.model_dump(by_alias=True, exclude_none=True)
OTHER = PACKAGE.model_copy(update={"package_id": "pkg-2", "vnfd_id": "vnfd-2"})
NODE_PORTS = dict.fromkeys(("instantiate_end", "terminate_end"), "mgmt-drivers-cnf-nodeport")
EVERY_CNF = {
    "instantiate": (scripted(CNF, "instantiate", instance=NEW), ["apply_objects"]),
    "instantiate behind a load balancer": (
        scripted(CNF.model_copy(update={"phases": NODE_PORTS}), "instantiate", "start", instance=NEW),
        ["apply_objects", "instantiate_end"],
    ),
    "modify_information": (
        scripted(
            ModifyScriptedDraft(vnf_instance_id="inst-1", package=PACKAGE), "modify_information", instance=CNF_DUMP
        ),
        [],
    ),
    "modify_information with containers": (
        scripted(a_cnf_modification(new_package=OTHER, before=PODS), "modify_information", "start", instance=CNF_DUMP),
        ["update_objects"],
    ),
    "terminate": (
        scripted(a_cnf_terminate_draft(package=PACKAGE, release=PODS), "terminate", instance=CNF_DUMP),
        ["delete_objects"],
    ),
    "terminate behind a load balancer": (
        scripted(
            a_cnf_terminate_draft(package=PACKAGE, release=PODS, phases=NODE_PORTS, has_scripts=True),
            "terminate",
            "start",
            instance=CNF_DUMP,
        ),
        ["delete_objects", "terminate_end", "forget_machines"],
    ),
}


def script_of(command: Envelope[Message]) -> RunScript:
    assert isinstance(command.data, RunScript)
    return command.data


def failed(command: Envelope[Message], remains: dict[str, Any] | None = None) -> Envelope[Message]:
    event = CommandFailed(
        command=command.type, code="mgmt-script-failed", title="t", detail="ended with 3", status=422, remains=remains
    )
    return command.follow_up(event, source="/kubevnfm/twin")


def run(move: Move, *, until: str = "") -> tuple[Move, list[Envelope[Message]]]:
    """Answer the commands until one is for the step ``until``; return the commands that were sent."""
    sent, out = [], commands_of(move)
    while out:
        command = out.pop(0)
        sent.append(command)
        if command.stepid == until:
            return move, sent
        move = answered(move, answer_to(command))
        out += commands_of(move)
    return move, sent


@pytest.mark.parametrize("name", EVERY)
def test_the_scripts_of_an_operation_come_before_and_after_all_else(name: str) -> None:
    draft, between = EVERY[name]
    move, sent = run(granted(draft))
    assert move.record.occ.operation_state is OperationState.COMPLETED
    steps = [command.stepid for command in sent]
    start, end = draft.scripts
    after = ["forget_machines"] if name == "terminate" else []
    assert steps == [start, *between, end, *after]
    first, last = (script_of(command) for command in sent if command.stepid in (start, end))
    assert (first.file, first.given["operation"], last.file) == ("Scripts/start.py", start, "Scripts/end.py")
    assert first.given["request"]["password"].reveal(RING) == "pw"
    assert first.folders == {"tmp_csar_dir": PACKAGE}
    # The VIM's access data are for no script.
    assert "of the VIM" not in str(move.record.document(RING))
    for script in (first, last):
        for one in script.given["vnf_instance"].get("vimConnectionInfo", {}).values():
            assert "password" not in one["accessInfo"]
    machines = {
        end: len(script_of(c).given["vnf_instance"].get("instantiatedVnfInfo", {}).get("vnfcResourceInfo", ()))
        for c, end in ((sent[0], "start"), (sent[len(between) + 1], "end"))
    }
    assert machines == {"start": 0 if name == "instantiate" else 3, "end": 0 if name == "terminate" else 3}
    every = set(addresses(RESOURCES))
    assert set(first.reach) == (set() if name == "instantiate" else every)
    assert set(last.reach) == (set() if name == "terminate" else every)


@pytest.mark.parametrize("name", ["instantiate", "scale", "terminate"])
def test_a_driver_class_gets_its_stack_and_the_parameters_of_the_instantiation(name: str) -> None:
    """SEQ 6.7: what Tacker's Heat client would answer comes with the command, without the stack's parameters."""
    draft, _ = EVERY[name]
    files = dict.fromkeys(draft.scripts, "Scripts/own.py::Own")
    info = draft.instance.get("instantiatedVnfInfo")
    made = {"instantiatedVnfInfo": {**info, "additionalParams": hide({"password": "old"})}} if info else {}
    known = {"scripts": files, "instance": {**draft.instance, **made}}
    _, sent = run(granted(draft.model_copy(update=known)))
    scripts = [script_of(one) for one in sent if isinstance(one.data, RunScript)]
    assert [(one.file, one.driver_class) for one in scripts] == [("Scripts/own.py", "Own")] * 2
    shown = RESOURCES.model_dump(mode="json", exclude={"nfv"})
    stacks = {"instantiate": [None, shown], "scale": [shown, shown], "terminate": [shown, None]}
    assert [one.given["stack"] for one in scripts] == stacks[name]
    earlier = [] if name == "instantiate" else [server.stack_id for server in RESOURCES.servers]
    for one in scripts:
        assert one.given["earlier_stacks"] == earlier
        passwords = [one.reveal(RING) for one in one.given["instantiated_with"].values()]
        assert passwords == ([] if name == "instantiate" else ["old"])


@pytest.mark.parametrize("name", EVERY_CNF)
def test_the_scripts_of_a_cnf_come_before_and_after_all_else_and_reach_nothing(name: str) -> None:
    draft, between = EVERY_CNF[name]
    move, sent = run(granted(draft))
    assert move.record.occ.operation_state is OperationState.COMPLETED
    first, *rest = draft.scripts
    assert [command.stepid for command in sent] == [first, *between, *rest]
    for command in sent:
        if command.stepid in draft.scripts:
            script = script_of(command)
            assert script.reach == ()
            assert script.package == PACKAGE
            assert script.given["operation"] == command.stepid
            assert script.given["request"]["password"].reveal(RING) == "pw"
            for one in script.given["vnf_instance"].get("vimConnectionInfo", {}).values():
                assert "bearer_token" not in one["accessInfo"]


def pods_given(command: Envelope[Message]) -> list[str]:
    info = script_of(command).given["vnf_instance"].get("instantiatedVnfInfo", {})
    return [one["id"] for one in info.get("vnfcResourceInfo", ())]


def test_the_scripts_of_a_cnf_get_its_pods_as_they_are_then() -> None:
    pods = {}
    for name in ("instantiate", "modify_information", "terminate"):
        _, sent = run(granted(EVERY_CNF[name][0]))
        pods[name] = [pods_given(command) for command in sent if command.stepid in EVERY_CNF[name][0].scripts]
    assert pods == {
        "instantiate": [[], ["web-1"]],
        "modify_information": [["web-1"], ["web-1"]],
        "terminate": [["web-1"], []],
    }


@pytest.mark.parametrize("is_updated", [True, False])
def test_the_last_script_of_a_modification_gets_the_new_package_and_the_instance_as_it_will_be(
    is_updated: bool,
) -> None:
    known: dict[str, Any] = {"new_package": OTHER, "vnf": {"vnfd_id": "vnfd-2"}}
    plain = ModifyScriptedDraft(vnf_instance_id="inst-1", package=PACKAGE, **known)
    draft = a_cnf_modification(before=PODS, **known) if is_updated else plain
    _, sent = run(granted(scripted(draft, "modify_information", instance=CNF_DUMP)))
    assert script_of(sent[0]).folders == {"tmp_csar_dir": PACKAGE}
    assert script_of(sent[-1]).folders == {"tmp_csar_dir": PACKAGE, "new_csar_dir": OTHER}
    assert [script_of(one).given["vnf_instance"]["vnfdId"] for one in (sent[0], sent[-1])] == ["vnfd-1", "vnfd-2"]
    assert pods_given(sent[-1]) == (["web-2"] if is_updated else ["web-1"])
    if is_updated:
        update = sent[1].data
        assert isinstance(update, UpdateObjects)
        assert (update.before, update.package) == (PACKAGE, OTHER)


@pytest.mark.parametrize(
    ("operation", "draft", "step"),
    [("instantiate", CNF, "apply_objects"), ("modify_information", a_cnf_modification(before=PODS), "update_objects")],
)
def test_a_rollback_of_a_cnf_begins_and_ends_with_its_own_scripts(operation: str, draft: Any, step: str) -> None:
    moments = ("start", "end", "rollback_start", "rollback_end")
    instance = NEW if operation == "instantiate" else CNF_DUMP
    move, _ = run(granted(scripted(draft, operation, *moments, instance=instance)), until=f"{operation}_end")
    remains = {"edits": [], "data": {"tried": operation}}
    move = answered(move, failed(commands_of(move)[0], remains))
    move, sent = run(SAGA.rollback(reread(move.record), later(5)))
    assert [command.stepid for command in sent] == [f"{operation}_rollback_start", step, f"{operation}_rollback_end"]
    for command in (sent[0], sent[-1]):
        assert script_of(command).given["user_script_err_handling_data"] == {"tried": operation}
        assert script_of(command).reach == ()
    assert move.record.occ.operation_state is OperationState.ROLLED_BACK


def test_a_pod_that_stays_keeps_what_a_script_left_with_it() -> None:
    """`mgmt-container-update` lists the pods again."""
    info = LIVE_CNF.vnf.instantiated_vnf_info
    assert info is not None
    pods = tuple(one.model_copy(update={"metadata": {"alarm": 1}}) for one in info.vnfc_resource_info)
    before = LIVE_CNF.with_vnf(instantiated_vnf_info=info.model_copy(update={"vnfc_resource_info": pods}))
    new = PODS.pods[0].model_copy(update={"name": "web-2", "uid": "u2"})
    now = PODS.model_copy(update={"pods": (*PODS.pods, new)})
    done = a_cnf_modification(before=PODS).updated(now, ("a.yaml",)).completed(before).vnf.instantiated_vnf_info
    assert done is not None
    assert {one.id: one.metadata for one in done.vnfc_resource_info} == {
        "web-1": {"alarm": 1, "namespace": "default"},
        "web-2": {"namespace": "default"},
    }


@pytest.mark.parametrize(("name", "draft"), [("scale", ScaleVmDraft), ("heal", HealVmDraft)])
def test_a_rollback_begins_and_ends_with_its_own_scripts(name: str, draft: type[ChangeVmDraft]) -> None:
    moments = ("start", "end", "rollback_start", "rollback_end")
    move, _ = run(granted(scripted(a_change_draft(draft), name, *moments)), until=f"{name}_resources")
    move = answered(move, failed(commands_of(move)[0]))
    move, sent = run(SAGA.rollback(reread(move.record), later(5)))
    steps = [f"{name}_rollback_start", f"{name}_resources", f"{name}_rollback_end"]
    assert [command.stepid for command in sent] == steps
    assert script_of(sent[0]).given["operation"] == steps[0]
    assert move.record.occ.operation_state is OperationState.ROLLED_BACK


def test_a_rollback_that_failed_half_way_does_not_run_its_first_script_again() -> None:
    draft = scripted(a_change_draft(ScaleVmDraft), "scale", "rollback_start", "rollback_end")
    move = granted(draft)
    move = answered(move, failed(commands_of(move)[0]))
    move, _ = run(SAGA.rollback(reread(move.record), later(5)), until="scale_rollback_end")
    move = answered(move, failed(commands_of(move)[0]), 6)
    assert move.record.occ.operation_state is OperationState.FAILED_TEMP
    _, sent = run(SAGA.rollback(reread(move.record), later(7)))
    assert [command.stepid for command in sent] == ["scale_rollback_end"]


@pytest.mark.parametrize("moment", ["rollback_start", "rollback_end"])
def test_what_a_failed_script_of_a_rollback_kept_is_given_to_the_next_rollback(moment: str) -> None:
    """Also to the other script of the rollback, as user_script_err_handling_data is that of the operation."""
    draft = scripted(a_change_draft(ScaleVmDraft), "scale", "rollback_start", "rollback_end")
    move = granted(draft)
    move = answered(move, failed(commands_of(move)[0]))
    move, _ = run(SAGA.rollback(reread(move.record), later(5)), until=f"scale_{moment}")
    remains = {"edits": [], "data": sealed(hide({"alarm": "a-1", "password": "of the alarm"}), RING)}
    move = answered(move, failed(commands_of(move)[0], remains), 6)
    assert "of the alarm" not in str(move.record.document(RING))
    move, sent = run(SAGA.rollback(reread(move.record), later(7)))
    for data in (
        script_of(one).given["user_script_err_handling_data"] for one in sent if "rollback" in str(one.stepid)
    ):
        assert data["alarm"] == "a-1"
        assert data["password"].reveal(RING) == "of the alarm"
    assert sent[-1].stepid == "scale_rollback_end"
    assert move.record.occ.operation_state is OperationState.ROLLED_BACK


def test_an_operation_that_completes_runs_no_script_of_a_rollback() -> None:
    draft = scripted(a_change_draft(ScaleVmDraft), "scale", "start", "end", "rollback_start", "rollback_end")
    move, sent = run(granted(draft))
    assert [command.stepid for command in sent] == ["scale_start", "scale_resources", "scale_end"]
    assert all(step.state is StepState.DONE for step in move.record.steps)


def test_the_scripts_of_a_rollback_are_not_shown_as_done_by_an_operation_that_goes_forwards() -> None:
    draft = scripted(a_change_draft(ScaleVmDraft), "scale", "start", "end", "rollback_start", "rollback_end")

    def shown(record: Any) -> list[str]:
        return [step["state"] for step in step_views(record) if "_rollback_" in step["name"]]

    move = granted(draft)
    assert shown(move.record) == ["waiting", "waiting"]
    completed, _ = run(granted(draft))
    assert shown(completed.record) == ["skipped", "skipped"]
    move = answered(move, failed(commands_of(move)[0]))
    assert shown(move.record) == ["waiting", "waiting"]
    rolled_back, _ = run(SAGA.rollback(reread(move.record), later(5)))
    assert shown(rolled_back.record) == ["undone", "undone"]


def test_a_clean_up_of_a_failed_instantiate_runs_no_script() -> None:
    draft = scripted(PLAIN, "instantiate", "rollback_start", "rollback_end", instance=NEW)
    move = granted(draft)
    move = answered(move, failed(commands_of(move)[0]))
    record = SAGA.fail(reread(move.record), later(2)).record
    _, sent = run(SAGA.clean_up(record, "clean-1", later(4)))
    assert [command.stepid for command in sent] == ["create_resources"]


def test_what_a_failed_script_kept_is_given_to_the_next_try() -> None:
    move = granted(scripted(a_change_draft(ScaleVmDraft), "scale", "start"))
    remains = {"edits": [], "data": sealed(hide({"alarm": "a-1", "password": "of the alarm"}), RING)}
    move = answered(move, failed(commands_of(move)[0], remains))
    assert "of the alarm" not in str(move.record.document(RING))
    (again,) = commands_of(SAGA.retry(reread(move.record), later(2)))
    data = script_of(again).given["user_script_err_handling_data"]
    assert data["alarm"] == "a-1"
    assert data["password"].reveal(RING) == "of the alarm"


def test_the_vim_that_a_driver_class_creates_is_registered_and_recorded() -> None:
    """6.7: after the class, before what else comes at the end; a rollback removes it."""
    draft = scripted(PLAIN, "instantiate", "end", "rollback_start", instance=NEW)
    draft = draft.model_copy(update={"scripts": {**draft.scripts, "instantiate_end": "Scripts/own.py::Own"}})
    move, sent = run(granted(draft), until="instantiate_end")
    done = ScriptDone(answer=ScriptAnswer(vim=DriverVim(vim_id="vim-own", name="edge", access=ACCESS_OF_CLUSTER)))
    move = answered(move, sent[-1].follow_up(done, source="/kubevnfm/twin"))
    (command,) = commands_of(move)
    asked = command.data
    assert isinstance(asked, RegisterVim)
    assert (asked.name, asked.vim_id, asked.vnf_instance_id) == ("edge", "vim-own", "inst-1")
    assert asked.connection.interface_info["endpoint"] == ACCESS_OF_CLUSTER.server
    refused = answered(move, failed(command))
    _, back = run(SAGA.rollback(reread(refused.record), later(5)))
    assert [one.stepid for one in back] == ["instantiate_rollback_start", "register_vim", "create_resources"]
    removal = back[1].data
    assert isinstance(removal, DeregisterVim)
    assert (removal.name, removal.vnf_instance_id, removal.force) == ("edge", "inst-1", True)

    move = answered(move, answer_to(command))
    assert move.record.occ.operation_state is OperationState.COMPLETED
    completed = SEQUENCES.draft(move.record.plan, move.record.draft).completed(an_instance())
    entry = completed.vnf.vim_connection_info["edge"]
    assert (entry.vim_id, entry.access_info["bearer_token"].reveal(RING)) == ("vim-2", "token-of-the-cluster")
    assert (completed.internals.cluster_vim_id, completed.internals.cluster_vim_key) == ("vim-2", "edge")


def test_a_cluster_that_a_script_has_built_is_registered_although_the_script_says_nothing_of_it() -> None:
    """6.7.6: the admin credentials are read on a master; a VIM that the script has left is registered by nothing else."""
    cluster = read_cluster_parameters(PLAIN.parameters)
    draft = scripted(PLAIN, "instantiate", "end", "rollback_start", instance=NEW)
    draft = draft.model_copy(update={"cluster_parameters": cluster, "cluster_vim_name": "cluster-1"})
    move, sent = run(granted(draft))
    assert [one.stepid for one in sent] == ["create_resources", "instantiate_end", "read_admin", "register_vim"]
    read = sent[2].data
    assert isinstance(read, RunPhase)
    assert read.cluster is not None
    assert (read.driver, read.phase, read.cluster.script_path) == ("kubernetes", "read_admin", cluster.script_path)
    assert {node.role for node in read.nodes if not node.is_target} == {"master", "worker"}
    completed = SEQUENCES.draft(move.record.plan, move.record.draft).completed(an_instance())
    assert completed.vnf.vim_connection_info["cluster-1"].vim_id == "vim-2"

    entry = ScriptEdit(path=("vimConnectionInfo", "own"), change={"value": {"vimType": "ETSINFV.KUBERNETES.V_1"}})
    move, sent = run(granted(draft), until="instantiate_end")
    done = ScriptDone(answer=ScriptAnswer(edits=(entry,)))
    move = answered(move, sent[-1].follow_up(done, source="/kubevnfm/twin"))
    assert commands_of(move) == []
    assert move.record.occ.operation_state is OperationState.COMPLETED


def a_whole_heal(script: str, **known: Any) -> HealClusterDraft:
    """Return the whole heal of a cluster that scripts have built, and that is registered as ``edge``."""
    known = {"is_recreated": True, "is_whole": True, "cluster_vim_id": "vim-2", "cluster_vim_name": "edge", **known}
    draft: HealClusterDraft = scripted(a_change_draft(HealClusterDraft, **known), "heal")
    return draft.model_copy(update={"scripts": dict.fromkeys(("heal_start", "heal_end"), script)})


HEALED = ["heal_start", "delete_resources", "recreate_resources", "restore_scale", "heal_end"]


def test_a_whole_heal_by_a_driver_class_gives_the_vim_new_access_data() -> None:
    """SEQ-156, 6.7: the class deletes the VIM at heal_start and creates it at heal_end; the VIM keeps its name and its entry."""
    draft = a_whole_heal("Scripts/own.py::Own", cluster_parameters=read_cluster_parameters(PLAIN.parameters))
    move = granted(draft)
    (start,) = commands_of(move)
    gone = ScriptAnswer(edits=(ScriptEdit(path=("vimConnectionInfo", "edge")),))
    move = answered(move, start.follow_up(ScriptDone(answer=gone), source="/kubevnfm/twin"))
    move, sent = run(move, until="heal_end")
    end = sent[-1].data
    assert isinstance(end, RunScript)
    assert end.given["cluster_vim_name"] == "edge"
    made = ScriptAnswer(vim=DriverVim(vim_id="vim-own", name="edge", access=ACCESS_OF_CLUSTER))
    move = answered(move, sent[-1].follow_up(ScriptDone(answer=made), source="/kubevnfm/twin"))
    (command,) = commands_of(move)
    asked = command.data
    assert isinstance(asked, RegisterVim)
    assert (command.stepid, asked.name, asked.vnf_instance_id) == ("register_vim", "edge", "inst-1")
    move = answered(move, answer_to(command))
    assert move.record.occ.operation_state is OperationState.COMPLETED
    done = SEQUENCES.draft(move.record.plan, move.record.draft)
    assert isinstance(done, HealClusterDraft)
    completed = done.with_changes(done.completed(INSTANCE))
    entry = completed.vnf.vim_connection_info["edge"]
    assert (entry.vim_id, entry.access_info["bearer_token"].reveal(RING)) == ("vim-2", "token-of-the-cluster")
    assert (completed.internals.cluster_vim_id, completed.internals.cluster_vim_key) == ("vim-2", "edge")


def test_a_whole_heal_by_scripts_reads_the_new_access_data_on_a_master() -> None:
    """SEQ-156, 6.7.6: the scripts say nothing of the VIM, which keeps its name."""
    cluster = read_cluster_parameters(PLAIN.parameters)
    draft = a_whole_heal("Scripts/own.py", cluster_parameters=cluster, parameters=PLAIN.parameters)
    _, sent = run(granted(draft))
    assert [one.stepid for one in sent] == [*HEALED, "read_admin", "register_vim"]
    read, registered = sent[-2].data, sent[-1].data
    assert isinstance(read, RunPhase)
    assert (read.driver, read.phase) == ("kubernetes", "read_admin")
    assert isinstance(registered, RegisterVim)
    assert registered.name == "edge"
    assert draft.withdrawn is not None, "CNFs on it would lose their cluster"
    assert draft.withdrawn.provided == Provided("cluster", ("vim-2",))
    # Nothing is known of a cluster whose parameters are the scripts' own.
    _, sent = run(granted(a_whole_heal("Scripts/own.py")))
    assert [one.stepid for one in sent] == HEALED


def test_what_a_script_changes_is_in_the_instance_and_in_what_the_next_script_gets() -> None:
    """SEQ 6.5: metadata of the instance, of its resources and of a machine; and what another attribute had before stays."""
    move = granted(scripted(a_change_draft(ScaleVmDraft), "scale"))
    edits = (
        ScriptEdit(path=("metadata", "configured"), change={"value": {"by": "script"}}),
        ScriptEdit(path=("extensions", "old")),
        ScriptEdit(path=("instantiatedVnfInfo", "metadata", "notifier"), change={"value": "n"}),
        ScriptEdit(
            path=("instantiatedVnfInfo", "vnfcResourceInfo", "vnfc-w1", "metadata", "alarm"), change={"value": 1}
        ),
        ScriptEdit(path=("instantiatedVnfInfo", "vnfcResourceInfo", "gone", "metadata", "alarm"), change={"value": 2}),
    )
    done = ScriptDone(answer=ScriptAnswer(edits=edits))
    (start,) = commands_of(move)
    move = answered(move, start.follow_up(done, source="/kubevnfm/twin"))
    move, sent = run(move, until="scale_end")
    given = script_of(sent[-1]).given["vnf_instance"]
    assert given["metadata"] == {"configured": {"by": "script"}}
    assert given["instantiatedVnfInfo"]["metadata"]["notifier"] == "n"
    draft = SEQUENCES.draft(move.record.plan, move.record.draft)
    assert isinstance(draft, ScriptedDraft)
    before = INSTANCE.with_vnf(extensions={"old": 1, "other": 2})
    changed = draft.with_changes(before).vnf
    assert changed.extensions == {"other": 2}
    assert changed.instantiated_vnf_info is not None
    by_id = {one.id: one.metadata for one in changed.instantiated_vnf_info.vnfc_resource_info}
    assert (by_id["vnfc-w1"] or {}).get("alarm") == 1
    assert before.vnf.extensions == {"old": 1, "other": 2}
    # The next operation keeps what the script left with the machine.
    again = a_change_draft(HealVmDraft).with_resources(RESOURCES).completed(before.model_copy(update={"vnf": changed}))
    assert again.vnf.instantiated_vnf_info is not None
    metadata = {one.id: one.metadata for one in again.vnf.instantiated_vnf_info.vnfc_resource_info}
    assert (metadata["vnfc-w1"] or {}).get("alarm") == 1


@pytest.mark.parametrize(
    "path", [("metadata",), ("extensions",), ("vnfConfigurableProperties",), ("instantiatedVnfInfo", "metadata")]
)
def test_an_attribute_that_a_script_sets_to_nothing_is_removed(path: tuple[str, ...]) -> None:
    """Otherwise no instance can be read with it, at this and each later step."""
    edit = ScriptEdit(path=path, change={"value": None})
    draft = scripted(a_change_draft(ScaleVmDraft), "scale").with_script(ScriptAnswer(edits=(edit,)))
    changed = draft.with_changes(INSTANCE.with_vnf(extensions={"old": 1})).vnf
    assert changed.extensions == ({} if path == ("extensions",) else {"old": 1})
    assert draft.instance_at("before")["id"] == INSTANCE.vnf.id


def test_a_change_of_package_coordinates_each_changed_machine_one_after_the_other() -> None:
    draft = scripted(COORDINATED, "change_current_package")
    move, sent = run(granted(draft))
    assert [command.stepid for command in sent] == [
        "change_current_package_start",
        "change_template",
        "coordinate-new/workerNode/0",
        "coordinate-new/workerNode/1",
        "change_current_package_end",
    ]
    assert move.record.occ.operation_state is OperationState.COMPLETED
    first, second = (script_of(command) for command in sent[2:4])
    assert (first.given["ssh_ip"], second.given["ssh_ip"]) == ("10.10.0.5", "10.10.0.6")
    assert (first.file, first.given["is_rollback"], first.answers) == ("Scripts/new.py", False, False)
    assert first.package == COORDINATED.package
    request = first.given["LcmCoordRequest"]
    assert (request["vnfLcmOpOccId"], request["lcmOperationType"]) == ("op-1", "CHANGE_VNFPKG")
    by_id = {one["id"]: one["vnfcResourceInfoId"] for one in first.given["inst"]["instantiatedVnfInfo"]["vnfcInfo"]}
    assert by_id[first.given["vnfc_info_id"]] == "vnfc-w1"


def test_its_rollback_coordinates_them_once_they_are_as_before() -> None:
    move, _ = run(granted(COORDINATED), until="coordinate-new/workerNode/1")
    move = answered(move, failed(commands_of(move)[0]))
    move, sent = run(SAGA.rollback(reread(move.record), later(5)))
    assert [command.stepid for command in sent] == [
        "change_template",
        "coordinate-old/workerNode/0",
        "coordinate-old/workerNode/1",
    ]
    assert script_of(sent[1]).given["is_rollback"] is True
    assert script_of(sent[1]).file == "Scripts/old.py"
    assert script_of(sent[1]).package == COORDINATED.before_package != COORDINATED.package
    assert move.record.occ.operation_state is OperationState.ROLLED_BACK


CLONES = RESOURCES.model_copy(
    update={
        "servers": (
            RESOURCES.servers[0],
            *(
                s.model_copy(update={"group": f"worker-{n}", "member": None})
                for n, s in enumerate(RESOURCES.servers[1:])
            ),
        )
    }
)
ROLLING = COORDINATED.model_copy(update={"before": CLONES, "rolling": ("worker-0", "worker-1")})


def clones_answer(command: Envelope[Message], replaced: list[str]) -> Envelope[Message]:
    """Answer as a cloud that replaces the machine of a part: it gets another id, and is the youngest."""
    reply = answer_to(command)
    if not isinstance(command.data, ChangeTemplate | RestoreResources):
        return reply
    # The earlier servers of these parts have gone; each of their steps made another.
    part = command.stepid.removeprefix("change/")
    replaced.append(part)
    servers = [
        one
        if (times := replaced.count(str(one.group))) == 0
        else one.model_copy(update={"server_id": f"{one.server_id}-{times}", "vnfc_id": f"{one.vnfc_id}-{times}"})
        for one in CLONES.servers
    ]
    servers.sort(key=lambda one: one.group == part)
    return command.follow_up(
        ResourcesChanged(resources=CLONES.model_copy(update={"servers": tuple(servers)})), source="/kubevnfm/twin"
    )


def roll(move: Move, replaced: list[str], *, until: str = "") -> tuple[Move, list[Envelope[Message]]]:
    sent: list[Envelope[Message]] = []
    while out := commands_of(move):
        (command,) = out
        sent.append(command)
        if command.stepid == until:
            break
        move = answered(move, clones_answer(command, replaced))
    return move, sent


def test_a_rolling_update_changes_and_coordinates_one_machine_before_the_next_changes() -> None:
    move, sent = roll(granted(scripted(ROLLING, "change_current_package")), [])
    assert [command.stepid for command in sent] == [
        "change_current_package_start",
        "change/worker-0",
        "coordinate-new/worker-0/0",
        "change/worker-1",
        "coordinate-new/worker-1/0",
        "change_current_package_end",
    ]
    assert move.record.occ.operation_state is OperationState.COMPLETED
    first, second = (command.data for command in sent if isinstance(command.data, ChangeTemplate))
    assert isinstance(first, ChangeTemplate)
    assert isinstance(second, ChangeTemplate)
    assert (first.unchanged, second.unchanged) == (("worker-1",), ())
    scripts_sent = [script_of(sent[number]) for number in (2, 4)]
    # The machine that was replaced is now the last of the stack's list.
    assert [one.given["ssh_ip"] for one in scripts_sent] == ["10.10.0.5", "10.10.0.6"]


def test_a_retry_in_the_middle_leaves_alone_the_machines_that_were_changed() -> None:
    replaced: list[str] = []
    move, _ = roll(granted(ROLLING), replaced, until="coordinate-new/worker-1/0")
    move = answered(move, failed(commands_of(move)[0]))
    move, sent = roll(SAGA.retry(reread(move.record), later(5)), replaced)
    assert [command.stepid for command in sent] == ["coordinate-new/worker-1/0"]
    assert move.record.occ.operation_state is OperationState.COMPLETED


@pytest.mark.parametrize(
    ("failing", "undone"),
    [
        ("change/worker-0", ["change/worker-0", "coordinate-old/worker-0/0"]),
        ("coordinate-new/worker-0/0", ["change/worker-0", "coordinate-old/worker-0/0"]),
        (
            "change/worker-1",
            ["change/worker-1", "coordinate-old/worker-1/0", "change/worker-0", "coordinate-old/worker-0/0"],
        ),
    ],
)
def test_its_rollback_goes_back_machine_by_machine(failing: str, undone: list[str]) -> None:
    replaced: list[str] = []
    move, _ = roll(granted(ROLLING), replaced, until=failing)
    move = answered(move, failed(commands_of(move)[0]))
    move, sent = roll(SAGA.rollback(reread(move.record), later(5)), replaced)
    assert [command.stepid for command in sent] == undone
    assert move.record.occ.operation_state is OperationState.ROLLED_BACK
    restores = [command.data for command in sent if isinstance(command.data, RestoreResources)]
    assert [one.restored for one in restores] == [("worker-1",), ()][-len(restores) :]
    assert {s.server_id for s in CLONES.servers} <= set(restores[0].staying)
    if len(restores) == 2:
        assert "server-w1-1" in restores[0].staying, "the first machine stays as changed until its own step"
        assert "server-w2-1" in restores[1].staying, "the second machine was restored and is not replaced again"


@pytest.mark.parametrize("age", ["new", "old"])
def test_a_connection_point_that_a_machine_lacks_fails_the_step_and_names_it(age: str) -> None:
    params = {**COORDINATION["workerNode"], f"{age}_vnfc_param": {"cp_name": "nowhere"}}
    draft = COORDINATED.model_copy(update={"coordination_params": {"workerNode": params}})
    move, _ = run(granted(draft), until="coordinate-new/workerNode/1" if age == "old" else "")
    if age == "old":
        move = answered(move, failed(commands_of(move)[0]))
        move, _ = run(SAGA.rollback(reread(move.record), later(5)))
    assert move.record.occ.operation_state is OperationState.FAILED_TEMP
    assert move.record.occ.error is not None
    assert f"workerNode/{age}_vnfc_param/cp_name" in move.record.occ.error.detail
    assert "nowhere" in move.record.occ.error.detail


def test_a_script_reaches_floating_addresses_and_ports_of_the_top_stack() -> None:
    port = PortFacts(name="vip", resource_id="p", addresses=("10.10.0.9",), floating_address="192.0.2.9")
    stack = StackResources(stack_id="s", stack_name="s", ports=(port,))
    assert addresses(stack, None) == ("10.10.0.9", "192.0.2.9")


def test_a_stored_operation_with_scripts_has_no_secret_in_clear() -> None:
    record = an_operation(COORDINATED.model_copy(update={"coordination_params": hide({"a": {"password": "s3cr3t"}})}))
    assert "s3cr3t" not in str(SAGA.grant(record, "g", NOW).record.document(RING))


@pytest.mark.parametrize(
    "edit",
    [
        ScriptEdit(path=("vimConnectionInfo", "vim1", "interfaceInfo"), change={"value": {"endpoint": "https://x"}}),
        ScriptEdit(path=("vimConnectionInfo", "vim1"), change={"value": {"vimId": "vim-9", "vimType": "openstack"}}),
        ScriptEdit(path=("vimConnectionInfo", "vim1")),
        ScriptEdit(path=("vimConnectionInfo",)),
    ],
)
def test_no_edit_of_a_script_changes_an_entry_of_a_vim(edit: ScriptEdit) -> None:
    """mgmt-executor refuses them; an operation that version 0.1.0 has begun may have stored one."""
    draft = scripted(a_change_draft(ScaleVmDraft), "scale").with_script(ScriptAnswer(edits=(edit,)))
    assert draft.with_changes(INSTANCE).vnf == INSTANCE.vnf
    assert draft.instance_at("before")["vimConnectionInfo"] == DUMP["vimConnectionInfo"]


def test_a_script_leaves_no_vim_for_the_next_instantiate() -> None:
    """It would come before those that the next request names."""
    entry = {"vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3", "interfaceInfo": {"endpoint": "https://x"}}
    edit = ScriptEdit(path=("vimConnectionInfo", "aaa"), change={"value": entry})
    terminate = scripted(a_terminate_draft(cluster_vim_key=None, phases={}, has_scripts=True), "terminate")
    terminate = terminate.with_script(ScriptAnswer(edits=(edit,)))
    assert terminate.with_changes(terminate.completed(INSTANCE)).vnf.vim_connection_info == {}
    scale = scripted(a_change_draft(ScaleVmDraft), "scale").with_script(ScriptAnswer(edits=(edit,)))
    assert set(scale.with_changes(INSTANCE).vnf.vim_connection_info) == {"vim1", "aaa"}
