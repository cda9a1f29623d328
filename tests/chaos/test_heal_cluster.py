"""Heal of a cluster with SIGKILL at each step; nothing joins or is formatted twice, no machine goes before what it serves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import product
from typing import Any, Final
from uuid import uuid4

import pytest
from callers.user import GRACEFUL
from clouds.holds import INSTANTIATE_MASTERS, Hold
from clusters.storage_clusters import NUMBERS, VDU, VOLUME, storage_cluster, storage_request
from servers.broker import everything_twice
from servers.chaos import BROKER, IN_TURN, NO_TARGET, Chaos
from servers.installations import SixInstallation

pytestmark = [pytest.mark.chaos, pytest.mark.deep, pytest.mark.timeout(1200)]

EACH: Final = ["mgmt-executor", "infra-openstack", "lcm-api", BROKER, IN_TURN]

LEAVING: Final[Sequence[Hold]] = (
    Hold("cordoning", "program", "kubectl cordon", "vnf-{id}*"),
    Hold("draining", "program", "kubectl drain", "vnf-{id}*"),
)
DELETING: Final = Hold("deleting from the cluster", "program", "kubectl delete", "vnf-{id}*")
UPDATING: Final = Hold("asking for the update", "heat", "stack_update", "vnf-{id}*")
PREPARING: Final = Hold("preparing nodes", "program", "apt-get install", "vnf-{id}*")
INITIALIZING: Final = Hold("the first master", "program", "kubeadm init", "vnf-{id}*")
JOINING: Final[Sequence[Hold]] = (PREPARING, Hold("joining", "program", "kubeadm join", "vnf-{id}*"))
LABELS: Final = Hold("labels", "program", "kubectl label", "vnf-{id}*")
HEAL_WORKER: Final[Sequence[Hold]] = (*LEAVING, DELETING, UPDATING, *JOINING, LABELS)
LEAVING_MASTER: Final[Sequence[Hold]] = (
    Hold("asking etcd, and removing its member", "program", "kubectl exec", "vnf-{id}*"),
    Hold("leaving the balancer", "program", "systemctl reload-or-restart", "vnf-{id}*"),
)
HEAL_MASTER: Final[Sequence[Hold]] = (*LEAVING_MASTER, DELETING, UPDATING, *JOINING)
RESERVING: Final = Hold("reserving the volumes", "program", "kubectl patch", "vnf-{id}*")
FORMATTING: Final = Hold("formatting", "program", "mkfs.ext4", "vnf-{id}*")
EXPORTING: Final = Hold("exporting", "program", "exportfs", "vnf-{id}*")
SERVING: Final[Sequence[Hold]] = (
    FORMATTING,
    EXPORTING,
    Hold("registering the volumes", "program", "kubectl apply", "vnf-{id}*"),
)
HEAL_STORAGE: Final[Sequence[Hold]] = (RESERVING, DELETING, UPDATING, *SERVING)
HEAL_MIX: Final[Sequence[Hold]] = (LEAVING_MASTER[0], RESERVING, DELETING, UPDATING, *JOINING, *SERVING)
REGISTERING: Final = Hold("registering the VIM", "kubernetes", "get /version")
HEAL_WHOLE: Final[Sequence[Hold]] = (UPDATING, PREPARING, EXPORTING, INITIALIZING, JOINING[1], LABELS, REGISTERING)
"""On the same stack; the volume stays, so that it is not formatted."""
HEAL_WHOLE_STACK: Final[Sequence[Hold]] = (
    Hold("the stack going away", "nova", "server_delete", "vnf-{id}*"),
    Hold("asking for the stack", "heat", "stack_create", "vnf-{id}*"),
    FORMATTING,
    INITIALIZING,
    REGISTERING,
)
"""On a new stack."""


# --- what exists, and that it exists once -------------------------------------------------------------------------------


async def cluster_of(chaos: Chaos, cluster_id: str) -> dict[str, Any]:
    """Return the Kubernetes of a cluster VNF: the one with the nodes that the instance shows."""
    info = (await chaos.user.instance(cluster_id))["instantiatedVnfInfo"]
    names = {one["metadata"]["node_name"] for one in info["vnfcResourceInfo"] if one["vduId"] != VDU}
    clusters = (await chaos.lab.inventory())["clusters"]
    (found,) = [one for one in clusters if {node["name"] for node in one["nodes"]} == names]
    assert all(node["ready"] for node in found["nodes"])
    return found


async def machines_of(chaos: Chaos, cluster_id: str) -> list[dict[str, Any]]:
    """Return the VNFCs, after checking that the cloud has the same servers, and no volume but those of the VNF."""
    found = await chaos.lab.inventory()
    info = (await chaos.user.instance(cluster_id))["instantiatedVnfInfo"]
    machines: list[dict[str, Any]] = info["vnfcResourceInfo"]
    there = [one["id"] for one in found["servers"] if cluster_id in one["name"]]
    assert sorted(one["computeResource"]["resourceId"] for one in machines) == sorted(there)
    assert sorted(volumes_shown(info)) == [one["id"] for one in found.get("volumes", []) if cluster_id in one["name"]]
    return machines


def volumes_shown(info: Mapping[str, Any]) -> list[str]:
    """Return the ids of the volumes in the cloud."""
    return [one["storageResource"]["resourceId"] for one in info.get("virtualStorageResourceInfo", [])]


async def volume_of(chaos: Chaos, cluster_id: str) -> str:
    """Return the id of the only volume."""
    (volume,) = volumes_shown((await chaos.user.instance(cluster_id))["instantiatedVnfInfo"])
    return volume


def persistent_volumes(cluster: Mapping[str, Any]) -> dict[str, str]:
    """Return uid by name."""
    return {
        place.rpartition("/")[2]: one["uid"]
        for place, one in cluster["objects"].items()
        if place.startswith("PersistentVolume/")
    }


def volumes_are_new(now: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    """Check that the cluster has each persistent volume of the package once, registered again."""
    assert persistent_volumes(now).keys() == persistent_volumes(before).keys() == {f"nfs-pv{one}" for one in NUMBERS}
    assert not set(persistent_volumes(now).values()) & set(persistent_volumes(before).values())


async def ends(chaos: Chaos, cluster_id: str) -> None:
    """Terminate the cluster, and check that nothing is left."""
    await chaos.user.do(cluster_id, "terminate", GRACEFUL)
    await chaos.nothing_is_left_of(cluster_id)
    await chaos.user.delete(cluster_id)


# --- the heals ----------------------------------------------------------------------------------------------------------


async def heal_a_node(chaos: Chaos, cluster_id: str, vdu: str, holds: Sequence[Hold], target: str) -> None:
    """Replace the first machine of the VDU while the target is hit; its node joins once more, and no other does."""
    before = await machines_of(chaos, cluster_id)
    old = await cluster_of(chaos, cluster_id)
    ill = next(one for one in before if one["vduId"] == vdu)
    await chaos.run(cluster_id, "heal", {"vnfcInstanceId": [ill["id"]]}, holds, target)
    after = await machines_of(chaos, cluster_id)
    new = await cluster_of(chaos, cluster_id)
    assert Counter(new["joins"]) == Counter([*Counter(old["joins"]).elements(), ill["metadata"]["node_name"]])
    assert {node["name"] for node in new["nodes"]} == {node["name"] for node in old["nodes"]}
    assert {one["id"] for one in before} - {one["id"] for one in after} == {ill["id"]}


async def heal_a_worker(chaos: Chaos, target: str) -> None:
    """SEQ-155, SEQ-180: the new machine joins once, under the name of the old one."""
    cluster_id = await chaos.build_cluster(target, ())
    await heal_a_node(chaos, cluster_id, "workerNode", HEAL_WORKER, target)
    await ends(chaos, cluster_id)


async def heal_a_master(chaos: Chaos, target: str) -> None:
    """SEQ-155, SEQ-180, SEQ-189: of three, which have joined once each while the target was hit."""
    user = chaos.user
    cluster_id = await user.create(await user.sample("cluster"))
    body = user.cluster(request="instantiate_complex")
    await chaos.run(cluster_id, "instantiate", body, INSTANTIATE_MASTERS, target)
    assert len(await machines_of(chaos, cluster_id)) == 4
    assert sorted((await cluster_of(chaos, cluster_id))["joins"].values()) == [1, 1, 1, 1]
    await heal_a_node(chaos, cluster_id, "masterNode", HEAL_MASTER, target)
    await ends(chaos, cluster_id)


async def heal_the_server(
    chaos: Chaos, target: str, *vdus: str, holds: Sequence[Hold] = HEAL_STORAGE, request: str = "instantiate"
) -> None:
    """SEQ-078 to SEQ-082, SEQ-180, SEQ-190: the storage server, its volume, and the first machine of each of the VDUs."""
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
    assert sorted(node["name"] for node in new["nodes"]) == sorted(node["name"] for node in old["nodes"])
    volumes_are_new(new, old)
    await ends(chaos, cluster_id)


async def heal_the_whole(chaos: Chaos, target: str) -> None:
    """SEQ-076, SEQ-156, SEQ-180: a cluster with a storage server, on its stack and on a new one."""
    cluster_id = await a_cluster_with_storage(chaos, "instantiate")
    for parameters, holds in (({}, HEAL_WHOLE), ({"all": True}, HEAL_WHOLE_STACK)):
        before, volume = await machines_of(chaos, cluster_id), await volume_of(chaos, cluster_id)
        old = await cluster_of(chaos, cluster_id)
        asked = {"additionalParams": parameters}
        view = await chaos.run(cluster_id, "heal", asked, holds, target)
        after, new = await machines_of(chaos, cluster_id), await cluster_of(chaos, cluster_id)
        assert Counter(one["vduId"] for one in after) == Counter(one["vduId"] for one in before)
        servers = [{one["computeResource"]["resourceId"] for one in machines} for machines in (before, after)]
        assert not servers[0] & servers[1]
        assert sorted(new["joins"].values()) == [1] * (len(after) - 1)
        is_kept = not parameters
        assert (await volume_of(chaos, cluster_id) == volume) == is_kept
        assert (await chaos.user.log(view["id"])).count(f"volume {VOLUME}: formatted") == (0 if is_kept else 1)
        volumes_are_new(new, old)
        vims = (await chaos.user.call("GET", "/v1.0/vims")).must(200).json["vims"]
        assert [vim["name"] for vim in vims].count(f"kubernetes_vim_{cluster_id}") == 1
        assert (await chaos.user.vim_of_cluster(cluster_id))["interfaceInfo"]["endpoint"] == new["endpoint"]
    await ends(chaos, cluster_id)


async def a_cluster_with_storage(chaos: Chaos, request: str) -> str:
    """Return a new cluster with a storage server; its installation is not disturbed."""
    user = chaos.user
    package = await user.upload(storage_cluster(str(uuid4())))
    cluster_id = await user.create(package["vnfdId"])
    await user.do(cluster_id, "instantiate", storage_request(user.installation.lab, request=request))
    return cluster_id


HEALS: Final[Mapping[str, Callable[[Chaos, str], Awaitable[None]]]] = {
    "worker": heal_a_worker,
    "master": heal_a_master,
    "storage": heal_the_server,
    "whole": heal_the_whole,
}


@pytest.mark.parametrize(("heal", "target"), [*product(HEALS, EACH), ("whole", "vim-registry")])
async def test_a_process_killed_at_each_step_of_a_heal_harms_nothing(six_chaos: Chaos, heal: str, target: str) -> None:
    """SEQ-180; with ``master`` also at each step of the instantiation of three masters."""
    await HEALS[heal](six_chaos, target)


@pytest.mark.parametrize("target", EACH)
async def test_a_process_killed_while_masters_and_the_storage_server_are_healed_harms_nothing(
    six_chaos: Chaos, target: str
) -> None:
    """5.2, SEQ-180."""
    vdus = ("masterNode", "workerNode")
    await heal_the_server(six_chaos, target, *vdus, holds=HEAL_MIX, request="instantiate_complex")


@pytest.mark.parametrize("heal", HEALS)
async def test_the_one_process_killed_at_each_step_of_a_heal_harms_nothing(single_chaos: Chaos, heal: str) -> None:
    """SEQ-180: the single node, on its data folder."""
    await HEALS[heal](single_chaos, "kubevnfm")


@pytest.mark.parametrize("heal", HEALS)
async def test_every_message_of_a_heal_delivered_twice_harms_nothing(six_chaos: Chaos, heal: str) -> None:
    """SEQ-180; with ``master`` also each message of the instantiation of three masters."""
    assert isinstance(six_chaos.installation, SixInstallation)
    async with everything_twice(six_chaos.installation.rabbit):
        await HEALS[heal](six_chaos, NO_TARGET)
