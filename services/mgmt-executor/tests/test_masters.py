"""Clusters with several masters behind a virtual address, on the lab's machines."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from kubevnfm_events.common import ClusterAccess
from kubevnfm_events.mgmt import ManagedNode, PhaseDone, RunPhase
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_lab.machines.programs.kubeadm.join import VOTING
from kubevnfm_mgmt_executor.domain.errors import CommandUnsuccessful, NodeUnreachable
from worlds.kill_steps import killed_at
from worlds.mgmt_lab import MgmtLab

STEPS = (("balance", "master10"), ("join_master", "master11"), ("verify", "master10"))


async def machines(lab: MgmtLab, *, masters: int = 3, workers: int = 1) -> list[ManagedNode]:
    """Start the machines of a cluster."""
    roles = [("master", 10 + n) for n in range(masters)] + [("worker", 20 + n) for n in range(workers)]
    started = await asyncio.gather(*(lab.boot(role, octet, host="compute-0") for role, octet in roles))  # type: ignore[arg-type]
    return list(started)


def vip(nodes: Sequence[ManagedNode]) -> str:
    return nodes[0].nic_address.rpartition(".")[0] + ".100"


def command(lab: MgmtLab, nodes: Sequence[ManagedNode], **more: Any) -> RunPhase:
    return lab.command(nodes, **more).model_copy(update={"cluster_address": vip(nodes)})


@pytest.mark.slow
async def test_the_api_answers_while_any_one_master_is_down(lab: MgmtLab) -> None:
    """SEQ-158, SEQ-159, SEQ-160, M12, W-22, W-24: haproxy and keepalived on the masters; each is taken down and comes back."""
    nodes = await machines(lab)
    done = await lab.run(command(lab, nodes), operation="op-0", message="m-0")
    assert done.cluster is not None
    assert done.cluster.server == f"https://{vip(nodes)}:16443"
    await lab.assert_ready(done.cluster, ["master10", "master11", "master12", "worker20"])
    await a_master_that_joined_in_part_is_reset_forgotten_and_joins_again(lab, nodes, done.cluster)
    for master in nodes[:3]:
        await lab.machines.stop(master.server_id)
        await lab.ask_api(done.cluster, "/api/v1/nodes")
        await lab.machines.start(master.server_id)

    balancer = lab.machines.balancer
    first = balancer.elect()[vip(nodes)]
    first.units.stop(first.units.by_name["haproxy"])
    second = balancer.elect()[vip(nodes)]
    assert second is not first
    first.units.start(first.units.by_name["haproxy"])
    assert balancer.elect()[vip(nodes)] is second, "a master that comes back breaks no connection a second time"
    for node in nodes[:3]:
        folder = lab.machine(node).root / "etc"
        config = (folder / "haproxy/haproxy.cfg").read_text()
        servers = [line.split()[1] for line in config.splitlines() if line.startswith("  server ")]
        assert servers == ["master10", "master11", "master12"]
        assert "stats" not in config
        assert ((folder / "keepalived/keepalived.conf").stat().st_mode & 0o777) == 0o600
    await workers_come_and_go_while_the_first_master_is_down(lab, nodes, done)
    await lab.machines.start(nodes[0].server_id)
    await a_member_of_etcd_that_is_left_over_is_removed_by_name_and_address(lab, nodes, done.cluster)


async def a_master_that_joined_in_part_is_reset_forgotten_and_joins_again(
    lab: MgmtLab, nodes: Sequence[ManagedNode], access: ClusterAccess
) -> None:
    """M12: kubeadm was killed before its last phase; its Node is still Ready, its member of etcd still listed."""
    last, role = lab.machine(nodes[2]), "node-role.kubernetes.io/control-plane"
    (last.root / "var/lib/kubevnfm/join").unlink()
    await lab.ask_api(access, "/api/v1/nodes/master12", method="PATCH", body={"metadata": {"labels": {role: None}}})
    await lab.run(command(lab, nodes), operation="op-0", message="m-0", fencing=2)
    await lab.assert_ready(access, ["master10", "master11", "master12", "worker20"])
    assert (last.calls["kubeadm reset"], last.calls["kubeadm join"]) == (1, 2)
    assert await members(lab, nodes[0]) == ["master10", "master11", "master12"]
    assert lab.calls(nodes[1], "kubeadm join") == 1


async def a_member_of_etcd_that_is_left_over_is_removed_by_name_and_address(
    lab: MgmtLab, nodes: Sequence[ManagedNode], access: ClusterAccess
) -> None:
    """W-22: master1 is not master10; a machine that vanished in a join counts no longer."""
    await lab.machines.destroy(nodes[2].server_id)
    again = await lab.boot("master", 12, host="compute-0")
    again = again.model_copy(update={"vnfc_id": "vnfc-again"})
    nodes = [*nodes[:2], again, *nodes[3:]]
    await lab.run(command(lab, nodes), operation="op-3", message="m-3")
    assert await members(lab, nodes[0]) == ["master10", "master11", "master12"]
    await lab.assert_ready(access, ["master10", "master11", "master12", "worker20"])

    # A cluster of which no master answers says so before any change.
    for node in nodes:
        await lab.machines.stop(node.server_id)
    new = await lab.boot("worker", 22)
    asked = command(lab, [*nodes, new], phase="scale_end", changes={"x_timeouts": {"ssh_ready": 1}})
    with pytest.raises(NodeUnreachable, match="node master10: no SSH session"):
        await lab.run(asked, operation="op-4", message="m-4")
    assert lab.calls(new, "ssh connect") == 0


async def workers_come_and_go_while_the_first_master_is_down(
    lab: MgmtLab, nodes: Sequence[ManagedNode], done: PhaseDone
) -> None:
    """C1, C2: through any master that answers."""
    assert done.cluster is not None
    nodes = [node.model_copy(update={"name": done.node_names[node.vnfc_id]}) for node in nodes]
    await lab.machines.stop(nodes[0].server_id)
    new = await lab.boot("worker", 21, host="compute-1")

    def scaling(phase: Any) -> RunPhase:
        given = [node.model_copy(update={"is_target": node is new}) for node in [*nodes, new]]
        return command(lab, given, phase=phase)

    lab.news.clear()
    await lab.run(scaling("scale_end"))
    await lab.assert_ready(done.cluster, ["master11", "master12", "worker20", "worker21"])
    assert {news.node for news in lab.news if news.task == "facts"} == {"master11"}
    assert {news.node for news in lab.news if news.task == "hosts" and news.state == "finished"} == {
        "master11",
        "master12",
        "worker20",
    }
    await lab.run(scaling("scale_start"), message="m-2")
    listed = await lab.ask_api(done.cluster, "/api/v1/nodes")
    assert "worker21" not in {one["metadata"]["name"] for one in listed["items"]}


@pytest.mark.parametrize(("task", "node"), killed_at(STEPS, in_every_run={"join_master"}))
async def test_an_installation_that_is_killed_continues_and_does_nothing_twice(
    lab: MgmtLab, task: str, node: str
) -> None:
    """SEQ-180, W-07."""
    nodes = await machines(lab)
    asked = command(lab, nodes)
    await lab.run_until(asked, task, node)
    finished = {("join" if name == "join_master" else name, one) for name, one in lab.finished()}
    done = await lab.run(asked, fencing=2)
    assert done.cluster is not None
    await lab.assert_ready(done.cluster, ["master10", "master11", "master12", "worker20"])
    lab.assert_done_once(nodes, finished)
    assert await members(lab, nodes[0]) == ["master10", "master11", "master12"]


@pytest.mark.parametrize("number", [1, 2])
async def test_a_master_that_loses_its_power_while_it_joins_is_forgotten_and_joins_again(
    lab: MgmtLab, number: int
) -> None:
    """M12: etcd counts it, the Node is not there yet. The same call goes on when the machine is back.

    etcd needs both of two members: the member is removed before the machine is reset. Its kubelet has just started then, and
    so have those of others whose power failed at the same time: each refuses the first calls of ``kubectl exec``.
    """
    nodes = await machines(lab, workers=0)
    name, last, first = f"master1{number}", lab.machine(nodes[number]), lab.machine(nodes[0])
    held = lab.faults.add(part="program", verb=VOTING, node=last.name, effect="hang", times=1)
    work = asyncio.create_task(lab.run(command(lab, nodes)))
    await lab.reached(held)
    await lab.machines.stop(nodes[number].server_id)
    plane = lab.machines.control_planes.served_by(first)
    assert plane is not None
    plane.members[first.spec.machine_id].refusals = 3
    await lab.machines.start(nodes[number].server_id)
    done = await work
    assert done.cluster is not None
    await lab.assert_ready(done.cluster, ["master10", "master11", "master12"])
    assert await members(lab, nodes[0]) == ["master10", "master11", "master12"]
    assert (last.calls["kubeadm reset"], last.calls["kubeadm join"]) == (1, 2)
    assert ("join_master", name) in lab.finished()


async def test_masters_join_one_after_another_and_the_key_stays_in_files(lab: MgmtLab) -> None:
    """SEQ-160: five masters; the certificates' key is in no command line, no log and no event."""
    nodes = await machines(lab, masters=5, workers=0)
    done = await lab.run(command(lab, nodes))
    assert done.cluster is not None
    names = [f"master{10 + n}" for n in range(5)]
    await lab.assert_ready(done.cluster, names)
    order = [(news.node, news.state) for news in lab.news if news.task == "join_master"]
    assert order == [(name, state) for name in names[1:] for state in ("started", "finished")]
    assert done.cluster.certificate_key is not None
    key = done.cluster.certificate_key.reveal(lab.ring)
    assert key not in await lab.log()
    assert key not in "".join(news.model_dump_json() for news in lab.news)
    # Two are down: three of five are a majority.
    for node in nodes[:2]:
        await lab.machines.stop(node.server_id)
    await lab.ask_api(done.cluster, "/api/v1/nodes")


async def test_several_masters_without_a_virtual_address_are_refused(lab: MgmtLab) -> None:
    nodes = await machines(lab, workers=0)
    with pytest.raises(Unprocessable, match="cluster_address: missing: the virtual address of 3 masters"):
        await lab.run(command(lab, nodes).model_copy(update={"cluster_address": None}))


async def test_a_virtual_address_that_no_master_can_have_names_the_cause(lab: MgmtLab) -> None:
    nodes = await machines(lab, workers=0)
    elsewhere = command(lab, nodes, changes={"x_timeouts": {"node_ready": 1}})
    with pytest.raises(CommandUnsuccessful, match=r"the virtual address 192\.0\.2\.9 does not answer at port 16443"):
        await lab.run(elsewhere.model_copy(update={"cluster_address": "192.0.2.9"}))


async def members(lab: MgmtLab, master: ManagedNode) -> list[str]:
    """Return the names of etcd's members."""
    plane = lab.machines.control_planes.served_by(lab.machine(master))
    assert plane is not None
    return sorted(member.node_name for member in plane.members.values())
