"""Power cuts in the middle of a join and of a drain, on real machines; see docs/real-machines.md."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest
from clusters.seen_cluster import SYSTEM_PODS, SeenCluster
from real.real_machines import FILE, RealMachines, is_news

pytestmark = pytest.mark.skipif(FILE is None, reason="no machines are given: see docs/real-machines.md")

DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
PODS: Final = "/api/v1/namespaces/default/pods"
ENDS_AFTER_S: Final = 25
"""How long the pods take to end: a drain waits for them."""


def slow(image: str) -> dict[str, Any]:
    """Return a Deployment of two pods that take their time to end."""
    command = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]
    container = {"name": "c", "image": image, "command": command}
    spec = {"terminationGracePeriodSeconds": ENDS_AFTER_S, "containers": [container]}
    labels = {"app": "slow"}
    return {
        "metadata": {"name": "slow"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


async def test_a_join_and_drains_go_on_after_power_cuts(tmp_path: Path) -> None:
    """SEQ-150, SEQ-151, SEQ-155: of a joining worker; of the master while a worker is drained; of the one that is drained."""
    assert FILE is not None
    async with RealMachines.of_file(Path(FILE), tmp_path) as machines:
        given = machines.given
        if len(given.workers) < 2 or not (given.renew and given.cut and given.start):
            pytest.skip("a master, two workers, and the commands renew, cut and start expected")
        places = [given.masters[0], *given.workers[:2]]
        await machines.do("renew", *places)
        nodes = [machines.node(place, "worker" if number else "master") for number, place in enumerate(places)]
        joining = nodes[2].nic_address
        work = asyncio.create_task(machines.run(machines.command("instantiate_end", nodes), tmp_path))
        await machines.when(is_news("join", "started"), work=work)
        # kubeadm has written it, and the kubelet is about to ask for its certificate.
        await machines.on(joining, "until [ -e /var/lib/kubelet/config.yaml ]; do sleep 0.05; done")
        await machines.do("cut", joining)
        await machines.do("start", joining)
        # It waits for the machine, as long as for one that boots.
        done = await work
        finished = machines.tasks("finished")
        assert done.cluster is not None
        seen, names = SeenCluster(machines, done.cluster), [done.node_names[node.vnfc_id] for node in nodes]
        assert ("join", names[2]) in finished
        await seen.ready(names)
        await seen.pods_ready(SYSTEM_PODS)

        await machines.ask_api(seen.access, DEPLOYMENTS, method="POST", body=slow(given.image))
        await seen.pods_ready(PODS, count=2)
        nodes = [node.model_copy(update={"name": name}) for node, name in zip(nodes, names, strict=True)]
        master, worker, leaving = nodes
        limits = {"x_timeouts": {"ssh_ready": 20}}
        drain = machines.command("scale_start", nodes, targets=[leaving], parameters=limits)
        work = asyncio.create_task(machines.run(drain, tmp_path))
        await machines.when(is_news("drain", "progressed"), work=work)
        await machines.cut_during(work, master.nic_address)
        await machines.do("start", master.nic_address)
        await machines.run(drain, tmp_path)
        assert set(await seen.uids()) == set(names[:2])
        await seen.pods_ready(PODS, count=2)
        await machines.run(machines.command("scale_end", [master, worker], targets=[], gone=[leaving]), tmp_path)

        before = await seen.uids()
        nodes = [master, worker]
        heal = machines.command("heal_start", nodes, targets=[worker])
        work = asyncio.create_task(machines.run(heal, tmp_path))
        await machines.when(is_news("drain", "progressed"), work=work)
        await machines.do("cut", worker.nic_address)
        await work
        assert set(await seen.uids()) == {master.name}
        await machines.do("renew", worker.nic_address)
        healed = machines.node(worker.nic_address, "worker", name=worker.name)
        command = machines.command("heal_end", [master, healed], targets=[healed], gone=[worker])
        await machines.run(command, tmp_path)
        await seen.ready(names[:2])
        after = await seen.uids()
        assert {name for name in after if after[name] != before[name]} == {worker.name}
        await seen.pods_ready(PODS, count=2)
