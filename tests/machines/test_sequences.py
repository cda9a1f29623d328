"""Sequences of clusters on real machines; see docs/real-machines.md. Skipped unless KUBEVNFM_MACHINES names them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from clusters.seen_cluster import SYSTEM_PODS, SeenCluster
from real.real_machines import FILE, RealMachines

pytestmark = pytest.mark.skipif(FILE is None, reason="no machines are given: see docs/real-machines.md")

PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def web(image: str) -> dict[str, Any]:
    """Return a Deployment of two pods that end at once when they are asked to."""
    container = {"name": "c", "image": image, "command": ["sh", "-c", "trap exit TERM; while :; do sleep 1; done"]}
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
    }


async def test_a_cluster_is_built_retried_scaled_and_healed(tmp_path: Path) -> None:
    """1 master and 2 workers; each result is read from the cluster's API, from outside."""
    assert FILE is not None
    async with RealMachines.of_file(Path(FILE), tmp_path) as machines:
        given = machines.given
        places = [given.masters[0], *given.workers[:2]]
        if len(places) < 3:
            pytest.skip("a master and two workers expected")
        if given.renew:
            await machines.do("renew", *places)
        nodes = [machines.node(place, "worker" if number else "master") for number, place in enumerate(places)]
        install = machines.command("instantiate_end", nodes)
        done = await machines.run(install, tmp_path)
        access = done.cluster
        assert access is not None
        seen = SeenCluster(machines, access)
        names = [done.node_names[node.vnfc_id] for node in nodes]
        await seen.ready(set(names))
        labels = {
            name: one["metadata"]["labels"].get("CIS-node") for name, one in (await machines.nodes_of(access)).items()
        }
        assert labels == {
            names[0]: None,
            **{name: f"host-of-{place}" for name, place in zip(names[1:], places[1:], strict=True)},
        }
        await seen.pods_ready(SYSTEM_PODS)

        again = await machines.run(install, tmp_path)
        assert again.cluster is not None
        assert again.cluster.ssl_ca_cert == access.ssl_ca_cert
        assert not {task for task, _ in machines.tasks("finished")} & {"prepare", "init", "join"}

        await machines.ask_api(access, DEPLOYMENTS, method="POST", body=web(given.image))
        await seen.pods_ready(PODS, count=2)
        nodes = [node.model_copy(update={"name": name}) for node, name in zip(nodes, names, strict=True)]
        master, worker, leaving = nodes
        await machines.run(machines.command("scale_start", nodes, targets=[leaving]), tmp_path)
        assert set(await machines.nodes_of(access)) == set(names[:2])
        await seen.pods_ready(PODS, count=2)
        await machines.run(machines.command("scale_end", [master, worker], targets=[], gone=[leaving]), tmp_path)
        if not given.renew:
            return

        await machines.do("renew", leaving.nic_address)
        joining = machines.node(leaving.nic_address, "worker")
        done = await machines.run(machines.command("scale_end", [master, worker, joining], targets=[joining]), tmp_path)
        joining = joining.model_copy(update={"name": done.node_names[joining.vnfc_id]})
        await seen.ready({str(one.name) for one in (master, worker, joining)})

        before = (await machines.nodes_of(access))[str(worker.name)]["metadata"]["uid"]
        nodes = [master, worker, joining]
        await machines.run(machines.command("heal_start", nodes, targets=[worker]), tmp_path)
        await machines.do("renew", worker.nic_address)
        healed = machines.node(worker.nic_address, "worker", name=worker.name)
        nodes = [master, healed, joining]
        await machines.run(machines.command("heal_end", nodes, targets=[healed], gone=[worker]), tmp_path)
        await seen.ready({str(one.name) for one in nodes})
        assert (await machines.nodes_of(access))[str(worker.name)]["metadata"]["uid"] != before
        await seen.pods_ready(PODS, count=2)


async def test_the_api_answers_while_any_one_of_three_masters_is_down(tmp_path: Path) -> None:
    """SEQ-158 to SEQ-160: also the master with the virtual address."""
    assert FILE is not None
    async with RealMachines.of_file(Path(FILE), tmp_path) as machines:
        given = machines.given
        if len(given.masters) < 3 or given.virtual_address is None:
            pytest.skip("three masters and a virtual address expected")
        places = [*given.masters[:3], given.workers[0]]
        if given.renew:
            await machines.do("renew", *places)
        nodes = [machines.node(place, "worker" if place in given.workers else "master") for place in places]
        done = await machines.run(machines.command("instantiate_end", nodes), tmp_path)
        access = done.cluster
        assert access is not None
        seen = SeenCluster(machines, access)
        assert access.server == f"https://{given.virtual_address}:16443"
        names = set(done.node_names.values())
        await seen.ready(names)
        for master in given.masters[:3] if given.cut and given.start else ():
            await machines.do("cut", master)
            await machines.until(f"the API answers without {master}", seen.answers, within_s=60)
            await machines.do("start", master)
            await seen.ready(names)


async def test_a_whole_cluster_is_built_again_on_new_machines(tmp_path: Path) -> None:
    """SEQ-156: the machines at the same addresses are empty; the cluster has another CA, and the names it had."""
    assert FILE is not None
    async with RealMachines.of_file(Path(FILE), tmp_path) as machines:
        given = machines.given
        if not given.renew:
            pytest.skip("the command renew expected")
        places = [given.masters[0], given.workers[0]]
        await machines.do("renew", *places)
        old = [machines.node(place, "worker" if number else "master") for number, place in enumerate(places)]
        built = await machines.run(machines.command("instantiate_end", old), tmp_path)
        assert built.cluster is not None
        await SeenCluster(machines, built.cluster).ready(built.node_names.values())

        await machines.do("renew", *places)
        new = [machines.node(node.nic_address, node.role, name=built.node_names[node.vnfc_id]) for node in old]
        again = await machines.run(machines.command("heal_end", new, gone=old), tmp_path)
        assert again.cluster is not None
        assert again.cluster.ssl_ca_cert != built.cluster.ssl_ca_cert
        assert sorted(again.node_names.values()) == sorted(built.node_names.values())
        seen = SeenCluster(machines, again.cluster)
        await seen.ready(again.node_names.values())
        await seen.pods_ready(SYSTEM_PODS)
