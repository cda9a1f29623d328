"""The inventory of one region with many pods: how long lists take, what it costs in memory, and when subscribers hear of changes.

python tests/bench/inventory.py [--pods 50000] [--changes 1500]: one process and SQLite; the API server is `pod_server`, in another one.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events import VimConnection
from kubevnfm_events.inventory import PlacementChanged
from kubevnfm_infra_k8s.adapters import documents, stored_features, stored_inventory
from kubevnfm_infra_k8s.adapters.clusters import KubernetesClusters
from kubevnfm_infra_k8s.adapters.leases import StoredLeadership
from kubevnfm_infra_k8s.domain.inventory.watcher import InventoryWatcher
from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.release import Entry, Release
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.owners import Owners
from kubevnfm_secrets import KeyRing, Secret
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.relay import OutboxRelay

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

from figures import Figure, say  # noqa: E402
from patience import until_true  # noqa: E402
from regions import LEAST, regions  # noqa: E402
from servers.vnf_networks import networks  # noqa: E402
from worlds.link_world import OneVim  # noqa: E402
from worlds.output_world import NoOutputs  # noqa: E402

PER_SECOND = 100
INVENTORY_CHANGES = 1500
OF_ONE = 100
"""Pods of an instance, as `pod_server` has it."""


@dataclass
class Heard:
    """The facts that a subscriber has heard, and how long after the change."""

    events: int = 0
    delays_ms: list[float] = field(default_factory=list)

    async def hear(self, delivery: Delivery) -> Verdict:
        self.events += 1
        change = delivery.envelope.data
        assert isinstance(change, PlacementChanged)
        if change.change == "changed" and change.new is not None:
            self.delays_ms.append((time.time() - float(change.new.phase)) * 1000)
        return Ack()


async def inventory(pods: int, changes: int) -> list[Figure]:
    """Fill the inventory, begin to watch again, and change pods."""
    ring, heard = KeyRing.from_text(KeyRing.new_key()), Heard()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "inventory.db"
        async with (
            _pod_server(pods, changes) as endpoint,
            SqliteStore.open(file) as store,
            InProcessBus(ring) as bus,
            KubernetesClusters.open(ring, networks()) as clusters,
            OutboxRelay(store, bus, collections=[stored_inventory.OBJECTS]) as relay,
        ):
            for collection, indexes in {**documents.INDEXES, **stored_inventory.INDEXES}.items():
                await store.ensure_indexes(collection, indexes)
            await bus.consume_events("bench", ["infra.placement.changed"], heard.hear)
            for number in range(pods // OF_ONE):
                entry = Entry(
                    ObjectKey("apps/v1", "Deployment", f"instance-{number}", "web"), "f.yaml", "d", vdu_id="VDU1"
                )
                await documents.StoredReleases(store).save(
                    Release(f"instance-{number}", endpoint, entries=[entry], vim_id="vim")
                )
            access = {"bearer_token": Secret("x")}
            vim = VimConnection(
                vim_id="vim",
                vim_type="ETSINFV.KUBERNETES.V_1",
                interface_info={"endpoint": endpoint},
                access_info=access,
            )
            gc.collect()
            before, clock = _resident_mib(), SystemClock()
            watcher = InventoryWatcher(
                stored_inventory.StoredObjects(store, Outbox(store, relay, ring)),
                stored_inventory.StoredRegions(store, clock),
                stored_inventory.StoredInstances(store, clock),
                OneVim({"vim": vim}),
                clusters,
                clock,
                StoredLeadership(store, clock, lease_s=15.0, owners=Owners()),
                NoOutputs(),
                stored_features.StoredFeatures(store, Outbox(store, relay, ring), clock),
            )
            filled = await _run_until(watcher, lambda: _is_true(heard.events >= pods))
            await relay.idle()

            async def is_listed() -> bool:
                found = [("vim", ("v1", "Pod"))]
                return not await watcher.regions.stale(found)

            listed = await _run_until(watcher, is_listed)
            running = asyncio.create_task(watcher.run())
            try:
                await until_true(is_listed, timeout_s=600, pause_s=0.1)
                async with aiohttp.ClientSession() as session, session.post(f"{endpoint}/begin"):
                    pass
                await until_true(lambda: _is_true(len(heard.delays_ms) >= changes), timeout_s=600, pause_s=0.1)
                gc.collect()
                memory = _resident_mib() - before
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
        stored = file.stat().st_size / 2**20
    name = f"inventory of {pods} pods"
    return [
        Figure(f"{name}: first list, with an event for each", "s", [filled[0]]),
        Figure("processor time of it", "s", [filled[1]]),
        Figure(f"{name}: list of a process that takes over", "s", [listed[0]], 60),
        Figure("processor time of it", "s", [listed[1]]),
        Figure(f"{name}: memory", "MiB", [memory], 400),
        Figure(f"{name}: database file", "MiB", [stored]),
        Figure(f"{PER_SECOND} changes a second, to the subscriber", "ms", heard.delays_ms),
        Figure("the 95th percentile of it", "ms", [sorted(heard.delays_ms)[int(len(heard.delays_ms) * 0.95)]], 500),
    ]


async def _run_until(watcher: InventoryWatcher, holds: Callable[[], Awaitable[bool]]) -> tuple[float, float]:
    """Watch until this holds; return the seconds, and those of processor time."""
    running, begun, used = asyncio.create_task(watcher.run()), time.monotonic(), time.process_time()
    try:
        await until_true(holds, timeout_s=1200, pause_s=0.1)
        return time.monotonic() - begun, time.process_time() - used
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _is_true(value: bool) -> bool:
    return value


@asynccontextmanager
async def _pod_server(pods: int, changes: int) -> AsyncIterator[str]:
    arguments = [str(HERE / "pod_server.py"), str(pods), str(changes), str(PER_SECOND)]
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}"
    finally:
        process.kill()
        await process.wait()


def _resident_mib() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--changes", type=int, default=INVENTORY_CHANGES)
    parser.add_argument("--regions", type=int, default=1, help="more than one: the whole service with so many regions")
    parser.add_argument("--seconds", type=float, default=12.0, help="of changes in each state of the regions")
    given = parser.parse_args()
    if 1 < given.regions < LEAST:
        parser.error(f"--regions: 1, or at least {LEAST}")
    if given.regions > 1:
        figures = regions(given.regions, given.pods, given.seconds)
    else:
        figures = asyncio.run(inventory(given.pods, given.changes))
    for figure in figures:
        say(figure.line())
    sys.exit(not all(figure.meets_goal for figure in figures))
