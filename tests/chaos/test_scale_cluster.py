"""Scale of a cluster with SIGKILL at each step; nothing joins twice, no machine goes before its Node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest
from clouds.holds import Hold
from servers.broker import everything_twice
from servers.chaos import BROKER, IN_TURN, Chaos
from servers.installations import SixInstallation

pytestmark = [pytest.mark.chaos, pytest.mark.deep, pytest.mark.timeout(900)]

OUT: Final[Sequence[Hold]] = (
    Hold("asking for the update", "heat", "stack_update", "vnf-{id}*"),
    Hold("the machines in the making", "nova", "server_create", "vnf-{id}*"),
    Hold("preparing nodes", "program", "apt-get install", "vnf-{id}*"),
    Hold("joining", "program", "kubeadm join", "vnf-{id}*"),
    Hold("labels", "program", "kubectl label", "vnf-{id}*"),
)
IN: Final[Sequence[Hold]] = (
    Hold("cordoning", "program", "kubectl cordon", "vnf-{id}*"),
    Hold("draining", "program", "kubectl drain", "vnf-{id}*"),
    Hold("deleting the nodes", "program", "kubectl delete", "vnf-{id}*"),
    Hold("asking for the update", "heat", "stack_update", "vnf-{id}*"),
    Hold("the machines going away", "nova", "server_delete", "vnf-{id}*"),
)


async def nodes_agree(chaos: Chaos, cluster_id: str, *, joined: int) -> int:
    """Return the number of nodes, after checking that cloud, cluster and instance have the same and none joined twice."""
    servers = [one for one in (await chaos.lab.inventory())["servers"] if cluster_id in one["name"]]
    cluster = await chaos.lab.cluster_of(cluster_id)
    info = (await chaos.user.instance(cluster_id))["instantiatedVnfInfo"]
    names = {one["metadata"]["node_name"] for one in info["vnfcResourceInfo"]}
    assert {node["name"] for node in cluster["nodes"]} == names
    assert all(node["ready"] for node in cluster["nodes"])
    assert len(names) == len(servers) == len(info["vnfcResourceInfo"])
    assert list(cluster["joins"].values()) == [1] * joined
    return len(names)


async def out_and_in(chaos: Chaos, target: str) -> None:
    """Add two workers and remove two, while the target is hit."""
    user = chaos.user
    cluster_id = await user.create(await user.sample("cluster"))
    await chaos.run(cluster_id, "instantiate", user.cluster(), (), target)
    body = {"aspectId": "worker_instance", "numberOfSteps": 2}
    await chaos.run(cluster_id, "scale", {**body, "type": "SCALE_OUT"}, OUT, target)
    assert await nodes_agree(chaos, cluster_id, joined=4) == 4
    await chaos.run(cluster_id, "scale", {**body, "type": "SCALE_IN"}, IN, target)
    assert await nodes_agree(chaos, cluster_id, joined=4) == 2
    await user.terminate(cluster_id)
    assert not any(cluster_id in name for name in await chaos.lab.names())


@pytest.mark.parametrize("target", ["mgmt-executor", "infra-openstack", "lcm-api", BROKER, IN_TURN])
async def test_a_process_killed_while_a_cluster_is_scaled_harms_nothing(six_chaos: Chaos, target: str) -> None:
    """SEQ-180, API-061."""
    await out_and_in(six_chaos, target)


async def test_the_one_process_killed_while_a_cluster_is_scaled_harms_nothing(single_chaos: Chaos) -> None:
    """SEQ-180: the single node, on its data folder."""
    await out_and_in(single_chaos, "kubevnfm")


async def test_every_message_of_a_scaling_delivered_twice_harms_nothing(six_chaos: Chaos) -> None:
    """SEQ-180."""
    assert isinstance(six_chaos.installation, SixInstallation)
    async with everything_twice(six_chaos.installation.rabbit):
        user = six_chaos.user
        cluster_id = await user.create(await user.sample("cluster"))
        await user.do(cluster_id, "instantiate", user.cluster())
        body = {"aspectId": "worker_instance", "numberOfSteps": 2}
        await user.do(cluster_id, "scale", {**body, "type": "SCALE_OUT"})
        assert await nodes_agree(six_chaos, cluster_id, joined=4) == 4
        await user.do(cluster_id, "scale", {**body, "type": "SCALE_IN"})
        assert await nodes_agree(six_chaos, cluster_id, joined=4) == 2
        await user.terminate(cluster_id)
