"""Heal of a cluster: its steps and their commands."""

from __future__ import annotations

from typing import Any

from kubevnfm_cluster import read_cluster_parameters
from kubevnfm_events import CommandFailed, Envelope, Message
from kubevnfm_events.infra import ResourcesChanged
from kubevnfm_events.mgmt import PhaseDone, RunPhase
from kubevnfm_lcm_api.lifecycle.domain.heal_draft import HealVmDraft
from kubevnfm_lcm_api.lifecycle.domain.saga import Move
from kubevnfm_secrets import hide
from kubevnfm_sol.lcm import OperationState
from lcm_builders import (
    ANSWERS,
    CLUSTER_PARAMETERS,
    RESOURCES,
    a_change_draft,
    an_instance,
    an_instantiate_draft,
    later,
)
from lcm_moves import SAGA, answered, commands_of, granted, reread

# The suffixes are of another address: names are kept, not made again.
NAMES = {"vnfc-m1": "master4", "vnfc-w1": "worker5", "vnfc-w2": "worker6-1f"}
INSTANCE = an_instantiate_draft(resources=RESOURCES, node_names=NAMES).completed(an_instance())


def replaced(*names: str) -> Any:
    """Return the stack after these machines were replaced: other ids at the same addresses."""
    servers = tuple(
        server.model_copy(update={"vnfc_id": f"{server.vnfc_id}b", "server_id": f"{server.server_id}b"})
        if server.vnfc_id in names
        else server
        for server in RESOURCES.servers
    )
    return RESOURCES.model_copy(update={"servers": servers})


def a_heal(**known: Any) -> HealVmDraft:
    facts: dict[str, Any] = {
        "driver": "mgmt-drivers-kubernetes",
        "parameters": hide(CLUSTER_PARAMETERS),
        "cluster_parameters": read_cluster_parameters(CLUSTER_PARAMETERS),
        "node_names": NAMES,
        "servers": ("server-w1", "server-w2"),
    }
    return a_change_draft(HealVmDraft, **{**facts, **known})


def run(move: Move, stack: Any, *, fails: str = "") -> tuple[Move, list[Envelope[Message]]]:
    """Answer every command until none is left or one fails; return the last move and the commands."""
    sent: list[Envelope[Message]] = []
    out = commands_of(move)
    while out:
        command = out.pop(0)
        sent.append(command)
        if command.stepid == fails:
            failed = CommandFailed(command=command.type, code="c", title="t", detail="d", status=422)
            return answered(move, command.follow_up(failed, source="/kubevnfm/twin")), sent
        event = ANSWERS[type(command.data).routing_key()]
        if isinstance(command.data, RunPhase):
            names = {node.vnfc_id: node.name or "?" for node in command.data.nodes}
            event = PhaseDone(driver="d", phase=command.data.phase, node_names=names if sent[1:] else {})
        elif isinstance(event, ResourcesChanged):
            event = ResourcesChanged(resources=stack)
        move = answered(move, command.follow_up(event, source="/kubevnfm/twin"))
        out += commands_of(move)
    return move, sent


def phase_of(command: Envelope[Message]) -> RunPhase:
    assert isinstance(command.data, RunPhase)
    return command.data


def test_workers_leave_before_their_machines_are_replaced_and_the_new_ones_have_their_names() -> None:
    """SEQ-155, E1, 3.3."""
    move, sent = run(granted(a_heal()), replaced("vnfc-w1", "vnfc-w2"))
    assert [command.stepid for command in sent] == ["heal_start", "heal_resources", "heal_end"]
    start, end = phase_of(sent[0]), phase_of(sent[2])
    assert [node.name for node in start.nodes if node.is_target] == ["worker5", "worker6-1f"]
    assert [(node.name, node.vnfc_id, node.is_target) for node in end.nodes] == [
        ("master4", "vnfc-m1", False),
        ("worker5", "vnfc-w1b", True),
        ("worker6-1f", "vnfc-w2b", True),
    ]
    assert [(node.name, node.vnfc_id) for node in end.gone] == [("worker5", "vnfc-w1"), ("worker6-1f", "vnfc-w2")]
    assert move.record.occ.operation_state is OperationState.COMPLETED
    info = HealVmDraft.from_document(move.record.draft).completed(INSTANCE).vnf.instantiated_vnf_info
    assert info is not None
    shown = {one.id: (one.metadata or {}).get("node_name") for one in info.vnfc_resource_info}
    assert shown == {"vnfc-m1": "master4", "vnfc-w1b": "worker5", "vnfc-w2b": "worker6-1f"}


def test_a_drain_that_fails_replaces_no_machine_and_the_retry_begins_with_it() -> None:
    move, sent = run(granted(a_heal()), RESOURCES, fails="heal_start")
    assert [command.stepid for command in sent] == ["heal_start"]
    assert move.record.occ.operation_state is OperationState.FAILED_TEMP
    assert not move.record.is_reversible
    _, sent = run(SAGA.retry(reread(move.record), later(5)), replaced("vnfc-w1", "vnfc-w2"))
    assert [command.stepid for command in sent] == ["heal_start", "heal_resources", "heal_end"]


def test_a_join_that_fails_is_retried_without_a_further_replacement() -> None:
    stack = replaced("vnfc-w2")
    move, _ = run(granted(a_heal(servers=("server-w2",))), stack, fails="heal_end")
    move, sent = run(SAGA.retry(reread(move.record), later(5)), stack)
    assert [command.stepid for command in sent] == ["heal_end"]
    assert [node.name for node in phase_of(sent[0]).nodes if node.is_target] == ["worker6-1f"]


def test_the_time_for_the_phases_covers_the_limits_of_the_request() -> None:
    section = CLUSTER_PARAMETERS["k8s_cluster_installation_param"]
    limits = {"x_timeouts": {"drain": 9000, "node_install": 20_000}}
    cluster = read_cluster_parameters({"k8s_cluster_installation_param": {**section, **limits}})
    steps = {step.id: step for step in granted(a_heal(cluster_parameters=cluster)).record.steps}
    assert steps["heal_start"].timeout_s > 9000
    assert steps["heal_end"].timeout_s > 20_000
