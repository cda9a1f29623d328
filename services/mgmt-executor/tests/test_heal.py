"""Nodes whose machines are replaced, on the lab's machines: workers, live and dead."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from clusters.running_clusters import (
    a_named_cluster,
    bare,
    budget,
    hosts_of,
    node_of,
    of_phase,
    ready,
    replaced,
    running_pod,
    send,
    web,
)
from kubevnfm_events.mgmt import ManagedNode, RunPhase
from kubevnfm_mgmt_executor.domain.errors import CommandUnsuccessful, NodeNotDrained
from kubevnfm_store.query import Query
from worlds.mgmt_lab import MgmtLab

START = (("cordon", "master10"), ("drain", "worker21"), ("delete", "worker21"))
END = (
    ("prepare", "worker21"),
    ("clear", "worker21"),
    ("join", "worker21"),
    ("label", "master10"),
    ("verify", "master10"),
)
DEAD = {"ssh_ready": 20, "node_install": 60, "command": 20, "node_ready": 20, "node_dead": 1}


async def heal(lab: MgmtLab, nodes: Sequence[ManagedNode], targets: Sequence[ManagedNode]) -> list[ManagedNode]:
    """Run both phases, with the machines replaced between them; return the nodes afterwards."""
    await lab.run(of_phase(lab, "heal_start", nodes, targets), message="m-1")
    new = {node.vnfc_id: await replaced(lab, node) for node in targets}
    now = [new.get(node.vnfc_id, node) for node in nodes]
    await lab.run(of_phase(lab, "heal_end", now, list(new.values()), gone=targets), message="m-2")
    return now


async def test_live_workers_are_drained_and_their_successors_join_under_their_names(lab: MgmtLab) -> None:
    """SEQ-041, 133, 155, 161, 182, W-11: other nodes are not installed again, the old machines' records are gone."""
    nodes, access = await a_named_cluster(lab, workers=3)
    await web(lab, access, "worker21")
    before = {lab.name(node): dict(lab.machine(node).calls) for node in nodes[:2]}
    uids = {node.name: (await node_of(lab, access, str(node.name)))["metadata"]["uid"] for node in nodes[2:]}
    now = await heal(lab, nodes, nodes[2:])
    await lab.assert_ready(access, ["master10", "worker20", "worker21", "worker22"])
    assert await running_pod(lab, access, "worker20"), "the pod has moved"
    for name, uid in uids.items():
        found = await node_of(lab, access, str(name))
        assert found["metadata"]["uid"] != uid
        assert found["metadata"]["labels"]["CIS-node"] == "compute-9"
        assert not found["spec"].get("unschedulable")
        assert not found["spec"].get("taints"), "a live node is not out of service"
    for node in nodes[:2]:
        assert hosts_of(lab, node) == ["master10", "worker20", "worker21", "worker22"]
        for program in ("apt-get install", "kubeadm join", "kubeadm init"):
            assert lab.calls(node, program) == before[lab.name(node)].get(program, 0), program
    order = [(news.task, news.node) for news in lab.news if news.state in ("finished", "skipped")]
    drains = [order.index(("drain", name)) for name in ("worker21", "worker22")]
    assert order.index(("cordon", "master10")) < min(drains)
    assert max(drains) < min(order.index(("delete", name)) for name in ("worker21", "worker22"))
    known = {str(one.body["vnfcId"]) for one in await lab.store.find("host_keys", Query())}
    assert known == {node.vnfc_id for node in now}
    assert {str(one.body["vnfcId"]) for one in await lab.store.find("tasks", Query())} == known


async def test_a_dead_worker_is_healed_without_a_word_from_it(lab: MgmtLab) -> None:
    """SEQ-155, 5.4: unreachable over SSH, NotReady, with a pod that a drain would refuse to evict."""
    nodes, access = await a_named_cluster(lab, workers=2)
    await bare(lab, access, "worker21")
    await lab.machines.stop(nodes[2].server_id)
    (dead,) = nodes[2:]
    await lab.run(of_phase(lab, "heal_start", nodes, [dead], x_timeouts=DEAD))
    assert await node_of(lab, access, "worker21") is None
    assert (await lab.ask_api(access, "/api/v1/namespaces/default/pods"))["items"] == []
    (drained,) = [n for n in lab.news if (n.task, n.node, n.state) == ("drain", "worker21", "finished")]
    assert drained.message == "not Ready for 1 s: its pods are given up: default/bare (not evicted yet)"
    shown = await lab.log(node="worker21")
    assert "node/worker21 tainted" in shown
    assert 'pod "bare" deleted' in shown
    assert lab.calls(dead, "ssh connect") == 1, "at instantiate only"
    new = await replaced(lab, dead)
    await lab.run(of_phase(lab, "heal_end", [*nodes[:2], new], [new], gone=[dead]), message="m-2")
    await lab.assert_ready(access, ["master10", "worker20", "worker21"])


async def test_a_node_that_registered_again_does_not_keep_its_successor_out(lab: MgmtLab) -> None:
    """M13: a Ready Node of the same name refuses the join; after the join, a repeat leaves the Node alone."""
    nodes, access = await a_named_cluster(lab, workers=1)
    await lab.run(of_phase(lab, "heal_start", nodes, nodes[1:]))
    new = await replaced(lab, nodes[1])
    # The lab's Nodes are Ready a moment after they were made.
    await send(lab, access, "/api/v1/nodes", {"metadata": {"name": "worker20"}})
    await ready(lab, access, "worker20")
    command = of_phase(lab, "heal_end", [nodes[0], new], [new], gone=nodes[1:])
    await lab.run(command, message="m-2")
    uid = (await node_of(lab, access, "worker20"))["metadata"]["uid"]
    await lab.run(command, message="m-2", fencing=2)
    assert (await node_of(lab, access, "worker20"))["metadata"]["uid"] == uid


async def test_a_worker_that_gets_another_address_leaves_no_node_of_its_old_name(lab: MgmtLab) -> None:
    """3.3: names follow addresses."""
    nodes, access = await a_named_cluster(lab, workers=2)
    await lab.run(of_phase(lab, "heal_start", nodes, nodes[2:]))
    await send(lab, access, "/api/v1/nodes", {"metadata": {"name": "worker21"}})
    new = await lab.boot("worker", 31)
    done = await lab.run(of_phase(lab, "heal_end", [*nodes[:2], new], [new], gone=nodes[2:]), message="m-2")
    assert list(done.node_names.values()) == ["master10", "worker20", "worker31"]
    await lab.assert_ready(access, ["master10", "worker20", "worker31"])
    assert hosts_of(lab, nodes[1]) == ["master10", "worker20", "worker31"]


async def test_a_cluster_whose_machines_are_all_new_is_built_again(lab: MgmtLab) -> None:
    """SEQ-156, E4: killed once on the way; nothing of the old cluster is needed, and nothing is left of it."""
    nodes, old = await a_named_cluster(lab, workers=1)
    new = [(await replaced(lab, node)).model_copy(update={"name": None}) for node in nodes]
    command = of_phase(lab, "heal_end", new, new, gone=nodes)
    await lab.run_until(command, "join", "worker20", message="m-2")
    done = await lab.run(command, message="m-2", fencing=2)
    assert done.cluster is not None
    assert done.cluster.ssl_ca_cert != old.ssl_ca_cert
    assert list(done.node_names.values()) == ["master10", "worker20"]
    await lab.assert_ready(done.cluster, ["master10", "worker20"])
    assert lab.calls(new[0], "kubeadm init") == 1
    known = {str(one.body["vnfcId"]) for one in await lab.store.find("host_keys", Query())}
    assert known == {node.vnfc_id for node in new}


async def test_a_budget_holds_the_heal_up_before_any_machine_is_replaced(lab: MgmtLab) -> None:
    """SEQ-155, W-09; then a join that fails names the node, and a retry joins it."""
    nodes, access = await a_named_cluster(lab, workers=2)
    name = await web(lab, access, "worker21")
    await budget(lab, access)
    with pytest.raises(NodeNotDrained, match=f"node worker21: not drained within 1 s; it waits for default/{name}"):
        await lab.run(of_phase(lab, "heal_start", nodes, nodes[2:], x_timeouts={**DEAD, "drain": 1}))
    assert not (await node_of(lab, access, "worker21"))["spec"].get("unschedulable")
    await lab.ask_api(access, "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web", method="DELETE")
    await lab.ask_api(access, "/apis/apps/v1/namespaces/default/replicasets/web", method="DELETE")

    await lab.run(of_phase(lab, "heal_start", nodes, nodes[1:]), operation="op-2", message="m-1")
    new = [await replaced(lab, node) for node in nodes[1:]]
    lab.faults.add(part="program", verb="kubeadm join", node=lab.machine(new[1]).name, status=1, message="no", times=1)
    command = of_phase(lab, "heal_end", [nodes[0], *new], new, gone=nodes[1:])
    with pytest.raises(CommandUnsuccessful, match="node worker21: task join"):
        await lab.run(command, operation="op-2", message="m-2")
    await lab.run(command, operation="op-2", message="m-3")
    await lab.assert_ready(access, ["master10", "worker20", "worker21"])
    assert lab.calls(new[0], "kubeadm join") == 1


async def killed_at_each(
    lab: MgmtLab, command: RunPhase, points: Sequence[tuple[str, str]], *, message: str
) -> set[tuple[str, str]]:
    """Start the phase and kill it at each point in turn, then let it end; return the tasks that a killed try had finished."""
    finished: set[tuple[str, str]] = set()
    for number, (task, node) in enumerate(points, 1):
        lab.news.clear()
        await lab.run_until(command, task, node, message=message, fencing=number)
        finished |= lab.finished()
    await lab.run(command, message=message, fencing=len(points) + 1)
    return finished


@pytest.mark.deep
async def test_a_heal_that_is_killed_again_and_again_does_nothing_twice(lab: MgmtLab) -> None:
    """SEQ-180: before and after the machine is replaced."""
    nodes, access = await a_named_cluster(lab, workers=2)
    await web(lab, access, "worker21")
    start = of_phase(lab, "heal_start", nodes, nodes[2:])
    await killed_at_each(lab, start, START, message="m-1")
    await lab.assert_ready(access, ["master10", "worker20"])
    lab.news.clear()
    await lab.run(start, message="m-1", fencing=9)
    assert {news.task for news in lab.news if news.state == "finished"} <= {"reach", "copy"}

    new = [await replaced(lab, nodes[2])]
    end = of_phase(lab, "heal_end", [*nodes[:2], *new], new, gone=nodes[2:])
    finished = await killed_at_each(lab, end, END, message="m-2")
    assert {("prepare", "worker21"), ("join", "worker21")} <= finished
    await lab.run(end, message="m-2", fencing=9)
    await lab.assert_ready(access, ["master10", "worker20", "worker21"])
    lab.assert_done_once(new, finished)
