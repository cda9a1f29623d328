"""VNFs that use persistent volumes: claims in their namespaces, waits, hand-over (multicloud.md MC-057, MC-060, MC-100, MC-101)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
from kubevnfm_clients.multicloud.volumes import PersistentVolume
from kubevnfm_events import VimConnection
from kubevnfm_events.objects import ClaimedVolume, HoldVolumes, ObjectsApplied, ReleaseVolumes, VolumesReleased
from kubevnfm_infra_k8s.domain.errors import ClusterUnavailable, VolumeNotReady
from kubevnfm_infra_k8s.domain.objects import CLAIMS, Body, ObjectKey, Resource, field_at, uid_of
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.volumes.uses import InstanceVolumes
from kubevnfm_kit.errors import InUse, NotFound, Unprocessable
from kubevnfm_worker.outcome import Done
from patience import until_true
from worlds.volume_ground import WAIT_S, VolumeGround, only_lab, reserved

_NAMESPACES = Resource("v1", "Namespace", "namespaces", namespaced=False)
_NODES = Resource("v1", "Node", "nodes", namespaced=False)
_LATE = "WaitForFirstConsumer"
_NO_FILES: Mapping[str, Body] = {}
_ORDER = "artifact-order.yaml"
_ARTIFACTS = "artifacts:\n- {file: web.yaml, priority: 1}\n"


def mounting(workload: Any, claim: str = "data", **spec: Any) -> Body:
    """Return a Deployment whose pod mounts a claim."""
    web: dict[str, Any] = workload(name="web", replicas=1, **spec)
    pod = web["spec"]["template"]["spec"]
    pod["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
    pod["terminationGracePeriodSeconds"] = 0
    return web


@dataclass
class Bed:
    """VNFs in namespaces that do not exist before, and volumes."""

    ground: Any
    volumes: VolumeGround

    def order(
        self, vnf: str, body: Body, volume: PersistentVolume | None, order: str = _ARTIFACTS, **files: Body
    ) -> dict[str, Any]:
        given = {} if volume is None else {"persistent_volume_id": volume.id, "access_modes": volume.access_modes}
        return {
            "order_artifact": _ORDER,
            "namespace": self.place(vnf),
            "volumes": () if volume is None else (ClaimedVolume(claim_name="data", **given),),
            "files": {_ORDER: order, "web.yaml": body, **files},
        }

    def place(self, vnf: str) -> str:
        return f"{self.volumes.namespace}-{vnf}"

    async def hold(self, vnf: str, body: Body, volume: PersistentVolume) -> None:
        self.ground.site.step = "hold"
        order = self.order(vnf, body, volume)
        package = self.ground.site.packages.add(order.pop("files"), package_id=f"p-{vnf}")
        command = HoldVolumes(
            vnf_instance_id=vnf, package=package, vim=self.ground.site.vim, def_files=("web.yaml",), **order
        )
        assert isinstance(await self.ground.site.handlers.hold_volumes(command, self.ground.site.context()), Done)

    async def apply(
        self,
        vnf: str,
        body: Body,
        volume: PersistentVolume,
        *,
        order: str = _ARTIFACTS,
        files: Mapping[str, Body] = _NO_FILES,
        **more: Any,
    ) -> ObjectsApplied:
        self.ground.instances.add(vnf)
        self.ground.site.step = "apply"
        given = self.order(vnf, body, volume, order, **files)
        made: ObjectsApplied = await self.ground.site.apply(
            given.pop("files"), def_files=["web.yaml", *files], instance=vnf, **given, **more
        )
        return made

    async def release(self, vnf: str, *, force: bool = False) -> tuple[str, ...]:
        self.ground.site.step = "release"
        command = ReleaseVolumes(vnf_instance_id=vnf, force=force)
        while True:
            outcome = await self.ground.site.handlers.release_volumes(command, self.ground.site.context())
            if isinstance(outcome, Done):
                assert isinstance(outcome.event, VolumesReleased)
                return outcome.event.volume_ids

    async def users(self, volume: PersistentVolume) -> tuple[str, ...]:
        return (await self.volumes.owner.get(volume.id)).in_use_by

    async def deployment(self, vnf: str) -> Mapping[str, Any] | None:
        key = ObjectKey("apps/v1", "Deployment", self.place(vnf), "web")
        found: Body | None = await self.ground.cluster.get(Resource("apps/v1", "Deployment", "deployments", True), key)
        return found


@dataclass(frozen=True)
class _Away:
    """`domain.ports.Clusters` of a region that does not answer."""

    def cluster(self, _: VimConnection) -> AbstractAsyncContextManager[Cluster]:
        raise ClusterUnavailable("https://192.0.2.1: no answer")


@pytest.fixture
def bed(ground: Any, volumes: VolumeGround) -> Bed:
    site = ground.site.with_changes(volumes=InstanceVolumes(volumes.owner))
    return Bed(replace(ground, site=site), volumes)


async def test_a_volume_goes_with_its_data_from_one_vnf_to_the_next(bed: Bed, workload: Any) -> None:
    """The claim is bound in a new namespace before the pods are made, and goes with the last; then the next VNF has it."""
    volumes, web = bed.volumes, mounting(workload)
    volume = await volumes.create()
    before = await volumes.pv(volume.pv)
    for _ in range(2):
        await bed.hold("a", web, volume)
    assert await bed.users(volume) == ("vnf:a",)
    with pytest.raises(InUse):
        await bed.hold("b", web, volume)
    made = await bed.apply("a", web, volume)
    assert [each.kind for each in made.objects] == ["Namespace", "Deployment"]
    claim, deployment = await volumes.claim(namespace=bed.place("a")), await bed.deployment("a")
    assert claim is not None
    assert deployment is not None
    assert (field_at(claim, "status", "phase"), field_at(claim, "spec", "volumeName")) == ("Bound", volume.pv)
    created = [int(each["metadata"]["resourceVersion"]) for each in (claim, deployment)]
    assert created == sorted(created)

    done = await bed.ground.delete(instance="a")
    # The namespace that the order has made goes too: no claim is left in it.
    assert done.left == ()
    assert await bed.ground.cluster.get(_NAMESPACES, ObjectKey("v1", "Namespace", "", bed.place("a"))) is None
    assert (await bed.release("a"), await bed.release("a")) == ((), ())
    assert (await bed.users(volume), await reserved(volumes, volume)) == ((), True)
    # MC-052: the VNF for which it is bound, and which has left it, is named.
    assert {each.phase: each.vnf_instance_ids for each in volumes.events}.items() >= {"Bound": ("a",)}.items()
    assert ("Reserved", ("a",)) in [(each.phase, each.vnf_instance_ids) for each in volumes.events]

    await bed.hold("b", web, volume)
    await bed.apply("b", web, volume)
    after = await volumes.pv(volume.pv)
    assert after is not None
    assert before is not None
    assert (uid_of(after), field_at(after, "spec", "claimRef", "namespace")) == (uid_of(before), bed.place("b"))
    await bed.ground.delete(instance="b")
    assert await bed.release("b") == ()


async def test_what_stands_in_the_way_of_a_claim_ends_the_operation(bed: Bed, workload: Any) -> None:
    """Its rollback leaves the volume to others, and a retry looks again."""
    volumes, web = bed.volumes, mounting(workload)
    volume = await volumes.create()
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {}}
    with pytest.raises(Unprocessable, match="is a claim of the artifacts") as refused:
        await bed.hold("a", claim, volume)
    assert (refused.value.places[0][0], refused.value.made_nothing) == ("volumes[0]/claim_name", True)
    place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bed.place("a")}}
    await bed.ground.create(place)
    await bed.hold("a", web, volume)
    assert await bed.users(volume) == ("vnf:a",)
    await bed.release("a")
    assert await reserved(volumes, volume)
    await volumes.foreign_claim("data", namespace=bed.place("a"))
    await bed.hold("a", web, volume)
    with pytest.raises(VolumeNotReady, match=r"data is Failed: claim .*/data exists and is not of this volume"):
        await bed.apply("a", web, volume)
    assert await bed.deployment("a") is None
    foreign = ObjectKey(CLAIMS.api_version, CLAIMS.kind, bed.place("a"), "data")
    await bed.ground.cluster.delete(CLAIMS, foreign)
    await bed.apply("a", web, volume, attempt=2)
    assert field_at(await volumes.claim(namespace=bed.place("a")), "spec", "volumeName") == volume.pv

    # A pod of the VNF keeps the claim: a forced release does not wait for it.
    assert await bed.release("a", force=True) == (volume.id,)
    await InstanceVolumes(volumes.owner).check_answering("a")
    with pytest.raises(ClusterUnavailable):
        await InstanceVolumes(replace(volumes.owner, clusters=_Away())).check_answering("a")
    assert await bed.users(volume) == ("vnf:a",)
    await bed.ground.delete(instance="a")
    assert await bed.release("a") == ()
    await until_true(lambda: reserved(volumes, volume))
    await volumes.owner.delete(volume.id, if_revision=None, wait_s=60.0)
    with pytest.raises(NotFound):
        await bed.hold("a", web, volume)
    assert await bed.release("a") == ()
    await bed.ground.cluster.delete(_NAMESPACES, ObjectKey("v1", "Namespace", "", bed.place("a")))


@only_lab
async def test_a_late_class_keeps_its_data_before_the_operation_ends(bed: Bed, workload: Any) -> None:
    """MC-100: its first pod gets the volume, which has reclaim policy Retain once the VNF is there."""
    volumes, web = bed.volumes, mounting(workload)
    late = await volumes.storage_class("late", volumeBindingMode=_LATE)
    volume = await volumes.create(storage_class=late)
    await bed.hold("a", web, volume)
    await bed.apply("a", web, volume)
    present = await volumes.stored(volume)
    assert present.uses[0].claim_uid
    assert field_at(await volumes.pv(present.pv), "spec", "persistentVolumeReclaimPolicy") == "Retain"
    await bed.ground.delete(instance="a")
    assert await bed.release("a") == ()
    assert field_at(await volumes.pv(present.pv), "spec", "claimRef", "name") == f"kubevnfm-{volume.id}"


@only_lab
async def test_a_late_class_keeps_its_data_before_the_next_priority(bed: Bed, workload: Any) -> None:
    """MC-100: also while the work on volumes has not seen that the claim is bound; a kill between priorities loses no data."""
    volumes, web = bed.volumes, mounting(workload)
    web["spec"]["template"]["spec"]["nodeSelector"] = {"is": "there"}
    node = ObjectKey("v1", "Node", "", "late")
    volume = await volumes.create(storage_class=await volumes.storage_class("late", volumeBindingMode=_LATE))
    await bed.hold("a", web, volume)
    order = "artifacts:\n- {file: web.yaml, priority: 1}\n- {file: next.yaml, priority: 2}\n"
    files = {"next.yaml": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "next"}}}
    applying = asyncio.create_task(bed.apply("a", web, volume, order=order, files=files))

    async def next_one() -> Body | None:
        key = ObjectKey("v1", "ConfigMap", bed.place("a"), "next")
        found: Body | None = await bed.ground.cluster.get(Resource("v1", "ConfigMap", "configmaps", True), key)
        return found

    async def is_looked_at_again() -> bool:
        return (await volumes.stored(volume)).wanted > asked or await next_one() is not None

    await volumes.until_uses(volume, lambda found: found["vnf:a"].waits_for_consumer)
    async with volumes.work.turns.held(f"volume/{volume.id}", within_s=WAIT_S):
        asked = (await volumes.stored(volume)).wanted
        labels = {"metadata": {"name": "late", "labels": {"is": "there"}}}
        await bed.ground.cluster.create(_NODES, node, {"apiVersion": "v1", "kind": "Node", **labels})
        await until_true(is_looked_at_again, timeout_s=WAIT_S)
        assert await next_one() is None
    await applying
    pv, made = await volumes.pv((await volumes.stored(volume)).pv), await next_one()
    assert pv is not None
    assert made is not None
    assert field_at(pv, "spec", "persistentVolumeReclaimPolicy") == "Retain"
    assert int(pv["metadata"]["resourceVersion"]) < int(made["metadata"]["resourceVersion"])
    await bed.ground.delete(instance="a")
    assert await bed.release("a") == ()
    await bed.ground.cluster.delete(_NODES, node)


async def test_a_repair_makes_a_claim_again_that_others_have_deleted(bed: Bed, workload: Any) -> None:
    """No manifest has it, so no object of the VNF differs: the repair ended with the claim missing."""
    volumes, web = bed.volumes, mounting(workload)
    web["spec"]["replicas"] = 0
    volume = await volumes.create()
    await bed.hold("a", web, volume)
    await bed.apply("a", web, volume)
    key = ObjectKey(CLAIMS.api_version, CLAIMS.kind, bed.place("a"), "data")
    before = await bed.ground.cluster.get(CLAIMS, key)
    await bed.ground.cluster.delete(CLAIMS, key)

    async def is_gone() -> bool:
        return await bed.ground.cluster.get(CLAIMS, key) is None

    await until_true(is_gone)
    order = bed.order("a", web, volume)
    bed.ground.site.packages.add(order.pop("files"), package_id="p-a")
    await bed.ground.site.repair(package_id="p-a", def_files=["web.yaml"], instance="a", operation="mend", **order)
    after = await bed.ground.cluster.get(CLAIMS, key)
    assert field_at(after, "status", "phase") == "Bound"
    assert uid_of(after or {}) != uid_of(before or {})
    await bed.ground.delete(instance="a")
    assert await bed.release("a") == ()


async def test_a_claim_in_the_way_of_one_user_ends_no_operation_of_another(bed: Bed) -> None:
    """Both use the volume at once; the claim of the second waits for its namespace only."""
    volumes, uses = bed.volumes, InstanceVolumes(bed.volumes.owner)
    volume = await volumes.create(access_modes=["ReadWriteMany"])
    mine = (ClaimedVolume(persistent_volume_id=volume.id, claim_name="data", access_modes=("ReadWriteMany",)),)
    await volumes.foreign_claim("data")
    await uses.hold("other", mine, volumes.namespace)
    with pytest.raises(VolumeNotReady, match="exists and is not of this volume"):
        await uses.waited_for("other", mine, volumes.namespace, within_s=WAIT_S)
    await uses.hold("a", mine, bed.place("absent"))
    await volumes.until_uses(volume, lambda found: bool(found["vnf:a"].detail))
    waits = await uses.waited_for("a", mine, bed.place("absent"), within_s=0.0)
    assert bed.place("absent") in waits

    async def is_left(vnf: str) -> bool:
        return not await uses.leave(vnf, within_s=0.0)

    for vnf in ("other", "a"):
        await until_true(partial(is_left, vnf), timeout_s=WAIT_S)


async def test_a_change_leaves_the_volumes_that_it_needs_no_more(bed: Bed) -> None:
    """MC-042: a second time too; the others stay used."""
    volumes, uses = bed.volumes, InstanceVolumes(bed.volumes.owner)
    kept, left = await volumes.create(), await volumes.create()
    mine = [ClaimedVolume(persistent_volume_id=each.id, claim_name=each.name) for each in (kept, left)]
    await uses.hold("a", mine, bed.place("absent"))

    async def is_left() -> bool:
        return not await uses.leave("a", kept=[kept.id], within_s=0.0)

    await until_true(is_left, timeout_s=WAIT_S)
    assert await is_left()
    assert [each.id for each in await volumes.owner.records.used_by("vnf:a")] == [kept.id]
    assert await uses.leave("a", within_s=WAIT_S) == {}
