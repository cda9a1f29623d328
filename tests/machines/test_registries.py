"""Registries that real machines pull from; see docs/real-machines.md. Skipped unless KUBEVNFM_MACHINES names them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from clusters.seen_cluster import SeenCluster
from kubevnfm_mgmt_executor.domain.errors import NodeFailure
from real.real_machines import FILE, RealMachines

pytestmark = pytest.mark.skipif(FILE is None, reason="no machines are given: see docs/real-machines.md")

PODS = "/api/v1/namespaces/default/pods"


def pod(name: str, image: str, *, node: str) -> dict[str, Any]:
    """Return a pod on a node, whichever it is, that asks the registry for its image at each start."""
    container = {"name": "c", "image": image, "imagePullPolicy": "Always", "command": ["sleep", "3600"]}
    tolerations = [{"operator": "Exists"}]
    return {
        "metadata": {"name": name},
        "spec": {"nodeName": node, "tolerations": tolerations, "containers": [container]},
    }


async def test_every_node_pulls_from_each_registry(tmp_path: Path) -> None:
    """SEQ-134, SEQ-136: of instantiate and of scale out; first with a login that is wrong, which names node and server."""
    assert FILE is not None
    async with RealMachines.of_file(Path(FILE), tmp_path) as machines:
        given = machines.given
        if not given.registries or len(given.workers) < 2 or not given.renew:
            pytest.skip("registries, a master, two workers, and the command renew expected")
        places = [given.masters[0], *given.workers[:2]]
        await machines.do("renew", *places)
        nodes = [machines.node(place, "worker" if number else "master") for number, place in enumerate(places)]
        *first, joining = nodes
        right = [registry.connected for registry in given.registries]
        wrong = [{**one, **({"password": "wrong"} if "password" in one else {})} for one in right]
        if wrong != right:
            command = machines.command("instantiate_end", first, parameters={"private_registry_connection_info": wrong})
            with pytest.raises(NodeFailure, match=r"registry .* refuses the login") as caught:
                await machines.run(command, tmp_path)
            machines.say(f"failed as expected: {caught.value}")
            assert not {task for task, _ in machines.tasks("started")} & {"init", "join"}

        connected = {"private_registry_connection_info": right}
        done = await machines.run(machines.command("instantiate_end", first, parameters=connected), tmp_path)
        assert done.cluster is not None
        seen, names = SeenCluster(machines, done.cluster), dict(done.node_names)
        first = [node.model_copy(update={"name": names[node.vnfc_id]}) for node in first]
        scale = machines.command("scale_end", [*first, joining], targets=[joining], parameters=connected)
        names.update((await machines.run(scale, tmp_path)).node_names)
        assert [news.node for news in machines.news if (news.task, news.state) == ("registries", "finished")] == [
            names[joining.vnfc_id]
        ]
        await seen.ready(names.values())
        for number, registry in enumerate(given.registries):
            for name in names.values():
                await machines.ask_api(
                    seen.access, PODS, method="POST", body=pod(f"pulls-{number}-{name}", registry.image, node=name)
                )
        await seen.pods_ready(PODS, count=len(given.registries) * len(nodes))
        for node in nodes:
            # A secret of the nodes: root alone reads it.
            assert (await machines.on(node.nic_address, "stat -c %a /.docker/config.json")).strip() == "600"
