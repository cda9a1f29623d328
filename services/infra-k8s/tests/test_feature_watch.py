"""The watches over nodes and devices, and the event about their features (multicloud.md MC-119)."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast

from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events import VimConnection
from kubevnfm_events.vim import VimFeaturesChanged
from kubevnfm_infra_k8s.adapters.leases import HeldTerm
from kubevnfm_infra_k8s.adapters.stored_features import FEATURES, StoredFeatures
from kubevnfm_infra_k8s.domain.errors import Forbidden
from kubevnfm_infra_k8s.domain.inventory.feature_watch import FeatureWatch
from kubevnfm_infra_k8s.domain.objects import Resource
from kubevnfm_infra_k8s.domain.ports import Clusters, Seen
from kubevnfm_kit.clock import SystemClock
from kubevnfm_secrets import KeyRing
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.relay import OutboxRelay
from patience import until_true
from worlds.link_world import OneVim

RING = KeyRing.from_text(KeyRing.new_key())
NFD = "feature.node.kubernetes.io/cpu-cpuid.AVX512F"


def a_node(labels: dict[str, str], **allocatable: str) -> dict[str, Any]:
    status = {"capacity": {"cpu": "8"}, "allocatable": allocatable}
    return {"metadata": {"name": "n1", "labels": labels}, "status": status}


@dataclass
class FedRegion:
    """A region whose watches show what the test reports."""

    given: defaultdict[str, asyncio.Queue[Seen[Any]]] = field(default_factory=lambda: defaultdict(asyncio.Queue))
    forbidden: frozenset[str] = frozenset()
    events: list[VimFeaturesChanged] = field(default_factory=list)
    unserved: frozenset[str] = frozenset({"DeviceClass"})
    looked_for: list[str] = field(default_factory=list)
    """The kinds for which the kinds of the region were read."""

    async def resource(self, api_version: str, kind: str) -> Resource | None:
        await asyncio.sleep(0.01)
        self.looked_for.append(kind)
        return self.known_resource(api_version, kind)

    def known_resource(self, api_version: str, kind: str) -> Resource | None:
        if kind in self.unserved:
            return None
        return Resource(api_version, kind, f"{kind.lower()}s", namespaced=False)

    async def follow_kept(
        self, resource: Resource, keep: Callable[[Any], str], parts: Sequence[Sequence[str]], **where: str
    ) -> AsyncGenerator[Seen[str], None]:
        if resource.kind in self.forbidden:
            raise Forbidden("list", "forbidden", http_status=403)
        while True:
            seen = await self.given[resource.kind].get()
            yield replace(seen, found={name: keep(body) for name, body in seen.found.items()})

    @asynccontextmanager
    async def cluster(self, vim: VimConnection) -> AsyncIterator[FedRegion]:
        yield self

    def nodes(self, *nodes: dict[str, Any], is_all: bool = False, gone: tuple[str, ...] = ()) -> None:
        self.given["Node"].put_nowait(
            Seen({each["metadata"]["name"]: each for each in nodes}, gone=gone, is_all=is_all)
        )


@asynccontextmanager
async def watched(store: SqliteStore, region: FedRegion, *, apart_s: float = 0.0) -> AsyncIterator[StoredFeatures]:
    """Watch a region; collect the events."""

    async def keep(delivery: Delivery) -> Verdict:
        assert isinstance(delivery.envelope.data, VimFeaturesChanged)
        region.events.append(delivery.envelope.data)
        return Ack()

    async with InProcessBus(RING) as bus:
        await bus.consume_events("features", ["vim.features.#"], keep)
        async with OutboxRelay(store, bus, collections=[FEATURES]) as relay:
            clock = SystemClock()
            records = StoredFeatures(store, Outbox(store, relay, RING), clock)
            term, clusters = HeldTerm(1, math.inf), cast("Clusters", region)
            watch = FeatureWatch(records, OneVim({"vim": VimConnection()}), clusters, clock, term, "vim", apart_s)
            task = asyncio.create_task(watch.run())
            try:
                yield records
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


async def seen(store: SqliteStore, before: str = "") -> str:
    """Return what is stored, once it is another digest."""
    found = ""

    async def is_other() -> bool:
        nonlocal found
        stored = await store.get(FEATURES, "vim")
        found = "" if stored is None else str(stored.body["digest"])
        return found not in ("", before)

    await until_true(is_other)
    return found


async def changed_at(store: SqliteStore) -> datetime:
    stored = await store.get(FEATURES, "vim")
    assert stored is not None
    return datetime.fromisoformat(stored.body["changedAt"])


async def test_changed_features_are_published_once_and_others_not(store: SqliteStore) -> None:
    """MC-119: those that a region has when it is seen first are no change; heartbeats of kubelets are none."""
    region = FedRegion()
    async with watched(store, region):
        region.nodes(a_node({NFD: "true"}, cpu="8"), is_all=True)
        region.given["ResourceSlice"].put_nowait(Seen({}, is_all=True))
        first = await seen(store)
        region.nodes({**a_node({NFD: "true", "zone": "a"}, cpu="8"), "spec": {"unschedulable": True}})
        region.nodes(a_node({NFD: "false"}, cpu="8"))
        second = await seen(store, first)
        a_slice = {"metadata": {"name": "s"}, "spec": {"driver": "gpu.example.com", "devices": [{"name": "gpu-0"}]}}
        region.given["ResourceSlice"].put_nowait(Seen({"s": a_slice}))
        third = await seen(store, second)
        region.nodes(gone=("n1",))
        await seen(store, third)

        async def are_there() -> bool:
            return len(region.events) == 3

        await until_true(are_there)
        assert {each.vim_id for each in region.events} == {"vim"}


async def test_what_changed_while_no_process_watched_is_published_and_no_event_comes_too_soon(
    store: SqliteStore,
) -> None:
    """MC-119: another process continues with what was published, and waits as long as the first would have."""
    region = FedRegion(forbidden=frozenset({"ResourceSlice"}))
    async with watched(store, region) as records:
        region.nodes(a_node({NFD: "true"}), is_all=True)
        first = await seen(store)
        region.nodes(a_node({NFD: "a"}))
        second = await seen(store, first)
        before = await changed_at(store)
    async with watched(store, region, apart_s=0.5):
        region.nodes(a_node({NFD: "b"}), is_all=True)
        for value in ("c", "d", "e"):
            region.nodes(a_node({NFD: value}))

        async def are_there() -> bool:
            return len(region.events) == 2

        await until_true(are_there)
        await seen(store, second)
        assert (await changed_at(store) - before).total_seconds() > 0.45
    await records.forget("vim")
    assert await store.get(FEATURES, "vim") is None


async def test_kinds_of_one_group_that_a_region_lacks_are_looked_for_once(store: SqliteStore) -> None:
    """MC-142: most regions lack both, and to read what a cluster serves takes 10 ms: each minute, for each of 500."""
    region = FedRegion(unserved=frozenset({"ResourceSlice", "DeviceClass"}))
    async with watched(store, region):
        region.nodes(a_node({NFD: "true"}), is_all=True)
        await seen(store)
    assert len(region.looked_for) == 2
    assert "Node" in region.looked_for
