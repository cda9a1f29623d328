"""The tables of drivers, phases and tasks, and that a phase continues from the journal of the released version."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import get_args

import pytest
from kubevnfm_cluster.parameters import ClusterParameters
from kubevnfm_cluster.registries import Registry
from kubevnfm_events.mgmt import ManagedNode, Phase
from kubevnfm_kit.ids import derived_id
from kubevnfm_mgmt_executor.domain.driver import phase_work
from kubevnfm_mgmt_executor.domain.drivers import DRIVERS
from kubevnfm_mgmt_executor.domain.errors import DriverUnknown, PhaseUnsupported
from kubevnfm_mgmt_executor.domain.graph import Task, run_graph
from kubevnfm_mgmt_executor.domain.kubernetes.cluster import Cluster
from kubevnfm_mgmt_executor.domain.kubernetes.phases import (
    Plan,
    PlanFunction,
    PlannedTask,
    finish_healing,
    finish_scaling,
    install_cluster,
    take_out_master,
    take_out_workers,
)
from kubevnfm_mgmt_executor.domain.kubernetes.tasks import TASKS
from kubevnfm_store.query import Query, by
from worlds.mgmt_lab import MgmtLab

CLUSTER_DRIVERS = {"kubernetes", "kuryr-kubernetes", "mgmt-drivers-kubernetes"}
RELEASED_TASKS = {"reach", "copy", "prepare", "init", "network", "admin", "join", "label", "verify"}
"""The names that journals of version 0.1.0 hold."""


def a_cluster(*, workers: int, masters: int = 1) -> Cluster:
    roles = [*["master"] * masters, *["worker"] * workers]
    nodes = [
        ManagedNode.model_validate(
            {"vnfc_id": f"v{n}", "role": role, "ssh_address": f"10.0.0.{n}", "nic_address": f"10.0.0.{n}"}
        )
        for n, role in enumerate(roles, 1)
    ]
    login = {"ssh_cp_name": "CP1", "username": "ubuntu", "password": "x"}
    return Cluster(
        vnf_instance_id="i",
        parameters=ClusterParameters.model_validate(
            {"script_path": "x", "master_node": {**login, "cluster_cp_name": "CP1"}, "worker_node": login}
        ),
        reveal=str,
        masters=nodes[:masters],
        workers=nodes[masters:],
        name_by_vnfc={node.vnfc_id: f"{node.role}{node.vnfc_id[1:]}" for node in nodes},
        address="10.0.0.1",
        public_address=None,
        node_mask=24,
    )


@pytest.mark.parametrize("driver", sorted(DRIVERS))
@pytest.mark.parametrize("phase", get_args(Phase))
def test_a_phase_is_supported_or_refused_with_those_that_are(driver: str, phase: Phase) -> None:
    supported = (
        phase in ("instantiate_end", "terminate_end")
        if driver == "mgmt-drivers-cnf-nodeport"
        else driver in CLUSTER_DRIVERS or not phase.startswith(("scale", "read_admin"))
    )
    if supported:
        assert callable(phase_work(DRIVERS, driver, phase))
        return
    with pytest.raises(PhaseUnsupported, match=f"{phase}; it supports .*instantiate_end"):
        phase_work(DRIVERS, driver, phase)


def test_an_unknown_driver_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(
        DriverUnknown, match="'magic' is unknown; known are kubernetes, kuryr-kubernetes, mgmt-drivers-cnf"
    ):
        phase_work(DRIVERS, "magic", "instantiate_end")


def test_no_task_that_journals_hold_was_renamed() -> None:
    assert set(TASKS) >= RELEASED_TASKS


@pytest.mark.parametrize("workers", [0, 1, 5])
async def test_the_plan_of_an_installation_runs_in_its_order(workers: int) -> None:
    plan = install_cluster(a_cluster(workers=workers))
    order: list[tuple[str, str]] = []

    def recording(name: str, node: str) -> Task:
        planned = next(task for task in plan.tasks if (task.name, task.node.vnfc_id) == (name, node))

        async def work() -> None:
            await asyncio.sleep(0)
            order.append((name, node))

        return Task(name, f"{planned.node.role}{node[1:]}", work, planned.after, planned.takes_slot)

    await run_graph([recording(task.name, task.node.vnfc_id) for task in plan.tasks], slots=2)

    place = {one: index for index, one in enumerate(order)}
    assert len(order) == len(plan.tasks) == 8 + 4 * workers
    for number in range(2, workers + 2):
        worker = f"v{number}"
        assert place["prepare", worker] < place["join", worker] < place["label", "v1"]
        assert place["init", "v1"] < place["join", worker]
    assert place["prepare", "v1"] < place["init", "v1"] < place["network", "v1"] < place["verify", "v1"]
    assert place["label", "v1"] < place["verify", "v1"]


async def performed(plan: Plan, cluster: Cluster) -> list[tuple[str, str]]:
    """Run the plan without its work; return task and node in the order in which they ended."""
    order: list[tuple[str, str]] = []

    def recording(task: PlannedTask) -> Task:
        name = cluster.name(task.node)

        async def work() -> None:
            await asyncio.sleep(0)
            order.append((task.name, name))

        return Task(task.name, name, work, task.after, task.takes_slot)

    await run_graph([recording(task) for task in plan.tasks], slots=2)
    return order


def scaled(cluster: Cluster, *targets: str, gone: int = 0) -> Cluster:
    """Return the cluster with these workers as the targets; the last ``gone`` workers no longer exist."""
    workers = [node.model_copy(update={"is_target": node.vnfc_id in targets}) for node in cluster.workers]
    end = len(workers) - gone
    masters = [node.model_copy(update={"is_target": node.vnfc_id in targets}) for node in cluster.masters]
    return replace(cluster, masters=masters, workers=workers[:end], gone=workers[end:])


async def test_a_scale_out_installs_the_new_workers_alone() -> None:
    """SEQ-150, C2."""
    cluster = scaled(a_cluster(workers=4), "v4", "v5")
    order = await performed(finish_scaling(cluster), cluster)
    assert {node for task, node in order if task in ("prepare", "join")} == {"worker4", "worker5"}
    assert {node for task, node in order if task == "hosts"} == {"master1", "worker2", "worker3"}
    for node in ("worker4", "worker5"):
        assert order.index(("facts", "master1")) < order.index(("prepare", node)) < order.index(("join", node))
        assert order.index(("join", node)) < order.index(("label", "master1")) < order.index(("verify", "master1"))


@pytest.mark.parametrize("plan", [install_cluster, finish_scaling, finish_healing])
async def test_every_node_that_joins_is_connected_to_the_registries_first(plan: PlanFunction) -> None:
    """SEQ-124, SEQ-130 to SEQ-133: at instantiate, scale and heal; without registries there is no such task."""
    plain = a_cluster(workers=3)
    cluster = plain if plan is install_cluster else scaled(plain, "v3", "v4")
    assert "registries" not in {task for task, _ in await performed(plan(cluster), cluster)}
    registry = Registry.model_validate({"connection_type": 0, "server": "r:5000"})
    parameters = cluster.parameters.model_copy(update={"private_registry_connection_info": (registry,)})
    order = await performed(plan(replace(cluster, parameters=parameters)), cluster)
    joining = {node: task for task, node in order if task in ("init", "join")}
    assert {node for task, node in order if task == "registries"} == joining.keys()
    for node, task in joining.items():
        assert order.index(("prepare", node)) < order.index(("registries", node)) < order.index((task, node))


@pytest.mark.parametrize("plan", [install_cluster, finish_healing])
async def test_a_machine_that_has_become_a_master_gets_helm_if_it_is_asked_for(plan: PlanFunction) -> None:
    """M17: at instantiate and at heal."""
    plain = a_cluster(masters=3, workers=1)
    if plan is finish_healing:
        plain = scaled(plain, "v2")
    assert "helm" not in {task for task, _ in await performed(plan(plain), plain)}
    parameters = plain.parameters.model_copy(update={"helm_installation_script_path": "Scripts/helm.sh"})
    order = await performed(plan(replace(plain, parameters=parameters)), plain)
    became = {node: order.index((task, node)) for task, node in order if task in ("init", "join_master")}
    helm = {node: order.index((task, node)) for task, node in order if task == "helm"}
    assert helm.keys() == became.keys()
    assert all(helm[node] > became[node] for node in helm)


async def test_a_scale_in_cordons_all_then_drains_all_then_deletes_all() -> None:
    """SEQ-151, C1."""
    cluster = scaled(a_cluster(workers=4), "v4", "v5")
    plan = take_out_workers(cluster)
    order = await performed(plan, cluster)
    cordoned = order.index(("cordon", "master1"))
    drains = [order.index(("drain", node)) for node in ("worker4", "worker5")]
    deletions = [order.index(("delete", node)) for node in ("worker4", "worker5")]
    informed = [order.index(("hosts", node)) for node in ("master1", "worker2", "worker3")]
    assert cordoned < min(drains) <= max(drains) < min(deletions) <= max(deletions) < min(informed)
    assert not [task for task in plan.tasks if task.node in cluster.targets and task.name in ("reach", "copy", "hosts")]
    assert plan.on_failure is not None
    assert plan.on_failure.task.name == "uncordon"


async def test_a_master_that_leaves_is_balanced_away_first_and_loses_its_member_before_its_node() -> None:
    """E2s, M20; no other machine is logged in to."""
    cluster = scaled(a_cluster(masters=3, workers=2), "v1")
    cluster = cluster.through(cluster.masters[1]).without(cluster.masters[0])
    order = await performed(take_out_master(cluster), cluster)
    assert set(order[:2]) == {("balance", "master2"), ("balance", "master3")}
    assert order[2:] == [("stand_down", "master1"), ("remove_member", "master1"), ("delete", "master1")]


async def test_a_new_master_is_connected_then_balanced_then_joins_and_the_others_lead_to_it_again() -> None:
    """SEQ-133, E2e, M14, 5.3: nothing of it is done on a worker but its hosts file."""
    cluster = scaled(a_cluster(masters=3, workers=1), "v1")
    cluster = cluster.through(cluster.masters[1])
    registry = Registry.model_validate({"connection_type": 0, "server": "r:5000"})
    parameters = cluster.parameters.model_copy(update={"private_registry_connection_info": (registry,)})
    order = await performed(finish_healing(replace(cluster, parameters=parameters)), cluster)
    own = [task for task, node in order if node == "master1"]
    assert own == ["reach", "copy", "prepare", "registries", "balance", "join_master", "member"]
    for other in ("master2", "master3"):
        assert order.index(("join_master", "master1")) < order.index(("balance", other))
    assert order.index(("member", "master1")) < order.index(("verify", "master2"))
    assert {task for task, node in order if node == "worker4"} == {"hosts"}


async def test_after_a_scale_in_the_nodes_that_are_gone_are_deleted_if_they_came_back() -> None:
    """C3."""
    cluster = scaled(a_cluster(workers=3), gone=2)
    order = await performed(finish_scaling(cluster), cluster)
    assert [task for task, _ in order] == ["reach", "copy", "delete", "delete"]
    assert {node for task, node in order if task == "delete"} == {"worker3", "worker4"}


async def test_a_healed_worker_is_cleared_for_after_it_is_prepared_and_before_it_joins() -> None:
    """E1e, M13: a Node of the same name that is Ready would refuse the join; the old machines have other VNFC ids."""
    cluster = scaled(a_cluster(workers=3), "v3", "v4")
    order = await performed(finish_healing(cluster), cluster)
    assert {node for task, node in order if task in ("prepare", "clear", "join")} == {"worker3", "worker4"}
    assert {node for task, node in order if task == "hosts"} == {"master1", "worker2"}
    for node in ("worker3", "worker4"):
        assert order.index(("prepare", node)) < order.index(("clear", node)) < order.index(("join", node))
    assert "delete" not in {task for task, _ in order}


async def test_an_installation_that_an_upgrade_interrupted_continues_from_the_released_journal(lab: MgmtLab) -> None:
    nodes = await lab.boot_cluster(workers=1)
    command = lab.command(nodes)
    # Version 0.1.0 sent the parameters without the model, and died while the worker joined.
    older = command.model_copy(update={"cluster": None})
    await lab.run_until(older, "join", "worker20")
    await lab.store.delete_many("tasks", by(vnfInstanceId=lab.instance_id))
    for task, state, node in (("prepare", "done", nodes[1]), ("init", "done", nodes[0]), ("join", "running", nodes[1])):
        document = {
            "vnfInstanceId": lab.instance_id,
            "vnfcId": node.vnfc_id,
            "node": lab.name(node),
            "task": task,
            "attempts": 1,
            "facts": {},
            "state": state,
            "operationId": "op-1",
            "messageId": "m-1",
            "fencing": 1,
            "startedAt": "2026-11-20T12:00:00Z",
        }
        await lab.store.insert("tasks", derived_id("task", lab.instance_id, node.vnfc_id, task), document)
    done = await lab.run(older, fencing=2)
    assert done.cluster is not None
    await lab.assert_ready(done.cluster, ["master10", "worker20"])
    stored = {(one.body["task"], one.body["node"]): one.body for one in await lab.store.find("tasks", Query())}
    for key in (("prepare", "worker20"), ("init", "master10"), ("join", "worker20")):
        assert (stored[key]["state"], stored[key]["attempts"]) == ("done", 2)
    assert stored["verify", "master10"]["attempts"] == 1
    assert lab.calls(nodes[0], "kubeadm init") == 1
