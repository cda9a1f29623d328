"""Scale of a cluster: its steps, their commands, and the rollback of a scale out."""

from __future__ import annotations

from typing import Any

from kubevnfm_cluster import read_cluster_parameters
from kubevnfm_events import CommandFailed, Envelope, Message
from kubevnfm_events.infra import ResourcesChanged, StackResources
from kubevnfm_events.mgmt import PhaseDone, RunPhase
from kubevnfm_lcm_api.lifecycle.domain.saga import Move
from kubevnfm_lcm_api.lifecycle.domain.scale_draft import ScaleVmDraft
from kubevnfm_secrets import hide
from kubevnfm_sol.lcm import OperationState
from lcm_builders import (
    ANSWERS,
    CLUSTER_PARAMETERS,
    RESOURCES,
    a_change_draft,
    a_server,
    an_instance,
    an_instantiate_draft,
    later,
)
from lcm_moves import SAGA, answered, commands_of, granted, reread

NAMES = {"vnfc-m1": "master4", "vnfc-w1": "worker5", "vnfc-w2": "worker6"}
NEW = a_server("w3", "workerNode", "worker_instance", "10.10.0.7")
GROWN = RESOURCES.model_copy(update={"servers": (*RESOURCES.servers, NEW)})
SHRUNK = RESOURCES.model_copy(update={"servers": RESOURCES.servers[:-1]})
INSTANCE = an_instantiate_draft(resources=RESOURCES, node_names=NAMES).completed(an_instance())


def a_scaling(**known: Any) -> ScaleVmDraft:
    facts: dict[str, Any] = {
        "driver": "mgmt-drivers-kubernetes",
        "parameters": hide(CLUSTER_PARAMETERS),
        "cluster_parameters": read_cluster_parameters(CLUSTER_PARAMETERS),
        "node_names": NAMES,
        "counts": {"masterNode": 1, "workerNode": 3},
    }
    return a_change_draft(ScaleVmDraft, **{**facts, **known})


def scale_in(**known: Any) -> ScaleVmDraft:
    return a_scaling(counts={"masterNode": 1, "workerNode": 1}, leaving=("server-w2",), **known)


def answer(command: Envelope[Message], stack: StackResources) -> Envelope[Message]:
    """Return the answer of the service; ``stack``: what the stack holds afterwards."""
    event = ANSWERS[type(command.data).routing_key()]
    if isinstance(command.data, RunPhase):
        names = {node.vnfc_id: node.name or "worker7" for node in command.data.nodes}
        is_end = command.data.phase == "scale_end"
        event = PhaseDone(driver="d", phase=command.data.phase, node_names=names if is_end else {})
    elif isinstance(event, ResourcesChanged):
        event = ResourcesChanged(resources=stack)
    return command.follow_up(event, source="/kubevnfm/twin")


def run(move: Move, stack: StackResources, *, fails: str = "") -> tuple[Move, list[Envelope[Message]]]:
    """Answer every command until none is left or one fails; return the last move and the commands."""
    sent: list[Envelope[Message]] = []
    out = commands_of(move)
    while out:
        command = out.pop(0)
        sent.append(command)
        if command.stepid == fails:
            failed = CommandFailed(command=command.type, code="c", title="t", detail="d", status=422)
            return answered(move, command.follow_up(failed, source="/kubevnfm/twin")), sent
        move = answered(move, answer(command, stack))
        out += commands_of(move)
    return move, sent


def phase_of(command: Envelope[Message]) -> RunPhase:
    assert isinstance(command.data, RunPhase)
    return command.data


def test_new_workers_join_after_the_stack_has_grown() -> None:
    """SEQ-150, 3.3: the targets are the machines that were not there before; all others keep their names."""
    move, sent = run(granted(a_scaling()), GROWN)
    assert [command.stepid for command in sent] == ["scale_resources", "scale_end"]
    command = phase_of(sent[1])
    assert [(node.name, node.is_target) for node in command.nodes] == [
        ("master4", False),
        ("worker5", False),
        ("worker6", False),
        (None, True),
    ]
    assert command.cluster_address == "10.10.0.4"
    assert move.record.occ.operation_state is OperationState.COMPLETED
    draft = ScaleVmDraft.from_document(move.record.draft)
    info = draft.completed(INSTANCE).vnf.instantiated_vnf_info
    assert info is not None
    names = [(one.metadata or {}).get("node_name") for one in info.vnfc_resource_info]
    assert names == ["master4", "worker5", "worker6", "worker7"]


def test_workers_leave_before_the_stack_shrinks_and_are_forgotten_after_it() -> None:
    """SEQ-151, C1, C3."""
    move, sent = run(granted(scale_in()), SHRUNK)
    assert [command.stepid for command in sent] == ["scale_start", "scale_resources", "scale_end"]
    start, end = phase_of(sent[0]), phase_of(sent[2])
    assert [node.name for node in start.nodes if node.is_target] == ["worker6"]
    assert [node.name for node in end.nodes] == ["master4", "worker5"]
    assert not any(node.is_target for node in end.nodes)
    assert [(node.name, node.vnfc_id) for node in end.gone] == [("worker6", "vnfc-w2")]
    assert move.record.occ.operation_state is OperationState.COMPLETED
    assert not move.record.is_reversible


def test_a_drain_that_fails_keeps_the_machines() -> None:
    move, sent = run(granted(scale_in()), SHRUNK, fails="scale_start")
    assert move.record.occ.operation_state is OperationState.FAILED_TEMP
    assert [command.stepid for command in sent] == ["scale_start"]
    move, sent = run(SAGA.retry(reread(move.record), later(5)), SHRUNK)
    assert [command.stepid for command in sent] == ["scale_start", "scale_resources", "scale_end"]


def test_a_rollback_takes_new_nodes_out_then_shrinks_the_stack_then_forgets_the_machines() -> None:
    """1.11: rollback of scale-out."""
    move, _ = run(granted(a_scaling()), GROWN, fails="scale_end")
    move, sent = run(SAGA.rollback(reread(move.record), later(5)), RESOURCES)
    assert [command.stepid for command in sent] == ["scale_end", "scale_resources", "scale_rollback_end"]
    out, end = phase_of(sent[0]), phase_of(sent[2])
    assert out.phase == "scale_rollback_start"
    assert [node.vnfc_id for node in out.nodes if node.is_target] == ["vnfc-w3"]
    assert end.phase == "scale_rollback_end"
    assert [node.vnfc_id for node in end.nodes] == ["vnfc-m1", "vnfc-w1", "vnfc-w2"]
    assert [node.vnfc_id for node in end.gone] == ["vnfc-w3"]
    assert move.record.occ.operation_state is OperationState.ROLLED_BACK


def test_a_rollback_before_any_machine_was_added_asks_the_driver_for_nothing() -> None:
    move, _ = run(granted(a_scaling()), RESOURCES, fails="scale_resources")
    _, sent = run(SAGA.rollback(reread(move.record), later(5)), RESOURCES)
    assert [command.stepid for command in sent] == ["scale_resources"]


def test_a_new_machine_without_address_does_not_hold_up_the_rollback() -> None:
    bare = NEW.model_copy(update={"ports": ()})
    move = granted(a_scaling())
    (command,) = commands_of(move)
    stack = RESOURCES.model_copy(update={"servers": (*RESOURCES.servers, bare)})
    move = answered(move, answer(command, stack))
    assert move.record.occ.operation_state is OperationState.FAILED_TEMP, "no such connection point"
    move, sent = run(SAGA.rollback(reread(move.record), later(5)), RESOURCES)
    assert [command.stepid for command in sent] == ["scale_resources"]
    assert move.record.occ.operation_state is OperationState.ROLLED_BACK


def test_the_time_for_the_phases_covers_the_limits_of_the_request() -> None:
    given = {
        **CLUSTER_PARAMETERS["k8s_cluster_installation_param"],
        "x_timeouts": {"drain": 9000, "node_install": 20_000},
    }
    cluster = read_cluster_parameters({"k8s_cluster_installation_param": given})
    steps = {step.id: step for step in granted(scale_in(cluster_parameters=cluster)).record.steps}
    assert steps["scale_start"].timeout_s > 9000
    assert steps["scale_end"].timeout_s > 20_000


def test_a_vnf_of_plain_machines_is_scaled_as_before() -> None:
    _, sent = run(granted(a_change_draft(ScaleVmDraft)), RESOURCES)
    assert [command.stepid for command in sent] == ["scale_resources"]
