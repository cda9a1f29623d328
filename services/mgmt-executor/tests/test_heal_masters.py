"""Masters of a cluster with several whose machines are replaced, on the lab's machines: live and dead ones."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from clusters.running_clusters import hosts_of, node_of, of_phase, replaced
from kubevnfm_events.common import ClusterAccess
from kubevnfm_events.mgmt import ManagedNode, PhaseDone, RunPhase
from kubevnfm_mgmt_executor.domain.errors import NodeFailure
from worlds.mgmt_lab import MgmtLab

NAMES = ["master10", "master11", "master12"]
START = (
    ("quorum", "master11"),
    ("balance", "master11"),
    ("stand_down", "master10"),
    ("remove_member", "master10"),
    ("delete", "master10"),
)
END = (
    ("prepare", "master10"),
    ("balance", "master10"),
    ("join_master", "master10"),
    ("member", "master10"),
    ("balance", "master11"),
    ("verify", "master11"),
)


async def a_cluster(lab: MgmtLab) -> tuple[list[ManagedNode], ClusterAccess]:
    """Return the named nodes of a new cluster of three masters, and its access."""
    nodes = await asyncio.gather(*(lab.boot("master", 10 + number, host="compute-0") for number in range(3)))
    done = await lab.run(of_masters(lab, "instantiate_end", nodes, nodes), operation="op-0", message="m-0")
    assert done.cluster is not None
    lab.news.clear()
    return [node.model_copy(update={"name": done.node_names[node.vnfc_id]}) for node in nodes], done.cluster


def of_masters(
    lab: MgmtLab, phase: Any, nodes: Sequence[ManagedNode], targets: Sequence[ManagedNode], **more: Any
) -> RunPhase:
    vip = nodes[0].nic_address.rpartition(".")[0] + ".100"
    return of_phase(lab, phase, nodes, targets, **more).model_copy(update={"cluster_address": vip})


async def heal(lab: MgmtLab, nodes: Sequence[ManagedNode], targets: Sequence[ManagedNode]) -> list[ManagedNode]:
    """Run both phases for the master that the driver chooses; return the nodes afterwards."""
    operation = f"op-{len(lab.news)}"
    done = await lab.run(of_masters(lab, "heal_start", nodes, targets), operation=operation)
    (old,) = [node for node in nodes if node.vnfc_id == done.left]
    new = await replaced(lab, old)
    now = [new if node is old else node for node in nodes]
    await lab.run(of_masters(lab, "heal_end", now, [new], gone=[old]), operation=operation, message="m-2")
    return now


def members(lab: MgmtLab, master: ManagedNode) -> list[str]:
    """Return the names of etcd's members that run."""
    plane = lab.machines.control_planes.served_by(lab.machine(master))
    assert plane is not None
    assert all(member.alive for member in plane.members.values())
    return sorted(member.node_name for member in plane.members.values())


def balanced(lab: MgmtLab, master: ManagedNode) -> list[str]:
    """Return the servers of a master's haproxy."""
    config = (lab.machine(master).root / "etc/haproxy/haproxy.cfg").read_text()
    return [line.split()[1] for line in config.splitlines() if line.startswith("  server ")]


def priority(lab: MgmtLab, master: ManagedNode) -> str:
    config = (lab.machine(master).root / "etc/keepalived/keepalived.conf").read_text()
    return next(line.split()[1] for line in config.splitlines() if line.split()[:1] == ["priority"])


@pytest.mark.slow
async def test_masters_are_healed_one_at_a_time_and_never_at_the_cost_of_the_majority(lab: MgmtLab) -> None:
    """SEQ-133, 154, 158, 189, 5.3, E2: the live first master; then a dead one; then what the rule forbids and allows."""
    nodes, access = await a_cluster(lab)
    first, before, calls = nodes[0], priority(lab, nodes[0]), dict(lab.machine(nodes[1]).calls)
    uid = (await node_of(lab, access, "master10"))["metadata"]["uid"]
    done = await lab.run(of_masters(lab, "heal_start", nodes, [first]), message="m-1")
    assert done.left == first.vnfc_id
    assert members(lab, nodes[1]) == NAMES[1:]
    assert await node_of(lab, access, "master10") is None
    assert balanced(lab, nodes[1]) == balanced(lab, nodes[2]) == NAMES[1:]
    units = lab.machine(first).units.by_name
    assert [(units[name].state, units[name].enabled) for name in ("haproxy", "keepalived")] == [("inactive", False)] * 2

    new = await replaced(lab, first)
    nodes = [new, *nodes[1:]]
    done = await lab.run(of_masters(lab, "heal_end", nodes, [new], gone=[first]), message="m-2")
    assert sorted(done.node_names.values()) == NAMES
    await lab.assert_ready(access, NAMES)
    assert members(lab, new) == NAMES
    assert [balanced(lab, node) for node in nodes] == [NAMES] * 3
    assert priority(lab, new) == before
    assert (await node_of(lab, access, "master10"))["metadata"]["uid"] != uid
    assert hosts_of(lab, new) == hosts_of(lab, nodes[1]) == NAMES
    assert lab.calls(nodes[1], "kubeadm join") == calls["kubeadm join"] == 1
    assert sum(lab.calls(node, "kubeadm init") for node in nodes) == 0, "another one serves for the join"

    await lab.machines.stop(nodes[1].server_id)
    lab.news.clear()
    nodes = await heal(lab, nodes, [nodes[1]])
    await lab.assert_ready(access, NAMES)
    assert members(lab, nodes[2]) == NAMES
    assert {news.node for news in lab.news if news.task == "facts"} == {"master10"}

    await lab.machines.stop(nodes[2].server_id)
    lab.news.clear()
    one = of_masters(lab, "heal_start", nodes, [nodes[0]])
    with pytest.raises(NodeFailure, match="while master10 is replaced, 1 of 3 members of etcd would be left, 2 needed"):
        await lab.run(one, message="m-5")
    assert {news.task for news in lab.news} == {"reach", "copy", "quorum"}
    assert balanced(lab, nodes[0]) == NAMES
    both = await lab.run(of_masters(lab, "heal_start", nodes, [nodes[0], nodes[2]]), message="m-6")
    assert both.left == nodes[2].vnfc_id, "the one that is down is replaced before one that runs"


@pytest.mark.deep
async def test_a_heal_of_a_master_that_is_killed_again_and_again_does_nothing_twice(lab: MgmtLab) -> None:
    """SEQ-180: at each step before and after the machine is replaced; the key of the certificates stays in files."""
    nodes, access = await a_cluster(lab)
    keys = []
    for phase, points in (("heal_start", START), ("heal_end", END)):
        if phase == "heal_end":
            old, nodes = nodes[0], [await replaced(lab, nodes[0]), *nodes[1:]]
        command = of_masters(lab, phase, nodes, nodes[:1], gone=[old] if phase == "heal_end" else ())
        finished: set[tuple[str, str]] = set()
        for number, (task, place) in enumerate(points, 1):
            lab.news.clear()
            await lab.run_until(command, task, place, message=phase, fencing=number)
            finished |= lab.finished()
            keys.append(certificate_key(lab, nodes[1]))
        done = await lab.run(command, message=phase, fencing=len(points) + 1)
        assert isinstance(done, PhaseDone)
    await lab.assert_ready(access, NAMES)
    assert members(lab, nodes[1]) == NAMES
    joined = {("join" if task == "join_master" else task, node) for task, node in finished}
    assert {("prepare", "master10"), ("join", "master10")} <= joined
    lab.assert_done_once(nodes[:1], joined)
    assert len({*keys, certificate_key(lab, nodes[1])}) > 1, "a new key for a new join"
    shown = await lab.log() + "".join(news.model_dump_json() for news in lab.news)
    assert not any(key in shown for key in keys)
    for node in nodes:
        lines = lab.machine(node).command_lines
        assert any("kubeadm join" in line or "upload-certs" in line for line in lines)
        assert not any(key in line for key in keys for line in lines)


def certificate_key(lab: MgmtLab, master: ManagedNode) -> str:
    """Return the key of the last upload of certificates."""
    plane = lab.machines.control_planes.served_by(lab.machine(master))
    assert plane is not None
    return plane.certificate_key[0]
