"""The export of the inventory to A&AI: how long many pods take, and the lag at 100 changes a second.

python tests/bench/export.py [--pods 5000] [--seconds 20]: one process and SQLite; A&AI is that of the tests, in another process.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_events.inventory import NetworkAddresses
from kubevnfm_infra_k8s.adapters import stored_exports, stored_inventory, stored_links
from kubevnfm_infra_k8s.adapters.aai import AaiGraph
from kubevnfm_infra_k8s.adapters.export_marks import ExportMarks
from kubevnfm_infra_k8s.adapters.leases import HeldTerm
from kubevnfm_infra_k8s.adapters.region_metrics import RegionMetrics
from kubevnfm_infra_k8s.domain.exporting.exporter import Exporter
from kubevnfm_infra_k8s.domain.inventory.record import ObjectRecord, record_id
from kubevnfm_kit.clock import SystemClock, rfc3339
from kubevnfm_kit.metrics import Metrics
from kubevnfm_kit.tls import ClientTls
from kubevnfm_secrets import KeyRing
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.relay import OutboxRelay

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

from figures import Figure, say  # noqa: E402
from patience import until_true  # noqa: E402
from servers.aai import PASSWORD, USER  # noqa: E402
from worlds.export_world import NamedRegions  # noqa: E402

PER_SECOND = 100
OF_ONE = 100
"""Pods of a VNF."""


async def export(pods: int, seconds: int) -> list[Figure]:
    """Write records, export them all, and go on to change them."""
    ring, clock, metrics = KeyRing.from_text(KeyRing.new_key()), SystemClock(), RegionMetrics(Metrics())
    with tempfile.TemporaryDirectory() as folder:
        async with (
            _aai() as url,
            SqliteStore.open(Path(folder) / "export.db") as store,
            InProcessBus(ring) as bus,
            OutboxRelay(store, bus, collections=[stored_inventory.OBJECTS]) as relay,
            AaiGraph.open(
                url, "v14", metrics.export, tls=ClientTls(), user=USER, password=PASSWORD, parallel=4
            ) as graph,
        ):
            for indexes in (stored_inventory.INDEXES, stored_links.INDEXES, stored_exports.INDEXES):
                for collection, each in indexes.items():
                    await store.ensure_indexes(collection, each)
            marks = ExportMarks(store, clock)
            objects = stored_inventory.StoredObjects(store, Outbox(store, relay, ring), marks)
            state = stored_exports.StoredExports(store, clock, marks, url)
            records = [_record(number, clock) for number in range(pods)]
            for begin in range(0, pods, 64):
                await asyncio.gather(*(objects.write(None, each) for each in records[begin : begin + 64]))
            await relay.idle()

            async def is_settled() -> bool:
                health = await state.health()
                return health.resync is not None and health.resync.marked_at is not None and not health.waiting

            begun, used = time.monotonic(), time.process_time()
            exporter = Exporter(state, graph, NamedRegions(), 4, 30)
            running = asyncio.create_task(exporter.run(HeldTerm(1, math.inf)))
            try:
                await until_true(is_settled, timeout_s=1200, pause_s=0.2)
                all_s, all_used = time.monotonic() - begun, time.process_time() - used
                used, lags = time.process_time(), []
                for second in range(seconds):
                    started = time.monotonic()
                    for number in range(PER_SECOND):
                        await _change(objects, records[(second * PER_SECOND + number) % pods], second, clock)
                    lags.append((await state.health()).lag_s * 1000)
                    await asyncio.sleep(max(0.0, 1.0 - (time.monotonic() - started)))
                changes_used = time.process_time() - used
                begun = time.monotonic()
                await until_true(is_settled, timeout_s=600, pause_s=0.1)
                after_s = time.monotonic() - begun
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
    return [
        Figure(f"export of {pods} pods to A&AI", "s", [all_s]),
        Figure("processor time of it", "s", [all_used]),
        Figure(f"{PER_SECOND} changes a second: lag of the export, at each second", "ms", lags),
        Figure("processor time of a change, its write included", "ms", [changes_used * 1000 / (seconds * PER_SECOND)]),
        Figure("from the last change until A&AI has all", "s", [after_s]),
    ]


def _record(number: int, clock: SystemClock) -> ObjectRecord:
    name, namespace = f"web-{number}", f"vnf-{number // OF_ONE}"
    return ObjectRecord(
        id=record_id("vim", "", "Pod", namespace, name), vim_id="vim", vnf_instance_id=namespace, api_version="v1",
        kind="Pod", namespace=namespace, name=name, uid=f"u{number}", phase="Running", node="w1",
        networks=(NetworkAddresses(addresses=(f"10.{number // 65536}.{number // 256 % 256}.{number % 256}",)),),
        changed_at=rfc3339(clock.now()),
    )  # fmt: skip


async def _change(
    objects: stored_inventory.StoredObjects, record: ObjectRecord, second: int, clock: SystemClock
) -> None:
    old = await objects.get(record.id)
    address = NetworkAddresses(addresses=(f"172.16.{second % 256}.1",))
    new = record.model_copy(update={"networks": (address,), "changed_at": rfc3339(clock.now())})
    await objects.write(old, new)


@asynccontextmanager
async def _aai() -> AsyncIterator[str]:
    arguments = [str(HERE / "aai_server.py")]
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}"
    finally:
        process.kill()
        await process.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--seconds", type=int, default=20)
    given = parser.parse_args()
    for figure in asyncio.run(export(given.pods, given.seconds)):
        say(figure.line())
