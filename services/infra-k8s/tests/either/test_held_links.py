"""VNFs on virtual links: references, namespaces, interfaces of pods (multicloud.md MC-065, MC-069, MC-086, MC-093)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest
from kubevnfm_clients.multicloud.networks import AttachRequest, NetworkRequest
from kubevnfm_events.compute_profiles import ComputeProfile
from kubevnfm_events.objects import HoldLinks, LinksHeld, NetworkAttachment, ReleaseLinks
from kubevnfm_infra_k8s.domain.errors import LinkNotReady
from kubevnfm_infra_k8s.domain.links.record import Link
from kubevnfm_infra_k8s.domain.links.uses import InstanceLinks
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource
from kubevnfm_infra_k8s.domain.ports import LinkUse
from kubevnfm_infra_k8s.domain.reconciling.ports import Region
from kubevnfm_kit.errors import Conflict, ConflictingInput, NotFound, Unprocessable
from kubevnfm_worker.outcome import Done
from patience import until_true
from worlds.link_world import NAD, LinkWorld, define, link_world

_NAMESPACES = Resource("v1", "Namespace", "namespaces", namespaced=False)
_STATIC = {"type": "static", "addresses": [{"address": "10.4.0.250/24", "gateway": "10.4.0.1"}]}


@dataclass
class Bed:
    """Links, and VNFs that use them."""

    ground: Any
    world: LinkWorld

    async def link(self, name: str = "net", **more: Any) -> str:
        """Create a link that the operator holds; return its id."""
        made = await self.world.create(name, reference="operator", **more)
        return made.link.id

    async def attached(self, *networks: Any, instance: str = "a") -> tuple[NetworkAttachment, ...]:
        asked = [NetworkRequest.model_validate({"vdu_id": "web", **each}) for each in networks]
        request = AttachRequest(vim_id="vim", reference=f"vnf:{instance}", networks=tuple(asked))
        return await self.world.links.attach(request)

    async def hold(
        self, networks: Sequence[NetworkAttachment], *objects: Body, instance: str = "a", **more: Any
    ) -> tuple[str, ...]:
        self.ground.site.step = "hold"
        package = self.ground.site.packages.add({"f.yaml": list(objects)}, package_id=f"p-{instance}")
        order = {"namespace": self.ground.namespace, **more}
        command = HoldLinks(
            vnf_instance_id=instance, package=package, vim=self.ground.site.vim, def_files=("f.yaml",),
            networks=tuple(networks), **order,
        )  # fmt: skip
        outcome = await self.ground.site.handlers.hold_links(command, self.ground.site.context())
        assert isinstance(outcome, Done)
        assert isinstance(outcome.event, LinksHeld)
        return outcome.event.link_ids

    async def release(self, *, instance: str = "a", kept: Sequence[NetworkAttachment] = ()) -> tuple[str, ...]:
        command = ReleaseLinks(vnf_instance_id=instance, kept_networks=tuple(kept))
        outcome = await self.ground.site.handlers.release_links(command, self.ground.site.context())
        return tuple(outcome.event.link_ids)

    async def stored(self, link_id: str) -> Link:
        found = await self.world.records.get(link_id)
        assert found is not None
        return found

    async def users(self, link_id: str) -> list[str]:
        return sorted((await self.stored(link_id)).references)

    async def definition(self, name: str = "net", namespace: str = "") -> Body | None:
        resource = await self.ground.cluster.resource(*NAD)
        found: Body | None = await self.ground.cluster.get(
            resource, ObjectKey(*NAD, namespace or self.ground.namespace, name)
        )
        return found


@pytest.fixture
async def links(ground: Any) -> AsyncIterator[Bed]:
    await define(ground.cluster, "NetworkAttachmentDefinition")
    region = Region("vim", ground.namespace)
    async with link_world(
        ground.site.store, ground.site.clusters, {"vim": ground.site.vim}, {"op/one": region}
    ) as world:
        site = ground.site.with_changes(links=InstanceLinks(world.links))
        yield Bed(replace(ground, site=site), world)
        for each in await world.records.page({}, limit=100, after=None):
            for reference in each.references:
                with suppress(NotFound):
                    await world.links.release(each.id, reference)
            await world.until_gone(each.id)


async def test_two_vnfs_share_a_link_and_its_definition_goes_with_the_last(links: Bed, workload: Any) -> None:
    """MC-060, MC-065, MC-069, MC-086, MC-093."""
    ground, web = links.ground, workload(name="web", replicas=1)
    link_id = await links.link()
    networks = await links.attached({"virtual_link_id": link_id, "interface": "oam"})
    for instance in ("a", "b"):
        for _ in range(2):
            assert await links.hold(networks, web, instance=instance) == (link_id,)
    assert await links.users(link_id) == ["operator", "vnf:a", "vnf:b"]
    await ground.apply(web, instance="a", networks=networks)
    assert await links.definition() is not None
    shown = await ground.shown("apps/v1", "Deployment", "web")
    (entry,) = json.loads(shown["spec"]["template"]["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"])
    assert entry == {"name": "net", "namespace": ground.namespace, "interface": "oam"}
    # Nothing differs when it is applied again: no repair, no roll-out.
    repaired = await ground.repair(instance="a", networks=networks)
    assert repaired.repaired == 0
    await ground.delete(instance="a")
    assert (await links.release(instance="a"), await links.release(instance="a")) == ((link_id,), ())
    assert await links.users(link_id) == ["operator", "vnf:b"]
    assert await links.definition() is not None
    await links.release(instance="b")

    async def is_gone() -> bool:
        return await links.definition() is None

    await until_true(is_gone)
    assert await links.users(link_id) == ["operator"]


async def test_a_link_is_ready_in_a_new_namespace_before_its_pods_are_made(links: Bed, workload: Any) -> None:
    """MC-093, MC-098: the namespace comes first, then the objects of the link there, then all others."""
    ground, place = links.ground, f"{links.ground.namespace}-new"
    web = workload(name="web", replicas=1)
    new = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}}
    link_id = await links.link()
    networks = await links.attached({"virtual_link_id": link_id})
    await links.hold(networks, new, web, namespace=place)
    made = await ground.apply(new, web, instance="a", namespace=place, networks=networks)
    assert {each.kind for each in made.objects} == {"Namespace", "Deployment"}
    nad = await links.definition(namespace=place)
    key = ObjectKey("apps/v1", "Deployment", place, "web")
    deployment = await ground.cluster.get(await ground.cluster.resource("apps/v1", "Deployment"), key)
    assert nad is not None
    assert int(nad["metadata"]["resourceVersion"]) < int(deployment["metadata"]["resourceVersion"])
    await ground.delete(instance="a")
    await links.release()
    assert await ground.cluster.get(_NAMESPACES, ObjectKey("v1", "Namespace", "", place)) is None
    assert await links.users(link_id) == ["operator"]


async def test_a_namespace_that_the_order_made_goes_though_a_link_had_an_object_there(
    links: Bed, workload: Any
) -> None:
    """MC-031, MC-060: the links are released before it is decided whether others have something in the namespace."""
    ground, place = links.ground, f"{links.ground.namespace}-own"
    link_id = await links.link()
    networks = await links.attached({"virtual_link_id": link_id})
    await InstanceLinks(links.world.links).hold("a", {link_id: LinkUse((place,), ())})
    ground.site.step = "apply"
    await ground.site.apply(
        {"artifact-order.yaml": "artifacts: [{file: f.yaml}]", "f.yaml": workload(name="web", replicas=1)},
        def_files=["f.yaml"], order_artifact="artifact-order.yaml", instance="a", namespace=place, networks=networks,
    )  # fmt: skip
    assert await links.definition(namespace=place) is not None
    await ground.delete(instance="a")
    assert await ground.cluster.get(_NAMESPACES, ObjectKey("v1", "Namespace", "", place)) is None
    assert await links.users(link_id) == ["operator"]


async def test_objects_of_links_that_a_killed_worker_has_released_are_waited_for(links: Bed) -> None:
    """MC-031, MC-086, MC-142: they would keep the namespace, but not those in a region that is another one, and may be silent."""
    ground, uses = links.ground, InstanceLinks(links.world.links)
    link_id = await links.link()
    await uses.hold("a", {link_id: LinkUse((ground.namespace,), ())})
    resource, key = await ground.cluster.resource(*NAD), ObjectKey(*NAD, ground.namespace, "net")

    async def exists() -> bool:
        return await links.definition() is not None

    await until_true(exists)
    await ground.cluster.patch(resource, key, {"metadata": {"finalizers": ["kubevnfm.io/test"]}})
    await links.release()

    async def is_being_deleted() -> bool:
        return "deletionTimestamp" in (await links.definition() or {"metadata": {}})["metadata"]

    leaving = asyncio.create_task(uses.leave("a", [ground.namespace], vim_id="vim", within_s=60.0))
    await until_true(is_being_deleted)
    async with asyncio.timeout(50.0):
        await uses.leave("a", [ground.namespace], vim_id="another", within_s=60.0)
    assert not leaving.done()
    await ground.cluster.patch(resource, key, {"metadata": {"finalizers": []}})
    await leaving
    assert await links.definition() is None
    # A link that stays there for another user is not waited for.
    await uses.hold("b", {link_id: LinkUse((ground.namespace,), ())})
    await until_true(exists)
    await uses.leave("a", [ground.namespace], vim_id="vim", within_s=60.0)
    await links.release(instance="b")


async def test_a_user_whose_namespace_is_missing_does_not_stop_the_others(links: Bed, workload: Any) -> None:
    """MC-093: it may be deleted by another party, or not be made yet."""
    ground, web, place = links.ground, workload(name="web", replicas=1), f"{links.ground.namespace}-good"
    await ground.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}})
    link_id = await links.link()
    rival = await links.world.create(reference="rival", namespaces=["a-missing-one", "zz-missing-one"])
    assert (rival.link.status, rival.link.is_decided) == ("PENDING", True)
    assert "a-missing-one" in rival.link.status_detail
    networks = await links.attached({"virtual_link_id": link_id})
    await links.hold(networks, web)
    await ground.apply(web, instance="a", networks=networks)
    assert await links.definition() is not None
    uses, here = InstanceLinks(links.world.links), {link_id: LinkUse((ground.namespace,), ())}
    assert await uses.waited_for("a", here, within_s=60.0) == ""
    # One that is missing itself waits.
    await uses.hold("b", {link_id: LinkUse(("a-missing-one",), ())})
    assert "PENDING" in await uses.waited_for("b", {link_id: LinkUse(("a-missing-one",), ())}, within_s=60.0)
    await links.release(instance="b")
    # Nor does one in whose namespace another party has an object of the same name.
    foreign = {"apiVersion": NAD[0], "kind": NAD[1], "metadata": {"name": "two"}, "spec": {"config": "{}"}}
    await ground.create(foreign)
    second = await links.link("two", namespaces=[ground.namespace])
    assert (await links.stored(second)).status == "FAILED"
    await uses.hold("b", {second: LinkUse((place,), ())})
    assert await uses.waited_for("b", {second: LinkUse((place,), ())}, within_s=60.0) == ""
    await uses.hold("c", {second: LinkUse((ground.namespace,), ())})
    with pytest.raises(LinkNotReady, match="is not of this link"):
        await uses.waited_for("c", {second: LinkUse((ground.namespace,), ())}, within_s=60.0)
    for instance in ("b", "c"):
        await links.release(instance=instance)
    await ground.cluster.delete(_NAMESPACES, ObjectKey("v1", "Namespace", "", place))
    await links.world.links.release(link_id, "rival")
    settled = await links.world.work.decided(link_id, within_s=60.0)
    assert settled is not None
    assert (settled.status, settled.lacking) == ("READY", ())


async def test_a_workload_that_moves_to_another_namespace_has_its_links_there(links: Bed, workload: Any) -> None:
    """MC-093: a change of package holds the links there, and where the pods are that it replaces."""
    ground, place = links.ground, f"{links.ground.namespace}-next"
    key = ObjectKey("v1", "Namespace", "", place)
    await ground.cluster.create(
        _NAMESPACES, key, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}}
    )
    link_id, web = await links.link(), workload(name="web", replicas=1)
    networks = await links.attached({"virtual_link_id": link_id})
    await links.hold(networks, web)
    await ground.apply(web, instance="a", networks=networks)
    moved = {**web, "metadata": {**web["metadata"], "namespace": place}}
    await ground.site.replace(
        {"f.yaml": [moved]}, instance="a", namespace=ground.namespace, multi_namespace=True, networks=networks
    )
    assert await links.definition(namespace=place) is not None
    assert (await links.stored(link_id)).namespaces == (ground.namespace, place)
    await ground.delete(instance="a")
    await links.release()
    await ground.cluster.delete(_NAMESPACES, key)


async def test_a_fixed_address_belongs_to_one_vnf_until_it_is_released(links: Bed, workload: Any) -> None:
    """MC-092, and the bad input of chapter 10."""
    web = workload(name="web", replicas=1)
    link_id = await links.link(spec={"macvlan": {"master": "eth0", "ipam": _STATIC}})
    one = {"virtual_link_id": link_id, "ip_address": "10.4.0.5/24"}
    networks = await links.attached(one)
    await links.hold(networks, web)
    with pytest.raises(Conflict, match=r"10\.4\.0\.5 of virtual link net is in use by vnf:a"):
        await links.hold(networks, web, instance="b")
    with pytest.raises(ConflictingInput, match="in use by vnf:a"):
        await links.attached(one, instance="b")
    assert await links.users(link_id) == ["operator", "vnf:a"]
    other = await links.attached({**one, "ip_address": "10.4.0.6/24"})
    assert await links.release(kept=other) == ()
    await links.hold(networks, web, instance="b")
    with pytest.raises(Unprocessable, match="more than one pod") as refused:
        await links.hold(networks, workload(name="web", replicas=2))
    assert refused.value.places[0][0] == "networks[0]/ip_address"
    assert refused.value.made_nothing
    # The pods of a profile count, not those of the manifest.
    with pytest.raises(Unprocessable, match="more than one pod"):
        await links.hold(networks, web, compute_profiles=(ComputeProfile(vdu_id="web", replicas=2),))


async def test_a_link_that_is_gone_or_cannot_be_made_ends_the_operation(links: Bed, workload: Any) -> None:
    """MC-086: what is not held is not applied."""
    ground, web = links.ground, workload(name="web", replicas=1)
    link_id = await links.link()
    networks = await links.attached({"virtual_link_id": link_id})
    with pytest.raises(LinkNotReady, match="is not held"):
        await ground.apply(web, instance="a", networks=networks)
    foreign = {"apiVersion": NAD[0], "kind": NAD[1], "metadata": {"name": "net"}, "spec": {"config": "{}"}}
    await ground.create(foreign)
    await links.hold(networks, web)
    with pytest.raises(LinkNotReady, match=r"net is FAILED: .* is not of this link"):
        await ground.apply(web, instance="a", networks=networks)
    assert await ground.shown("apps/v1", "Deployment", "web") is None
    await links.release()
    assert await links.users(link_id) == ["operator"]
    await links.world.links.release(link_id, "operator")
    await links.world.until_gone(link_id)
    with pytest.raises(NotFound):
        await links.hold(networks, web)
