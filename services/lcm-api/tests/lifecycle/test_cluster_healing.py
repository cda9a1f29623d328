"""Heal of a cluster: its steps and their commands."""

from __future__ import annotations

import pytest
from kubevnfm_events.mgmt import RunPhase
from kubevnfm_events.vim import RegisterVim
from kubevnfm_lcm_api.lifecycle.clusters.healing import HealClusterDraft
from kubevnfm_lcm_api.lifecycle.core.dependencies import Provided
from kubevnfm_sol.lcm import OperationState
from worlds.cluster_heals import (
    HA,
    HA_NAMES,
    Machines,
    a_heal,
    a_heal_of_masters,
    a_mixed_heal,
    a_whole_heal,
    replaced,
    with_storage,
)
from worlds.cluster_moves import INSTANCE, phase_of, run, shown_names, with_limits
from worlds.lcm_builders import ACCESS, RESOURCES, later
from worlds.lcm_moves import SAGA, granted, reread


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
    shown = shown_names(HealClusterDraft.from_document(move.record.draft))
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


def test_masters_are_replaced_one_after_another_in_the_order_of_the_driver_and_before_workers() -> None:
    """SEQ-154, 5.2, 5.3, E2: each phase names the masters that are left, or the new one alone; names are kept."""
    machines = Machines()
    move, sent = run(granted(a_heal_of_masters("server-m1", "server-w1", "server-m3")), machines)
    turns = [f"{step}/{turn}" for turn in (1, 2) for step in ("heal_start", "heal_resources", "heal_end")]
    assert [command.stepid for command in sent] == [*turns, "heal_start", "heal_resources", "heal_end"]
    assert machines.asked == [("server-m3",), ("server-m1",), ("server-w1",)]
    targets = [
        [(node.name, node.vnfc_id) for node in phase_of(command).nodes if node.is_target]
        for command in sent
        if isinstance(command.data, RunPhase)
    ]
    assert targets == [
        [("master4", "vnfc-m1"), ("master9", "vnfc-m3")],
        [("master9", "vnfc-m3b")],
        [("master4", "vnfc-m1")],
        [("master4", "vnfc-m1b")],
        [("worker5", "vnfc-w1")],
        [("worker5", "vnfc-w1b")],
    ]
    assert move.record.occ.operation_state is OperationState.COMPLETED
    shown = shown_names(HealClusterDraft.from_document(move.record.draft))
    old_names = {**HA_NAMES, "vnfc-m1b": "master4", "vnfc-m3b": "master9", "vnfc-w1b": "worker5"}
    assert shown == {name: old_names[name] for name in shown}
    assert len(shown) == 5


@pytest.mark.parametrize("fails", ["heal_start/2", "heal_resources/2", "heal_end/2"])
def test_a_heal_of_masters_continues_where_it_has_stopped(fails: str) -> None:
    machines = Machines()
    move, before = run(granted(a_heal_of_masters("server-m1", "server-m3")), machines, fails=fails)
    assert move.record.occ.operation_state is OperationState.FAILED_TEMP
    assert not move.record.is_reversible, "a machine that is replaced cannot be restored"
    move, after = run(SAGA.retry(reread(move.record), later(5)), machines)
    assert after[0].stepid == before[-1].stepid
    assert move.record.occ.operation_state is OperationState.COMPLETED
    assert machines.asked == [("server-m3",), ("server-m1",)]


@pytest.mark.parametrize("workers", [(), ("server-w1",)])
def test_a_mix_gives_up_the_volumes_first_and_gets_them_back_last(workers: tuple[str, ...]) -> None:
    """5.2: storage, masters, workers leave in this order; masters, workers, storage come back in this one."""
    machines = Machines(with_storage(HA))
    move, sent = run(granted(a_mixed_heal("server-m1", "server-s1", *workers, "server-m3")), machines)
    turns = [f"{step}/{turn}" for turn in (1, 2) for step in ("heal_start", "heal_resources", "heal_end")]
    together = ["heal_start"] * len(workers)
    assert [command.stepid for command in sent] == [
        "heal_start/storage", *turns, *together, "heal_resources", "heal_end"
    ]  # fmt: skip
    assert machines.asked == [("server-m3",), ("server-m1",), ("server-s1", *workers)]
    assert machines.new_volumes == [(), (), ("volume-1",)]
    targets = {
        command.stepid: [node.vnfc_id for node in phase_of(command).nodes if node.is_target]
        for command in sent
        if isinstance(command.data, RunPhase)
    }
    # The driver checks the rule of quorum for all masters before it deletes a volume.
    assert targets["heal_start/storage"] == ["vnfc-m1", "vnfc-m3", "vnfc-s1"]
    assert targets["heal_start/1"] == ["vnfc-m1", "vnfc-m3"]
    assert targets["heal_end/1"] == ["vnfc-m3b"]
    assert targets.get("heal_start", []) == ["vnfc-w1"][: len(workers)]
    assert targets["heal_end"] == [*["vnfc-w1b"][: len(workers)], "vnfc-s1b"]
    assert move.record.occ.operation_state is OperationState.COMPLETED


@pytest.mark.parametrize("fails", ["heal_start/storage", "heal_start/2", "heal_end"])
def test_a_heal_of_a_mix_continues_where_it_has_stopped(fails: str) -> None:
    machines = Machines(with_storage(HA))
    move, before = run(granted(a_mixed_heal("server-m1", "server-s1", "server-m3")), machines, fails=fails)
    assert move.record.occ.operation_state is OperationState.FAILED_TEMP
    move, after = run(SAGA.retry(reread(move.record), later(5)), machines)
    assert after[0].stepid == before[-1].stepid == fails
    assert move.record.occ.operation_state is OperationState.COMPLETED
    assert machines.asked == [("server-m3",), ("server-m1",), ("server-s1",)]


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
    done = HealClusterDraft.from_document(move.record.draft).completed(INSTANCE)
    entry = done.vnf.vim_connection_info["cluster-1"]
    assert (entry.vim_id, entry.interface_info["endpoint"]) == ("vim-2", ACCESS.server)
    assert done.internals.cluster_vim_id == "vim-2"
    assert set(shown_names(HealClusterDraft.from_document(move.record.draft)).values()) == {
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
    withdrawn = a_whole_heal().withdrawn
    assert withdrawn is not None
    assert (withdrawn.provided, withdrawn.is_forced) == (Provided("cluster", ("vim-2",)), False)
    assert "FORCEFUL" not in withdrawn.advice, "a heal has no such form"
    assert a_heal().withdrawn is None


def test_the_time_for_the_phases_covers_the_limits_of_the_request() -> None:
    steps = {step.id: step for step in granted(with_limits(a_heal())).record.steps}
    assert steps["heal_start"].timeout_s > 9000
    assert steps["heal_end"].timeout_s > 20_000
