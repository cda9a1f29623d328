"""Virtual links on an API server: objects with their users, adoption, drift, readiness and removal (multicloud.md chapter 12)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from kubevnfm_clients.multicloud.errors import RegionLacks
from kubevnfm_infra_k8s.domain.links.judging import changed_members
from kubevnfm_infra_k8s.domain.links.record import LINK_LABEL
from kubevnfm_infra_k8s.domain.links.spec import Places
from kubevnfm_infra_k8s.domain.links.types import read_spec
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, labels_of
from kubevnfm_infra_k8s.domain.reconciling.ports import Region
from kubevnfm_kit.errors import BeingRemoved, ConflictingInput, InUse, NotFound, Unprocessable
from patience import until, until_true
from worlds.link_specs import SPECS
from worlds.link_world import NAD, NETWORK, LinkWorld, OneVim, define, link_world

SUBNETS = {"ipv4Subnets": [{"name": "s1", "subnet": "172.16.33.0/24", "gateway": "172.16.33.1/24"}]}


@dataclass
class Bed:
    """Links on the ground."""

    ground: Any
    world: LinkWorld

    async def create(self, *args: Any, **more: Any) -> Any:
        return await self.world.create(*args, **{"namespaces": [self.ground.namespace], **more})

    async def shown(self, kind: tuple[str, str], name: str) -> Body | None:
        found: Body | None = await self.ground.shown(*kind, name)
        return found

    async def state(self, kind: tuple[str, str], name: str, status: Body) -> None:
        """Write the status that a controller would write, once the object exists."""
        await until(lambda: self.shown(kind, name))
        await self.ground.as_other(*kind, name, {"status": status}, manager="controller", at="/status")

    async def delete(self, kind: tuple[str, str], name: str) -> None:
        """Delete an object as another party does."""
        resource = await self.ground.cluster.resource(*kind)
        await self.ground.cluster.delete(resource, ObjectKey(*kind, self.ground.namespace, name))
        await until_true(lambda: self._is_gone(kind, name))

    async def _is_gone(self, kind: tuple[str, str], name: str) -> bool:
        return await self.shown(kind, name) is None


@pytest.fixture
async def bed(ground: Any) -> AsyncIterator[Bed]:
    await define(ground.cluster)
    region = Region("vim", ground.namespace, ground.namespace, {"protected"})
    async with link_world(
        ground.site.store, ground.site.clusters, {"vim": ground.site.vim}, {"op/one": region}
    ) as world:
        bed = Bed(ground, world)
        yield bed
        # Cluster-scoped objects must not be left to the next test.
        for each in await world.records.page({}, limit=100, after=None):
            for reference in each.references:
                await world.links.release(each.id, reference)
            await world.until_gone(each.id)


async def test_a_link_is_shared_and_gone_with_its_last_user(bed: Bed) -> None:
    """MC-084, MC-085, MC-087."""
    first = await bed.create(reference="a")
    assert (first.is_new, first.link.status, first.link.use_count) == (True, "READY", 1)
    second = await bed.create(reference="b")
    again = await bed.create(reference="b")
    assert (second.is_new, second.link.id) == (False, first.link.id)
    assert again.link.references == ("a", "b")
    there = await bed.shown(NAD, "net")
    assert there is not None
    assert json.loads(there["spec"]["config"])["type"] == "bridge"
    assert labels_of(there)[LINK_LABEL] == first.link.id
    assert [each.uid for each in again.link.resources] == [there["metadata"]["uid"]]
    left = await bed.world.links.release(first.link.id, "a", wait_s=60)
    assert left is not None
    assert left.use_count == 1
    with pytest.raises(NotFound, match="a does not hold"):
        await bed.world.links.release(first.link.id, "a")
    assert await bed.world.links.release(first.link.id, "b", wait_s=60) is None
    assert await bed.shown(NAD, "net") is None


async def test_a_creation_without_a_reference_gets_one(bed: Bed) -> None:
    """MC-085."""
    made = await bed.create()
    assert made.link.references == (made.reference,)


async def test_another_spec_of_the_same_name_is_refused_with_the_differences(bed: Bed) -> None:
    """MC-084."""
    await bed.create(reference="a")
    with pytest.raises(ConflictingInput) as refused:
        await bed.create(reference="b", spec={"bridge": {"bridge": "br2", "mtu": 9000}})
    assert [place for place, _ in refused.value.places] == ["spec/bridge/bridge", "spec/bridge/mtu"]
    with pytest.raises(ConflictingInput, match=r'the request {"master": "eth1", "mode": "bridge"}'):
        await bed.create(reference="b", spec={"macvlan": {"master": "eth1", "mode": "bridge"}})
    with pytest.raises(ConflictingInput, match="has the type nad"):
        await bed.create(type="ovn4nfv", spec=SUBNETS)


async def test_objects_stand_in_the_namespaces_of_the_users(bed: Bed) -> None:
    """MC-093."""
    made = await bed.create(reference="a", namespaces=[])
    assert made.link.resources == ()
    mine = bed.ground.namespace
    taken = await bed.world.links.hold(made.link.id, "vnf:1", [mine], wait_s=60)
    assert [(each.namespace, each.name) for each in taken.resources] == [(mine, "net")]
    await bed.world.links.hold(made.link.id, "vnf:2", [mine], wait_s=60)
    await bed.world.links.release(made.link.id, "vnf:1")
    there = await bed.shown(NAD, "net")
    assert there is not None
    await bed.world.links.release(made.link.id, "vnf:2")
    await until_true(lambda: bed._is_gone(NAD, "net"))
    left = await bed.world.links.get(made.link.id, wait_s=60)
    assert (left.references, left.resources, left.status) == (("a",), (), "READY")


async def test_ready_means_that_the_network_says_so(bed: Bed) -> None:
    """MC-096."""
    creating = asyncio.create_task(bed.create(type="ovn4nfv", spec=SUBNETS, reference="a"))
    await until(lambda: bed.shown(NETWORK, "net"))
    found = await bed.world.records.page({}, limit=1, after=None)
    assert found[0].status == "PENDING"
    await bed.state(NETWORK, "net", {"state": "Created"})
    made = await creating
    assert made.link.status == "READY"
    assert {each.kind for each in made.link.resources} == {"Network", "NetworkAttachmentDefinition"}


async def test_an_error_state_ends_the_wait(bed: Bed) -> None:
    """MC-096."""
    creating = asyncio.create_task(bed.create(type="ovn4nfv", spec=SUBNETS, reference="a"))
    await bed.state(NETWORK, "net", {"state": "CreateInternalError"})
    made = await creating
    assert (made.link.status, "CreateInternalError" in made.link.status_detail) == ("FAILED", True)
    # The CNI has recovered.
    await bed.state(NETWORK, "net", {"state": "Created"})
    await bed.world.work.look_at_all()
    assert (await bed.world.shown(made.link.id)).status == "READY"


async def test_an_error_state_counts_whatever_other_objects_wait_for(bed: Bed) -> None:
    """MC-096: a provider network that no node has yet comes before the VLAN that is in conflict."""
    vlan = {"id": 7, "provider": "p-conflict", "defaultInterface": "eth7"}
    spec = {"cidrBlock": "172.16.35.0/24", "vlan": vlan}
    creating = asyncio.create_task(bed.create("conflict", type="kube-ovn", spec=spec, reference="a"))
    await bed.state(("kubeovn.io/v1", "Vlan"), "conflict", {"conflict": True})
    made = await creating
    assert (made.link.status, made.link.status_detail) == ("FAILED", "Vlan conflict: its VLAN is in conflict")


async def test_a_provider_network_that_is_missing_is_named(bed: Bed) -> None:
    """MC-096: a VLAN without defaultInterface is on one that others make."""
    spec = {"cidrBlock": "172.16.36.0/24", "vlan": {"id": 8, "provider": "p-none"}}
    creating = asyncio.create_task(bed.create("vlan8", type="kube-ovn", spec=spec, reference="a"))

    async def detail() -> str:
        return "".join(each.status_detail for each in await bed.world.records.page({}, limit=1, after=None))

    async def is_named() -> bool:
        return "ProviderNetwork p-none does not exist: create it, or give vlan.defaultInterface" in await detail()

    await until_true(is_named)
    await bed.ground.create({"apiVersion": "kubeovn.io/v1", "kind": "ProviderNetwork", "metadata": {"name": "p-none"}})
    await bed.state(("kubeovn.io/v1", "Subnet"), "vlan8", {"conditions": [{"type": "Ready", "status": "False"}]})

    async def is_waiting_for_the_subnet() -> bool:
        return await detail() == "Subnet vlan8: Ready is False: no reason"

    await until_true(is_waiting_for_the_subnet)
    await bed.state(("kubeovn.io/v1", "Subnet"), "vlan8", {"conditions": [{"type": "Ready", "status": "True"}]})
    assert (await creating).link.status == "READY"


async def test_the_object_by_which_pods_reach_ovn4nfv_goes_with_the_last_link(bed: Bed) -> None:
    """MC-093."""
    links = []
    for name, subnet in (("net", "172.16.33.0/24"), ("other", "172.16.34.0/24")):
        spec = {"ipv4Subnets": [{"name": "s1", "subnet": subnet}]}
        creating = asyncio.create_task(bed.create(name, type="ovn4nfv", spec=spec, reference="a"))
        await bed.state(NETWORK, name, {"state": "Created"})
        links.append((await creating).link)
    shared = await bed.shown(NAD, "ovn-networkobj")
    assert shared is not None
    assert await bed.world.links.release(links[0].id, "a", wait_s=60) is None
    assert await bed.shown(NAD, "ovn-networkobj") == shared
    assert await bed.world.links.release(links[1].id, "a", wait_s=60) is None
    assert await bed.shown(NAD, "ovn-networkobj") is None


async def test_an_equal_object_of_another_party_is_adopted_and_left(bed: Bed) -> None:
    """MC-089."""
    config = '{"name": "net",  "type": "macvlan", "cniVersion": "0.3.1", "master": "eth0"}'
    body = {"apiVersion": NAD[0], "kind": NAD[1], "metadata": {"name": "net"}, "spec": {"config": config}}
    await bed.ground.create(body)
    before = await bed.shown(NAD, "net")
    wanted = {"type": "macvlan", "cniVersion": "0.3.1", "name": "net", "master": "eth0"}
    made = await bed.create(spec={"config": wanted}, reference="a")
    assert (made.link.status, made.link.adopted) == ("READY", True)
    assert await bed.world.links.release(made.link.id, "a", wait_s=60) is None
    assert await bed.shown(NAD, "net") == before


async def test_another_object_of_the_same_name_fails_the_link_and_stays(bed: Bed) -> None:
    """MC-089."""
    body = {"apiVersion": NAD[0], "kind": NAD[1], "metadata": {"name": "net"}, "spec": {"config": '{"type": "x"}'}}
    await bed.ground.create(body)
    before = await bed.shown(NAD, "net")
    made = await bed.create(reference="a")
    assert (made.link.status, "differs in spec/config" in made.link.status_detail) == ("FAILED", True)
    assert await bed.world.links.release(made.link.id, "a", wait_s=60) is None
    assert await bed.shown(NAD, "net") == before


async def test_drift_is_shown_and_repaired_by_the_next_request(bed: Bed) -> None:
    """MC-098."""
    made = await bed.create(reference="a")
    await bed.delete(NAD, "net")
    await bed.world.work.look_at_all()
    seen = await bed.world.shown(made.link.id)
    assert (seen.status, "was deleted by another party" in seen.status_detail) == ("DEGRADED", True)
    assert await bed.shown(NAD, "net") is None
    await until_true(lambda: _has_event(bed, "DEGRADED"))
    again = await bed.create(reference="a")
    assert (again.link.status, again.link.use_count) == ("READY", 1)
    patch = {"spec": {"config": '{"type": "tampered"}'}}
    await bed.ground.as_other(*NAD, "net", patch)
    await bed.world.work.look_at_all()
    seen = await bed.world.shown(made.link.id)
    assert (seen.status, "was changed by another party: spec/config" in seen.status_detail) == ("DEGRADED", True)
    taken = await bed.world.links.hold(made.link.id, "vnf:1", [bed.ground.namespace], wait_s=60)
    assert taken.status == "READY"
    await until_true(lambda: _has_event(bed, "READY", "1"))


async def _has_event(bed: Bed, status: str, *vnfs: str) -> bool:
    """Return whether there was an event, which names the VNFs that hold the link (MC-052)."""
    return any(event.status == status and event.vnf_instance_ids == vnfs for event in bed.world.events)


async def test_a_link_whose_region_is_gone_is_published_as_failed(bed: Bed) -> None:
    """MC-077, MC-098: no operation of a user ends then, so that only the event says so."""
    made = await bed.create(reference="a")
    registered, bed.world.work.vims = bed.world.work.vims, OneVim({})
    await bed.world.work.look_at_all()
    await until_true(lambda: _has_event(bed, "FAILED"))
    assert (bed.world.events[-1].old_status, bed.world.events[-1].link_id) == ("READY", made.link.id)
    assert bed.world.events[-1].reason == "its region is not registered any more"
    bed.world.work.vims = registered


async def test_what_another_party_has_created_again_is_not_deleted(bed: Bed) -> None:
    """MC-089: deletion by recorded uids."""
    made = await bed.create(reference="a")
    await bed.delete(NAD, "net")
    body = {"apiVersion": NAD[0], "kind": NAD[1], "metadata": {"name": "net"}, "spec": {"config": '{"type": "x"}'}}
    await bed.ground.create(body)
    assert await bed.world.links.release(made.link.id, "a", wait_s=60) is None
    assert await bed.shown(NAD, "net") is not None


async def test_an_object_that_takes_long_to_go_holds_the_name(bed: Bed) -> None:
    """MC-088."""
    made = await bed.create(reference="a")
    await bed.ground.as_other(*NAD, "net", {"metadata": {"finalizers": ["example.com/wait"]}})
    left = await bed.world.links.release(made.link.id, "a")
    assert left is not None
    assert left.status == "REMOVING"
    with pytest.raises(BeingRemoved):
        await bed.create(reference="b")
    with pytest.raises(BeingRemoved):
        await bed.world.links.hold(made.link.id, "vnf:1", [])
    await bed.ground.as_other(*NAD, "net", {"metadata": {"finalizers": None}})
    await bed.world.until_gone(made.link.id)
    again = await bed.create(reference="b")
    assert (again.is_new, again.link.status) == (True, "READY")


async def test_a_link_that_others_use_is_not_removed_as_a_whole(bed: Bed) -> None:
    """MC-087."""
    made = await bed.create(reference="a")
    await bed.world.links.hold(made.link.id, "vnf:1", [])
    with pytest.raises(InUse) as refused:
        await bed.world.links.release(made.link.id, None)
    assert (refused.value.holders, refused.value.holder_count) == (("a", "vnf:1"), 2)
    await bed.world.links.release(made.link.id, "vnf:1")
    assert await bed.world.links.release(made.link.id, None, wait_s=60) is None


async def test_a_kind_that_the_region_lacks_is_named(bed: Bed) -> None:
    """MC-090."""
    objects = [{"apiVersion": "none.example.com/v1", "kind": "Nothing", "metadata": {"name": "x"}}]
    with pytest.raises(RegionLacks) as refused:
        await bed.create(type="manifests", spec={"objects": objects})
    assert refused.value.field == "spec/objects[0]"
    assert await bed.world.records.page({}, limit=1, after=None) == []


async def test_subnets_and_vlans_of_two_links_are_apart(bed: Bed) -> None:
    """MC-091, MC-095."""

    def spec(subnet: str, vlan: int) -> Body:
        wanted = {"vlanID": vlan, "providerInterfaceName": "eth1", "vlanNodeSelector": "all"}
        return {"ipv4Subnets": [{"name": "s", "subnet": subnet}], "providerNetType": "VLAN", "vlan": wanted}

    kind = "ovn4nfv-provider"
    await bed.create("one", kind, spec=spec("10.1.0.0/24", 100), reference="a", wait_s=0)
    with pytest.raises(ConflictingInput, match="free VLAN"):
        await bed.create("two", kind, spec=spec("10.2.0.0/24", 100), reference="a", wait_s=0)
    with pytest.raises(ConflictingInput) as refused:
        await bed.create("two", kind, spec=spec("10.1.0.128/25", 101), reference="a", wait_s=0)
    assert refused.value.field == "spec/ipv4Subnets[0]/subnet"
    await bed.create("two", kind, spec=spec("10.1.0.128/25", 101), reference="a", wait_s=0, allow_overlap=True)
    # One of several requests at once gets the subnet.
    several = [bed.create(f"n{n}", kind, spec=spec("10.9.0.0/24", 200 + n), reference="a", wait_s=0) for n in range(5)]
    results = await asyncio.gather(*several, return_exceptions=True)
    assert sum(isinstance(one, ConflictingInput) for one in results) == 4


async def test_a_network_of_the_cluster_selects_the_namespaces_of_its_users(bed: Bed) -> None:
    """MC-093."""
    kind = ("k8s.ovn.org/v1", "ClusterUserDefinedNetwork")
    name = bed.ground.own_name("udn")
    spec = {"scope": "cluster", "topology": "Layer2", "subnets": ["10.7.0.0/24"]}
    creating = asyncio.create_task(bed.create(name, "udn", spec=spec, reference="a"))
    condition = {"type": "NetworkCreated", "status": "True", "reason": "Made", "message": "made"}
    await bed.state(kind, name, {"conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
    made = await creating
    assert made.link.status == "READY"
    label = f"links.kubevnfm.io/{name}"
    namespaces = await bed.ground.cluster.resource("v1", "Namespace")
    key = ObjectKey("v1", "Namespace", "", bed.ground.namespace)
    assert labels_of(await bed.ground.cluster.get(namespaces, key))[label] == "true"
    there = await bed.shown(kind, name)
    assert there is not None
    assert there["spec"]["namespaceSelector"] == {"matchLabels": {label: "true"}}
    assert await bed.world.links.release(made.link.id, "a", wait_s=60) is None
    assert label not in labels_of(await bed.ground.cluster.get(namespaces, key))


async def test_a_network_of_one_namespace_takes_no_second_one(bed: Bed) -> None:
    """MC-093."""
    spec = {"scope": "namespace", "topology": "Layer2", "subnets": ["10.7.0.0/24"]}
    made = await bed.create("net", "udn", spec=spec, reference="a", wait_s=0)
    with pytest.raises(Unprocessable, match="up to 1 expected"):
        await bed.world.links.hold(made.link.id, "vnf:1", ["default"])
    with pytest.raises(Unprocessable, match="up to 1 expected"):
        await bed.create("net", "udn", spec=spec, reference="b", namespaces=["default"], wait_s=0)
    # The one user may move, and of two that come at once one gets the link.
    await bed.world.links.hold(made.link.id, "a", [])
    mine = bed.ground.namespace
    taken = [bed.world.links.hold(made.link.id, f"vnf:{n}", [where]) for n, where in enumerate((mine, "default"))]
    results = await asyncio.gather(*taken, return_exceptions=True)
    assert sorted(isinstance(one, Unprocessable) for one in results) == [False, True]


async def test_nothing_is_created_in_protected_namespaces(bed: Bed) -> None:
    """MC-032."""
    made = await bed.create(reference="a", namespaces=[])
    for each in ("kube-system", "protected"):
        with pytest.raises(Unprocessable) as refused:
            await bed.create(reference="b", namespaces=["default", each])
        assert refused.value.field == "namespaces[1]"
        with pytest.raises(Unprocessable):
            await bed.world.links.hold(made.link.id, "vnf:1", [each])
        metadata = {"name": "x", "namespace": each}
        objects = [{"apiVersion": "kubeovn.io/v1", "kind": "Vlan", "metadata": metadata}]
        with pytest.raises(Unprocessable) as refused:
            await bed.create("other", "manifests", spec={"objects": objects})
        assert refused.value.field == "spec/objects[0]/metadata/namespace"
    assert (await bed.world.shown(made.link.id)).references == ("a",)


async def test_a_link_waits_for_a_namespace_that_comes_later(bed: Bed) -> None:
    other = f"{bed.ground.namespace}-later"
    made = await bed.create(reference="a", namespaces=[other], wait_s=0)
    await until_true(lambda: _has_detail(bed, made.link.id, "not found"))
    namespaces = await bed.ground.cluster.resource("v1", "Namespace")
    key = ObjectKey("v1", "Namespace", "", other)
    await bed.ground.cluster.apply(
        namespaces, key, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}}
    )
    await bed.world.work.bring_all()
    assert (await bed.world.shown(made.link.id)).status == "READY"
    await bed.ground.cluster.delete(namespaces, key)


@pytest.mark.parametrize("name", SPECS)
async def test_the_api_server_takes_the_objects_of_every_type(bed: Bed, name: str) -> None:
    """MC-084: with the definitions of the real projects, where the cluster has them."""
    kind, spec = SPECS[name]
    places = Places((bed.ground.namespace,), bed.ground.namespace, bed.ground.namespace)
    cluster = bed.ground.cluster
    for each in read_spec(kind, spec).objects(bed.ground.own_name("net"), places):
        resource = await cluster.resource(each.body["apiVersion"], each.body["kind"])
        answered = await cluster.apply(resource, resource.key(each.body), each.body, dry_run=True)
        assert changed_members(each.body, answered) == []


async def _has_detail(bed: Bed, link_id: str, text: str) -> bool:
    return text in (await bed.world.shown(link_id)).status_detail
