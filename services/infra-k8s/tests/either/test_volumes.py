"""Persistent volumes that outlive VNFs (multicloud.md MC-100 to MC-105)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from kubevnfm_clients.multicloud.volumes import VolumePatch, VolumeUse
from kubevnfm_infra_k8s.domain.objects import CLAIMS, PODS, ObjectKey, field_at, uid_of
from kubevnfm_infra_k8s.domain.planning.cnf_policy import Policies
from kubevnfm_infra_k8s.domain.planning.pod_security import Level
from kubevnfm_infra_k8s.domain.volumes.bodies import VOLUMES, pv_key
from kubevnfm_kit.errors import Conflict, ConflictingInput, InUse, NotFound, PreconditionFailed, Unprocessable
from patience import until_true
from worlds.volume_ground import WAIT_S, VolumeGround, only_lab, reserved


async def test_a_volume_with_a_source_is_reserved_for_a_claim_that_does_not_exist(volumes: VolumeGround) -> None:
    volume = await volumes.create(labels={"tier": "gold"})
    assert (volume.phase, volume.pv, volume.claim, volume.in_use_by) == ("Reserved", f"kubevnfm-{volume.id}", None, ())
    pv = await volumes.pv(volume.pv)
    assert pv is not None
    assert pv["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert pv["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "kubevnfm",
        "kubevnfm.io/persistent-volume-id": volume.id,
        "tier": "gold",
    }
    assert await reserved(volumes, volume)


async def test_a_repeated_creation_is_the_same_volume_and_another_spec_is_refused(volumes: VolumeGround) -> None:
    volume = await volumes.create()
    again = await volumes.owner.create(volumes.request(), wait_s=WAIT_S)
    assert (again.is_new, again.volume.id, again.volume.phase) == (False, volume.id, "Reserved")
    assert (await volumes.create(size="1024Mi")).id == volume.id
    with pytest.raises(ConflictingInput, match="differs in size"):
        await volumes.create(size="2Gi")


async def test_the_next_vnf_in_another_namespace_binds_the_same_data(volumes: VolumeGround) -> None:
    volume = await volumes.create()
    first = await volumes.use(volume, "a")
    assert (first.is_bound, first.pv, first.detail) == (True, volume.pv, "")
    claim = await volumes.claim()
    assert field_at(claim, "status", "phase") == "Bound"
    assert (await volumes.owner.get(volume.id)).phase == "Bound"
    assert await volumes.leave(volume, "a")
    assert await volumes.claim() is None
    present = await volumes.owner.get(volume.id)
    assert (present.phase, present.in_use_by, await reserved(volumes, volume)) == ("Reserved", (), True)
    before = await volumes.pv(volume.pv)
    second = await volumes.use(volume, "b", namespace=volumes.other, name="disk")
    assert second.is_bound
    bound = await volumes.claim("disk", namespace=volumes.other)
    assert field_at(bound, "status", "phase") == "Bound"
    after = await volumes.pv(volume.pv)
    assert before is not None
    assert after is not None
    assert uid_of(before) == uid_of(after)
    present = await volumes.owner.get(volume.id)
    assert (present.phase, present.in_use_by) == ("Bound", ("vnf:b",))
    assert present.claim is not None
    assert (present.claim.namespace, present.claim.name) == (volumes.other, "disk")


async def test_taking_and_leaving_are_safe_to_repeat(volumes: VolumeGround) -> None:
    volume = await volumes.create()
    first = await volumes.use(volume, "a")
    assert await volumes.use(volume, "a") == first
    with pytest.raises(Conflict, match="by another claim"):
        await volumes.use(volume, "a", name="other")
    assert await volumes.leave(volume, "a")
    assert await volumes.leave(volume, "a")
    assert await volumes.owner.leave("unknown", "vnf:a", wait_s=0)


async def test_a_claim_that_waits_for_the_volume_never_gets_it(volumes: VolumeGround) -> None:
    volume = await volumes.create()
    await volumes.foreign_claim("thief", pv=str(volume.pv))
    await volumes.foreign_claim("any", namespace=volumes.other)
    for vnf in ("a", "b"):
        assert (await volumes.use(volume, vnf)).is_bound
        assert await volumes.leave(volume, vnf)
    for name, namespace in (("thief", volumes.namespace), ("any", volumes.other)):
        found = await volumes.claim(name, namespace=namespace)
        assert field_at(found, "spec", "volumeName") in ({str(volume.pv)} if name == "thief" else {None})
        assert field_at(found, "status", "phase") == "Pending"
    assert await reserved(volumes, volume)


async def test_a_volume_in_use_is_refused_to_others_and_not_deleted(volumes: VolumeGround) -> None:
    volume = await volumes.create()
    await volumes.use(volume, "a")
    with pytest.raises(InUse) as refused:
        await volumes.use(volume, "b", name="second")
    assert refused.value.holders == ("vnf:a",)
    with pytest.raises(InUse) as refused:
        await volumes.owner.delete(volume.id, if_revision=None, wait_s=WAIT_S)
    assert refused.value.holders == ("vnf:a",)
    assert await volumes.claim("second") is None


async def test_a_shared_volume_has_a_persistent_volume_for_each_further_vnf(volumes: VolumeGround) -> None:
    volume = await volumes.create(access_modes=["ReadWriteMany"])
    claims = [
        await volumes.use(volume, "a"),
        await volumes.use(volume, "b", name="second"),
        await volumes.use(volume, "c", namespace=volumes.other),
    ]
    assert [claim.is_bound for claim in claims] == [True, True, True]
    names = [claim.pv for claim in claims]
    assert (names[0], len(set(names))) == (volume.pv, 3)
    sources = [field_at(await volumes.pv(name), "spec", "nfs") for name in names]
    assert sources == [{"server": "192.0.2.9", "path": f"/{volumes.namespace}/data"}] * 3
    assert await volumes.leave(volume, "b")
    assert (await volumes.pv(names[1]), await volumes.claim("second")) == (None, None)
    # The volume's own PersistentVolume stays, and the next VNF has it.
    assert await volumes.leave(volume, "a")
    assert await reserved(volumes, volume)
    assert (await volumes.use(volume, "d")).pv == volume.pv
    assert (await volumes.owner.get(volume.id)).in_use_by == ("vnf:c", "vnf:d")


async def test_a_local_volume_is_not_shared(volumes: VolumeGround) -> None:
    local = {"local": {"path": "/mnt/disk", "nodes": ["worker1"]}}
    volume = await volumes.create(access_modes=["ReadWriteMany"], source=local)
    assert volume.phase == "Reserved"
    await volumes.use(volume, "a")
    with pytest.raises(InUse):
        await volumes.use(volume, "b", name="second")


async def test_a_claim_that_a_pod_uses_is_left_once_the_pod_is_gone(volumes: VolumeGround) -> None:
    volume = await volumes.create()
    await volumes.use(volume, "a")
    pod = await volumes.pod("web", "data")
    assert not await volumes.leave(volume, "a", wait_s=0.0)

    async def is_explained() -> bool:
        return "a pod that uses it keeps it" in (await volumes.owner.get(volume.id)).phase_detail

    await until_true(is_explained)
    assert field_at(await volumes.claim(), "metadata", "deletionTimestamp")
    with pytest.raises(InUse):
        await volumes.use(volume, "b")
    await volumes.cluster.delete(PODS, pod, grace_period_s=0)
    assert await volumes.leave(volume, "a")
    assert await reserved(volumes, volume)


async def test_a_deleted_volume_says_where_its_data_are(volumes: VolumeGround) -> None:
    volume = await volumes.create()
    await volumes.use(volume, "a")
    await volumes.leave(volume, "a")
    removed = await volumes.owner.delete(volume.id, if_revision=None, wait_s=WAIT_S)
    assert (removed.is_gone, removed.data) == (True, "kept")
    assert removed.where == f"nfs 192.0.2.9:/{volumes.namespace}/data"
    assert await volumes.pv(volume.pv) is None
    with pytest.raises(NotFound):
        await volumes.owner.get(volume.id)
    assert (await volumes.create()).id != volume.id


async def test_what_others_do_to_the_volume_is_shown_and_repaired_on_request(volumes: VolumeGround) -> None:
    volume = await volumes.create()
    await volumes.cluster.delete(VOLUMES, pv_key(str(volume.pv)))
    gone = f"PersistentVolume {volume.pv} was deleted by another party"
    # Until its finalizer is removed, it is being deleted.
    shown = await volumes.shown(volume, lambda one: one.phase == "Failed" and one.phase_detail == gone)
    await volumes.work.look_at_all()
    assert (await volumes.owner.find({"status": "Failed"}, limit=10)).items[0].id == volume.id
    assert (await volumes.create()).phase == "Reserved"
    assert await reserved(volumes, volume)
    phases = [(event.old_phase, event.phase) for event in volumes.events]
    assert phases == [("Pending", "Reserved"), ("Reserved", "Failed"), ("Pending", "Reserved")]
    assert volumes.events[1].reason == shown.phase_detail
    await volumes.use(volume, "a")
    await volumes.cluster.delete(CLAIMS, ObjectKey("v1", CLAIMS.kind, volumes.namespace, "data"))
    shown = await volumes.shown(volume, lambda one: one.phase == "Released")
    assert shown.phase_detail == f"claim {volumes.namespace}/data is gone"
    assert (await volumes.use(volume, "a")).is_bound


async def test_a_claim_of_others_is_not_taken(volumes: VolumeGround) -> None:
    volume = await volumes.create()
    foreign = await volumes.foreign_claim("data")
    refused = await volumes.use(volume, "a")
    text = f"claim {volumes.namespace}/data exists and is not of this volume"
    assert (refused.is_bound, refused.detail) == (False, text)
    assert (await volumes.owner.get(volume.id)).phase == "Failed"
    assert await volumes.leave(volume, "a")
    assert uid_of(await volumes.claim() or {}) == uid_of(foreign)
    assert (await volumes.owner.get(volume.id)).phase == "Reserved"


async def test_a_namespace_that_does_not_exist_is_named(volumes: VolumeGround) -> None:
    volume = await volumes.create()
    missing = f"{volumes.namespace}-c"
    wanted = VolumeUse(namespace=missing, claim_name="data")
    claim = await volumes.owner.use(volume.id, "vnf:a", wanted, wait_s=0.0)
    assert not claim.is_bound
    shown = await volumes.shown(volume, lambda one: missing in one.phase_detail)
    assert "not found" in shown.phase_detail
    assert await volumes.leave(volume, "a")


async def test_a_class_provisions_a_volume_that_outlives_its_claim(volumes: VolumeGround) -> None:
    storage_class = await volumes.storage_class("fast")
    volume = await volumes.create(storage_class=storage_class)
    assert volume.phase == "Reserved"
    pv = await volumes.pv(volume.pv)
    assert field_at(pv, "spec", "persistentVolumeReclaimPolicy") == "Retain"
    assert await reserved(volumes, volume)
    assert (await volumes.use(volume, "a")).is_bound
    assert await volumes.leave(volume, "a")
    assert await reserved(volumes, volume)


async def test_data_are_deleted_by_the_provisioner(volumes: VolumeGround) -> None:
    storage_class = await volumes.storage_class("fast")
    volume = await volumes.create(storage_class=storage_class, reclaim="Delete")
    await volumes.use(volume, "a")
    await volumes.leave(volume, "a")
    removed = await volumes.owner.delete(volume.id, if_revision=None, wait_s=WAIT_S)
    assert (removed.is_gone, removed.data, removed.where) == (True, "deleted", "")
    assert await volumes.pv(volume.pv) is None
    assert await volumes.claim(f"kubevnfm-{volume.id}") is None


@only_lab
async def test_a_late_class_provisions_for_the_first_vnf(volumes: VolumeGround) -> None:
    storage_class = await volumes.storage_class("late", volumeBindingMode="WaitForFirstConsumer")
    volume = await volumes.create(storage_class=storage_class)
    assert (volume.phase, volume.pv) == ("Pending", None)
    assert volume.phase_detail == "the class provisions it when the first VNF comes"
    claim = await volumes.use(volume, "a")
    assert (claim.is_bound, claim.waits_for_consumer) == (False, True)
    await volumes.pod("web", "data")
    assert (await volumes.shown(volume, lambda one: one.phase == "Bound")).pv is not None
    assert (await volumes.use(volume, "a")).is_bound
    pv = await volumes.pv((await volumes.owner.get(volume.id)).pv)
    assert field_at(pv, "spec", "persistentVolumeReclaimPolicy") == "Retain"


@only_lab
async def test_a_volume_grows(volumes: VolumeGround) -> None:
    storage_class = await volumes.storage_class("fast", allowVolumeExpansion=True)
    volume = await volumes.create(storage_class=storage_class)
    grown = await volumes.owner.change(volume.id, VolumePatch(size="2Gi"), if_revision=volume.revision, wait_s=WAIT_S)
    assert (grown.size, grown.phase, grown.phase_detail) == (
        "2Gi",
        "Reserved",
        "grows from 1Gi to 2Gi when the next VNF binds it",
    )
    assert (await volumes.use(volume, "a")).is_bound
    await volumes.until_claim("data", lambda claim: field_at(claim, "status", "capacity", "storage") == "2Gi")
    present = await volumes.owner.get(volume.id)
    assert (present.phase, present.phase_detail) == ("Bound", "")
    await volumes.owner.change(volume.id, VolumePatch(size="3Gi"), if_revision=present.revision, wait_s=WAIT_S)
    await volumes.until_claim("data", lambda claim: field_at(claim, "status", "capacity", "storage") == "3Gi")


async def test_a_volume_does_not_shrink_or_grow_where_it_cannot(volumes: VolumeGround) -> None:
    rigid = await volumes.create("rigid", storage_class=await volumes.storage_class("rigid"))
    nfs = await volumes.create("nfs")
    for volume, size, why in (
        (rigid, "2Gi", "does not allow expansion"),
        (rigid, "512Mi", "does not shrink"),
        (rigid, "large", "a quantity such as 10Gi expected"),
        (nfs, "2Gi", "without a storage class"),
    ):
        with pytest.raises(Unprocessable, match=why):
            await volumes.owner.change(volume.id, VolumePatch(size=size), if_revision=volume.revision, wait_s=0)


async def test_a_change_of_an_earlier_revision_is_refused(volumes: VolumeGround) -> None:
    volume = await volumes.create()
    changed = await volumes.owner.change(
        volume.id, VolumePatch(labels={"tier": "gold"}), if_revision=volume.revision, wait_s=WAIT_S
    )
    assert changed.labels == {"tier": "gold"}
    assert field_at(await volumes.pv(volume.pv), "metadata", "labels", "tier") == "gold"
    with pytest.raises(PreconditionFailed):
        await volumes.owner.change(volume.id, VolumePatch(labels={}), if_revision=volume.revision, wait_s=0)


async def test_changes_that_name_no_revision_are_all_made(volumes: VolumeGround) -> None:
    """MC-105: the work on a volume writes it too, and must not make a request fail."""
    volume = await volumes.create()
    patches = [VolumePatch(labels={"tier": f"t{number}"}) for number in range(5)]
    await asyncio.gather(*(volumes.owner.change(volume.id, each, if_revision=None, wait_s=0) for each in patches))
    present = await volumes.owner.get(volume.id)
    assert present.labels in [each.labels for each in patches]
    assert present.revision >= volume.revision + len(patches)


async def test_labels_of_a_change_replace_the_earlier_ones_on_each_object(volumes: VolumeGround) -> None:
    volume = await volumes.create(labels={"tier": "gold", "site": "a"})
    await volumes.use(volume, "a")
    present = await volumes.owner.get(volume.id)
    await volumes.owner.change(
        volume.id, VolumePatch(labels={"site": "b"}), if_revision=present.revision, wait_s=WAIT_S
    )
    for body in (await volumes.pv(volume.pv), await volumes.claim()):
        labels = field_at(body, "metadata", "labels")
        assert (labels.get("tier"), labels["site"]) == (None, "b")


async def test_nothing_is_made_in_a_protected_namespace(volumes: VolumeGround) -> None:
    for namespace in ("protected", "kube-system"):
        with pytest.raises(Unprocessable) as refused:
            await volumes.create(namespace=namespace)
        assert refused.value.field == "namespace"
    volume = await volumes.create()
    with pytest.raises(Unprocessable, match="it is protected"):
        await volumes.use(volume, "a", namespace="kube-system")
    assert (await volumes.owner.get(volume.id)).in_use_by == ()


async def test_a_directory_of_a_node_needs_a_policy_that_allows_it(volumes: VolumeGround) -> None:
    local = {"local": {"path": "/mnt/disk", "nodes": ["worker1"]}}
    for level, is_allowed in ((Level.BASELINE, False), (Level.PRIVILEGED, True)):
        owner = replace(volumes.owner, policies=Policies(mode="strict", pod_security=level))
        if is_allowed:
            assert (await owner.create(volumes.request(source=local), wait_s=WAIT_S)).volume.phase == "Reserved"
        else:
            with pytest.raises(Unprocessable) as refused:
                await owner.create(volumes.request(source=local), wait_s=WAIT_S)
            assert refused.value.field == "source/local"
