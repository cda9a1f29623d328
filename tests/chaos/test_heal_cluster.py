"""Heal of a cluster with SIGKILL at each step; nothing joins or is formatted twice, no machine goes before what it serves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

import pytest
from broker import everything_twice
from chaos import BROKER, IN_TURN, Chaos
from holds import Hold
from installations import SixInstallation
from storage_clusters import NUMBERS, VDU, VOLUME, storage_cluster, storage_request

pytestmark = [pytest.mark.chaos, pytest.mark.deep, pytest.mark.timeout(1200)]

EACH: Final = ["mgmt-executor", "infra-openstack", "lcm-api", BROKER]

LEAVING: Final[Sequence[Hold]] = (
    Hold("cordoning", "program", "kubectl cordon", "vnf-{id}*"),
    Hold("draining", "program", "kubectl drain", "vnf-{id}*"),
)
DELETING: Final = Hold("deleting from the cluster", "program", "kubectl delete", "vnf-{id}*")
UPDATING: Final = Hold("asking for the update", "heat", "stack_update", "vnf-{id}*")
PREPARING: Final = Hold("preparing nodes", "program", "apt-get install", "vnf-{id}*")
JOINING: Final[Sequence[Hold]] = (PREPARING, Hold("joining", "program", "kubeadm join", "vnf-{id}*"))
LABELS: Final = Hold("labels", "program", "kubectl label", "vnf-{id}*")
HEAL_WORKER: Final[Sequence[Hold]] = (*LEAVING, DELETING, UPDATING, *JOINING, LABELS)
LEAVING_MASTER: Final[Sequence[Hold]] = (
    Hold("asking etcd, and removing its member", "program", "kubectl exec", "vnf-{id}*"),
    Hold("leaving the balancer", "program", "systemctl reload-or-restart", "vnf-{id}*"),
)
HEAL_MASTER: Final[Sequence[Hold]] = (*LEAVING_MASTER, DELETING, UPDATING, *JOINING)
RESERVING: Final = Hold("reserving the volumes", "program", "kubectl patch", "vnf-{id}*")
SERVING: Final[Sequence[Hold]] = (
    Hold("formatting", "program", "mkfs.ext4", "vnf-{id}*"),
    Hold("exporting", "program", "exportfs", "vnf-{id}*"),
    Hold("registering the volumes", "program", "kubectl apply", "vnf-{id}*"),
)
HEAL_STORAGE: Final[Sequence[Hold]] = (RESERVING, DELETING, UPDATING, *SERVING)
HEAL_MIX: Final[Sequence[Hold]] = (LEAVING_MASTER[0], RESERVING, DELETING, UPDATING, *JOINING, *SERVING)


async def cluster_of(chaos: Chaos, cluster_id: str) -> dict[str, Any]:
    """Return the Kubernetes of a cluster VNF: the one with the nodes that the instance shows."""
    info = (await chaos.user.instance(cluster_id))["instantiatedVnfInfo"]
    names = {one["metadata"]["node_name"] for one in info["vnfcResourceInfo"] if one["vduId"] != VDU}
    clusters = (await chaos.lab.inventory())["clusters"]
    (found,) = [one for one in clusters if {node["name"] for node in one["nodes"]} == names]
    return found


@pytest.mark.parametrize("target", EACH)
async def test_a_process_killed_while_a_worker_is_healed_harms_nothing(six_chaos: Chaos, target: str) -> None:
    """SEQ-155, SEQ-180: the new machine joins once, under the name of the old one."""
    user = six_chaos.user
    cluster_id = await user.create(await user.sample("cluster"))
    await six_chaos.run(cluster_id, "instantiate", user.cluster(), (), target)
    info = (await user.instance(cluster_id))["instantiatedVnfInfo"]
    ill = next(one for one in info["vnfcResourceInfo"] if one["vduId"] == "workerNode")
    name = ill["metadata"]["node_name"]
    before = (await cluster_of(six_chaos, cluster_id))["joins"]
    await six_chaos.run(cluster_id, "heal", {"vnfcInstanceId": [ill["id"]]}, HEAL_WORKER, target)
    cluster = await cluster_of(six_chaos, cluster_id)
    assert cluster["joins"] == {**before, name: 2}
    assert all(node["ready"] for node in cluster["nodes"])
    servers = [one for one in (await six_chaos.lab.inventory())["servers"] if cluster_id in one["name"]]
    now = (await user.instance(cluster_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    assert {one["computeResource"]["resourceId"] for one in now} == {one["id"] for one in servers}
    assert name in {one["metadata"]["node_name"] for one in now}
    await user.terminate(cluster_id)


@pytest.mark.parametrize("target", EACH)
async def test_a_process_killed_while_a_master_is_healed_harms_nothing(six_chaos: Chaos, target: str) -> None:
    """SEQ-155, SEQ-180, SEQ-189: etcd has three members at the end, and the new machine has joined once."""
    user = six_chaos.user
    cluster_id = await user.create(await user.sample("cluster"))
    await six_chaos.run(cluster_id, "instantiate", user.cluster(request="instantiate_complex"), (), target)
    info = (await user.instance(cluster_id))["instantiatedVnfInfo"]
    ill = next(one for one in info["vnfcResourceInfo"] if one["vduId"] == "masterNode")
    name = ill["metadata"]["node_name"]
    before = (await cluster_of(six_chaos, cluster_id))["joins"]
    await six_chaos.run(cluster_id, "heal", {"vnfcInstanceId": [ill["id"]]}, HEAL_MASTER, target)
    cluster = await cluster_of(six_chaos, cluster_id)
    # The first master has not joined when the cluster was installed.
    assert cluster["joins"] == {**before, name: before.get(name, 0) + 1}
    assert all(node["ready"] for node in cluster["nodes"])
    assert len([node for node in cluster["nodes"] if node["name"].startswith("master")]) == 3
    await user.terminate(cluster_id)


async def a_cluster_with_storage(chaos: Chaos, request: str) -> str:
    """Return a new cluster with a storage server; its installation is not disturbed."""
    user = chaos.user
    package = await user.upload(storage_cluster(str(uuid4())))
    cluster_id = await user.create(package["vnfdId"])
    await user.do(cluster_id, "instantiate", storage_request(user.installation.lab, request=request))
    return cluster_id


async def machines_of(chaos: Chaos, cluster_id: str) -> list[dict[str, Any]]:
    """Return the VNFCs, after checking that the cloud has the same servers, and no volume but the one of the VNF."""
    found = await chaos.lab.inventory()
    info = (await chaos.user.instance(cluster_id))["instantiatedVnfInfo"]
    machines: list[dict[str, Any]] = info["vnfcResourceInfo"]
    there = [one["id"] for one in found["servers"] if cluster_id in one["name"]]
    assert sorted(one["computeResource"]["resourceId"] for one in machines) == sorted(there)
    (volume,) = [one["id"] for one in found["volumes"] if cluster_id in one["name"]]
    assert [one["storageResource"]["resourceId"] for one in info["virtualStorageResourceInfo"]] == [volume]
    return machines


def persistent_volumes(cluster: Mapping[str, Any]) -> dict[str, str]:
    """Return uid by name."""
    return {
        place.rpartition("/")[2]: one["uid"]
        for place, one in cluster["objects"].items()
        if place.startswith("PersistentVolume/")
    }


async def heal_the_server(chaos: Chaos, holds: Sequence[Hold], target: str, *vdus: str, request: str) -> None:
    """Replace the storage server, its volume, and the first machine of each of the VDUs, while the target is hit."""
    cluster_id = await a_cluster_with_storage(chaos, request)
    before = await machines_of(chaos, cluster_id)
    old = await cluster_of(chaos, cluster_id)
    ill = [next(one for one in before if one["vduId"] == vdu) for vdu in (VDU, *vdus)]
    asked = {"vnfcInstanceId": [one["id"] for one in ill], "additionalParams": {"x_keep_volume": False}}
    view = await chaos.run(cluster_id, "heal", asked, holds, target)
    assert (await chaos.user.log(view["id"])).count(f"volume {VOLUME}: formatted") == 1
    stay = {one["id"] for one in before} - {one["id"] for one in ill}
    after = await machines_of(chaos, cluster_id)
    assert {one["id"] for one in after} & {one["id"] for one in before} == stay
    new = await cluster_of(chaos, cluster_id)
    joined = Counter(one["metadata"]["node_name"] for one in ill[1:])
    assert Counter(new["joins"]) == Counter(old["joins"]) + joined
    assert sorted(node["name"] for node in new["nodes"] if node["ready"]) == sorted(n["name"] for n in old["nodes"])
    assert persistent_volumes(new).keys() == persistent_volumes(old).keys() == {f"nfs-pv{number}" for number in NUMBERS}
    assert not set(persistent_volumes(new).values()) & set(persistent_volumes(old).values())
    await chaos.user.terminate(cluster_id)
    assert not any(cluster_id in name for name in await chaos.lab.names())


@pytest.mark.parametrize("target", [*EACH, IN_TURN])
async def test_a_process_killed_while_the_storage_server_is_healed_harms_nothing(six_chaos: Chaos, target: str) -> None:
    """SEQ-078 to SEQ-082, SEQ-180, SEQ-190: the new volume is formatted once, and holds the volumes of the cluster once."""
    await heal_the_server(six_chaos, HEAL_STORAGE, target, request="instantiate")


@pytest.mark.parametrize("target", ["mgmt-executor", "lcm-api"])
async def test_a_process_killed_while_masters_and_the_storage_server_are_healed_harms_nothing(
    six_chaos: Chaos, target: str
) -> None:
    """5.2, SEQ-180."""
    vdus = ("masterNode", "workerNode")
    await heal_the_server(six_chaos, HEAL_MIX, target, *vdus, request="instantiate_complex")


async def test_every_message_of_a_heal_of_the_storage_server_delivered_twice_harms_nothing(six_chaos: Chaos) -> None:
    """SEQ-180."""
    assert isinstance(six_chaos.installation, SixInstallation)
    async with everything_twice(six_chaos.installation.rabbit):
        await heal_the_server(six_chaos, (), BROKER, request="instantiate")
