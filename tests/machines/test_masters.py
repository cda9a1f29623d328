"""Heal of masters on real machines; see docs/real-machines.md. Skipped unless KUBEVNFM_MACHINES names them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import asyncssh
import pytest
from clusters.seen_cluster import SYSTEM_PODS, SeenCluster
from kubevnfm_events.mgmt import ManagedNode, PhaseDone
from real.real_machines import FILE, RealMachines, is_news

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


async def test_three_masters_and_three_workers_are_built_scaled_and_healed(tmp_path: Path) -> None:
    """SEQ-150, SEQ-151, SEQ-154, SEQ-155, SEQ-158: a worker leaves and joins; then a worker and a live master are healed.

    The API is polled at the virtual address all the time from the first change on.
    """
    assert FILE is not None
    async with RealMachines.of_file(Path(FILE), tmp_path) as machines:
        given = machines.given
        if len(given.masters) < 3 or len(given.workers) < 3 or given.virtual_address is None or not given.renew:
            pytest.skip("three masters, three workers, a virtual address, and the command renew expected")
        places = [*given.masters[:3], *given.workers[:3]]
        await machines.do("renew", *places)
        nodes = [machines.node(place, "worker" if place in given.workers else "master") for place in places]
        done = await machines.run(machines.command("instantiate_end", nodes), tmp_path)
        assert done.cluster is not None
        seen, names = SeenCluster(machines, done.cluster), dict(done.node_names)
        nodes = [node.model_copy(update={"name": names[node.vnfc_id]}) for node in nodes]
        await seen.ready(names.values())
        await seen.pods_ready(SYSTEM_PODS)
        masters, (worker, other, leaving) = nodes[:3], nodes[3:]

        async with seen.polled() as polls:
            await machines.run(machines.command("scale_start", nodes, targets=[leaving]), tmp_path)
            nodes = [*masters, worker, other]
            await seen.ready([str(node.name) for node in nodes])
            await machines.run(machines.command("scale_end", nodes, targets=[], gone=[leaving]), tmp_path)
            await machines.do("renew", leaving.nic_address)
            joining = machines.node(leaving.nic_address, "worker")
            nodes.append(joining)
            done = await machines.run(machines.command("scale_end", nodes, targets=[joining]), tmp_path)
            nodes[-1] = joining.model_copy(update={"name": done.node_names[joining.vnfc_id]})
            assert {str(node.name) for node in nodes} == set(names.values())
            await seen.ready(names.values())

            before = await seen.uids()
            await machines.run(machines.command("heal_start", nodes, targets=[worker]), tmp_path)
            assert worker.name not in await seen.uids()
            await machines.do("renew", worker.nic_address)
            healed = machines.node(worker.nic_address, "worker", name=worker.name)
            nodes = [healed if node is worker else node for node in nodes]
            await machines.run(machines.command("heal_end", nodes, targets=[healed], gone=[worker]), tmp_path)
            await seen.ready(names.values())

            live, staying = masters[0], masters[1]
            members = await seen.members(staying.nic_address, str(staying.name))
            nodes = await replace(seen, nodes, live, targets=[live], through=staying, folder=tmp_path)
            await seen.ready(names.values())
        assert polls.asked > polls.failed
        assert polls.longest_s < LONGEST_S
        after = await seen.uids()
        assert {name for name in after if after[name] != before[name]} == {worker.name, live.name}
        found = await seen.members(staying.nic_address, str(staying.name))
        assert {name: one.peer_urls for name, one in found.items()} == {
            name: one.peer_urls for name, one in members.items()
        }
        assert {name for name, one in found.items() if one != members[name]} == {live.name}
        await seen.pods_ready(SYSTEM_PODS)


@pytest.mark.parametrize("number", [1, 2])
async def test_a_master_that_etcd_counts_joins_again_after_a_power_cut(tmp_path: Path, number: int) -> None:
    """M12: of two members (``number`` 1) etcd needs both, so the API is away until the machine is back; of three it is not.

    Its Node is not registered yet. It must be removed from etcd before its machine is reset.
    """
    assert FILE is not None
    async with RealMachines.of_file(Path(FILE), tmp_path) as machines:
        given = machines.given
        if len(given.masters) < 3 or given.virtual_address is None or not (given.renew and given.cut and given.start):
            pytest.skip("three masters, a virtual address, and the commands renew, cut and start expected")
        places = [*given.masters[:3], given.workers[0]]
        await machines.do("renew", *places)
        nodes = [machines.node(place, "worker" if place in given.workers else "master") for place in places]
        first, cut = nodes[0], nodes[number]
        work = asyncio.create_task(machines.run(machines.command("instantiate_end", nodes), tmp_path))
        joining = asyncio.create_task(seen_as_voter(machines, first.nic_address, cut.nic_address))
        await asyncio.wait({joining, work}, return_when=asyncio.FIRST_COMPLETED)
        assert joining.done(), f"it ended too early: {work}"
        await machines.do("cut", cut.nic_address)
        machines.say(f"seen: {joining.result().strip()}")
        await machines.do("start", cut.nic_address)
        done = await work
        assert done.cluster is not None
        seen, names = SeenCluster(machines, done.cluster), dict(done.node_names)
        await seen.ready(names.values())
        masters = nodes[:3]
        found = await seen.members(first.nic_address, names[first.vnfc_id])
        assert {name: one.peer_urls for name, one in found.items()} == {
            names[node.vnfc_id]: (f"https://{node.nic_address}:2380",) for node in masters
        }
        for node in masters:
            await see_balancer(seen, node, masters)


async def seen_as_voter(machines: RealMachines, first: str, joining: str) -> str:
    """Return the line about the member at ``joining`` as soon as the master ``first`` counts it for etcd's majority.

    The last field of a line says whether the member still learns.
    """
    pki = "/etc/kubernetes/pki/etcd"
    listed = (
        "kubectl --kubeconfig /etc/kubernetes/admin.conf -n kube-system exec $(hostname | sed s/^/etcd-/) -- etcdctl"
        f" --cacert {pki}/ca.crt --cert {pki}/server.crt --key {pki}/server.key member list -w simple"
    )
    until = f"until {listed} 2>/dev/null | grep 'https://{joining}:2380,.*, false$'; do sleep 0.1; done"
    while True:
        try:
            return await machines.on(first, until)
        except (OSError, asyncssh.Error):  # the machine boots
            await asyncio.sleep(1.0)


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
