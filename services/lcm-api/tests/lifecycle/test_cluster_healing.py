"""Heal of a cluster: its steps and their commands."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_cluster import read_cluster_parameters
from kubevnfm_events import CommandFailed, Envelope, Message
from kubevnfm_events.infra import ResourcesChanged, ResourcesCreated
from kubevnfm_events.mgmt import PhaseDone, RunPhase
from kubevnfm_events.vim import RegisterVim
from kubevnfm_lcm_api.lifecycle.domain.dependencies import Provided, Withdrawn
from kubevnfm_lcm_api.lifecycle.domain.heal_draft import HealVmDraft
from kubevnfm_lcm_api.lifecycle.domain.saga import Move
from kubevnfm_secrets import hide
from kubevnfm_sol.lcm import OperationState
from lcm_builders import (
    ACCESS,
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
            is_end, is_whole = command.data.phase == "heal_end", all(node.is_target for node in command.data.nodes)
            names = {node.vnfc_id: node.name or f"new-{node.vnfc_id}" for node in command.data.nodes}
            event = PhaseDone(
                driver="d",
                phase=command.data.phase,
                node_names=names if is_end else {},
                cluster=ACCESS if is_whole else None,
            )
        elif isinstance(event, ResourcesChanged | ResourcesCreated):
            event = type(event)(resources=stack)
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


def a_whole_heal(**known: Any) -> HealVmDraft:
    facts: dict[str, Any] = {
        "is_whole": True,
        "cluster_vim_id": "vim-2",
        "cluster_vim_name": "cluster-1",
        "max_nodes": 7,
        "servers": tuple(server.server_id for server in RESOURCES.servers),
    }
    return a_heal(**{**facts, **known})


@pytest.mark.parametrize("is_recreated", [False, True])
def test_a_whole_cluster_is_built_again_and_its_vim_gets_the_new_access(is_recreated: bool) -> None:
    """SEQ-077, SEQ-156, 5.6: by new machines at the old ports, or by a new stack."""
    all_new = replaced("vnfc-m1", "vnfc-w1", "vnfc-w2")
    move, sent = run(granted(a_whole_heal(is_recreated=is_recreated)), all_new)
    stack = ["delete_resources", "recreate_resources", "restore_scale"] if is_recreated else ["heal_resources"]
    assert [command.stepid for command in sent] == [*stack, "heal_end", "register_vim"]
    end = phase_of(sent[-2])
    assert all(node.is_target for node in end.nodes)
    assert {node.vnfc_id for node in end.gone} == {"vnfc-m1", "vnfc-w1", "vnfc-w2"}
    assert end.max_nodes == 7, "sizes the pod network as at the instantiation"
    registered = sent[-1].data
    assert isinstance(registered, RegisterVim)
    assert (registered.name, registered.vnf_instance_id) == ("cluster-1", "inst-1")
    done = HealVmDraft.from_document(move.record.draft).completed(INSTANCE)
    entry = done.vnf.vim_connection_info["cluster-1"]
    assert (entry.vim_id, entry.interface_info["endpoint"]) == ("vim-2", ACCESS.server)
    assert done.internals.cluster_vim_id == "vim-2"
    info = done.vnf.instantiated_vnf_info
    assert info is not None
    assert {(one.metadata or {})["node_name"] for one in info.vnfc_resource_info} == {
        "new-vnfc-m1b",
        "new-vnfc-w1b",
        "new-vnfc-w2b",
    }


def test_a_whole_heal_after_one_that_left_no_machines_builds_the_cluster() -> None:
    nothing = RESOURCES.model_copy(update={"servers": ()})
    move, sent = run(granted(a_whole_heal(is_recreated=True, before=nothing, servers=())), RESOURCES)
    assert move.record.occ.operation_state is OperationState.COMPLETED
    assert len(phase_of(sent[-2]).nodes) == 3


def test_a_whole_heal_takes_the_cluster_from_the_cnfs_on_it_and_a_heal_of_workers_does_not() -> None:
    """SEQ-041, D0."""
    assert a_whole_heal().withdrawn == Withdrawn(Provided("cluster", ("vim-2",)), is_forced=False)
    assert a_heal().withdrawn is None


def test_the_time_for_the_phases_covers_the_limits_of_the_request() -> None:
    section = CLUSTER_PARAMETERS["k8s_cluster_installation_param"]
    limits = {"x_timeouts": {"drain": 9000, "node_install": 20_000}}
    cluster = read_cluster_parameters({"k8s_cluster_installation_param": {**section, **limits}})
    steps = {step.id: step for step in granted(a_heal(cluster_parameters=cluster)).record.steps}
    assert steps["heal_start"].timeout_s > 9000
    assert steps["heal_end"].timeout_s > 20_000
