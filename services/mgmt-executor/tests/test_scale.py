"""Workers that join a cluster and leave it, on the lab's machines."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest
from clusters.running_clusters import (
    a_named_cluster,
    bare,
    budget,
    cordon,
    hosts_of,
    move_dns,
    node_of,
    of_phase,
    send,
    until_dns,
    web,
)
from kubevnfm_events.common import ClusterAccess
from kubevnfm_events.mgmt import ManagedNode
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_mgmt_executor.domain.errors import CommandUnsuccessful, LoginRefused, NodeFailure, NodeNotDrained
from kubevnfm_store.query import Query
from worlds.kill_steps import killed_at
from worlds.mgmt_lab import MgmtLab

OUT = (
    ("facts", "master10"),
    ("copy", "worker21"),
    ("prepare", "worker21"),
    ("hosts", "worker20"),
    ("token", "master10"),
    ("join", "worker22"),
    ("label", "master10"),
    ("verify", "master10"),
    ("revoke", "master10"),
)
IN = (
    ("facts", "master10"),
    ("cordon", "master10"),
    ("drain", "worker21"),
    ("delete", "worker22"),
    ("hosts", "worker20"),
)


async def two_more(lab: MgmtLab) -> list[ManagedNode]:
    """Start the machines of two new workers."""
    return [await lab.boot("worker", 21, host="compute-1"), await lab.boot("worker", 22, host="compute-2")]


async def test_only_new_workers_are_installed_and_join(lab: MgmtLab) -> None:
    """SEQ-150, SEQ-161, SEQ-182, SEQ-192, W-20: out; old nodes get the new names and nothing else."""
    nodes, access = await a_named_cluster(lab, workers=1)
    before = {lab.name(node): dict(lab.machine(node).calls) for node in nodes}
    new = await two_more(lab)
    done = await lab.run(of_phase(lab, "scale_end", [*nodes, *new], new))
    assert done.cluster is None
    assert list(done.node_names.values()) == ["master10", "worker20", "worker21", "worker22"]
    await lab.assert_ready(access, ["master10", "worker20", "worker21", "worker22"])
    found = await node_of(lab, access, "worker22")
    assert found["metadata"]["labels"]["CIS-node"] == "compute-2"
    for node in nodes:
        assert hosts_of(lab, node) == ["master10", "worker20", "worker21", "worker22"]
        for program in ("apt-get install", "kubeadm join", "kubeadm init", "hostnamectl set-hostname"):
            assert lab.calls(node, program) == before[lab.name(node)].get(program, 0), program
    assert lab.calls(nodes[0], "kubeadm token") == 4, "one made and revoked for both, as at instantiate"
    tasks = {(news.task, news.node) for news in lab.news if news.state in ("finished", "skipped")}
    assert {("join", "worker21"), ("join", "worker22"), ("hosts", "worker20"), ("verify", "master10")} <= tasks

    # A name is unique, also if two subnets have the same last octet.
    present = [node.model_copy(update={"name": done.node_names[node.vnfc_id]}) for node in [*nodes, *new]]
    lab.subnet += 1
    twin = [await lab.boot("worker", 20)]
    done = await lab.run(of_phase(lab, "scale_end", [*present, *twin], twin), message="m-2")
    names = list(done.node_names.values())
    assert names[:4] == ["master10", "worker20", "worker21", "worker22"]
    assert names[4].startswith("worker20-")
    await lab.assert_ready(access, names)


async def test_new_workers_get_version_and_endpoint_of_the_cluster_not_of_the_request(lab: MgmtLab) -> None:
    """Also if the package has a script of the first interface, which cannot scale."""
    nodes, access = await a_named_cluster(lab, workers=0)
    script = lab.packages.root / "Scripts/install_k8s_cluster.sh"
    script.write_text(script.read_text().replace("kubevnfm-install-script: 5", "kubevnfm-install-script: 1", 1))
    new = await two_more(lab)
    command = of_phase(lab, "scale_end", [*nodes, *new], new, x_kubernetes_version="1.30.8")
    other = await lab.boot("worker", 99)
    await lab.run(command.model_copy(update={"cluster_address": other.nic_address}))
    found = await node_of(lab, access, "worker21")
    assert found["status"]["nodeInfo"]["kubeletVersion"] == "v1.31.4"
    assert lab.machine(new[0]).packages.installed["kubeadm"].version.startswith("1.31.4-")
    await lab.assert_ready(access, ["master10", "worker21", "worker22"])
    (remark,) = [news for news in lab.news if news.task == "files"]
    assert "has another interface and is not run: the driver's own script works on the nodes" in remark.message


async def test_a_pod_network_without_room_is_named_before_a_machine_is_touched(lab: MgmtLab) -> None:
    nodes = await lab.boot_cluster(workers=1)
    narrow = {"master_node": {"pod_cidr": "192.168.0.0/24"}}
    await lab.run(lab.command(nodes, changes=narrow), operation="op-0", message="m-0")
    new = await two_more(lab)
    with pytest.raises(NodeFailure, match="master10: the pod network has room for 2 nodes, and there would be 4"):
        await lab.run(of_phase(lab, "scale_end", [*nodes, *new], new, **narrow))
    assert lab.calls(new[0], "apt-get install") == 0


@pytest.mark.slow
async def test_a_dead_old_worker_does_not_hold_up_a_scale_out(lab: MgmtLab) -> None:
    """Also if all of the cluster's DNS ran on it: Kubernetes starts that elsewhere minutes later."""
    nodes, access = await a_named_cluster(lab, workers=2)
    await move_dns(lab, access, "worker21")
    await lab.machines.stop(nodes[2].server_id)
    await until_dns(lab, access, "worker21", is_ready=False)
    new = [await lab.boot("worker", 22)]
    await lab.run(of_phase(lab, "scale_end", [*nodes, *new], new))
    await lab.assert_ready(access, ["master10", "worker20", "worker22"])
    (reported,) = [news for news in lab.news if (news.task, news.node, news.state) == ("hosts", "worker21", "skipped")]
    assert reported.message == "its hosts file stays as it is: its Node is not Ready"
    shown = await lab.log(node="master10")
    for what in ("deployment/coredns", "daemonset/kube-proxy"):
        assert f"{what}: runs, but not on nodes that are out of order" in shown


@pytest.mark.parametrize(("task", "node"), killed_at(OUT, in_every_run={"join"}))
async def test_a_scale_out_that_is_killed_continues_and_does_nothing_twice(lab: MgmtLab, task: str, node: str) -> None:
    """SEQ-180."""
    nodes, access = await a_named_cluster(lab, workers=1)
    new = await two_more(lab)
    command = of_phase(lab, "scale_end", [*nodes, *new], new)
    await lab.run_until(command, task, node)
    finished = lab.finished()
    await lab.run(command, fencing=2)
    await lab.run(command, fencing=3)
    await lab.assert_ready(access, ["master10", "worker20", "worker21", "worker22"])
    lab.assert_done_once(new, finished | {("prepare", "worker21"), ("join", "worker21")} & finished)


async def test_a_new_machine_that_refuses_the_login_or_fails_to_join_is_named_and_a_retry_joins_it(
    lab: MgmtLab,
) -> None:
    nodes, access = await a_named_cluster(lab, workers=1)
    closed = [await lab.boot("worker", 23, public_key="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Z6Zk1 x")]
    with pytest.raises(LoginRefused, match="node worker23"):
        await lab.run(of_phase(lab, "scale_end", [*nodes, *closed], closed), message="m-0")
    new = await two_more(lab)
    lab.faults.add(part="program", verb="kubeadm join", node=lab.machine(new[1]).name, status=1, message="no", times=1)
    command = of_phase(lab, "scale_end", [*nodes, *new], new)
    with pytest.raises(CommandUnsuccessful, match="node worker22: task join") as caught:
        await lab.run(command)
    assert caught.value.node == "worker22"
    await lab.run(command, message="m-2")
    await lab.assert_ready(access, ["master10", "worker20", "worker21", "worker22"])
    assert lab.calls(new[0], "kubeadm join") == 1


async def test_workers_leave_drained_and_their_nodes_are_deleted(lab: MgmtLab) -> None:
    """SEQ-151, W-11: in; pods of every namespace move, the hosts files lose the names.

    More leave than one session takes channels for. A Node that its kubelet registers again is gone after its machine.
    """
    nodes, access = await a_named_cluster(lab, workers=8)
    await web(lab, access, "worker21")
    await lab.run(of_phase(lab, "scale_start", nodes, nodes[2:]))
    await lab.assert_ready(access, ["master10", "worker20"])
    listed = await lab.ask_api(access, "/api/v1/pods")
    assert {one["spec"].get("nodeName") for one in listed["items"]} <= {"master10", "worker20"}
    for node in nodes[:2]:
        assert hosts_of(lab, node) == ["master10", "worker20"]
    order = [(news.task, news.node) for news in lab.news if news.state in ("finished", "skipped")]
    drains = [order.index(("drain", f"worker{number}")) for number in range(21, 28)]
    deletions = [order.index(("delete", f"worker{number}")) for number in range(21, 28)]
    assert order.index(("cordon", "master10")) < min(drains)
    assert max(drains) < min(deletions)

    await send(lab, access, "/api/v1/nodes", {"metadata": {"name": "worker21"}})
    await lab.run(of_phase(lab, "scale_end", nodes[:2], (), gone=nodes[2:]), message="m-2")
    assert await node_of(lab, access, "worker21") is None
    left = {str(one.body["vnfcId"]) for one in await lab.store.find("host_keys", Query())}
    assert left == {node.vnfc_id for node in nodes[:2]}
    assert {str(one.body["vnfcId"]) for one in await lab.store.find("tasks", Query())} == left


@pytest.mark.slow
async def test_workers_leave_once_nothing_holds_their_pods(lab: MgmtLab) -> None:
    """SEQ-151, SEQ-188, W-09: of one cluster, worker by worker; each drain that fails leaves the cluster as it was. C1: some are dead."""
    nodes, access = await a_named_cluster(lab, workers=6)
    await a_dead_worker_leaves_as_a_live_one_does(lab, access, nodes, nodes[5:])
    await lab.ask_api(access, "/apis/apps/v1/namespaces/default/replicasets/web", method="DELETE")
    nodes = nodes[:5]
    await a_kubectl_that_hangs_is_ended_and_the_node_named(lab, nodes, nodes[4:])
    await a_pod_without_controller_fails_the_drain_at_once_unless_forced(lab, access, nodes, nodes[4:])
    await a_pod_may_take_longer_to_end_than_one_call_of_kubectl(lab, access, nodes[:4], nodes[3:4])
    await lab.ask_api(access, "/apis/apps/v1/namespaces/default/replicasets/web", method="DELETE")
    await a_budget_holds_the_drain_up_and_the_pods_are_named(lab, access, nodes[:3], nodes[2:3])
    await lab.ask_api(access, "/apis/apps/v1/namespaces/default/replicasets/web", method="DELETE")
    await a_request_may_let_the_scaling_go_on_after_the_time_for_the_drain(lab, access, nodes[:2], nodes[1:2])


Nodes = Sequence[ManagedNode]


async def a_dead_worker_leaves_as_a_live_one_does(
    lab: MgmtLab, access: ClusterAccess, nodes: Nodes, leaving: Nodes
) -> None:
    """C1: unreachable over SSH, its Node NotReady; its pods end with its Node."""
    name = await web(lab, access, "worker25")
    await lab.machines.stop(leaving[1].server_id)
    limits = {"ssh_ready": 20, "node_install": 60, "command": 20, "node_ready": 20, "node_dead": 1}
    await lab.run(of_phase(lab, "scale_start", nodes, leaving, x_timeouts=limits), message="dead")
    await lab.assert_ready(access, ["master10", *(f"worker2{number}" for number in range(4))])
    given_up = next(
        news for news in lab.news if (news.task, news.node, news.state) == ("drain", "worker25", "finished")
    )
    assert given_up.message.startswith("not Ready for 1 s: its pods are given up: ")
    assert f"default/{name} (terminating)" in given_up.message
    assert lab.calls(leaving[1], "ssh connect") == 1, "at instantiate only"


async def a_kubectl_that_hangs_is_ended_and_the_node_named(lab: MgmtLab, nodes: Nodes, leaving: Nodes) -> None:
    hangs = lab.faults.add(part="program", verb="kubectl drain", effect="hang")
    limits = {"ssh_ready": 20, "node_install": 60, "command": 2, "node_ready": 20}
    with pytest.raises(NodeFailure, match="node worker23: task drain: not done after 4 s, and killed"):
        await lab.run(of_phase(lab, "scale_start", nodes, leaving, x_timeouts=limits), message="hangs")
    lab.faults.remove(hangs.fault_id)


async def a_pod_without_controller_fails_the_drain_at_once_unless_forced(
    lab: MgmtLab, access: ClusterAccess, nodes: Nodes, leaving: Nodes
) -> None:
    await bare(lab, access, "worker23")
    began = time.monotonic()
    with pytest.raises(
        CommandUnsuccessful, match=r"(?s)node worker23: task drain: .*\(use --force to override\): default/bare"
    ):
        await lab.run(of_phase(lab, "scale_start", nodes, leaving), message="bare")
    assert time.monotonic() - began < 20
    await lab.run(of_phase(lab, "scale_start", nodes, leaving, x_drain={"force": True}), message="forced")
    assert await node_of(lab, access, "worker23") is None


async def a_pod_may_take_longer_to_end_than_one_call_of_kubectl(
    lab: MgmtLab, access: ClusterAccess, nodes: Nodes, leaving: Nodes
) -> None:
    """Real pods may take their grace period, and kubectl then reports another reason (seen with 1.34)."""
    pod = f"/api/v1/namespaces/default/pods/{await web(lab, access, 'worker22')}"
    await lab.ask_api(access, pod, method="PATCH", body={"metadata": {"finalizers": ["example.com/busy"]}})
    lab.news.clear()
    draining = asyncio.create_task(lab.run(of_phase(lab, "scale_start", nodes, leaving), message="busy"))
    waits = lab.until(lambda: any("(terminating)" in news.message for news in lab.news if news.state == "progressed"))
    await asyncio.wait({draining, asyncio.create_task(waits)}, return_when=asyncio.FIRST_COMPLETED)
    assert not draining.done(), draining
    await lab.ask_api(access, pod, method="PATCH", body={"metadata": {"finalizers": None}})
    await draining
    assert await node_of(lab, access, "worker22") is None


async def a_budget_holds_the_drain_up_and_the_pods_are_named(
    lab: MgmtLab, access: ClusterAccess, nodes: Nodes, leaving: Nodes
) -> None:
    name = await web(lab, access, "worker21")
    await budget(lab, access)
    limits = {"ssh_ready": 20, "node_install": 60, "command": 20, "node_ready": 20, "drain": 3}
    command = of_phase(lab, "scale_start", nodes, leaving, x_timeouts=limits)
    held = f"default/{name} (Cannot evict pod as it would violate the pod's disruption budget)"
    with pytest.raises(NodeNotDrained) as caught:
        await lab.run(command, operation="held")
    assert str(caught.value) == f"node worker21: not drained within 3 s; it waits for {held}"
    assert f"waits for {held}" in [news.message for news in lab.news if news.state == "progressed"]
    found = await node_of(lab, access, "worker21")
    assert not found["spec"].get("unschedulable"), "pods can run there again"
    assert await lab.ask_api(access, f"/api/v1/namespaces/default/pods/{name}")

    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web"
    await lab.ask_api(access, budgets, method="DELETE")
    await lab.run(command, operation="held", message="m-2")
    assert await node_of(lab, access, "worker21") is None
    assert "task drain" not in await lab.log("held", node="master10")
    assert f"evicting pod default/{name}" in await lab.log("held", node="worker21")


async def a_request_may_let_the_scaling_go_on_after_the_time_for_the_drain(
    lab: MgmtLab, access: ClusterAccess, nodes: Nodes, leaving: Nodes
) -> None:
    name = await web(lab, access, "worker20")
    await budget(lab, access)
    limits = {"ssh_ready": 20, "node_install": 60, "command": 20, "node_ready": 20, "drain": 1}
    go_on = {"x_timeouts": limits, "x_drain": {"on_failure": "continue"}}
    lab.news.clear()
    await lab.run(of_phase(lab, "scale_start", nodes, leaving, **go_on), message="goes-on")
    assert await node_of(lab, access, "worker20") is None
    (drained,) = [news for news in lab.news if news.task == "drain" and news.state == "finished"]
    assert drained.message.startswith(f"not drained within 1 s; it leaves with default/{name}")


@pytest.mark.parametrize(("task", "node"), killed_at(IN, in_every_run={"drain"}))
async def test_a_scale_in_that_is_killed_continues_and_does_nothing_twice(lab: MgmtLab, task: str, node: str) -> None:
    """SEQ-180; a node that people have cordoned stays so after a failure."""
    nodes, access = await a_named_cluster(lab, workers=3)
    await bare(lab, access, "worker22")
    await cordon(lab, access, "worker21", is_on=True)
    with pytest.raises(CommandUnsuccessful):
        await lab.run(of_phase(lab, "scale_start", nodes, nodes[2:]), operation="op-0", message="m-0")
    assert (await node_of(lab, access, "worker21"))["spec"]["unschedulable"] is True
    freed = await node_of(lab, access, "worker22")
    assert not freed["spec"].get("unschedulable")
    assert "kubevnfm/cordoned-for" not in freed["metadata"].get("annotations", {})
    await cordon(lab, access, "worker21", is_on=False)
    await lab.ask_api(access, "/api/v1/namespaces/default/pods/bare", method="DELETE")
    lab.news.clear()

    await web(lab, access, "worker21")
    command = of_phase(lab, "scale_start", nodes, nodes[2:])
    await lab.run_until(command, task, node)
    await lab.run(command, fencing=2)
    await lab.assert_ready(access, ["master10", "worker20"])
    lab.news.clear()
    await lab.run(command, fencing=3)
    changed = [(news.task, news.node) for news in lab.news if news.state == "finished"]
    assert {name for name, _ in changed} <= {"reach", "copy"}


async def test_a_rollback_takes_out_what_had_joined_and_forgets_the_machines(lab: MgmtLab) -> None:
    """1.11: rollback of scale-out."""
    nodes, access = await a_named_cluster(lab, workers=1)
    new = await two_more(lab)
    second = {"part": "program", "verb": "kubeadm join", "node": lab.machine(new[1]).name}
    waiting = lab.faults.add(**second, effect="hang")
    lab.faults.add(**second, status=1)
    work = asyncio.create_task(lab.run(of_phase(lab, "scale_end", [*nodes, *new], new)))
    joined = ("join", "worker21", "finished")
    await lab.until(lambda: any((news.task, news.node, news.state) == joined for news in lab.news))
    lab.faults.remove(waiting.fault_id)
    with pytest.raises(CommandUnsuccessful):
        await work
    assert await node_of(lab, access, "worker21") is not None
    await web(lab, access, "worker21")
    await lab.run(of_phase(lab, "scale_rollback_start", [*nodes, *new], new), message="m-2")
    await lab.assert_ready(access, ["master10", "worker20"])
    assert hosts_of(lab, nodes[1]) == ["master10", "worker20"]
    await lab.run(of_phase(lab, "scale_rollback_end", nodes, (), gone=new), message="m-3")
    left = {str(one.body["vnfcId"]) for one in await lab.store.find("host_keys", Query())}
    assert left == {node.vnfc_id for node in nodes}


async def test_a_package_without_the_script_is_refused_before_the_first_login(lab: MgmtLab) -> None:
    nodes = await lab.boot_cluster(workers=1)
    with pytest.raises(Unprocessable, match="script_path: the package has no file Scripts/other"):
        await lab.run(of_phase(lab, "scale_end", nodes, nodes[1:], script_path="Scripts/other"))
    assert [lab.calls(node, "ssh connect") for node in nodes] == [0, 0]
