"""Scale of a cluster: its steps, their commands, and the rollback of a scale out."""

from __future__ import annotations

from typing import Any

from kubevnfm_lcm_api.lifecycle.clusters.scaling import ScaleClusterDraft
from kubevnfm_lcm_api.lifecycle.machines.scaling import ScaleVmDraft
from kubevnfm_sol.lcm import OperationState
from worlds.cluster_moves import GROWN, a_scaling, answer, phase_of, run, shown_names, with_limits
from worlds.lcm_builders import RESOURCES, a_change_draft, later
from worlds.lcm_moves import SAGA, answered, commands_of, granted, reread

SHRUNK = RESOURCES.model_copy(update={"servers": RESOURCES.servers[:-1]})


def scale_in(**known: Any) -> ScaleClusterDraft:
    return a_scaling(counts={"masterNode": 1, "workerNode": 1}, leaving=("server-w2",), **known)


def test_new_workers_join_after_the_stack_has_grown() -> None:
    """SEQ-150, 3.3: the targets are the machines that were not there before; all others keep their names."""
    move, sent = run(granted(a_scaling()), GROWN)
    assert [command.stepid for command in sent] == ["scale_resources", "scale_end"]
    command = phase_of(sent[1])
    assert [(node.name, node.is_target) for node in command.nodes] == [
        ("master4", False),
        ("worker5", False),
        ("worker6-1f", False),
        (None, True),
    ]
    assert command.cluster_address == "10.10.0.4"
    assert move.record.occ.operation_state is OperationState.COMPLETED
    names = shown_names(ScaleClusterDraft.from_document(move.record.draft))
    assert list(names.values()) == ["master4", "worker5", "worker6-1f", "new-vnfc-w3"]


def test_workers_leave_before_the_stack_shrinks_and_are_forgotten_after_it() -> None:
    """SEQ-151, C1, C3."""
    move, sent = run(granted(scale_in()), SHRUNK)
    assert [command.stepid for command in sent] == ["scale_start", "scale_resources", "scale_end"]
    start, end = phase_of(sent[0]), phase_of(sent[2])
    assert [node.name for node in start.nodes if node.is_target] == ["worker6-1f"]
    assert [node.name for node in end.nodes] == ["master4", "worker5"]
    assert not any(node.is_target for node in end.nodes)
    assert [(node.name, node.vnfc_id) for node in end.gone] == [("worker6-1f", "vnfc-w2")]
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
    bare = GROWN.servers[-1].model_copy(update={"ports": ()})
    move = granted(a_scaling())
    (command,) = commands_of(move)
    stack = RESOURCES.model_copy(update={"servers": (*RESOURCES.servers, bare)})
    move = answered(move, answer(command, stack))
    assert move.record.occ.operation_state is OperationState.FAILED_TEMP, "no such connection point"
    move, sent = run(SAGA.rollback(reread(move.record), later(5)), RESOURCES)
    assert [command.stepid for command in sent] == ["scale_resources"]
    assert move.record.occ.operation_state is OperationState.ROLLED_BACK


def test_the_time_for_the_phases_covers_the_limits_of_the_request() -> None:
    steps = {step.id: step for step in granted(with_limits(scale_in())).record.steps}
    assert steps["scale_start"].timeout_s > 9000
    assert steps["scale_end"].timeout_s > 20_000


def test_a_vnf_of_plain_machines_is_scaled_as_before() -> None:
    _, sent = run(granted(a_change_draft(ScaleVmDraft)), RESOURCES)
    assert [command.stepid for command in sent] == ["scale_resources"]
