"""The export of the inventory to a small A&AI, with a process that leads."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_clients.multicloud.inventory import ExportHealth
from kubevnfm_clients.multicloud.region_views import RegionFeatures
from kubevnfm_events.inventory import NetworkAddresses
from kubevnfm_infra_k8s.adapters import stored_exports, stored_features, stored_inventory, stored_links
from kubevnfm_infra_k8s.adapters.aai import AaiGraph
from kubevnfm_infra_k8s.adapters.export_marks import ExportMarks
from kubevnfm_infra_k8s.adapters.leases import HeldTerm
from kubevnfm_infra_k8s.adapters.region_metrics import RegionMetrics
from kubevnfm_infra_k8s.domain.exporting.exporter import Exporter
from kubevnfm_infra_k8s.domain.exporting.nodes import RegionKey
from kubevnfm_infra_k8s.domain.inventory.record import ObjectRecord, record_id
from kubevnfm_infra_k8s.domain.links.record import Holder, Link
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.clock import Clock, SystemClock, rfc3339
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.metrics import Metrics
from kubevnfm_kit.tls import ClientTls
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import DocumentStore
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.relay import OutboxRelay
from patience import until_true
from servers.aai import PASSWORD, USER, Aai, aai

from worlds.inventory_world import Severed

REGION = "/cloud-infrastructure/cloud-regions/cloud-region/op/one"


@dataclass
class NamedRegions:
    """`domain.exporting.ports.RegionsOfVims`: the VIM ``vim`` is the region ``op/one``."""

    keys: dict[str, RegionKey] = field(default_factory=lambda: {"vim": RegionKey("op", "one")})
    seen: RegionFeatures | None = None

    async def key(self, vim_id: str) -> RegionKey | None:
        return self.keys.get(vim_id)

    async def features(self, key: RegionKey) -> RegionFeatures | None:
        return self.seen


def features(labels: Mapping[str, Mapping[str, int]], **resources: int) -> RegionFeatures:
    """Return features of a region."""
    return RegionFeatures(
        nodes=(), labels={name: dict(counts) for name, counts in labels.items()}, extended_resources=resources,
        devices=(), device_classes=(), as_of="2030-01-01T00:00:00Z",
    )  # fmt: skip


@dataclass
class ExportWorld:
    """The stored inventory, A&AI, and the export between them."""

    store: DocumentStore
    outbox: Outbox
    aai: Aai
    objects: stored_inventory.StoredObjects
    links: stored_links.StoredLinks
    features: stored_features.StoredFeatures
    state: stored_exports.StoredExports
    graph: AaiGraph
    regions: NamedRegions
    metrics: RegionMetrics
    severed: Severed
    clock: Any
    running: asyncio.Task[None] | None = None

    def exporter(self) -> Exporter:
        """Return one of a process of its own, on the store that can be cut off."""
        marks = ExportMarks(cast("DocumentStore", self.severed), self.clock)
        state = stored_exports.StoredExports(cast("DocumentStore", self.severed), self.clock, marks, self.aai.url)
        return Exporter(state, self.graph, self.regions, 4, 30, idle_s=0.01, pauses=BackOff(0.02, 0.05))

    def start(self) -> None:
        """Have a process lead."""
        self.running = asyncio.create_task(self.exporter().run(HeldTerm(1, math.inf)))

    async def stop(self) -> None:
        """End it."""
        if self.running is not None:
            self.running.cancel()
            await asyncio.gather(self.running, return_exceptions=True)

    async def health(self) -> ExportHealth:
        return await self.state.health()

    async def settled(self) -> None:
        """Return when A&AI has everything."""

        async def is_settled() -> bool:
            health = await self.health()
            return health.resync is not None and health.resync.marked_at is not None and health.waiting == 0

        await until_true(is_settled)

    async def write(self, name: str, *, kind: str = "Pod", **changes: Any) -> ObjectRecord:
        """Write the record of an object, as a watch does."""
        version = "v1" if kind == "Pod" else "apps/v1"
        group = version.rpartition("/")[0]
        key = record_id("vim", group, kind, "ns", name)
        old = await self.objects.get(key)
        values: dict[str, Any] = {
            "id": key, "vim_id": "vim", "vnf_instance_id": "vnf-1", "api_version": version, "kind": kind,
            "namespace": "ns", "name": name, "uid": new_id(), "phase": "Running" if kind == "Pod" else "",
            "changed_at": rfc3339(self.clock.now()), **changes,
        }  # fmt: skip
        await self.objects.write(old, ObjectRecord.model_validate(values))
        found = await self.objects.get(key)
        assert found is not None
        return found

    async def remove(self, name: str, *, kind: str = "Pod") -> None:
        """Remove the record of an object."""
        group = "" if kind == "Pod" else "apps"
        old = await self.objects.get(record_id("vim", group, kind, "ns", name))
        assert old is not None
        await self.objects.remove(old)

    async def vserver(self, name: str) -> dict[str, Any] | None:
        """Return a pod as A&AI has it."""
        return self.aai.node(f"{REGION}/tenants/tenant/ns/vservers/vserver/{record_id('vim', '', 'Pod', 'ns', name)}")


def addresses(*found: str, network: str = "", interface: str = "") -> NetworkAddresses:
    """Return the addresses of one network."""
    return NetworkAddresses(network=network, interface=interface, addresses=found)


def a_link(**changes: Any) -> Link:
    """Return a virtual link."""
    now = "2030-01-01T00:00:00.000Z"
    values: dict[str, Any] = {
        "id": new_id(), "cloud_region_id": "op/one", "vim_id": "vim", "links_namespace": "default", "sriov_namespace": "s",
        "name": "net", "type": "kube-ovn", "metadata": {}, "spec": {"cidrBlock": "10.9.0.0/24"}, "creator": "so",
        "holders": (Holder(reference="so"),), "status": "READY", "asked_at": now, "created_at": now, "updated_at": now,
        **changes,
    }  # fmt: skip
    return Link.model_validate(values)


@asynccontextmanager
async def export_world(store: DocumentStore, clock: Clock | None = None) -> AsyncIterator[ExportWorld]:
    """Yield the world; a test starts the process."""
    ring, severed, metrics = KeyRing.from_text(KeyRing.new_key()), Severed(store), RegionMetrics(Metrics())
    clock = clock or SystemClock()
    collections = (stored_inventory.INDEXES, stored_links.INDEXES, stored_exports.INDEXES)
    for indexes in collections:
        for collection, each in indexes.items():
            await store.ensure_indexes(collection, each)
    async with (
        InProcessBus(ring) as bus,
        OutboxRelay(store, bus, collections=[stored_inventory.OBJECTS, stored_links.LINKS]) as relay,
        aai() as server,
        AaiGraph.open(
            server.url, "v14", metrics.export, tls=ClientTls(), user=USER, password=PASSWORD, parallel=4
        ) as graph,
    ):
        outbox, marks = Outbox(store, relay, ring), ExportMarks(store, clock)
        state = metrics.export.waiting = stored_exports.StoredExports(store, clock, marks, server.url)
        world = ExportWorld(
            store, outbox, server,
            stored_inventory.StoredObjects(store, outbox, marks), stored_links.StoredLinks(store, outbox, marks),
            stored_features.StoredFeatures(store, outbox, clock, marks),
            state, graph, NamedRegions(), metrics, severed, clock,
        )  # fmt: skip
        try:
            yield world
        finally:
            await world.stop()
