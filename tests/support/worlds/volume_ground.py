"""The owner of persistent volumes on a cluster, as its callers and other users of the cluster see it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_clients.multicloud.volumes import PersistentVolume, VolumeClaim, VolumeRequest, VolumeUse
from kubevnfm_events import VimConnection
from kubevnfm_events.objects import ClaimedVolume
from kubevnfm_events.volumes import PersistentVolumeChanged
from kubevnfm_infra_k8s.adapters import stored_volumes, turns
from kubevnfm_infra_k8s.domain.objects import CLAIMS, PODS, Body, ObjectKey, Resource, field_at, uid_of
from kubevnfm_infra_k8s.domain.planning.cnf_policy import Policies
from kubevnfm_infra_k8s.domain.ports import Cluster, Clusters
from kubevnfm_infra_k8s.domain.reconciling.ports import Region
from kubevnfm_infra_k8s.domain.reconciling.work import ReconcilingWork
from kubevnfm_infra_k8s.domain.volumes.bodies import VOLUMES, pv_key
from kubevnfm_infra_k8s.domain.volumes.owner import PersistentVolumes
from kubevnfm_infra_k8s.domain.volumes.passes import VolumePasses
from kubevnfm_infra_k8s.domain.volumes.record import Use, Volume
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.errors import NotFound
from kubevnfm_kit.owners import Owners
from kubevnfm_kit.run import background, repeat
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import DocumentStore
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.relay import OutboxRelay
from patience import until, until_true
from real.real_kubernetes import RealKubernetes

from worlds.given_vims import GivenVims

WAIT_S = 60.0
only_lab = pytest.mark.skipif(
    RealKubernetes.from_environment() is not None, reason="no driver of a storage class runs there"
)
_NAMESPACES = Resource("v1", "Namespace", "namespaces", namespaced=False)
_DRIVER = "tests.kubevnfm.io"
_CLASSES = Resource("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False)


@dataclass(frozen=True)
class OneVim(GivenVims):
    """A directory with one VIM, found by its id."""

    vim: VimConnection

    async def connection(self, vim: VimConnection) -> VimConnection:
        return self.vim


@dataclass(frozen=True)
class OneRegion:
    """The cloud region ``op/edge``."""

    links_namespace: str
    suspended: dict[str, Suspension] = field(default_factory=dict)

    async def suspensions(self) -> Mapping[str, Suspension]:
        return self.suspended

    async def region(self, cloud_region_id: str) -> Region:
        if cloud_region_id != "op/edge":
            raise NotFound(f"cloud region {cloud_region_id} does not exist")
        return Region("vim", links_namespace=self.links_namespace, protected_namespaces={"protected"})


class NoVolumes:
    """`domain.ports.VolumeUses` of instances that use no persistent volumes."""

    async def hold(self, vnf_instance_id: str, volumes: Sequence[ClaimedVolume], namespace: str) -> None:
        assert not volumes

    async def waited_for(
        self, vnf_instance_id: str, volumes: Sequence[ClaimedVolume], namespace: str, *, within_s: float
    ) -> str:
        raise AssertionError("no instance of this test uses volumes")

    async def unbound(self, vnf_instance_id: str) -> Sequence[ObjectKey]:
        raise AssertionError("no instance of this test uses volumes")

    async def leave(self, vnf_instance_id: str, *, kept: Collection[str] = (), within_s: float) -> Mapping[str, str]:
        return {}

    async def check_answering(self, vnf_instance_id: str) -> None:
        raise AssertionError("no instance of this test uses volumes")


@dataclass
class VolumeGround:
    """A cluster with two namespaces for VNFs, and the owner of volumes that works there."""

    owner: PersistentVolumes
    work: ReconcilingWork[Volume]
    records: stored_volumes.StoredVolumes
    cluster: Cluster
    namespace: str
    other: str
    events: list[PersistentVolumeChanged]
    outbox: Outbox
    _drivers: AsyncExitStack
    _driver: Callable[[], AbstractAsyncContextManager[None]]
    """Plays the driver of storage classes; the lab does so itself."""
    suspended: dict[str, Suspension] = field(default_factory=dict)
    """Those of regions, by the id of the VIM."""
    _made: list[tuple[Resource, ObjectKey]] = field(default_factory=list)

    def request(self, name: str = "data", **members: Any) -> VolumeRequest:
        """Return a request for a volume; by NFS unless it names a class or a source."""
        if "storage_class" not in members and "source" not in members:
            members["source"] = {"nfs": {"server": "192.0.2.9", "path": f"/{self.namespace}/{name}"}}
        given = {"cloud_region_id": "op/edge", "name": name, "size": "1Gi", "access_modes": ["ReadWriteOnce"]}
        return VolumeRequest.model_validate({**given, **members})

    async def create(self, name: str = "data", **members: Any) -> PersistentVolume:
        """Create a volume and wait for the work on it."""
        created = await self.owner.create(self.request(name, **members), wait_s=WAIT_S)
        return created.volume

    async def use(self, volume: PersistentVolume, vnf: str, *, namespace: str = "", name: str = "data") -> VolumeClaim:
        """Take a volume for a VNF."""
        wanted = VolumeUse(namespace=namespace or self.namespace, claim_name=name)
        return await self.owner.use(volume.id, f"vnf:{vnf}", wanted, wait_s=WAIT_S)

    async def leave(self, volume: PersistentVolume, vnf: str, *, wait_s: float = WAIT_S) -> bool:
        """Give a volume back."""
        return await self.owner.leave(volume.id, f"vnf:{vnf}", wait_s=wait_s)

    async def pv(self, name: str | None) -> Body | None:
        """Return a PersistentVolume."""
        assert name is not None
        return await self.cluster.get(VOLUMES, pv_key(name))

    async def stored(self, volume: PersistentVolume) -> Volume:
        """Return the document of a volume."""
        found = await self.records.get(volume.id)
        assert found is not None
        return found

    async def claim(self, name: str = "data", *, namespace: str = "") -> Body | None:
        """Return a claim."""
        return await self.cluster.get(CLAIMS, ObjectKey("v1", CLAIMS.kind, namespace or self.namespace, name))

    async def shown(self, volume: PersistentVolume, holds: Callable[[PersistentVolume], bool]) -> PersistentVolume:
        """Return the volume once it is so."""

        async def found() -> PersistentVolume | None:
            present = await self.owner.get(volume.id)
            return present if holds(present) else None

        return await until(found, timeout_s=WAIT_S)

    async def until_uses(self, volume: PersistentVolume, holds: Callable[[Mapping[str, Use]], bool]) -> None:
        """Return once the uses of the volume are so, by their references."""

        async def are_so() -> bool:
            stored = await self.records.get(volume.id)
            return stored is not None and holds({use.reference: use for use in stored.uses})

        await until_true(are_so)

    async def until_claim(self, name: str, holds: Callable[[Body], bool], *, namespace: str = "") -> Body:
        """Return a claim once it is so."""

        async def found() -> Body | None:
            present = await self.claim(name, namespace=namespace)
            return present if present is not None and holds(present) else None

        return await until(found, timeout_s=WAIT_S)

    async def as_other(self, resource: Resource, body: Body) -> Body:
        """Create an object as another user of the cluster does."""
        key = resource.key({**body, "metadata": {"namespace": self.namespace, **body["metadata"]}})
        key = key if resource.namespaced else ObjectKey(key.api_version, key.kind, "", key.name)
        made = await self.cluster.create(resource, key, {"apiVersion": key.api_version, "kind": key.kind, **body})
        assert made is not None
        self._made.append((resource, key))
        return made

    async def foreign_claim(self, name: str, *, pv: str = "", namespace: str = "", size: str = "1Gi") -> Body:
        """Have a claim of another user, for a volume of class "" by name, or for any."""
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "resources": {"requests": {"storage": size}},
            **({"volumeName": pv} if pv else {}),
        }
        return await self.as_other(
            CLAIMS, {"metadata": {"name": name, "namespace": namespace or self.namespace}, "spec": spec}
        )

    async def pod(self, name: str, claim: str) -> ObjectKey:
        """Have a pod that uses a claim."""
        spec = {
            "containers": [{"name": "main", "image": "nginx:1.27", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}],
            "terminationGracePeriodSeconds": 0,
        }
        await self.as_other(PODS, {"metadata": {"name": name}, "spec": spec})
        key = ObjectKey("v1", "Pod", self.namespace, name)

        async def runs() -> bool | None:
            found = await self.cluster.get(PODS, key)
            return True if field_at(found, "status", "phase") == "Running" else None

        await until(runs, timeout_s=WAIT_S)
        return key

    async def storage_class(self, name: str, **members: Any) -> str:
        """Have a class whose provisioner is played where no driver runs."""
        own = f"{name}-{self.namespace}"
        await self._drivers.enter_async_context(self._driver())
        await self.as_other(_CLASSES, {"metadata": {"name": own}, "provisioner": _DRIVER, **members})
        return own

    async def clean(self) -> None:
        """Delete what is left."""
        for resource, key in reversed(self._made):
            await self.cluster.delete(resource, key, grace_period_s=0)
        labelled = await self.cluster.list(VOLUMES, labels="app.kubernetes.io/managed-by=kubevnfm")
        for body in labelled:
            reference = field_at(body, "spec", "claimRef", "namespace")
            if reference in {self.namespace, self.other}:
                await self.cluster.delete(VOLUMES, pv_key(str(body["metadata"]["name"])))


@asynccontextmanager
async def volume_ground(
    store: DocumentStore, clusters: Clusters, vim: VimConnection, cluster: Cluster, namespace: str, *, is_real: bool
) -> AsyncIterator[VolumeGround]:
    """Yield the owner, with the work on volumes running."""
    for collection, indexes in {**stored_volumes.INDEXES, **turns.INDEXES}.items():
        await store.ensure_indexes(collection, indexes)
    clock, vims, ring = SystemClock(), OneVim(vim), KeyRing.from_text(KeyRing.new_key())
    other = f"{namespace}-b"
    key = ObjectKey("v1", "Namespace", "", other)
    await cluster.create(_NAMESPACES, key, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    events: list[PersistentVolumeChanged] = []

    async def keep(delivery: Delivery) -> Verdict:
        assert isinstance(delivery.envelope.data, PersistentVolumeChanged)
        events.append(delivery.envelope.data)
        return Ack()

    async with AsyncExitStack() as stack:
        bus = await stack.enter_async_context(InProcessBus(ring))
        await bus.consume_events("volumes", ["infra.volume.#"], keep)
        relay = await stack.enter_async_context(OutboxRelay(store, bus, collections=[stored_volumes.VOLUMES]))
        outbox = Outbox(store, relay, ring)
        records = stored_volumes.StoredVolumes(store, outbox)
        region = OneRegion(namespace)
        working = ReconcilingWork[Volume](
            "volume", records, turns.StoredTurns(store, clock, Owners()), region, vims, clusters,
            lambda cluster: VolumePasses(records, cluster, clock, timeout_s=300.0), clock,
        )  # fmt: skip
        work = await stack.enter_async_context(working.running())
        drivers = await stack.enter_async_context(AsyncExitStack())
        owner = PersistentVolumes(records, region, vims, clusters, work, clock, Policies())
        driver = partial(_driver, cluster, [namespace, other]) if is_real else nullcontext
        ground = VolumeGround(
            owner, work, records, cluster, namespace, other, events, outbox, drivers, driver, region.suspended
        )
        try:
            yield ground
        finally:
            await ground.clean()
            await cluster.delete(_NAMESPACES, key)


@asynccontextmanager
async def _driver(cluster: Cluster, namespaces: Sequence[str]) -> AsyncIterator[None]:
    """Play the driver of storage classes where none runs: it provisions, and deletes what is to be deleted."""

    async def work() -> None:
        classes = [body for body in await cluster.list(_CLASSES) if body["provisioner"] == _DRIVER]
        named = {str(body["metadata"]["name"]) for body in classes}
        for namespace in namespaces:
            for claim in await cluster.list(CLAIMS, namespace=namespace):
                if claim["spec"].get("storageClassName") in named and not claim["spec"].get("volumeName"):
                    await _provision(cluster, claim)
        for body in await cluster.list(VOLUMES):
            spec, phase = body["spec"], field_at(body, "status", "phase")
            is_done = phase == "Released" and spec["persistentVolumeReclaimPolicy"] == "Delete"
            if is_done and spec.get("storageClassName") in named:
                await cluster.delete(VOLUMES, pv_key(str(body["metadata"]["name"])), uid=uid_of(body))

    async with background(driver=repeat(work, every_s=0.05)):
        yield


async def _provision(cluster: Cluster, claim: Body) -> None:
    name, spec = f"pvc-{uid_of(claim)}", claim["spec"]
    reference = {"namespace": claim["metadata"]["namespace"], "name": claim["metadata"]["name"], "uid": uid_of(claim)}
    body = {
        "apiVersion": "v1",
        "kind": VOLUMES.kind,
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": _DRIVER}},
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"],
            "volumeMode": spec["volumeMode"],
            "storageClassName": spec["storageClassName"],
            "persistentVolumeReclaimPolicy": "Delete",
            "csi": {"driver": _DRIVER, "volumeHandle": name},
            "claimRef": {"apiVersion": "v1", "kind": CLAIMS.kind, **reference},
        },
    }
    await cluster.create(VOLUMES, pv_key(name), body)


async def reserved(volumes: VolumeGround, volume: PersistentVolume, pv: str | None = None) -> bool:
    """Return whether only the volume's own claim, which does not exist, could take the PersistentVolume."""
    found = await volumes.pv(pv or volume.pv)
    claim = field_at(found, "spec", "claimRef") or {}
    name = f"kubevnfm-{volume.id}"
    is_absent = await volumes.claim(name) is None
    return (claim.get("namespace"), claim.get("name"), "uid" in claim, is_absent) == (
        volumes.namespace,
        name,
        False,
        True,
    )
