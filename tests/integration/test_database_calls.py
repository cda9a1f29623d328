"""The calls to the database that a create and an instantiate over HTTP cost: their numbers are held here."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.metrics import Metrics
from kubevnfm_lcm_api.automation.domain.trigger import Trigger
from kubevnfm_lcm_api.faults.alarms import Alarms
from kubevnfm_lcm_api.faults.external import ExternalAlarms
from kubevnfm_lcm_api.faults.states import FaultStates
from kubevnfm_lcm_api.lifecycle.core.after_restore import AfterRestore
from kubevnfm_lcm_api.lifecycle.core.dependencies import PATHS, Provided
from kubevnfm_lcm_api.lifecycle.core.occurrence import COLLECTION as OPERATIONS
from kubevnfm_lcm_api.lifecycle.core.orphan_marks import Dependencies
from kubevnfm_lcm_api.notifications import event_log
from kubevnfm_lcm_api.notifications.delivery import ANNOUNCED
from kubevnfm_lcm_api.tracing.export import TraceExport, TraceMetrics
from kubevnfm_store.query import AllOf, Filter, Query, Sort, Stored, by
from kubevnfm_store.restoring import mark_restored
from kubevnfm_store.sqlite.catalogue import Catalogue
from kubevnfm_store.sqlite.queries import selects
from patience import until
from pymongo import monitoring
from real.alertmanager import fault, message, resolved
from servers.mongo_indexes import IndexUse
from servers.mongodb import mongodb_url
from worlds.lcm_world import RING, FragileStore, Storage, World, lcm_world
from worlds.mongo_storage import storage_on
from worlds.pm_documents import store_job

__all__ = ["mongodb_url"]

CREATES = 20
INSTANTIATES = 5
CALLS = {
    "insert vnf_instances",
    # After the insert: the package may have been disabled and deleted before it.
    "find vnf_packages",
    "find subscriptions",
    f"insert {ANNOUNCED}",
    "insert event_log",
}
"""The calls of one create, without the removal of its published event from its outbox, which it shares with others."""
SHARED_PER_S = 8
"""At most so many calls a second for what operations share: removals from outboxes once a second, a sweep of each, an expired lock."""


WITHOUT_INDEX = {
    # The index finds them; they are few, and are sorted in memory.
    "alarms by internal.external.heardAt, sorted by _id",
    "alarms by internal.open, sorted by _id",
    "operation_progress by operationId state, sorted by updatedAt _id",
    # By the first round over alarms, if the test takes longer than the ten seconds before it.
    "vnf_lcm_op_occs by operationState, sorted by _id",
    "vnf_troubles by text, sorted by _id",
    "inbox_lcm_api by parkedAt, sorted by _id",
    "subscriptions by failingSince, sorted by _id",
    "vnf_instances by $nor instantiationState internal.isOnUnregisteredVim, sorted by _id",
    "vnf_instances by $nor instantiationState internal.workload.cluster.name, sorted by _id",
    "vnf_instances by internal.remainsOf, sorted by _id",
    "vnf_instances by metadata.kubevnfm_drift, sorted by _id",
    "vnf_instances by metadata.kubevnfm_orphaned, sorted by _id",
    "vnf_lcm_op_occs by operation operationState, sorted by vnfInstanceId _id",
    "vnf_packages by vnfdId, sorted by createdAt _id",
    "subscriptions by $nor callbackUri",  # once, at start
    # Most or few match, which the server estimates: it reads in order, or sorts what an index finds.
    "subscriptions by apiVersion, sorted by createdAt _id",
    "vnf_instances by $nor instantiationState internal.multicloud.cloudRegionId, sorted by _id",
    "vnf_instances by internal.multicloud.cloudRegionId, sorted by _id",
    "vnf_instances by internal.multicloud.cloudRegionId internal.multicloud.namespace, sorted by _id",
    "vnf_instances by internal.multicloud.cloudRegionId vnfInstanceName, sorted by _id",
    "vnf_instances by vnfInstanceName, sorted by createdAt _id",
    "vnf_lcm_op_occs by _id internal.isInternal, sorted by _id",
    "vnf_lcm_op_occs by internal.isInternal, sorted by startTime _id",
    "vnf_lcm_op_occs by internal.isInternal operationState, sorted by startTime _id",
    "vnf_lcm_op_occs by internal.isInternal vnfInstanceId, sorted by startTime _id",
    "vnf_packages by usageState, sorted by createdAt _id",
    "vnf_snapshots by vnfSnapshot.vnfInstanceId, sorted by createdAt _id",
}
"""The searches of MongoDB that no index answers whole, in order."""
ELSEWHERE = {
    "alarms by internal.root _id",  # before the alarm of a VIM is shown
    "group_operations by id _id",  # before a group operation is worked on
    "notifications by vnfLcmOpOccId _id",  # before a grant is requested of an NFVO
    # ONAP's paths, which are off here: `tests/multicloud/test_onap_*.py` of lcm-api
    "onap_definitions by rb-name _id",
    "onap_networks by region _id",
    "onap_profiles by definition _id",
    "onap_profiles by package _id",
    "onap_profiles by profile-name _id",
    "onap_profiles by rb-version _id",
    "onap_profiles by rb-name _id",
    "page_sessions by user expiresAt _id",  # before a user logs in to the page
    "vnf_instances by internal.multicloud.onap.name _id",
    "vnf_instances by vnfPkgId _id",
    "vnf_packages by internal.fetch.usedAt _id",  # before a package is fetched on demand
    "vnf_snapshots by vnfSnapshot.vnfInstanceId _id",  # before volumes of a VNF are deleted, and before it goes back to a snapshot
}
"""The indexes for searches that `search_everything` does not make."""
WHOLE = {"SCAN documents_*", "SCAN documents_* USING INDEX sqlite_autoindex_documents_*_1"}
"""How SQLite says that it reads a whole collection: as it is stored, and by id."""
WATCHING: Any = {"allowed_networks": "127.0.0.0/8", "drift_every_s": 60}
SUBNET = {"name": "a", "subnet": "10.44.0.0/24"}
OUTBOXES = ("vnf_instances", "vnf_packages", "inbox_lcm_api")
"""The collections into which an upload and a create write events."""


class Commands(monitoring.CommandListener):
    """The commands that the driver has sent, as ``find vnf_instances``."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        collection = event.command.get(event.command_name)
        if isinstance(collection, str):  # others are about the connection
            self.sent.append(f"{event.command_name} {collection}")

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Nothing: it was counted when it was sent."""

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Nothing: it was counted when it was sent."""


class CountedStore(FragileStore):
    """A store on SQLite that keeps the calls of its port; ``get`` counts as the ``get_many`` that it is made of."""

    sent: list[str] = []  # noqa: RUF012 - of the test that has set it


def _counted(name: str) -> Callable[..., Awaitable[object]]:
    async def call(self: CountedStore, collection: str, *args: Any, **named: Any) -> object:
        self.sent.append(f"{name} {collection}")
        return await getattr(super(CountedStore, self), name)(collection, *args, **named)

    return call


for _name in ("get_many", "insert", "replace", "update", "delete", "delete_many", "find", "count", "clear_outbox"):
    setattr(CountedStore, _name, _counted(_name))


ON_SQLITE = Storage(RING, CountedStore)


@pytest.fixture
def counted() -> list[str]:
    CountedStore.sent = []
    return CountedStore.sent


@dataclass(frozen=True)
class Calls:
    """The calls of some operations, by name."""

    number: Counter[str]
    took_s: float

    @property
    def shared(self) -> float:
        """The most that they may hold in addition to those of each operation."""
        return SHARED_PER_S * (1 + self.took_s)


async def calls_of_creates(store: Storage, folder: Path, sent: Sequence[str], *, at_once: int) -> Calls:
    """Return the calls of some creates, after a first one, which finds the package not in use."""
    async with lcm_world(folder, store) as world:
        await world.sample()
        await world.create()
        await world.bus.quiet()
        async with asyncio.timeout(300):
            # The removal follows the last event by a timer, and nothing announces it.
            while any([await world.store.pending_outbox(each) for each in OUTBOXES]):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        before, began = len(sent), time.monotonic()
        for _ in range(CREATES // at_once):
            await asyncio.gather(*(world.create() for _ in range(at_once)))
            await world.bus.quiet()
    # Here all published events are removed from their outboxes, at the latest when lcm-api was closed.
    return Calls(Counter(sent[before:]), time.monotonic() - began)


def check(calls: Calls, each_once: set[str]) -> None:
    """Check that a create makes each of these calls once, and no others of its own."""
    assert all(calls.number[call] >= CREATES for call in each_once), calls
    assert calls.number.total() < len(each_once) * CREATES + calls.shared, calls


async def test_the_commands_of_a_create_on_mongodb(tmp_path: Path, mongodb_url: str) -> None:
    commands = Commands()
    calls = await calls_of_creates(storage_on(mongodb_url, commands), tmp_path, commands.sent, at_once=1)
    check(calls, CALLS)
    assert calls.number["update vnf_instances"]


async def search_as_rounds_of_alarms(world: World, instances: Sequence[str]) -> None:
    """Read the state of VNFs together, as if the operation of one had been given up."""
    alarms: Any = Alarms(store=world.store, outbox=None, clock=SystemClock())  # type: ignore[arg-type]  # it writes nothing
    states = FaultStates(
        store=world.store, alarms=alarms, vims=world.vims, inventory=world.inventory, clock=SystemClock()
    )
    (operation,) = await world.store.find(OPERATIONS, Query(by(vnfInstanceId=instances[0])))
    for state in ("FAILED", "COMPLETED"):
        await world.store.update(OPERATIONS, operation.id, {"operationState": state})
        found = await states.vnfs(instances, set(instances))
        assert [each.operation is not None for each in found] == [state == "FAILED", False]


async def search_as_measurer(world: World, instance_id: str) -> None:
    """Measure a job and a threshold whose values are sent, and read everything of them."""
    common = {
        "objectType": "Vnfc",
        "callbackUri": "http://127.0.0.1:9/",
        "metadata": {"monitoring": {"monitorName": "prometheus", "driverType": "external"}},
    }
    version = {"Version": "2.2.0"}
    criteria = {"performanceMetric": ["VCpuUsageMeanVnf"], "collectionPeriod": 1, "reportingPeriod": 1}
    body = {**common, "objectInstanceIds": [instance_id], "criteria": criteria}
    job = (await world.call("POST", "/vnfpm/v2/pm_jobs", body, headers=version)).must(201).json["id"]
    details = {"thresholdValue": 1, "hysteresis": 0}
    simple = {"performanceMetric": "VCpuUsageMeanVnf", "thresholdType": "SIMPLE", "simpleThresholdDetails": details}
    body = {**common, "objectInstanceId": instance_id, "criteria": simple}
    (await world.call("POST", "/vnfpm/v2/thresholds", body, headers=version)).must(201)

    async def reports() -> list[dict[str, Any]] | None:
        shown = (await world.call("GET", f"/vnfpm/v2/pm_jobs/{job}", headers=version)).must(200).json
        found: list[dict[str, Any]] | None = shown.get("reports")
        return found

    href = (await until(reports, timeout_s=60))[0]["href"].partition("/vnfpm/v2/")[2]
    for path in (
        href,
        "pm_jobs",
        "pm_jobs?filter=(eq,objectType,Vnfc)",
        f"pm_jobs?filter=(eq,objectInstanceIds,{instance_id})",
        "thresholds",
        f"thresholds?filter=(eq,objectInstanceId,{instance_id})",
    ):
        (await world.call("GET", f"/vnfpm/v2/{path}", headers=version)).must(200)
    (await world.call("DELETE", f"/vnfpm/v2/pm_jobs/{job}", headers=version)).must(204)


async def search_everything(world: World) -> None:
    """Go through the life cycles of a VNF of machines and of one of containers, and read everything that can be read."""
    world.vims.add("VIM_ID", "kubernetes")
    package = await world.sample()
    await world.sample("cnf")
    (await world.lcm("POST", "/subscriptions", {"callbackUri": "http://127.0.0.1:9/"})).must(201)
    instances = [await world.create(), await world.create("cnf")]
    for instance, sample in zip(instances, ("vm", "cnf"), strict=True):
        allowed = {"isAutoscaleEnabled": True}
        operation = await world.instantiate(instance, sample, vnfConfigurableProperties=allowed)
        await world.reached(operation, "COMPLETED")
        (await world.call("GET", f"/kubevnfm/v1/operations/{operation}")).must(200)
    for kind in PATHS:
        await Dependencies(world.store).users(Provided(kind, ("VIM_ID",)))
    for alerted in (fault(instances[0]), resolved(fault(instances[0]))):
        (await world.call("POST", "/alert", message(alerted), headers={})).must(204)
    unused: Any = None
    silent = ExternalAlarms(store=world.store, alarms=unused, clock=SystemClock(), lost_after=timedelta(seconds=1))
    await silent.clear_lost()
    await mark_restored(world.store, cut_at="then", restored_at="now", is_queue_lost=False)
    await AfterRestore(world.store, unused, RING, SystemClock()).ask_again()
    await search_as_rounds_of_alarms(world, instances)
    await search_as_measurer(world, instances[0])
    day, later = timedelta(days=1), timedelta(days=2)
    counts = TraceMetrics(Metrics())
    traces = TraceExport(world.store, unused, unused, SystemClock(), counts, ratio=1.0, longest=day, settles=later)
    await traces.send_due()
    trigger = Trigger("auto-scaling", "alert-1", "The load is high.")
    await world.automation.automatic.scale(instances[0], "VDU1_scale", "SCALE_OUT", trigger)
    await world.until(lambda: any(each.operation == "SCALE" and each.state == "COMPLETED" for each in world.changes))
    for instance in instances:
        await world.reached(await world.ask(instance, "terminate", {"terminationType": "FORCEFUL"}), "COMPLETED")
        (await world.lcm("DELETE", f"/vnf_instances/{instance}")).must(204)
    (await world.packages("PATCH", f"/{package['id']}", {"operationalState": "DISABLED"})).must(200)
    (await world.packages("DELETE", f"/{package['id']}")).must(204)
    for path in (
        "vnf_instances",
        "vnf_lcm_op_occs",
        "subscriptions",
        "vnf_snapshots",
        f"vnf_snapshots?filter=(eq,vnfSnapshot/vnfInstanceId,{instances[0]})",
        f"vnf_instances?filter=(eq,vnfdId,{package['vnfdId']})",
        "vnf_instances?filter=(eq,vnfInstanceName,vm)",
        f"vnf_lcm_op_occs?filter=(eq,vnfInstanceId,{instances[0]})",
        "vnf_lcm_op_occs?filter=(eq,operationState,FAILED_TEMP)",
        # By the marks of a site file.
        "vnf_instances?filter=(eq,metadata/kubevnfm_site/site,plant);(eq,metadata/kubevnfm_site/name,vm)",
        "subscriptions?filter=(eq,metadata/kubevnfm_site,plant);(eq,metadata/name,alarms)",
    ):
        (await world.lcm("GET", f"/{path}")).must(200)
    filters = (
        "cloud_region_id=op/edge", "namespace=mine", "vnf_instance_name=vm", "status=READY", "status=FAILED",
        "group_operation=one",
    )  # fmt: skip
    for query in ("", *filters):
        (await world.call("GET", f"/multicloud/v1/vnf_instances?{query}")).must(200)
    mark = "userDefinedData/kubevnfm_site"
    for query in (
        "", "?filter=(eq,usageState,IN_USE)", f"?filter=(eq,{mark}/site,plant);(eq,{mark}/name,vm)",
        "?filter=(eq,checksum/hash,0a1b)",
    ):  # fmt: skip
        (await world.packages("GET", query)).must(200)
    await store_job(world.store, "pm-1", instances[0])
    for path in (
        "instances", "instances?name=vm", "instances?state=INSTANTIATED", f"instances?vnfdId={package['vnfdId']}",
        "instances?vimId=VIM_ID", "instances?problem=true", "subscriptions?problem=true", "vims", "search?q=v", "alarms", "alarms?state=OPEN", "alarms?severity=MAJOR&state=OPEN", "automatic-actions", "automatic-actions?state=WAITING", "automatic-actions?vnfInstanceId=x", "pm-jobs", "pm-jobs?vnfInstanceId=x", "pm-jobs/pm-1", "thresholds", "thresholds?vnfInstanceId=x", "packages", "packages?name=v",
        "packages?state=ONBOARDED", f"packages?vnfdId={package['vnfdId']}",
    ):  # fmt: skip
        (await world.call("GET", f"/kubevnfm/v1/{path}")).must(200)
    (await world.call("GET", "/health/ready")).must(200)
    (await world.call("GET", "/kubevnfm/v1/metrics")).must(200)
    [first, *_] = await world.store.find(event_log.COLLECTION, Query(sort=Sort("order"), limit=1))
    missed = await event_log.EventLog(world.store, SystemClock()).after(first.body["ids"][0])
    assert missed is not None
    assert [each async for each in missed.events]


async def search_as_onap(world: World) -> None:
    """Read everything that the paths of ONAP can read; their bundles and networks are there."""
    world.regions.add("op/edge", "vim-edge")
    bundle = {"rb-name": "rb", "rb-version": "v1"}
    (await world.call("POST", "/v1/rb/definition", bundle, headers={})).must(201)
    definition = next(iter(await world.store.find("onap_profiles", Query(limit=1))))
    await world.store.update("onap_profiles", definition.id, {"package": "p"})
    network = {"metadata": {"name": "n"}, "spec": {"cniType": "ovn4nfv", "ipv4Subnets": [SUBNET]}}
    cluster = "/v2/cluster-providers/op/clusters/edge"
    (await world.call("POST", f"{cluster}/networks", network, headers={})).must(201)
    for path in (
        "/v1/instance", "/v1/instance?profile-name=default", "/v1/instance?rb-version=v1", "/v1/instance?rb-name=rb",
        "/v1/rb/definition", "/v1/rb/definition/rb", "/v1/rb/definition/rb/v1/profile",
        "/v1/rb/definition/rb/v1/profile/default", f"{cluster}/networks",
    ):  # fmt: skip
        (await world.call("GET", path, headers={})).must(200)
    for path in ("/v1/instance/none", "/v1/vnf_instances/edge/ns"):
        (await world.call("GET", path, headers={})).must(404)


async def test_the_searches_of_a_life_cycle_have_an_index_on_mongodb(tmp_path: Path, mongodb_url: str) -> None:
    use = IndexUse()
    async with lcm_world(tmp_path, storage_on(mongodb_url, use), **WATCHING) as world:
        await search_everything(world)
    assert len(use.searches) > 100
    assert {str(each) for each in use.unserved} <= WITHOUT_INDEX
    assert use.unused == ELSEWHERE


async def test_the_searches_of_a_life_cycle_read_no_whole_collection_on_sqlite(tmp_path: Path) -> None:
    searches: list[tuple[str, Query]] = []

    class SearchedStore(FragileStore):
        async def find(self, collection: str, query: Query) -> Sequence[Stored]:
            searches.append((collection, query))
            return await super().find(collection, query)

        async def count(self, collection: str, filter: Filter, *, limit: int) -> int:
            searches.append((collection, Query(filter, limit=limit)))
            return await super().count(collection, filter, limit=limit)

        async def delete_many(self, collection: str, filter: Filter) -> int:
            searches.append((collection, Query(filter)))
            return await super().delete_many(collection, filter)

    async with lcm_world(tmp_path, Storage(RING, SearchedStore), onap_compat=True, **WATCHING) as world:
        await search_everything(world)
        await search_as_onap(world)
    reading_all: set[str] = set()
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        catalogue = Catalogue(connection)
        for collection, query in searches:
            paths = catalogue.published(collection)
            for statement in selects(paths, query) if paths is not None else ():
                plan = connection.execute(f"EXPLAIN QUERY PLAN {statement.text}", statement.params).fetchall()
                steps = {row[3].replace(collection, "*") for row in plan}
                if query.filter != AllOf() and steps & WHOLE:
                    reading_all.add(f"{collection} by {query.filter}")
    assert len(searches) > 50
    assert {each for each in reading_all if "path='callbackUri'" not in each} == set()  # that one once, at start


async def test_the_calls_of_a_create_on_sqlite(tmp_path: Path, counted: list[str]) -> None:
    calls = await calls_of_creates(ON_SQLITE, tmp_path, counted, at_once=1)
    check(calls, CALLS)
    assert calls.number["clear_outbox vnf_instances"]


async def test_the_calls_of_an_instantiate_on_sqlite(tmp_path: Path, counted: list[str]) -> None:
    async with lcm_world(tmp_path, ON_SQLITE) as world:
        await world.sample()
        ids = [await world.create() for _ in range(INSTANTIATES + 1)]
        await world.reached(await world.instantiate(ids[0]), "COMPLETED")
        await world.bus.quiet()
        before, began = len(counted), time.monotonic()
        for instance_id in ids[1:]:
            await world.reached(await world.instantiate(instance_id), "COMPLETED")
            await world.bus.quiet()
        made = Calls(Counter(counted[before:]), time.monotonic() - began)
    calls = made.number
    # The last read of each occurrence is the test's own.
    calls["get_many vnf_lcm_op_occs"] -= INSTANTIATES
    own = {
        "get_many vnf_instances",  # at the request and at the end
        "update vnf_instances",  # the claim, with the command that starts the operation
        "insert vnf_lcm_op_occs",
        "get_many vnf_lcm_op_occs",  # before each change of the operation
        "replace vnf_lcm_op_occs",
        "replace vnf_instances",  # the result
        "find subscriptions",  # for STARTING, PROCESSING and COMPLETED
        f"insert {ANNOUNCED}",
        "insert event_log",  # one for several events, unless something holds these up
        "clear_outbox vnf_instances",
        "clear_outbox vnf_lcm_op_occs",
    }
    assert sum(number for call, number in calls.items() if call not in own) < made.shared, calls
    assert calls.total() <= 19 * INSTANTIATES + made.shared, calls


async def test_creates_at_once_share_calls(tmp_path: Path, counted: list[str]) -> None:
    calls = await calls_of_creates(ON_SQLITE, tmp_path, counted, at_once=20)
    assert calls.number["insert vnf_instances"] == CREATES
    assert calls.number.total() < 4 * CREATES
