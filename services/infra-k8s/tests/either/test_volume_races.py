"""Persistent volumes when other parties change them, users are stuck, or a process ends (multicloud.md MC-100 to MC-104)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import pytest
from kubevnfm_clients.multicloud.volumes import PersistentVolume, VolumePatch, VolumeUse
from kubevnfm_events import VimConnection
from kubevnfm_infra_k8s.adapters.stored_volumes import StoredVolumes
from kubevnfm_infra_k8s.domain.errors import ClusterUnavailable
from kubevnfm_infra_k8s.domain.objects import CLAIMS, PODS, ObjectKey, Resource, field_at, uid_of
from kubevnfm_infra_k8s.domain.ports import Cluster, Clusters
from kubevnfm_infra_k8s.domain.reconciling.news import NotYet
from kubevnfm_infra_k8s.domain.reconciling.work import ReconcilingWork
from kubevnfm_infra_k8s.domain.volumes.bodies import VOLUMES, pv_key
from kubevnfm_infra_k8s.domain.volumes.passes import VolumePasses
from kubevnfm_infra_k8s.domain.volumes.record import Volume
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.errors import Conflict, NotFound
from kubevnfm_store.port import RevisionConflict
from patience import until_true
from worlds.link_world import OneVim
from worlds.lives import Lives
from worlds.volume_ground import WAIT_S, VolumeGround, only_lab, reserved


async def test_a_region_that_is_silent_does_not_hold_up_who_reads_a_volume(volumes: VolumeGround) -> None:
    volume = await volumes.create()

    class Silent:
        @asynccontextmanager
        async def cluster(self, vim: VimConnection) -> AsyncIterator[Cluster]:
            await asyncio.Event().wait()
            yield volumes.cluster

    owner = replace(volumes.owner, clusters=Silent(), look_s=0.01)
    assert (await owner.get(volume.id)).phase == "Reserved"


async def test_a_region_that_takes_requests_and_does_not_answer_is_shown(volumes: VolumeGround) -> None:
    volume = await volumes.create()

    class Silent:
        async def get(self, resource: Resource, key: ObjectKey) -> None:
            await asyncio.Event().wait()

        @asynccontextmanager
        async def cluster(self, vim: VimConnection) -> AsyncIterator[Cluster]:
            yield cast("Cluster", self)

    silent = replace(volumes.work, clusters=cast("Clusters", Silent()), pass_s=0.01)
    owner = replace(volumes.owner, work=Undone(volumes.records))
    await owner.use(volume.id, "vnf:a", VolumeUse(namespace=volumes.namespace, claim_name="data"), wait_s=0)
    with pytest.raises(ClusterUnavailable):
        await silent.one_pass(volume.id)
    stored = await volumes.records.get(volume.id)
    assert stored is not None
    assert stored.phase_detail == "the region did not do all of it within 0.01 s"


async def test_labels_that_a_silent_region_has_yet_to_lose_are_bounded(volumes: VolumeGround) -> None:
    """MC-105."""
    volume = await volumes.create()
    owner = replace(volumes.owner, work=Undone(volumes.records))

    async def change(number: int) -> PersistentVolume:
        labels = {f"l{number}-{index}": "" for index in range(64)}
        present = await owner.get(volume.id)
        return await owner.change(volume.id, VolumePatch(labels=labels), if_revision=present.revision, wait_s=0)

    for number in range(5):
        await change(number)
    with pytest.raises(Conflict, match="256 labels that are to be taken away first"):
        await change(5)
    assert (await volumes.use(volume, "a")).is_bound
    await change(5)


async def test_a_vnf_leaves_a_volume_whose_persistent_volume_is_gone(volumes: VolumeGround) -> None:
    volume = await volumes.create(storage_class=await volumes.storage_class("fast"), reclaim="Delete")
    assert (await volumes.use(volume, "a")).is_bound
    await volumes.cluster.patch(VOLUMES, pv_key(str(volume.pv)), {"metadata": {"finalizers": None}})
    await volumes.cluster.delete(VOLUMES, pv_key(str(volume.pv)))
    assert await volumes.leave(volume, "a")
    assert await volumes.claim() is None
    present = await volumes.owner.get(volume.id)
    assert (present.phase, present.in_use_by) == ("Failed", ())
    assert "was deleted by another party" in present.phase_detail
    # No provisioner has deleted the data, so the answer says where they are.
    removed = await volumes.owner.delete(volume.id, if_revision=None, wait_s=WAIT_S)
    assert (removed.is_gone, removed.data) == (True, "kept")
    assert removed.where.startswith("csi ")


async def test_data_in_a_region_that_is_gone_are_not_said_to_be_deleted(volumes: VolumeGround) -> None:
    """MC-077, MC-104, MC-105."""
    volume = await volumes.create(storage_class=await volumes.storage_class("fast"), reclaim="Delete")
    gone = OneVim({})
    volumes.work.vims = gone

    async def has_event() -> bool:
        return bool(volumes.events) and volumes.events[-1].reason == "its region is not registered any more"

    await volumes.work.one_pass(volume.id)
    owner = replace(volumes.owner, vims=gone)
    present = await owner.get(volume.id)
    assert (present.phase, present.phase_detail) == ("Failed", "its region is not registered any more")
    await until_true(has_event)
    removed = await owner.delete(volume.id, if_revision=None, wait_s=WAIT_S)
    assert (removed.is_gone, removed.data) == (True, "kept")
    assert removed.where.startswith("csi ")
    await volumes.cluster.patch(VOLUMES, pv_key(str(volume.pv)), {"metadata": {"finalizers": None}})
    await volumes.cluster.delete(VOLUMES, pv_key(str(volume.pv)))


async def test_users_of_a_shared_volume_do_not_hold_each_other_up(volumes: VolumeGround) -> None:
    volume = await volumes.create(access_modes=["ReadWriteMany"])
    await volumes.use(volume, "a")
    pod = await volumes.pod("web", "data")
    missing = VolumeUse(namespace=f"{volumes.namespace}-c", claim_name="data")
    await volumes.owner.use(volume.id, "vnf:b", missing, wait_s=0.0)
    assert not await volumes.leave(volume, "a", wait_s=0.0)
    await volumes.owner.use(volume.id, "vnf:c", VolumeUse(namespace=volumes.other, claim_name="data"), wait_s=0.0)
    await volumes.until_uses(volume, lambda uses: bool(uses["vnf:c"].claim_uid) and "not found" in uses["vnf:b"].detail)
    await volumes.leave(volume, "b", wait_s=0.0)
    await volumes.until_uses(volume, lambda uses: uses.keys() == {"vnf:a", "vnf:c"})
    await volumes.cluster.delete(PODS, pod, grace_period_s=0)
    assert await volumes.leave(volume, "a")
    assert (await volumes.owner.get(volume.id)).in_use_by == ("vnf:c",)
    assert await reserved(volumes, volume)


async def test_a_further_vnf_whose_claim_others_delete_is_shown(volumes: VolumeGround) -> None:
    """MC-103."""
    volume = await volumes.create(access_modes=["ReadWriteMany"])
    await volumes.use(volume, "a")
    second = await volumes.use(volume, "b", name="second")
    await volumes.cluster.delete(CLAIMS, ObjectKey("v1", CLAIMS.kind, volumes.namespace, "second"))
    shown = await volumes.shown(volume, lambda one: one.phase == "Released")
    assert shown.phase_detail == f"claim {volumes.namespace}/second of vnf:b is gone"
    await volumes.work.look_at_all()
    assert (volumes.events[-1].phase, volumes.events[-1].reason) == ("Released", shown.phase_detail)
    assert await volumes.use(volume, "b", name="second") == second
    assert (await volumes.owner.get(volume.id)).phase == "Bound"


@dataclass(frozen=True)
class LongLooks(VolumePasses):
    """Passes whose looks for drift last until the test ends them."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def look(self, volume: Volume) -> None:
        self.begun.set()
        await self.ended.wait()


async def test_a_look_for_drift_holds_up_no_work_in_its_region(volumes: VolumeGround) -> None:
    """Scenario 11: after a start both begin, and the work had to wait for a round that came after a pause of minutes."""
    await volumes.create()
    stored = await volumes.stored(await volumes.create(name="more"))
    await volumes.records.replace(stored.asked_again(stored.since))
    passes = LongLooks(volumes.records, volumes.cluster, SystemClock(), WAIT_S)
    now = volumes.work
    work = ReconcilingWork(
        "volume", now.records, now.turns, now.regions, now.vims, now.clusters, lambda _: passes, now.clock
    )
    async with work.running():
        looking = asyncio.create_task(work.look_at_all())
        await passes.begun.wait()
        await work.bring_all()
        assert (await volumes.records.get(stored.id) or stored).is_settled
        passes.ended.set()
        await looking


@dataclass
class Thief:
    """A cluster where another party makes a claim just before a volume is reserved for one of its name."""

    volumes: VolumeGround
    has_come: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.volumes.cluster, name)

    async def patch(self, resource: Resource, key: ObjectKey, change: Any) -> Any:
        if resource is VOLUMES and field_at(change, "spec", "claimRef", "name") == "data":
            self.has_come = True
            claim = ObjectKey("v1", CLAIMS.kind, self.volumes.namespace, "data")
            spec = {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "",
                "resources": {"requests": {"storage": "1Gi"}},
            }
            body = {"apiVersion": "v1", "kind": CLAIMS.kind, "metadata": {"name": "data"}, "spec": spec}
            assert await self.volumes.cluster.create(CLAIMS, claim, body) is None
        return await self.volumes.cluster.patch(resource, key, change)


async def test_no_claim_of_the_same_name_can_come_between(volumes: VolumeGround) -> None:
    """MC-102: the claim is there before the volume is reserved for it, and the volume is reserved for its uid."""
    volume = await volumes.create()
    thief = Thief(volumes)
    owner = replace(volumes.owner, work=Undone(volumes.records))
    wanted = VolumeUse(namespace=volumes.namespace, claim_name="data")
    await owner.use(volume.id, "vnf:a", wanted, wait_s=0)
    stored = await volumes.records.get(volume.id)
    assert stored is not None
    passes = VolumePasses(volumes.records, cast("Cluster", thief), SystemClock(), timeout_s=300.0)
    with suppress(NotYet):
        await passes.bring(stored)
    assert thief.has_come
    assert (await volumes.use(volume, "a")).is_bound
    claim = await volumes.claim()
    assert claim is not None
    assert field_at(await volumes.pv(volume.pv), "spec", "claimRef", "uid") == uid_of(claim)


async def test_a_claim_of_the_reserved_name_is_shown_and_not_taken_for_ours(volumes: VolumeGround) -> None:
    volume = await volumes.create()
    name = f"kubevnfm-{volume.id}"
    await volumes.foreign_claim(name, pv=str(volume.pv))
    await volumes.until_claim(name, lambda claim: field_at(claim, "status", "phase") == "Bound")
    shown = await volumes.shown(volume, lambda one: one.phase == "Failed")
    assert (
        shown.phase_detail == f"PersistentVolume {volume.pv} was bound by another party to {volumes.namespace}/{name}"
    )
    for claim in (await volumes.use(volume, "a"), await volumes.use(volume, "a")):
        assert (claim.is_bound, "of another party" in claim.detail) == (False, True)
    await volumes.cluster.delete(CLAIMS, ObjectKey("v1", CLAIMS.kind, volumes.namespace, name))
    assert (await volumes.use(volume, "a")).is_bound


async def test_a_claim_of_others_that_is_being_deleted_is_awaited(volumes: VolumeGround) -> None:
    """MC-102: it is no party that keeps the volume, though its pod still runs."""
    volume = await volumes.create()
    name = f"kubevnfm-{volume.id}"
    await volumes.foreign_claim(name, pv=str(volume.pv))
    pod = await volumes.pod("user", name)
    await volumes.cluster.delete(CLAIMS, ObjectKey("v1", CLAIMS.kind, volumes.namespace, name))
    used = asyncio.create_task(volumes.use(volume, "a"))
    await volumes.until_uses(volume, lambda uses: bool(uses) and "is being deleted" in uses["vnf:a"].detail)
    await volumes.cluster.delete(PODS, pod, grace_period_s=0)
    assert (await used).is_bound


@only_lab
async def test_what_a_late_class_has_made_is_kept_by_a_vnf_that_leaves_at_once(volumes: VolumeGround) -> None:
    """The process was away between the first pod and the end of the VNF."""
    storage_class = await volumes.storage_class("late", volumeBindingMode="WaitForFirstConsumer")
    volume = await volumes.create(storage_class=storage_class)
    owner = replace(volumes.owner, work=Undone(volumes.records))
    passes = VolumePasses(volumes.records, volumes.cluster, SystemClock(), timeout_s=0.0)

    async def bring() -> Volume:
        stored = await volumes.records.get(volume.id)
        assert stored is not None
        with suppress(NotYet):
            await passes.bring(stored)
        await passes.note(volume.id, "no pod yet")
        after = await volumes.records.get(volume.id)
        assert after is not None
        return after

    await owner.use(volume.id, "vnf:a", VolumeUse(namespace=volumes.namespace, claim_name="data"), wait_s=0)
    assert ((await bring()).phase, (await bring()).is_decided) == ("Pending", True)
    pod = await volumes.pod("web", "data")
    made = field_at(await volumes.claim(), "spec", "volumeName")
    data = uid_of(await volumes.pv(made) or {})
    await volumes.cluster.delete(PODS, pod, grace_period_s=0)
    await owner.leave(volume.id, "vnf:a", wait_s=0)
    await until_true(partial(_is_left, bring))
    pv = await volumes.pv(made)
    assert (uid_of(pv or {}), field_at(pv, "spec", "persistentVolumeReclaimPolicy")) == (data, "Retain")
    assert await reserved(volumes, volume, made)


async def _is_left(bring: Callable[[], Awaitable[Volume]]) -> bool:
    return (await bring()).uses == ()


@only_lab
async def test_a_vnf_that_waits_for_its_pod_can_leave(volumes: VolumeGround) -> None:
    storage_class = await volumes.storage_class("late", volumeBindingMode="WaitForFirstConsumer")
    volume = await volumes.create(storage_class=storage_class)
    assert (await volumes.use(volume, "a")).waits_for_consumer
    assert await volumes.leave(volume, "a")
    assert await volumes.claim() is None


class Undone:
    """`VolumeWork` that does nothing: the lives of a test do the work."""

    def __init__(self, records: StoredVolumes) -> None:
        self._records = records

    def wake(self, volume_id: str, /) -> None:
        """Nothing is woken."""

    async def decided(self, volume_id: str, /, *, within_s: float) -> Volume | None:
        return await self._records.get(volume_id)


@dataclass
class MortalStory:
    """The life of a volume; each process that works on it dies after each write that no earlier one has made."""

    volumes: VolumeGround
    store: Any
    lives: Lives = field(default_factory=Lives)

    def __post_init__(self) -> None:
        owner = self.volumes.owner
        self.records = StoredVolumes(self.lives.store(self.store), self.lives.store(self.volumes.outbox))
        self.owner = replace(owner, records=self.records, work=Undone(self.records))
        self.clusters = self.lives.clusters(owner.clusters)

    async def do(self, request: Callable[[], Awaitable[Any]]) -> None:
        """Make a request, and do the work on all volumes; again after each death."""

        async def deliver() -> None:
            with suppress(NotFound):  # a removal whose answer was lost
                await request()
            async with self.clusters.cluster(await self.owner.vims.connection(VimConnection(vim_id="vim"))) as cluster:
                passes = VolumePasses(self.records, cluster, SystemClock(), timeout_s=300.0)
                await until_true(lambda: self._is_settled(passes))

        await self.lives.until_done(deliver)

    async def _is_settled(self, passes: VolumePasses) -> bool:
        for volume_id, _ in await self.records.unsettled():
            volume = await self.records.get(volume_id)
            assert volume is not None
            with suppress(NotYet, RevisionConflict):
                await (passes.remove if volume.is_removed else passes.bring)(volume)
        return not await self.records.unsettled()


@pytest.mark.parametrize("is_provisioned", [False, True], ids=["source", "class"])
async def test_a_process_that_is_killed_after_each_write_reaches_the_same(
    volumes: VolumeGround, ground: Any, is_provisioned: bool
) -> None:
    story = MortalStory(volumes, ground.site.store)
    more = {"storage_class": await volumes.storage_class("fast"), "reclaim": "Delete"} if is_provisioned else {}
    request = volumes.request(**more)
    await story.do(partial(story.owner.create, request, wait_s=0))
    (volume,) = (await volumes.owner.find({}, limit=10)).items
    assert (volume.phase, await reserved(volumes, volume)) == ("Reserved", True)
    data = uid_of(await volumes.pv(volume.pv) or {})
    for vnf, namespace in (("vnf:a", volumes.namespace), ("vnf:b", volumes.other)):
        use = VolumeUse(namespace=namespace, claim_name="data")
        await story.do(partial(story.owner.use, volume.id, vnf, use, wait_s=0))
        bound = await volumes.claim(namespace=namespace)
        assert (field_at(bound, "status", "phase"), field_at(bound, "spec", "volumeName")) == ("Bound", volume.pv)
        await story.do(partial(story.owner.leave, volume.id, vnf, wait_s=0))
        assert await volumes.claim(namespace=namespace) is None
        assert await reserved(volumes, volume)
        assert uid_of(await volumes.pv(volume.pv) or {}) == data
    await story.do(partial(story.owner.delete, volume.id, if_revision=None, wait_s=0))
    assert await volumes.pv(volume.pv) is None
    assert await volumes.claim(f"kubevnfm-{volume.id}") is None
    assert (await volumes.owner.find({}, limit=10)).items == []
    assert len(story.lives.deaths) >= (24 if is_provisioned else 20)
