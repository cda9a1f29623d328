"""Namespaces that no file has and that several VNF instances use: made by the first one, removed by the last one (multicloud.md MC-031)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from kubevnfm_events import VimConnection
from kubevnfm_events.objects import ObjectsApplied, ObjectsDeleted
from kubevnfm_infra_k8s.domain.changing.joining import join
from kubevnfm_infra_k8s.domain.errors import StillWaiting
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource, Wanted
from kubevnfm_infra_k8s.domain.ports import Cluster, Clusters, SharedObjects, Sharing
from packages.kubernetes_objects import an_object
from patience import until_true

_NAMESPACES = Resource("v1", "Namespace", "namespaces", namespaced=False)
_MAPS = Resource("v1", "ConfigMap", "configmaps", namespaced=True)
_LABEL = "kubevnfm.io/vnf-instance-id"


class Killed(Exception):
    """The worker has died."""


@dataclass
class KilledAtLeaving:
    """`SharedObjects` whose worker dies as soon as an instance has left the holders of the Namespace."""

    shared: SharedObjects

    async def release(self, cluster: str, key: ObjectKey, vnf_instance_id: str) -> Sharing:
        sharing = await self.shared.release(cluster, key, vnf_instance_id)
        if key.kind == "Namespace":
            raise Killed
        return sharing

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shared, name)


@dataclass
class DisturbedCluster:
    """A cluster where something happens before a Namespace is deleted, once."""

    cluster: Cluster
    before: list[Callable[[], Awaitable[Any]]]

    def hiding(self, secrets: Any) -> Any:
        return DisturbedCluster(self.cluster.hiding(secrets), self.before)

    async def delete(self, resource: Resource, key: ObjectKey, **more: Any) -> bool:
        if key.kind == "Namespace" and self.before:
            await self.before.pop()()
        return await self.cluster.delete(resource, key, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cluster, name)


@dataclass
class DisturbedClusters:
    """`Clusters` that are all disturbed."""

    clusters: Clusters
    before: list[Callable[[], Awaitable[Any]]] = field(default_factory=list)

    @asynccontextmanager
    async def cluster(self, vim: VimConnection) -> AsyncIterator[Any]:
        async with self.clusters.cluster(vim) as cluster:
            yield DisturbedCluster(cluster, self.before)


@dataclass
class Place:
    """A namespace that does not exist at first."""

    ground: Any
    name: str

    @property
    def key(self) -> ObjectKey:
        return ObjectKey("v1", "Namespace", "", self.name)

    async def bring_up(self, instance: str, *, site: Any = None, attempt: int = 1, **order: Any) -> ObjectsApplied:
        """Have an instance with one object there."""
        site = site or self.ground.site
        self.ground.instances.add(instance)
        done: ObjectsApplied = await site.apply(
            {
                "order.yaml": f"artifacts: [{{file: f.yaml}}]\n{order.get('text', '')}",
                "f.yaml": order.get("objects") or [an_object("ConfigMap", instance)],
            },
            def_files=["f.yaml"], order_artifact="order.yaml", instance=instance, operation=f"op-{instance}",
            namespace=order.get("namespace", self.name), attempt=attempt,
        )  # fmt: skip
        return done

    async def bring_down(self, instance: str) -> ObjectsDeleted:
        done: ObjectsDeleted = await self.ground.delete(instance=instance, operation=f"delete-{instance}")
        return done

    async def shown(self) -> Body | None:
        found: Body | None = await self.ground.cluster.get(_NAMESPACES, self.key)
        return found

    async def owner(self) -> tuple[str, str | None]:
        """Return the uid and the instance in the label."""
        found = await self.shown()
        assert found is not None
        assert "deletionTimestamp" not in found["metadata"]
        return found["metadata"]["uid"], found["metadata"]["labels"].get(_LABEL)

    async def is_going(self) -> bool:
        found = await self.shown()
        return found is not None and "deletionTimestamp" in found["metadata"]

    async def has_map(self, name: str) -> bool:
        return await self.ground.cluster.get(_MAPS, ObjectKey("v1", "ConfigMap", self.name, name)) is not None


@pytest.fixture
async def place(ground: Any) -> AsyncIterator[Place]:
    found = Place(ground, f"shared-{secrets.token_hex(4)}")
    yield found
    for instance in ground.instances:
        await ground.delete(instance=instance)
    await ground.cluster.delete(_NAMESPACES, found.key)


async def test_the_last_vnf_that_leaves_removes_the_namespace(place: Place) -> None:
    """MC-031: also if it has come after the first one had left; an object of an order that has another namespace keeps it."""
    made = await place.bring_up("a")
    assert {each.kind for each in made.objects} == {"Namespace", "ConfigMap"}
    uid, owner = await place.owner()
    assert owner == "a"
    await place.bring_up("b")
    assert await place.owner() == (uid, "a")
    assert (await place.bring_down("a")).left == ()
    assert await place.owner() == (uid, "b")
    await place.bring_up("c")
    assert (await place.bring_down("b")).left == ()
    assert await place.owner() == (uid, "c")
    assert await place.has_map("c")
    guest = [an_object("ConfigMap", "guest", metadata={"namespace": place.name})]
    await place.bring_up(
        "d", objects=guest, namespace=place.ground.namespace, text=f"foreign_namespaces: [{place.name}]\n"
    )
    releases = place.ground.site.handlers.releases
    endpoint = place.ground.cluster.endpoint
    assert await releases.strangers_in(endpoint, place.name, than="c") == ["d"]
    assert set(await releases.others_in(endpoint, place.name, than="d")) == {"c"}
    await place.bring_down("d")
    assert (await place.bring_down("c")).left == ()
    assert await place.shown() is None


async def test_two_that_leave_at_once_do_not_both_stand_back(place: Place) -> None:
    """MC-031: one has left the holders, and its worker was killed; the other one removes it."""
    await asyncio.gather(*(place.bring_up(each) for each in "abcd"))
    ground = place.ground
    killed = ground.site.with_changes(shared=KilledAtLeaving(ground.site.handlers.shared))
    with pytest.raises(Killed):
        await killed.delete(instance="a", operation="delete-a")
    done = await asyncio.gather(*(place.bring_down(each) for each in "bcd"))
    assert [each.left for each in done] == [(), (), ()]
    assert await place.shown() is None
    assert (await place.bring_down("a")).left == ()
    # The last one itself.
    await place.bring_up("e")
    with pytest.raises(Killed):
        await killed.delete(instance="e", operation="delete-e")
    assert await place.shown() is not None
    assert (await place.bring_down("e")).left == ()
    assert await place.shown() is None


async def test_a_vnf_that_comes_while_the_last_one_leaves_keeps_the_namespace(place: Place) -> None:
    """MC-031: the last one deletes no other version of it than it has judged; later, the next one waits and makes it again."""
    await place.bring_up("a")
    before = await place.owner()
    ground = place.ground
    shared = ground.site.handlers.shared
    (entry, *_) = (await ground.site.handlers.releases.get("a")).entries

    async def come() -> None:
        # Another one is a holder, and has not written the Namespace yet: what `b` has there is safe all the same.
        await shared.hold(ground.cluster.endpoint, place.key, entry.digest, "e")
        await place.bring_up("b")

    clusters = DisturbedClusters(ground.site.handlers.clusters, [come])
    leaving = ground.site.with_changes(clusters=clusters)
    done = await leaving.delete(instance="a", operation="delete-a")
    assert (done.left, clusters.before) == ((), [])
    assert await place.owner() == (before[0], "b")
    assert await place.has_map("b")
    await shared.release(ground.cluster.endpoint, place.key, "e")
    # Now the deletion has begun.
    await ground.cluster.patch(_NAMESPACES, place.key, {"metadata": {"finalizers": ["example.org/held"]}})
    going = asyncio.create_task(place.bring_down("b"))
    await until_true(place.is_going)
    coming = asyncio.create_task(place.bring_up("c"))

    async def is_awaited() -> bool:
        said = f"Namespace {place.name}: is being deleted, held by example.org/held"
        return any(each.task == "apply" and each.message.startswith(said) for each in ground.site.progress)

    await until_true(is_awaited)
    await ground.cluster.patch(_NAMESPACES, place.key, {"metadata": {"finalizers": None}})
    assert (await going).left == ()
    await coming
    after = await place.owner()
    assert after[1] == "c"
    assert after[0] != before[0]
    assert (await place.bring_down("c")).left == ()
    assert await place.shown() is None


async def test_neither_a_name_nor_a_label_makes_a_namespace_ours(place: Place) -> None:
    """MC-031: another party has made it again, with the labels that it had."""
    await place.bring_up("a")
    found = await place.shown()
    assert found is not None
    uid = found["metadata"]["uid"]
    await place.ground.cluster.delete(_NAMESPACES, place.key)

    async def is_gone() -> bool:
        return await place.shown() is None

    await until_true(is_gone)
    labels = {name: text for name, text in found["metadata"]["labels"].items() if name.startswith("kubevnfm.io/")}
    await place.ground.cluster.create(
        _NAMESPACES, place.key, an_object("Namespace", place.name, metadata={"labels": labels})
    )
    made = await place.bring_up("b")
    assert {each.kind for each in made.objects} == {"ConfigMap"}
    assert (await place.bring_down("b")).left == ()
    (left,) = (await place.bring_down("a")).left
    assert (left.kind, left.name, left.reason) == ("Namespace", place.name, "another party has made it again")
    again = await place.owner()
    assert again[0] != uid
    assert again[1] is None


async def test_each_vnf_that_comes_gives_the_namespace_another_version(ground: Any) -> None:
    """MC-031: also in a repeat of its operation; one that was made again meanwhile is not written."""
    key = ObjectKey("v1", "Namespace", "", ground.namespace)
    marks = {"labels": {_LABEL: "a"}, "annotations": {"kubevnfm.io/operation-id": "op"}}
    wanted = Wanted(key, an_object("Namespace", key.name, metadata=marks), _NAMESPACES, "", "", is_implied=True)
    there = await ground.cluster.get(_NAMESPACES, key)
    first = await join(ground.cluster, wanted, there, [])
    second = await join(ground.cluster, wanted, first, ["a"])
    assert len({each["metadata"]["resourceVersion"] for each in (there, first, second)}) == 3
    for each in (first, second):
        assert each["metadata"]["labels"][_LABEL] == "a"
        assert each["metadata"]["annotations"]["kubevnfm.io/operation-id"] == "op"
    another = {**there, "metadata": {**there["metadata"], "uid": "another"}}
    with pytest.raises(StillWaiting):
        await join(ground.cluster, wanted, another, [])
