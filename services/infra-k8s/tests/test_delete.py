"""Deletion of a CNF from the lab's cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kubevnfm_events import VimConnection
from kubevnfm_events.objects import DeleteObjects, ObjectsDeleted, ReleaseVolumes
from kubevnfm_infra_k8s.adapters.clusters import KubernetesClusters
from kubevnfm_infra_k8s.adapters.documents import StoredDeletions, StoredStartTimes
from kubevnfm_infra_k8s.adapters.kubernetes import KubernetesCluster
from kubevnfm_infra_k8s.domain.errors import AddressUnnamed, ClusterUnavailable, ObjectsNotGone, VolumeNotReady
from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, PODS, ObjectKey, Resource, field_at
from kubevnfm_infra_k8s.domain.ports import Cluster, Propagation
from kubevnfm_infra_k8s.domain.removing.propagation import propagation_of
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes import LabCluster, LabClusters
from kubevnfm_secrets import KeyRing
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.outcome import Done, NotYet, Outcome
from patience import until_true
from servers.vnf_networks import networks
from worlds.set_clock import SetClock

Make = Callable[..., dict[str, Any]]


async def named(cluster: Cluster, api_version: str, kind: str, namespace: str = "") -> list[str]:
    resource = await cluster.resource(api_version, kind)
    assert resource is not None
    return sorted(each["metadata"]["name"] for each in await cluster.list(resource, namespace=namespace))


async def test_all_objects_of_the_inventory_are_deleted_and_no_others(
    site: Any, cluster: Cluster, make: Make, workload: Make, lab: LabCluster
) -> None:
    await site.apply({"f.yaml": [make("ConfigMap", "c"), workload()]})
    await site.apply({"f.yaml": make("ConfigMap", "other")}, instance="i2", operation="opx")
    assert (await site.delete()).count == 2
    assert set(lab.inventory()["objects"]) == {"ConfigMap/default/other"}
    assert await named(cluster, "v1", "Pod", "default") == []
    assert (await site.delete(operation="op3")).count == 0


async def test_what_was_deleted_by_hand_does_not_stop_the_deletion(
    site: Any, cluster: Cluster, make: Make, workload: Make, lab: LabCluster
) -> None:
    """First one object of it, then the namespace with all that is left."""
    namespace = make("Namespace", "ns")
    await site.apply({"f.yaml": [namespace, make("ConfigMap", "c"), workload(name="web")]}, namespace="ns")
    for api_version, kind, within, name in (("apps/v1", "Deployment", "ns", "web"), ("v1", "Namespace", "", "ns")):
        resource = await cluster.resource(api_version, kind)
        assert resource is not None
        key = ObjectKey(api_version, kind, within, name)
        await cluster.delete(resource, key)

        async def is_gone(resource: Resource = resource, key: ObjectKey = key) -> bool:
            return await cluster.get(resource, key) is None

        await until_true(is_gone)
    assert (await site.delete()).count == 3
    assert lab.inventory()["objects"] == {}


async def test_an_instance_without_objects_is_deleted_at_once(site: Any, ledger: CallLedger) -> None:
    assert (await site.delete(instance="none")).count == 0
    assert ledger.calls() == []


async def test_a_half_applied_instance_is_deleted(site: Any, faults: FaultBook, make: Make, lab: LabCluster) -> None:
    """CR-019: the inventory is written before any object is sent."""
    faults.add(part="kubernetes", verb="patch secrets", effect="hang", after=1)
    task = asyncio.create_task(site.apply({"f.yaml": [make("ConfigMap", "c"), make("Secret", "s")]}))

    async def is_half_applied() -> bool:
        return set(lab.inventory()["objects"]) == {"ConfigMap/default/c"}

    await until_true(is_half_applied)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    faults.clear()
    assert (await site.delete()).count == 2
    assert lab.inventory()["objects"] == {}


async def test_an_object_that_another_owner_created_again_is_not_deleted(
    site: Any, cluster: Cluster, make: Make
) -> None:
    """MC-058, CR-023: the uid is a precondition."""
    await site.apply({"f.yaml": make("ConfigMap", "c")})
    resource = await cluster.resource("v1", "ConfigMap")
    assert resource is not None
    key = ObjectKey("v1", "ConfigMap", "default", "c")
    await cluster.delete(resource, key)
    await cluster.apply(resource, key, make("ConfigMap", "c", namespace="default"))
    await site.delete()
    assert "c" in await named(cluster, "v1", "ConfigMap", "default")


async def test_the_claims_of_a_stateful_set_are_deleted_with_it_unless_kept(
    site: Any, cluster: Cluster, make: Make, workload: Make
) -> None:
    """CR-023: as Tacker does."""
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
    template = {"metadata": {"name": "data"}, "spec": claim}
    volumes = [make("PersistentVolume", f"v{n}", spec={**volume, "storageClassName": ""}) for n in range(4)]
    sets = workload("StatefulSet", "db", serviceName="db", volumeClaimTemplates=[template])
    await site.apply({"f.yaml": [*volumes, sets, make("PersistentVolumeClaim", "data-db-x", spec=claim)]})
    assert await named(cluster, "v1", "PersistentVolumeClaim", "default") == ["data-db-0", "data-db-1", "data-db-x"]
    resource = await cluster.resource("v1", "PersistentVolumeClaim")
    assert resource is not None
    key = ObjectKey("v1", "PersistentVolumeClaim", "default", "data-db-1")
    marked = make(
        "PersistentVolumeClaim",
        "data-db-1",
        namespace="default",
        metadata={"annotations": {"kubevnfm.io/keep": "true"}},
    )
    await cluster.apply(resource, key, marked)
    await site.delete()
    assert await named(cluster, "v1", "PersistentVolumeClaim", "default") == ["data-db-1"]


async def test_objects_with_the_keep_annotation_stay(site: Any, cluster: Cluster, make: Make) -> None:
    """MC-106."""
    keep = {"annotations": {"kubevnfm.io/keep": "true"}}
    await site.apply({"f.yaml": [make("ConfigMap", "kept", metadata=keep), make("ConfigMap", "gone")]})
    await site.delete()
    names = await named(cluster, "v1", "ConfigMap", "default")
    assert "kept" in names
    assert "gone" not in names


async def test_a_namespace_with_another_instances_objects_stays(site: Any, cluster: Cluster, make: Make) -> None:
    await site.apply({"f.yaml": [make("Namespace", "ours"), make("ConfigMap", "c1")]}, namespace="ours")
    await site.apply({"f.yaml": make("ConfigMap", "c2")}, namespace="ours", instance="i2", operation="opx")
    await site.delete()
    assert "c2" in await named(cluster, "v1", "ConfigMap", "ours")
    assert "c1" not in await named(cluster, "v1", "ConfigMap", "ours")


async def test_a_namespace_with_objects_of_another_vnfm_stays(site: Any, cluster: Cluster, make: Make) -> None:
    """CR-023: or of this one, through another URL of the cluster: the inventories do not say that they are there."""
    space = make("Namespace", "ours")
    await site.apply({"f.yaml": [space, make("ConfigMap", "c1")]}, namespace="ours")
    theirs = make("PersistentVolumeClaim", "data", namespace="ours", metadata={"labels": {INSTANCE_LABEL: "theirs"}})
    theirs["spec"] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    resource = await cluster.resource("v1", "PersistentVolumeClaim")
    assert resource is not None
    await cluster.apply(resource, ObjectKey("v1", "PersistentVolumeClaim", "ours", "data"), theirs)
    await site.delete()
    assert await named(cluster, "v1", "PersistentVolumeClaim", "ours") == ["data"]
    assert "PersistentVolumeClaim data of another VNF instance is there" in " ".join(
        one.message for one in site.progress
    )


async def test_forceful_termination_does_not_wait_for_pods(site: Any, ledger: CallLedger, workload: Make) -> None:
    await site.apply({"f.yaml": workload(pod={"terminationGracePeriodSeconds": 3600})})
    async with asyncio.timeout(300):
        await site.delete(grace_period_s=0.0, force=True)


async def test_an_object_not_deleted_in_time_is_named_with_its_finalizers(
    site: Any, cluster: Cluster, make: Make
) -> None:
    """MC-059."""
    await site.apply({"f.yaml": make("ConfigMap", "c", metadata={"finalizers": ["acme.example/hold"]})})
    with pytest.raises(ObjectsNotGone, match="ConfigMap default/c: held by acme"):
        await site.with_changes(gone_timeout_s=0.5).delete()
    resource = await cluster.resource("v1", "ConfigMap")
    assert resource is not None
    await cluster.apply(
        resource, ObjectKey("v1", "ConfigMap", "default", "c"), make("ConfigMap", "c", namespace="default")
    )
    assert (await site.delete(operation="op3")).count == 1


async def test_an_object_that_does_not_go_is_left_with_its_finalizers_if_asked(
    site: Any, cluster: Cluster, make: Make
) -> None:
    """MC-059: everything else is deleted."""
    held = make("ConfigMap", "c", metadata={"finalizers": ["acme.example/hold"]})
    await site.apply({"f.yaml": held, "g.yaml": make("Secret", "s")})
    done = await site.with_changes(finalizer_patience_s=0.5).delete(gives_up_waiting=True)
    (left,) = done.left
    assert (left.kind, left.name) == ("ConfigMap", "c")
    assert left.reason.startswith("ConfigMap default/c: held by acme.example/hold, since 20")
    config_maps, secrets = await cluster.resource("v1", "ConfigMap"), await cluster.resource("v1", "Secret")
    assert config_maps is not None
    assert secrets is not None
    there = await cluster.get(config_maps, ObjectKey("v1", "ConfigMap", "default", "c"))
    assert there is not None
    assert there["metadata"]["finalizers"] == ["acme.example/hold"]
    assert await cluster.get(secrets, ObjectKey("v1", "Secret", "default", "s")) is None
    # The record is gone: nothing is asked for again.
    assert (await site.delete(operation="op3")).count == 0


@dataclass
class _ClockThatJumps:
    """Goes 31 s ahead, once, when the progress says a text."""

    progress: Sequence[Any]
    text: str

    def now(self) -> datetime:
        is_ahead = any(self.text in each.message for each in self.progress)
        return datetime.now(UTC) + timedelta(seconds=31 if is_ahead else 0)


async def test_each_part_of_a_deletion_is_waited_for_though_another_is_left(
    site: Any, store: SqliteStore, cluster: Cluster, make: Make, workload: Make
) -> None:
    """MC-059: the claims of a set that is left are deleted, and a volume that goes in time is not left."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    template = {"metadata": {"name": "data"}, "spec": claim}
    held = workload("StatefulSet", "db", replicas=1, serviceName="db", volumeClaimTemplates=[template])
    held["metadata"]["finalizers"] = ["acme.example/hold"]
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    slow = make("PersistentVolume", "v", spec=volume, metadata={"finalizers": ["acme.example/slow"]})
    await site.apply({"f.yaml": [slow, held]})
    assert await named(cluster, "v1", "PersistentVolumeClaim", "default") == ["data-db-0"]
    clock = _ClockThatJumps(site.progress, "held by acme.example/hold")
    starts = StoredStartTimes(store, clock)
    patient = site.with_changes(clock=clock, start_times=starts, wait_s=0.2, gone_timeout_s=500.0)
    deletion = asyncio.create_task(patient.delete(gives_up_waiting=True))
    resource, key = await cluster.resource("v1", "PersistentVolume"), ObjectKey("v1", "PersistentVolume", "", "v")
    assert resource is not None

    async def is_asked_to_go() -> bool:
        return bool(field_at(await cluster.get(resource, key) or {}, "metadata", "deletionTimestamp"))

    await until_true(is_asked_to_go)
    await cluster.patch(resource, key, {"metadata": {"finalizers": None}})
    assert [(each.kind, each.name) for each in (await deletion).left] == [("StatefulSet", "db")]
    assert await named(cluster, "v1", "PersistentVolumeClaim", "default") == []


@dataclass(frozen=True)
class _Away:
    """`domain.ports.Clusters` of a region that does not answer."""

    def cluster(self, _: VimConnection) -> AbstractAsyncContextManager[Cluster]:
        raise ClusterUnavailable("https://192.0.2.1: no answer")


@dataclass(frozen=True)
class _HeldVolumes:
    """`domain.ports.VolumeUses` of a claim that does not go."""

    is_away: bool

    async def leave(self, *_: object, **__: object) -> dict[str, str]:
        return {"v": "claim default/c: held by acme.example/hold"}

    async def check_answering(self, _: str) -> None:
        if self.is_away:
            raise ClusterUnavailable("https://192.0.2.1: no answer")


@pytest.mark.parametrize(
    ("what", "limit_s"), [("objects", 500.0), ("objects by force", 30.0), ("volumes of a VNF", 500.0)]
)
async def test_the_silence_of_a_cluster_is_in_no_time_limit(
    site: Any, store: SqliteStore, cluster: Cluster, make: Make, what: str, limit_s: float
) -> None:
    """CR-023, MC-059, MC-060: neither that of an object or claim that does not go, nor that after which it is left."""
    forced, of_volumes = what.endswith("force"), what.startswith("volumes")
    clock = SetClock(datetime.now(UTC))
    there = site.with_changes(clock=clock, start_times=StoredStartTimes(store, clock), wait_s=0.1, gone_timeout_s=500.0)
    away = there.with_changes(clusters=_Away())
    if of_volumes:
        there, away = (there.with_changes(volumes=_HeldVolumes(is_away)) for is_away in (False, True))
    else:
        await site.apply({"f.yaml": make("ConfigMap", "c", metadata={"finalizers": ["acme.example/hold"]})})
    command = DeleteObjects(vnf_instance_id="i1", vim=site.vim, gives_up_waiting=forced)

    async def call(at: Any) -> Outcome:
        at.step = "delete"
        context = at.context(operation="op2")
        outcome: Outcome = await (
            at.handlers.release_volumes(ReleaseVolumes(vnf_instance_id="i1"), context)
            if of_volumes
            else at.handlers.delete_objects(command, context)
        )
        return outcome

    assert isinstance(await call(there), NotYet)
    for _ in range(2):
        clock.advance(limit_s * 0.4)
        for pause_s in (0.0, 100.0, 300.0):
            clock.advance(pause_s)
            with pytest.raises(ClusterUnavailable):
                await call(away)
        clock.advance(100.0)
        assert isinstance(await call(there), NotYet)
    clock.advance(limit_s * 0.3)
    if forced:
        left = await call(there)
        assert isinstance(left, Done)
        assert isinstance(left.event, ObjectsDeleted)
        assert [each.name for each in left.event.left] == ["c"]
    else:
        with pytest.raises((ObjectsNotGone, VolumeNotReady), match=r"default/c: held by acme\.example/hold"):
            await call(there)


async def test_a_refused_deletion_is_not_taken_for_one_that_was_done(site: Any, faults: FaultBook, make: Make) -> None:
    """CR-023: a webhook may refuse with 409 too, the answer to a uid that differs."""
    await site.apply({"a.yaml": [make("ConfigMap", "c"), make("Secret", "s")]})
    fault = faults.add(part="kubernetes", verb="delete configmaps", effect="fail", status=409, message="denied")
    with pytest.raises(ObjectsNotGone, match="ConfigMap default/c"):
        await site.timed_out_once_said("ConfigMap default/c").replace({"b.yaml": make("Secret", "s")})
    faults.remove(fault.fault_id)


async def test_an_unreachable_cluster_is_retried_and_given_up_only_by_force(
    site: Any, lab: LabCluster, labs: LabClusters, make: Make
) -> None:
    """CR-023: what may be left is named in the reply and in the operation's progress."""
    await site.apply({"f.yaml": make("ConfigMap", "c")})
    await labs.close_at(lab.address)
    with pytest.raises(ClusterUnavailable):
        await site.delete()
    done = await site.delete(force=True)
    assert done.count == 0
    assert [(each.kind, each.namespace, each.name) for each in done.left] == [("ConfigMap", "default", "c")]
    assert lab.address in done.left[0].cluster
    last = site.progress[-1]
    assert last.state == "failed"
    assert lab.address in last.message
    assert last.message.endswith("these objects may still exist: ConfigMap default/c")
    assert await site.handlers.releases.get("i1") is None
    # As after a crash between the deletion of the inventory and the answer: the command is delivered again.
    assert await site.delete(force=True) == done
    assert (await site.delete(force=True, operation="op3")).left == ()


async def test_a_cluster_whose_network_has_to_be_named_is_not_given_up_by_force(
    site: Any, cluster: Cluster, make: Make
) -> None:
    """CR-023: its objects would stay for ever, though a setting and a restart reach them."""
    await site.apply({"f.yaml": make("ConfigMap", "c")})
    async with KubernetesClusters.open(KeyRing.from_text(KeyRing.new_key()), networks("10.0.0.0/8")) as clusters:
        refused = replace(
            site.with_changes(clusters=clusters), vim=site.vim.model_copy(update={"of_vnf": True}), clusters=clusters
        )
        with pytest.raises(AddressUnnamed, match="in vnf_networks"):
            await refused.delete(force=True)
    assert "c" in await named(cluster, "v1", "ConfigMap", "default")
    await site.delete(force=True, operation="op3")
    assert "c" not in await named(cluster, "v1", "ConfigMap", "default")


async def test_answers_of_deletions_are_forgotten_after_a_week(site: Any, store: SqliteStore, make: Make) -> None:
    clock = SetClock(datetime(2026, 6, 1, 12, 0, tzinfo=UTC))
    site = site.with_changes(deletions=StoredDeletions(store, clock))
    for operation, days in (("op2", 6), ("op3", 2)):
        await site.apply({"f.yaml": make("ConfigMap", "c")}, operation=f"apply-{operation}")
        await site.delete(operation=operation)
        clock.advance(days * 86_400)
    await site.apply({"f.yaml": make("ConfigMap", "c")}, operation="apply-op4")
    await site.delete(operation="op4")
    assert [(await site.delete(operation=each)).count for each in ("op2", "op3", "op4")] == [0, 1, 1]


async def test_a_deletion_that_was_cancelled_anywhere_is_continued(
    site: Any, faults: FaultBook, make: Make, workload: Make, lab: LabCluster
) -> None:
    await site.apply({"f.yaml": [make("Namespace", "ns"), make("ConfigMap", "c"), workload()]}, namespace="ns")
    for after in range(0, 20, 2):
        hang = faults.add(part="kubernetes", effect="hang", after=after)
        task = asyncio.create_task(site.delete())
        await asyncio.wait({task}, timeout=0.2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        faults.remove(hang.fault_id)
    await site.delete()
    assert lab.inventory()["objects"] == {}


@pytest.mark.parametrize(
    ("key", "metadata", "propagation"),
    [
        (ObjectKey("v1", "ConfigMap", "n", "c"), {}, Propagation.BACKGROUND),
        (ObjectKey("v1", "Pod", "n", "p"), {"managedFields": [{"manager": "kubelet"}]}, Propagation.BACKGROUND),
        (ObjectKey("apps/v1", "Deployment", "n", "d"), {}, Propagation.FOREGROUND),
        (ObjectKey("v1", "Service", "n", "s"), {}, Propagation.BACKGROUND),
        (
            ObjectKey("a.example/v1", "Thing", "n", "t"),
            {"managedFields": [{"manager": "kubevnfm"}]},
            Propagation.BACKGROUND,
        ),
        (
            ObjectKey("a.example/v1", "Thing", "n", "t"),
            {"managedFields": [{"manager": "things"}]},
            Propagation.FOREGROUND,
        ),
        (ObjectKey("a.example/v1", "Thing", "n", "t"), {"finalizers": ["a.example/f"]}, Propagation.FOREGROUND),
        *(
            (ObjectKey(f"{group}/v1beta2", kind, "n", "c"), {"finalizers": [group]}, Propagation.BACKGROUND)
            for group, kind in (
                ("cluster.x-k8s.io", "Cluster"),
                ("cluster.x-k8s.io", "MachineDeployment"),
                ("controlplane.cluster.x-k8s.io", "KubeadmControlPlane"),
                ("infrastructure.cluster.x-k8s.io", "DevCluster"),
            )
        ),
    ],
)
def test_only_owners_are_deleted_in_the_foreground(
    key: ObjectKey, metadata: dict[str, Any], propagation: Propagation
) -> None:
    """CR-023: what a controller has touched may own objects too. CR-106: the controllers of Cluster API delete in an order."""
    assert propagation_of(key, {"metadata": metadata}) is propagation


async def test_pods_of_others_are_not_read_for_claims_with_a_mark(
    site: Any, make: Make, workload: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A namespace can have thousands of pods, and each look at a StatefulSet would list them."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    volumes = [make("PersistentVolume", f"v{n}", spec={**volume, "storageClassName": ""}) for n in range(2)]
    templates = [{"metadata": {"name": "data"}, "spec": claim}]
    sets = workload("StatefulSet", "db", serviceName="db", volumeClaimTemplates=templates)
    selectors: list[str] = []
    listed = KubernetesCluster.list

    async def noted(cluster: KubernetesCluster, resource: Resource, *, namespace: str = "", labels: str = "") -> Any:
        selectors.extend([labels] if resource == PODS else [])
        return await listed(cluster, resource, namespace=namespace, labels=labels)

    monkeypatch.setattr(KubernetesCluster, "list", noted)
    await site.apply({"f.yaml": [*volumes, sets]})
    # Those of one instance are, while its StatefulSet is not ready.
    assert INSTANCE_LABEL not in selectors
