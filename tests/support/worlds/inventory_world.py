"""The inventory of a cluster: its records, and processes that watch, each of which can be cut off from the database as by its death."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_clients.multicloud.dry_runs import DryRunOrder, DryRunReport, PlacedOrder, TakenPlaces
from kubevnfm_clients.multicloud.inventory import (
    InventoryReport,
    InventoryResource,
    Resync,
    StaleWatch,
    WatchReport,
)
from kubevnfm_clients.multicloud.object_health import is_ill
from kubevnfm_clients.multicloud.region_views import RegionWatch
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_clients.multicloud.verdicts import ObjectVerdict, SeenObject
from kubevnfm_events import VimConnection
from kubevnfm_events.inventory import PlacementChanged
from kubevnfm_infra_k8s.adapters import stored_features, stored_inventory
from kubevnfm_infra_k8s.adapters.export_marks import ExportMarks
from kubevnfm_infra_k8s.adapters.leases import HeldTerm, StoredLeadership
from kubevnfm_infra_k8s.domain.inventory.kind_watch import Watching
from kubevnfm_infra_k8s.domain.inventory.owner import StoredInventory
from kubevnfm_infra_k8s.domain.inventory.ports import Exporting
from kubevnfm_infra_k8s.domain.inventory.starts import Starts
from kubevnfm_infra_k8s.domain.inventory.watcher import InventoryWatcher
from kubevnfm_infra_k8s.domain.outputs.watch import OutputWatch
from kubevnfm_infra_k8s.domain.ports import Clusters
from kubevnfm_infra_k8s.domain.reconciling.ports import Region
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.errors import Conflict, VnfmError
from kubevnfm_kit.owners import Owners
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import DocumentStore, StoreUnavailable
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.relay import OutboxRelay

from worlds.link_world import GivenRegions, OneVim
from worlds.output_world import NoOutputs


class Severed:
    """A store as one process has it: from the moment at which it is cut off, nothing answers."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self.is_cut = False
        self.cut_after = ""
        """The name of the method with whose next call it is cut off, after that has done its work."""

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name == "writes_to":  # asks nothing
            return method

        async def call(*args: Any, **more: Any) -> Any:
            if self.is_cut:
                raise StoreUnavailable("cut off by the test")
            answer = await method(*args, **more)
            self.is_cut = self.is_cut or name == self.cut_after
            return answer

        return call


@dataclass
class WatchingProcess:
    """A process that watches when it leads."""

    store: Severed
    task: asyncio.Task[None]

    async def die(self) -> None:
        """End it without a word to the database: what it holds there stays."""
        self.store.is_cut = True
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@dataclass
class InventoryWorld:
    """The inventory and what was published of it."""

    store: DocumentStore
    clusters: Clusters
    vims: Mapping[str, VimConnection]
    inventory: StoredInventory
    relay: OutboxRelay
    ring: KeyRing
    lease_s: float
    outputs: OutputWatch | None = None
    marks: ExportMarks | None = None
    export: Exporting | None = None
    """The export of all processes, with the marks that it finds."""
    events: list[PlacementChanged] = field(default_factory=list)
    processes: list[WatchingProcess] = field(default_factory=list)

    def start(
        self, *, look_s: float = 0.1, registered_s: float = 30.0, most: int = 400, starts: Starts | None = None
    ) -> WatchingProcess:
        """Start a process; ``look_s``: how often it looks for regions, ``registered_s``: and at their registrations.

        ``most``: the watches of one region; ``starts``: the turns of watches that begin.
        """
        severed, clock = Severed(self.store), SystemClock()
        store = cast("DocumentStore", severed)
        watcher = InventoryWatcher(
            stored_inventory.StoredObjects(store, Outbox(store, self.relay, self.ring), self.marks),
            stored_inventory.StoredRegions(store, clock),
            stored_inventory.StoredInstances(store, clock),
            OneVim(self.vims),
            self.clusters,
            clock,
            StoredLeadership(store, clock, lease_s=self.lease_s, owners=Owners()),
            NoOutputs() if self.outputs is None else self.outputs,
            stored_features.StoredFeatures(store, Outbox(store, self.relay, self.ring), clock),
            self.export,
            look_s,
            registered_s,
            most,
            starts or Starts(),
        )
        process = WatchingProcess(severed, asyncio.create_task(watcher.run()))
        self.processes.append(process)
        return process

    def watching(self) -> Watching:
        """Return the ports of one watch, whose process always leads."""
        clock = SystemClock()
        records = stored_inventory.StoredObjects(self.store, Outbox(self.store, self.relay, self.ring))
        instances = stored_inventory.StoredInstances(self.store, clock)
        return Watching(records, instances, OneVim(self.vims), self.clusters, clock, HeldTerm(1, math.inf), NoOutputs())

    async def found(self, **filters: str) -> Sequence[InventoryResource]:
        """Return what the inventory shows."""
        return (await self.inventory.find(filters, limit=1000)).items

    def events_of(self, name: str) -> list[PlacementChanged]:
        """Return what was published of an object."""
        return [each for each in self.events if each.name == name]


@asynccontextmanager
async def inventory_world(
    store: DocumentStore, clusters: Clusters, vims: Mapping[str, VimConnection], *, lease_s: float = 15.0
) -> AsyncIterator[InventoryWorld]:
    """Yield the inventory; a test starts the processes."""
    ring, clock = KeyRing.from_text(KeyRing.new_key()), SystemClock()
    for collection, indexes in stored_inventory.INDEXES.items():
        await store.ensure_indexes(collection, indexes)
    events: list[PlacementChanged] = []

    async def keep(delivery: Delivery) -> Verdict:
        assert isinstance(delivery.envelope.data, PlacementChanged)
        events.append(delivery.envelope.data)
        return Ack()

    async with InProcessBus(ring) as bus:
        await bus.consume_events("placements", ["infra.placement.#"], keep)
        async with OutboxRelay(store, bus, collections=[stored_inventory.OBJECTS, stored_features.FEATURES]) as relay:
            records = stored_inventory.StoredObjects(store, Outbox(store, relay, ring))
            watched = stored_inventory.StoredRegions(store, clock)
            regions = GivenRegions({f"op/{vim_id}": Region(vim_id) for vim_id in vims})
            inventory = StoredInventory(records, watched, regions, clock)
            world = InventoryWorld(store, clusters, vims, inventory, relay, ring, lease_s, events=events)
            try:
                yield world
            finally:
                for process in world.processes:
                    process.task.cancel()
                await asyncio.gather(*(each.task for each in world.processes), return_exceptions=True)


class GivenInventory:
    """A stand-in for the inventory of infra-k8s: it is empty until a test adds something."""

    def __init__(self) -> None:
        self.resources: list[InventoryResource] = []
        self.failure: VnfmError | None = None
        """Why it cannot be asked."""
        self.stale: list[StaleWatch] = []
        """The watches that do not work."""
        self.unwatched_since = ""

    async def health(self) -> InventoryReport:
        return InventoryReport(watching=False, stale=())

    async def watch_of(self, vim_id: str) -> RegionWatch:
        return RegionWatch(state="none")

    async def watches(self, vim_id: str | None = None) -> WatchReport:
        if self.failure is not None:
            raise self.failure
        of_vim = [each for each in self.stale if vim_id in {None, each.vim_id}]
        return WatchReport(unwatched_since=self.unwatched_since, regions=of_vim)

    async def resync(self) -> Resync:
        raise Conflict("the inventory is not exported: aai_url is not set")

    async def find(
        self, filters: Mapping[str, str], *, limit: int, after: str | None = None
    ) -> Page[InventoryResource]:
        if self.failure is not None:
            raise self.failure
        wanted = {"vnf_id", "kind", "vim_id", "namespace", "name"} & set(filters)
        found = [each for each in self.resources if all(getattr(each, name) == filters[name] for name in wanted)]
        if "ill" in filters:
            found = [each for each in found if is_ill(each)]
        rest = sorted((each for each in found if after is None or each.id > after), key=lambda each: each.id)
        return Page(rest[:limit], rest[limit - 1].id if len(rest) > limit else None)


class NoDryRuns:
    """A stand-in for the dry runs of infra-k8s: it keeps what it is asked, and answers with no object but those in ``taken``."""

    def __init__(self) -> None:
        self.asked: list[DryRunOrder] = []
        self.placed: list[PlacedOrder] = []
        self.taken: TakenPlaces | VnfmError = TakenPlaces()
        """The objects of others in the places of objects, or why the region cannot be asked."""

    async def run(self, order: DryRunOrder) -> DryRunReport:
        self.asked.append(order)
        if isinstance(self.taken, VnfmError):
            raise self.taken
        return DryRunReport(summary={}, objects=())

    async def taken_places(self, order: PlacedOrder) -> TakenPlaces:
        self.placed.append(order)
        if isinstance(self.taken, VnfmError):
            raise self.taken
        return self.taken


class GivenProgram:
    """A stand-in for a program of another service: helm of infra-k8s, ansible-core of mgmt-executor."""

    def __init__(self) -> None:
        self.lacking = ""

    async def why_missing(self) -> str:
        return self.lacking


class SimpleVerdicts:
    """A stand-in for the verdicts of infra-k8s: what exists works, unless its status has a ``phase``, which is the message then."""

    async def judge(self, seen: SeenObject) -> ObjectVerdict:
        if seen.body is None:
            return ObjectVerdict(judgement="NotFound", message="does not exist")
        phase = (seen.body.get("status") or {}).get("phase")
        return ObjectVerdict(judgement="Current" if phase is None else "InProgress", message=phase or "")
