"""Many regions in one infra-k8s (multicloud.md MC-142): memory, connections, start, and what regions cost one another.

The API servers of all regions are one other process (`region_server`). Each run of infra-k8s is a process of its own, wired as in
`deploy/single` but with twins of the services that it asks; it has its database (SQLite) and one subscriber.
"""

from __future__ import annotations

import asyncio
import gc
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, cast

import aiohttp
from figures import Figure, say
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_clients.multicloud.regions import CloudRegion
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_clients.multicloud.types import Page
from kubevnfm_clients.ports import CloudIdentities, Packages
from kubevnfm_events import CommandFailed, Envelope, PackageRef, VimConnection
from kubevnfm_events.inventory import PlacementChanged
from kubevnfm_events.objects import ApplyObjects, CompareObjects, ExpectedObjects, ObjectsApplied
from kubevnfm_infra_k8s.adapters import documents, stored_inventory
from kubevnfm_infra_k8s.adapters.leases import LEADER
from kubevnfm_infra_k8s.adapters.regions import RegionDirectory
from kubevnfm_infra_k8s.adapters.turns import TURNS
from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.ownership import owned_fields
from kubevnfm_infra_k8s.domain.release import Entry, Release
from kubevnfm_infra_k8s.settings import Settings
from kubevnfm_infra_k8s.wiring import infra_k8s
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.logging import configure_logging
from kubevnfm_secrets import KeyRing, Secret
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.backends import Backends
from patience import until_true
from pydantic import SecretStr
from region_server import MEMBER_OF_SYSTEM, deployment, instance_id
from servers.vnf_networks import networks
from worlds.given_charts import GivenCharts
from worlds.link_world import OneVim

HERE: Final = Path(__file__).parent
PER_SECOND: Final = 100
APPLIES_PER_SECOND: Final = 4
APPLIED_IN: Final = 20
"""Regions in which VNFs are brought up."""
_FAULTY: Final = (7, 8, 9)
LEAST: Final = _FAULTY[-1] + 2
"""Regions, so that one is left in which VNFs are brought up."""
_MIB: Final = 2**20
_MOST_MIB, _START_S, _CHANGE_MS, _RATIO = 1536.0, 60.0, 500.0, 1.05
"""The goals of MC-142."""
_ROUNDS: Final = 3
_START_LIMIT_S: Final = 240.0
_COMPARISON_LIMIT_S: Final = 90.0
_LIMIT_S: Final = 660.0
"""For all of it: what is not measured by then is left out, and the bench fails."""
_APPLY_LIMIT_S: Final = 60.0
_RETURN_LIMIT_S: Final = 45.0
"""Calls to a region that does not answer are tried after pauses of up to 30 s."""
_SETTLE_S: Final = 1.0
_KEY: Final = KeyRing.new_key()


@dataclass(frozen=True)
class World:
    """The regions, for each process of the bench."""

    folder: Path
    addresses: Mapping[str, Any]
    vnfs: int
    """In each region."""
    seconds: float
    """How long changes are measured in each state of the regions."""
    ends_at: float = field(default_factory=lambda: time.time() + _LIMIT_S)

    @property
    def left_s(self) -> float:
        """Return the time that is left for measurements."""
        return max(1.0, self.ends_at - time.time())

    @property
    def regions(self) -> int:
        return len(self.addresses["ports"])

    @property
    def database(self) -> Path:
        return self.folder / "regions.db"

    def endpoint(self, region: int) -> str:
        """Return the API server of a region."""
        return f"https://127.0.0.1:{self.addresses['ports'][region]}"

    def vim(self, region: int) -> VimConnection:
        """Return its registration: with a CA of its own or without, with a token or with the right to request tokens."""
        access: dict[str, Any] = {"bearer_token": Secret(f"token-{region}")}
        if region % MEMBER_OF_SYSTEM == 1:
            access["service_account"] = {"namespace": "vnfs", "service_account": "vnfm", "expiration_s": 3600}
        interface = {"endpoint": self.endpoint(region)}
        if (ca := self.addresses["authorities"][region]) is not None:
            interface["ssl_ca_cert"] = ca
        return VimConnection(
            vim_id=f"region-{region}",
            vim_type="ETSINFV.KUBERNETES.V_1",
            interface_info=interface,
            access_info=access,
        )


class _Regions:
    """The part of vim-registry that infra-k8s asks beside VIMs."""

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[CloudRegion]:
        return Page(())

    async def suspensions(self) -> Mapping[str, Suspension]:
        return {}


class _OnePackage:
    """`kubevnfm_clients.ports.Packages` with one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def folder(self, package: PackageRef) -> Path:
        return self._folder


@dataclass
class Heard:
    """The changes that a subscriber has received."""

    events: int = 0
    delays_ms: list[tuple[str, float]] = field(default_factory=list)
    """For each change: the VIM, and the time from the change to its receipt."""
    applied: dict[str, asyncio.Future[None]] = field(default_factory=dict)
    """By VNF."""

    async def hear(self, delivery: Delivery) -> Verdict:
        change = delivery.envelope.data
        if isinstance(change, PlacementChanged):
            self.events += 1
            if change.change == "changed" and change.new is not None:
                self.delays_ms.append((change.vim_id, (time.time() - float(change.new.phase)) * 1000))
        return Ack()

    async def answered(self, delivery: Delivery) -> Verdict:
        waiting = self.applied.get(delivery.envelope.operationid or "")
        if waiting is not None and not waiting.done():
            event = delivery.envelope.data
            if isinstance(event, CommandFailed):
                waiting.set_exception(RuntimeError(event.detail))
            elif isinstance(event, ObjectsApplied):
                waiting.set_result(None)
        return Ack()


def regions(count: int, instances: int, seconds: float) -> list[Figure]:
    """Start infra-k8s with no record and again with all, then change pods while all regions answer and while some do not."""
    return asyncio.run(_regions(count, max(1, instances // count), seconds))


async def _regions(count: int, vnfs: int, seconds: float) -> list[Figure]:
    with tempfile.TemporaryDirectory() as made:
        async with _server(count, vnfs) as addresses:
            world = World(Path(made), addresses, vnfs, seconds)
            certificates = world.folder / "system.pem"
            system = Path("/etc/ssl/certs/ca-certificates.crt")
            known = system.read_text() if system.exists() else ""
            certificates.write_text(known + addresses["system_ca"])
            package = world.folder / "package"
            (package / "TOSCA-Metadata").mkdir(parents=True)
            (package / "f.yaml").write_text(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n"
            )
            await _filled(world)
            say("  first start")
            cold = await _in_process(_cold, world)
            say("  second start")
            warm = {} if "missing" in cold else await _in_process(_warm, world)
    total = count * vnfs
    name = f"{count} regions, {total} instances"
    figures = _of_start(f"{name}: first list, with {2 * total} records", cold)
    if warm:
        figures += _of_start(f"{name}: start with a list of everything", warm, _START_S)
    if "states" not in warm:
        return [*figures, Figure("NOT COMPLETE: changes were not measured", "", [1], 0)]
    states = warm["states"]
    alive = states["alive"]
    figures += [
        Figure("connections to regions", "", [warm["connections"]]),
        Figure("watches", "", [warm["watches"]]),
        Figure("open descriptors of infra-k8s", "", [warm["descriptors"]]),
        Figure("first comparison of all regions: memory after it", "MiB", [warm["compared"]["memory"]], _MOST_MIB),
        Figure("processor time of it", "s", [warm["compared"]["used_s"]]),
        Figure("watches with it", "", [warm["compared"]["watches"]]),
        Figure("regions that it does not watch", "", [warm["compared"]["missing"]], 0),
        Figure("processor time without changes, of a core", "%", [warm["idle_share"]]),
        Figure("requests to regions without changes, in a second", "", [warm["idle_requests"]]),
        Figure(f"{PER_SECOND} changes a second, to the subscriber", "ms", alive["delays_ms"]),
        Figure("the 95th percentile of it", "ms", [alive["p95"]], _CHANGE_MS),
        Figure("processor time of it, of a core", "%", alive["shares"]),
        Figure("an apply meanwhile, in another region; 95th percentile", "ms", [alive["apply_p95"]]),
    ]
    for fault in ("refusing", "silent", "slow"):
        found = states[fault]
        figures += [
            Figure(f"a region is {fault}: 95th percentile of the others", "ms", [found["p95"]]),
            Figure("divided by that without", "", found["ratios"], _RATIO),
            Figure("processor time, of a core", "%", found["shares"]),
            Figure("an apply in another region; 95th percentile", "ms", [found["apply_p95"]]),
            Figure("divided by that without", "", [found["apply_p95"] / alive["apply_p95"]], _RATIO),
            Figure("until it is watched again", "s", found["returns_s"]),
        ]
    return [*figures, Figure("peak of memory in all of this", "MiB", [warm["peak"]], _MOST_MIB)]


def _of_start(name: str, found: Mapping[str, Any], limit_s: float | None = None) -> list[Figure]:
    """Return the figures of a start, also of one that has not come to its end."""
    figures = [
        Figure(name, "s", [found["listed_s"]], limit_s),
        Figure("processor time of it", "s", [found["used_s"]]),
        Figure("leaders of it beyond the first: lost leases", "", [found["lost"]], 0),
        Figure("memory after it", "MiB", [found["memory"]], _MOST_MIB),
        Figure("peak of memory until then", "MiB", [found["peak"]], _MOST_MIB),
        Figure("longest time in which the event loop did nothing else", "ms", [found["held_ms"]]),
    ]
    if "missing" in found:
        figures.append(Figure("NOT COMPLETE: regions that are not listed", "", [found["missing"]], 0))
    return figures


@asynccontextmanager
async def _server(count: int, vnfs: int) -> AsyncIterator[Mapping[str, Any]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(HERE / "region_server.py"),
        str(count),
        str(vnfs),
        stdout=asyncio.subprocess.PIPE,
        limit=2**24,
    )
    try:
        assert process.stdout is not None
        yield json.loads(await process.stdout.readline())
    finally:
        process.kill()
        await process.wait()


async def _in_process(work: Callable[[World], Awaitable[dict[str, Any]]], world: World) -> dict[str, Any]:
    """Return the result of the work in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return await asyncio.get_running_loop().run_in_executor(pool, _run, work, world)


def _run(work: Callable[[World], Any], world: World) -> dict[str, Any]:
    os.environ["SSL_CERT_FILE"] = str(world.folder / "system.pem")
    configure_logging("bench", level="ERROR")
    return cast("dict[str, Any]", asyncio.run(work(world)))


async def _filled(world: World) -> None:
    """Store the releases of all instances, as if their objects had been applied."""
    async with SqliteStore.open(world.database) as store:
        for collection, indexes in {**documents.INDEXES, **stored_inventory.INDEXES}.items():
            await store.ensure_indexes(collection, indexes)
        releases = documents.StoredReleases(store)

        async def save(region: int, number: int) -> None:
            body = deployment(region, number)
            metadata = body["metadata"]
            key = ObjectKey("apps/v1", "Deployment", metadata["namespace"], metadata["name"])
            entry = Entry(key, "f.yaml", "d", uid=metadata["uid"], vdu_id="VDU1", owned=owned_fields(body))
            vnf = instance_id(region, number)
            await releases.save(Release(vnf, world.endpoint(region), entries=[entry], vim_id=f"region-{region}"))

        for number in range(world.vnfs):
            await asyncio.gather(*(save(region, number) for region in range(world.regions)))


@dataclass
class Run:
    """A running infra-k8s, with what is measured of it."""

    world: World
    bus: InProcessBus
    store: SqliteStore
    heard: Heard
    begun: float
    used: float
    control: aiohttp.ClientSession
    leaders_before: int
    held_ms: float = 0.0

    async def unlisted(self) -> int:
        """Return the regions that were not listed by this process."""
        found = [(f"region-{number}", ("v1", "Pod")) for number in range(self.world.regions)]
        return len(await stored_inventory.StoredRegions(self.store, SystemClock()).stale(found))

    async def started(self, placed: int = 0) -> dict[str, Any]:
        """Return what the start took; with ``missing`` if it was not at its end in time."""

        async def is_complete() -> bool:
            return not await self.unlisted() and self.heard.events >= placed

        try:
            await until_true(is_complete, timeout_s=min(_START_LIMIT_S, self.world.left_s), pause_s=0.5)
            found = await self.measured()
        except TimeoutError:
            found = await self.measured() | {"missing": await self.unlisted()}
        return found | {"lost": await leaders_of(self.store) - self.leaders_before - 1}

    async def counts(self, region: int | None = None) -> Mapping[str, int]:
        """Return what is open at the regions, or at one."""
        query = {} if region is None else {"region": str(region)}
        async with self.control.get("/counts", params=query) as response:
            return cast("Mapping[str, int]", await response.json())

    async def measured(self) -> dict[str, Any]:
        """Return what the start took, and what is open."""
        listed_s, used_s = time.monotonic() - self.begun, time.process_time() - self.used
        gc.collect()
        return {
            "listed_s": listed_s,
            "used_s": used_s,
            "memory": resident_mib(),
            "peak": peak_mib(),
            "descriptors": len(os.listdir("/proc/self/fd")),  # noqa: PTH208
            "held_ms": self.held_ms,
            **await self.counts(),
        }

    async def note_holds(self) -> None:
        """Note the longest time in which the loop did not come to this task."""
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(0.01)
            self.held_ms = max(self.held_ms, (loop.time() - before - 0.01) * 1000)


@asynccontextmanager
async def _running(world: World) -> AsyncIterator[Run]:
    ring, heard = KeyRing.from_text(_KEY), Heard()
    settings = Settings(port=0, internal_token=SecretStr("token"), keys=SecretStr("unused"))
    vims = OneVim({f"region-{number}": world.vim(number) for number in range(world.regions)})
    async with (
        SqliteStore.open(world.database) as store,
        InProcessBus(ring) as bus,
        aiohttp.ClientSession(f"http://127.0.0.1:{world.addresses['control']}") as control,
    ):
        await bus.consume_events("bench", ["infra.placement.changed"], heard.hear)
        await bus.consume_events("answers", ["infra.resources.#", "service.#", "infra.objects.#"], heard.answered)
        leaders = await leaders_of(store)
        begun, used = time.monotonic(), time.process_time()
        async with infra_k8s(
            settings,
            Backends(bus, store, ring),
            packages=cast("Packages", _OnePackage(world.folder / "package")),
            charts=GivenCharts(),
            vims=vims,
            identities=cast("CloudIdentities", None),
            regions=cast("RegionDirectory", _Regions()),
            networks=networks(),
        ):
            # As a service does (`kubevnfm_kit.run`).
            gc.collect()
            gc.freeze()
            run = Run(world, bus, store, heard, begun, used, control, leaders)
            noting = asyncio.create_task(run.note_holds())
            try:
                yield run
            finally:
                noting.cancel()


async def _cold(world: World) -> dict[str, Any]:
    async with _running(world) as run:
        return await run.started(placed=world.regions * world.vnfs)


async def _warm(world: World) -> dict[str, Any]:
    async with _running(world) as run:
        found = await run.started()
        if "missing" in found:
            return found
        found["compared"] = await _compared(run)
        before, used, begun = await run.counts(), time.process_time(), time.monotonic()
        await asyncio.sleep(world.seconds)
        took_s = time.monotonic() - begun
        found["idle_share"] = (time.process_time() - used) / took_s * 100
        found["idle_requests"] = ((await run.counts())["requests"] - before["requests"]) / took_s
        if states := await _states(run):
            found["states"] = states
        found["peak"] = peak_mib()
        return found


async def _compared(run: Run) -> dict[str, Any]:
    """Have the objects of all regions compared, as lcm-api does each minute."""
    world, used, before = run.world, time.process_time(), (await run.counts())["watches"]
    deadline = datetime.now(UTC) + timedelta(seconds=600)
    for region in range(world.regions):
        expected = tuple(
            ExpectedObjects(vnf_instance_id=instance_id(region, number), revision=1) for number in range(world.vnfs)
        )
        command = CompareObjects(vim=VimConnection(vim_id=f"region-{region}"), expected=expected)
        await run.bus.publish(Envelope(command, source="/bench", deadline=deadline))

    async def is_watched() -> bool:
        return (await run.counts())["watches"] >= before + world.regions

    with suppress(TimeoutError):
        await until_true(is_watched, timeout_s=min(_COMPARISON_LIMIT_S, world.left_s), pause_s=0.5)
    gc.collect()
    return {
        "missing": max(0, before + world.regions - (await run.counts())["watches"]),
        "memory": resident_mib(),
        "used_s": time.process_time() - used,
        **await run.counts(),
    }


async def _states(run: Run) -> dict[str, Any]:
    """Measure changes and applies while all regions answer and while one does not, in turn."""
    of_all: dict[str, dict[str, Any]] = {
        state: {"delays_ms": [], "applies_ms": [], "shares": [], "ratios": [], "p95s": [], "returns_s": []}
        for state in ("alive", "refusing", "silent", "slow")
    }
    for round_number in range(_ROUNDS):
        for state, region in zip(of_all, (None, *_FAULTY), strict=True):
            if run.world.left_s < run.world.seconds:
                say("  no time is left")
                return {}
            say(f"  round {round_number + 1} of {_ROUNDS}: {state}")
            if region is None:
                await _measure(run, of_all[state])
                continue
            watches = (await run.counts(region))["watches"]
            await run.control.post("/fault", params={"region": str(region), "fault": state})
            await _measure(run, of_all[state])
            await run.control.post("/fault", params={"region": str(region), "fault": ""})
            of_all[state]["returns_s"].append(await _returned(run, region, watches))
    for found in of_all.values():
        found["p95"] = _p95(found["delays_ms"])
        found["apply_p95"] = _p95(found["applies_ms"])
        found["ratios"] = [one / alive for one, alive in zip(found["p95s"], of_all["alive"]["p95s"], strict=True)]
    return of_all


async def _returned(run: Run, region: int, watches: int) -> float:
    """Return the seconds until a region that answers again is watched: what that takes is no part of the next turn."""
    begun = time.monotonic()

    async def is_watched() -> bool:
        return (await run.counts(region))["watches"] >= watches

    with suppress(TimeoutError):
        await until_true(is_watched, timeout_s=min(_RETURN_LIMIT_S, run.world.left_s), pause_s=0.2)
    taken = time.monotonic() - begun
    # The records of its objects are compared after its watches have begun.
    await asyncio.sleep(_SETTLE_S)
    return taken


async def _measure(run: Run, found: dict[str, Any]) -> None:
    world, faulty = run.world, {f"region-{number}" for number in _FAULTY}
    run.heard.delays_ms.clear()
    used, begun = time.process_time(), time.monotonic()
    query = {"per_s": str(PER_SECOND), "seconds": str(world.seconds)}
    await run.control.post("/change", params=query)
    applies = [
        asyncio.create_task(_apply(run, number, number / APPLIES_PER_SECOND))
        for number in range(int(world.seconds * APPLIES_PER_SECOND))
    ]
    found["applies_ms"] += await asyncio.gather(*applies)
    await asyncio.sleep(max(0.0, begun + world.seconds + 1 - time.monotonic()))
    delays = [delay for vim_id, delay in run.heard.delays_ms if vim_id not in faulty]
    found["shares"].append((time.process_time() - used) / (time.monotonic() - begun) * 100)
    found["delays_ms"] += delays
    found["p95s"].append(_p95(delays))


async def _apply(run: Run, number: int, after_s: float) -> float:
    """Bring a small CNF up; return the milliseconds."""
    await asyncio.sleep(after_s)
    region = _FAULTY[-1] + 1 + number % min(APPLIED_IN, run.world.regions - LEAST + 1)
    # In a namespace of its own, as VNFs are.
    vnf = f"applied-{time.monotonic_ns()}"
    done = run.heard.applied[vnf] = asyncio.get_running_loop().create_future()
    command = ApplyObjects(
        vnf_instance_id=vnf,
        package=PackageRef(package_id="p", vnfd_id="v"),
        vim=VimConnection(vim_id=f"region-{region}"),
        def_files=("f.yaml",),
        namespace=vnf,
    )
    begun = time.monotonic()
    await run.bus.publish(Envelope(command, source="/bench", subject=vnf, operationid=vnf, stepid="apply", attempt=1))
    with suppress(TimeoutError):
        async with asyncio.timeout(_APPLY_LIMIT_S):
            await done
    return (time.monotonic() - begun) * 1000


async def leaders_of(store: SqliteStore) -> int:
    """Return how often a process has begun to watch."""
    lease = await store.get(TURNS, LEADER)
    return 0 if lease is None else int(lease.body["term"])


def _p95(samples: Sequence[float]) -> float:
    return sorted(samples)[int(len(samples) * 0.95)]


def resident_mib() -> float:
    """Return the memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def peak_mib() -> float:
    """Return the largest memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
