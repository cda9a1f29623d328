"""Heal of masters on real machines; see docs/real-machines.md. Skipped unless KUBEVNFM_MACHINES names them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from kubevnfm_events.mgmt import ManagedNode, PhaseDone
from real_machines import FILE, RealMachines, is_news
from seen_cluster import SYSTEM_PODS, SeenCluster

pytestmark = pytest.mark.skipif(FILE is None, reason="no machines are given: see docs/real-machines.md")

LONGEST_S: Final = 60.0
"""How long the API may be away while a master goes or comes: VRRP takes 4 s, and the machines may be slow."""


async def test_masters_of_three_are_healed_dead_or_alive(tmp_path: Path) -> None:
    """SEQ-154, SEQ-158: a dead master and a live one in one heal; etcd, Nodes and balancers are read from outside.

    The dead one had the virtual address. A worker is dead too while the first machine joins, with all pods of DNS on it: it
    holds nothing up. At instantiate, the last master lost its power while it joined.
    """
    assert FILE is not None
    async with RealMachines.of_file(Path(FILE), tmp_path) as machines:
        given = machines.given
        if len(given.masters) < 3 or given.virtual_address is None or not (given.renew and given.cut and given.start):
            pytest.skip("three masters, a virtual address, and the commands renew, cut and start expected")
        places = [*given.masters[:3], given.workers[0]]
        await machines.do("renew", *places)
        nodes = [machines.node(place, "worker" if place in given.workers else "master") for place in places]
        done = await installed(machines, nodes, cut=nodes[2], folder=tmp_path)
        assert done.cluster is not None
        seen, names = SeenCluster(machines, done.cluster), dict(done.node_names)
        nodes = [node.model_copy(update={"name": names[node.vnfc_id]}) for node in nodes]
        await seen.ready(names.values())
        *masters, worker = nodes
        by_address = {node.nic_address: node for node in masters}
        dead = by_address.pop(await seen.holder(list(by_address)))
        live, staying = by_address.values()
        before, members = await seen.uids(), await seen.members(staying.nic_address, str(staying.name))
        assert {name: one.peer_urls for name, one in members.items()} == {
            str(node.name): (f"https://{node.nic_address}:2380",) for node in masters
        }
        for node in masters:
            await see_balancer(seen, node, masters)

        await seen.move_dns(str(worker.name))
        await machines.do("cut", dead.nic_address, worker.nic_address)
        await seen.not_ready(str(worker.name))
        async with seen.polled() as polls:
            # Both are asked for, and the dead one goes first.
            nodes = await replace(seen, nodes, dead, targets=[dead, live], through=staying, folder=tmp_path)
        assert polls.longest_s < LONGEST_S
        await machines.do("start", worker.nic_address)
        await seen.ready(names.values())
        async with seen.polled() as polls:
            nodes = await replace(seen, nodes, live, targets=[live], through=staying, folder=tmp_path)
        assert polls.longest_s < LONGEST_S
        await seen.ready(names.values())
        await seen.pods_ready(SYSTEM_PODS)

        after = await seen.uids()
        assert {name for name in after if after[name] != before[name]} == {dead.name, live.name}
        found = await seen.members(staying.nic_address, str(staying.name))
        assert {name: one.peer_urls for name, one in found.items()} == {
            name: one.peer_urls for name, one in members.items()
        }
        assert {name for name, one in found.items() if one != members[name]} == {dead.name, live.name}
        assert await seen.holder([node.nic_address for node in masters])


async def installed(
    machines: RealMachines, nodes: Sequence[ManagedNode], *, cut: ManagedNode, folder: Path
) -> PhaseDone:
    """Install the cluster; cut the power of a master that etcd has as a member, and that is not complete, for a moment."""
    work = asyncio.create_task(machines.run(machines.command("instantiate_end", nodes), folder))
    await machines.when(is_news("join_master", "started"), work=work)
    # kubeadm writes it when the other members know the new one.
    await machines.on(cut.nic_address, "until [ -e /etc/kubernetes/manifests/etcd.yaml ]; do sleep 0.05; done")
    await machines.do("cut", cut.nic_address)
    await machines.do("start", cut.nic_address)
    return await work


async def replace(
    seen: SeenCluster,
    nodes: Sequence[ManagedNode],
    leaving: ManagedNode,
    *,
    targets: Sequence[ManagedNode],
    through: ManagedNode,
    folder: Path,
) -> list[ManagedNode]:
    """Heal the master ``leaving``, of the ``targets``, as lcm-api does; return the nodes of the cluster afterwards.

    ``through``: the master that is asked about etcd.
    """
    machines, masters = seen.machines, [node for node in nodes if node.role == "master"]
    before = await seen.members(through.nic_address, str(through.name))
    done = await machines.run(machines.command("heal_start", nodes, targets=targets), folder)
    assert done.left == leaving.vnfc_id
    assert leaving.name not in await seen.uids()
    found = await seen.members(through.nic_address, str(through.name))
    assert found == {name: one for name, one in before.items() if name != leaving.name}
    staying = [node for node in masters if node is not leaving]
    for node in staying:
        await see_balancer(seen, node, staying)
    assert await seen.holder([node.nic_address for node in staying])

    await machines.do("renew", leaving.nic_address)
    healed = machines.node(leaving.nic_address, "master", name=leaving.name)
    nodes = [healed if node is leaving else node for node in nodes]
    await machines.run(machines.command("heal_end", nodes, targets=[healed], gone=[leaving]), folder)
    masters = [node for node in nodes if node.role == "master"]
    for node in masters:
        await see_balancer(seen, node, masters)
    assert await seen.holder([node.nic_address for node in masters])
    return nodes


async def see_balancer(seen: SeenCluster, node: ManagedNode, masters: Sequence[ManagedNode]) -> None:
    """Fail unless haproxy on ``node`` leads to these masters, and keepalived there knows the others."""
    found = await seen.balancer(node.nic_address)
    assert found.servers == {f"{one.nic_address}:6443" for one in masters}
    assert found.peers == {one.nic_address for one in masters if one is not node}
