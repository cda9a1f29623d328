"""The inventory on watches: what exists in a region and where it runs, as Kubernetes changes it (multicloud.md chapter 14)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from kubevnfm_clients.multicloud.inventory import InventoryResource
from kubevnfm_events.inventory import PlacementChanged
from kubevnfm_events.objects import VduTarget
from kubevnfm_infra_k8s.adapters.export_marks import ExportMarks
from kubevnfm_infra_k8s.domain.objects import PODS, ObjectKey
from packages.kubernetes_objects import a_deployment, a_pod, an_object
from patience import until, until_true
from worlds.export_world import export_world
from worlds.inventory_world import InventoryWorld, inventory_world


@pytest.fixture
async def world(ground: Any) -> AsyncIterator[InventoryWorld]:
    site = ground.site = ground.site.registered()
    async with inventory_world(site.store, site.clusters, {"vim": site.vim}, lease_s=2.0) as world:
        yield world


async def pods(world: InventoryWorld, instance: str, number: int) -> Sequence[InventoryResource]:
    """Return the pods of an instance once there are so many, all with an address, and the watch is current."""

    async def found() -> Sequence[InventoryResource] | None:
        shown = await world.found(vnf_id=instance, kind="Pod")
        placed = [each for each in shown if each.node and each.networks and each.phase == "Running"]
        return (
            placed if len(placed) == len(shown) == number and all(each.watch == "current" for each in shown) else None
        )

    return await until(found)


async def published(world: InventoryWorld, name: str, change: str) -> PlacementChanged:
    """Return the last event about an object once it is of this change."""

    async def found() -> PlacementChanged | None:
        events = world.events_of(name)
        return events[-1] if events and events[-1].change == change else None

    return await until(found)


async def test_pods_are_followed_through_scaling_healing_and_the_death_of_a_watcher(
    ground: Any, world: InventoryWorld
) -> None:
    """MC-117, MC-050, MC-051, MC-056, MC-080, MC-107, MC-108, MC-112, MC-115."""
    instance = ground.namespace
    assert (await world.inventory.watch_of("vim")).state == "none"
    leader, _ = world.start(), world.start()
    workload = a_deployment(replicas=2, pod=a_pod(terminationGracePeriodSeconds=0))
    settings = an_object("ConfigMap", "settings", data={"k": "v"})
    await ground.apply(workload, settings, vdus=[VduTarget(vdu_id="VDU1", name="web")])
    first = await pods(world, instance, 2)
    watch = await world.inventory.watch_of("vim")
    assert watch.state == "current"
    assert watch.age_s is not None
    assert 0 <= watch.age_s < 600

    async def beside_the_pods() -> dict[str, InventoryResource] | None:
        found = {each.kind: each for each in await world.found(vnf_id=instance) if each.kind != "Pod"}
        return found if found.keys() >= {"Deployment", "ConfigMap"} else None

    others = await until(beside_the_pods)
    assert others.keys() == {"Deployment", "ConfigMap"}
    assert {each.vdu_id for each in [*first, others["Deployment"]]} == {"VDU1"}
    assert (others["ConfigMap"].vim_id, others["ConfigMap"].namespace) == ("vim", instance)
    pod = first[0]
    address = pod.networks[0].addresses[0]
    for filters in ({"uid": pod.uid}, {"ip": address, "cloud_region_id": "op/vim"}, {"name": pod.name}):
        assert [each.uid for each in await world.found(**filters)] == [pod.uid]
    assert await world.found(cloud_region_id="op/none") == []

    async def of_the_pod() -> Sequence[PlacementChanged] | None:
        # An event is sent a moment after its record is written.
        found = world.events_of(pod.name)
        return found if found and found[-1].new is not None and found[-1].new.networks == pod.networks else None

    events = await until(of_the_pod)
    assert (events[0].change, events[0].old, events[0].vnf_instance_id) == ("created", None, instance)
    assert all(before.new == after.old != after.new for before, after in pairwise(events))
    assert events[-1].new is not None
    assert (events[-1].new.node, events[-1].new.networks) == (pod.node, pod.networks)

    await ground.scale_as_other("web", 3)
    await pods(world, instance, 3)
    key = ObjectKey("v1", "Pod", instance, pod.name)
    assert await ground.cluster.delete(PODS, key, grace_period_s=0)
    vanished = await published(world, pod.name, "vanished")
    assert vanished.old is not None
    assert (vanished.old.node, vanished.new) == (pod.node, None)
    before = await pods(world, instance, 3)

    await leader.die()
    assert await ground.cluster.delete(PODS, ObjectKey("v1", "Pod", instance, before[0].name), grace_period_s=0)
    await published(world, before[0].name, "vanished")
    await pods(world, instance, 3)
    for event in world.events:
        assert sum(each == event for each in world.events) == 1, "published twice"

    await ground.delete()

    async def are_gone() -> bool:
        return not await world.found(vnf_id=instance)

    await until_true(are_gone)
    # A record is removed with its event, which is sent a moment later.
    await asyncio.gather(*(published(world, each.name, "vanished") for each in before))


async def test_the_pods_of_a_cluster_are_in_aai_while_they_exist(ground: Any) -> None:
    """MC-109, MC-110: from the watch to A&AI, through a scaling and a kill; nothing of the VNF is left at the end."""
    site, instance = ground.site.registered(), ground.namespace
    ground.site = site
    async with (
        export_world(site.store) as exported,
        inventory_world(site.store, site.clusters, {"vim": site.vim}, lease_s=2.0) as world,
    ):
        world.marks, world.export = ExportMarks(site.store, exported.clock), exported.exporter()
        world.start()
        await ground.apply(a_deployment(replicas=2, pod=a_pod(terminationGracePeriodSeconds=0)))

        async def shown(number: int) -> dict[str, dict[str, Any]]:
            """Return the pods in A&AI by name, once they are as in the inventory."""
            found = {each.name: each for each in await pods(world, instance, number)}
            await exported.settled()
            nodes = [exported.aai.node(path) or {} for path in exported.aai.paths("vserver")]
            names = {node["vserver-name"]: node for node in nodes}
            assert {name: node["vserver-id"] for name, node in names.items()} == {
                name: each.id for name, each in found.items()
            }
            for name, each in found.items():
                (interface,) = names[name]["l-interfaces"]["l-interface"]
                addresses = [one["l3-interface-ipv4-address"] for one in interface["l3-interface-ipv4-address-list"]]
                assert addresses == list(each.networks[0].addresses)
            return names

        await shown(2)
        await ground.scale_as_other("web", 3)
        three = await shown(3)
        killed = min(three)
        assert await ground.cluster.delete(PODS, ObjectKey("v1", "Pod", instance, killed), grace_period_s=0)
        await published(world, killed, "vanished")
        assert killed not in await shown(3)
        assert len(exported.aai.paths("generic-vnf")) == 1
        await ground.delete()

        async def are_gone() -> bool:
            return not await world.found(vnf_id=instance)

        await until_true(are_gone)
        await exported.settled()
        assert exported.aai.paths("vserver") + exported.aai.paths("generic-vnf") == []


async def test_credentials_of_one_namespace_are_enough_and_objects_of_others_are_left_out(ground: Any) -> None:
    """MC-108: what may not be watched everywhere is watched where releases have objects; MC-107: of our instances alone."""
    limited = await ground.limited()
    site, instance = limited.site.registered(), ground.namespace
    limited.site = site
    async with inventory_world(site.store, site.clusters, {"vim": site.vim}, lease_s=2.0) as world:
        process = world.start()
        await limited.apply(
            an_object("ConfigMap", "settings", data={"k": "v"}),
            a_deployment(replicas=1, pod=a_pod(terminationGracePeriodSeconds=0)),
        )
        await pods(world, instance, 1)
        stranger = {"labels": {"kubevnfm.io/vnf-instance-id": "of-another-manager"}}
        await ground.create(an_object("ConfigMap", "strange", metadata={**stranger, "namespace": instance}))

        process.store.is_cut = True
        await ground.scale_as_other("web", 2)
        process.store.is_cut = False
        await pods(world, instance, 2)

        async def config_maps() -> Sequence[InventoryResource] | None:
            return await world.found(kind="ConfigMap") or None

        # Each kind has a watch of its own, and the one of pods may be the first to have read again.
        assert {each.name for each in await until(config_maps)} == {"settings"}
        await limited.delete()
