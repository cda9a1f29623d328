"""Rounds over alarms: they read pages of objects, and find what looks at single objects find."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_clients.multicloud.inventory import StaleWatch
from kubevnfm_events.services import ServiceReported, Trouble
from kubevnfm_kit.clock import SystemClock, rfc3339
from kubevnfm_kit.errors import Conflict, OutsideUnavailable
from kubevnfm_lcm_api.faults import states
from kubevnfm_lcm_api.faults.alarms import COLLECTION, Alarms
from kubevnfm_lcm_api.faults.domain.fault import Fault, Findings, ManagedObject
from kubevnfm_lcm_api.faults.domain.vnf_rules import faults_of_vnf
from kubevnfm_lcm_api.faults.states import FaultStates
from kubevnfm_lcm_api.faults.watch import FaultWatch
from kubevnfm_lcm_api.faults.wiring import INDEXES
from kubevnfm_lcm_api.lifecycle.containers.trouble_marks import COLLECTION as MARKS
from kubevnfm_lcm_api.lifecycle.core.drift import KEY
from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION as INSTANCES
from kubevnfm_lcm_api.lifecycle.core.occurrence import COLLECTION as OPERATIONS
from kubevnfm_lcm_api.siblings import SeenProcess, SeenService
from kubevnfm_sol.lcm import OperationState as S
from kubevnfm_store.query import Query, by
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.relay import OutboxRelay
from worlds.inventory_world import GivenInventory
from worlds.lcm_builders import an_instance, an_instantiate_draft, an_operation
from worlds.lcm_world import OPENSTACK_VIM, RING, TwinVims

DRIFT = {"state": "CHANGED", "since": "2030-01-02T03:04:05.000Z", "reason": "an object was changed"}
HISTORIES: dict[str, list[tuple[S, bool]]] = {
    "none": [],
    "well": [(S.COMPLETED, False)],
    "waits": [(S.COMPLETED, False), (S.FAILED_TEMP, True)],
    "given-up": [(S.COMPLETED, False), (S.FAILED, False)],
    "twice": [(S.FAILED, False), (S.FAILED, False)],
    "mended": [(S.FAILED, False), (S.COMPLETED, False)],
    "rolled-back": [(S.FAILED, False), (S.ROLLED_BACK, False)],
    "runs": [(S.FAILED, False), (S.PROCESSING, True)],
    "ends": [(S.FAILED, False), (S.PROCESSING, False)],
}
"""Operations of a VNF instance, the oldest first, and whether they have its claim."""


class Now:
    """A clock that a test sets."""

    at = datetime(2030, 1, 2, 4, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at


class CountingStore(SqliteStore):
    """A store that counts what is read."""

    reads: Counter[str]

    async def get(self, collection: str, id: str) -> Any:
        self.reads[collection] += 1
        return await super().get(collection, id)

    async def get_many(self, collection: str, ids: Any) -> Any:
        self.reads[collection] += 1
        return await super().get_many(collection, ids)

    async def find(self, collection: str, query: Query) -> Any:
        self.reads[collection] += 1
        return await super().find(collection, query)


class Site:
    """A gateway's watch over alarms, on documents that tests write."""

    def __init__(self, store: CountingStore) -> None:
        self.store, self.clock = store, Now()
        self.vims, self.inventory, self.seen = TwinVims(), GivenInventory(), list[SeenService]()
        # Nothing is published: the relay is not started.
        outbox = Outbox(store, OutboxRelay(store, InProcessBus(RING), collections=[COLLECTION]), RING)
        self.alarms = Alarms(store=store, outbox=outbox, clock=self.clock)
        ports: Any = {"alarms": self.alarms, "vims": self.vims, "inventory": self.inventory, "clock": self.clock}
        self.states = FaultStates(store=store, **ports)
        self.watch = FaultWatch(store=store, services=self.services, **ports)

    async def services(self) -> list[SeenService]:
        return self.seen

    async def add(self, name: str, history: list[tuple[S, bool]], **vnf: Any) -> None:
        """Store a VNF instance with its operations."""
        record = an_instance(id=name, **vnf)
        for number, (state, is_claimed) in enumerate(history):
            operation = an_operation(an_instantiate_draft(vnf_instance_id=name), state=state)
            occ = {"id": f"{name}-{number}", "vnf_instance_id": name, "start_time": f"2030-01-02T03:0{number}:00.000Z"}
            operation = operation.model_copy(update={"occ": operation.occ.model_copy(update=occ)})
            if is_claimed:
                record = record.with_internals(current_operation=operation.occ.id)
            await self.store.insert(OPERATIONS, operation.occ.id, operation.document(RING))
        await self.store.insert(INSTANCES, name, record.document(RING))

    async def open(self, object_id: str) -> dict[str, dict[str, Any]]:
        """Return the open alarms of an object, by type and part."""
        found = await self.alarms.open_of(object_id)
        return {key.partition("/")[2]: dict(each.body) for key, each in found.items()}

    async def look(self) -> Counter[str]:
        """Make a round; return what it has read."""
        self.store.reads = Counter()
        await self.watch.look()
        return self.store.reads


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with CountingStore.open(tmp_path / "store.db") as store:
        store.reads = Counter()
        for collection, indexes in INDEXES.items():
            await store.ensure_indexes(collection, indexes)
        yield Site(store)


# --- pages ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1000, 2], ids=["within the limit", "too many"])
async def test_a_page_has_the_states_that_looks_at_each_vnf_have(
    site: Site, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """API-195: whatever has happened to them; what a page cannot decide is left to a look."""
    monkeypatch.setattr(states, "_MOST_OPERATIONS", most)
    for name, history in HISTORIES.items():
        await site.add(name, history)
    await site.add("drifted", [(S.COMPLETED, False)], metadata={KEY: DRIFT})
    await site.add("troubled", [], instantiation_state="INSTANTIATED")
    await site.store.insert(
        MARKS, "troubled", {"id": "troubled", "text": "Pod web: it waits", "since": "2030-01-02T03:04:06Z"}
    )
    await site.add("internal", [(S.PROCESSING, True)])
    await site.store.update(OPERATIONS, "internal-0", {"internal/isInternal": True})
    ids = [*HISTORIES, "drifted", "troubled", "internal", "deleted"]
    found = {each.instance_id: faults_of_vnf(each) for each in await site.states.vnfs(ids, set(ids))}
    single = {each: faults_of_vnf(await site.states.vnf(each)) for each in ids}
    for each, findings in found.items():
        assert findings == single[each], each
    assert {each for each, findings in single.items() if findings.faults} == {
        "waits", "given-up", "twice", "drifted", "troubled",
    }  # fmt: skip
    left = {"given-up", "twice", "mended", "rolled-back", "ends", "none", "well", "drifted", "troubled"}
    assert set(ids) - found.keys() == ({"internal"} if most > 2 else {"internal", *left})


async def test_the_reads_of_a_round_grow_with_its_pages_and_not_with_the_vnfs(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """API-195: VNFs with alarms of every kind that stay as they are."""
    monkeypatch.setattr(states, "PAGE", 1000)
    monkeypatch.setattr("kubevnfm_lcm_api.faults.watch.PAGE", 20)
    site.vims.records["vim-1"] = {**OPENSTACK_VIM, "id": "vim-1", "status": "UNREACHABLE", "status_reason": "no answer"}
    reads = list[int]()
    for page in range(2):
        for number in range(20):
            kind = list(HISTORIES)[number % len(HISTORIES)]
            await site.add(f"{page}-{number:02}-{kind}", HISTORIES[kind], metadata={KEY: DRIFT})
        await site.look()
        reads.append((await site.look()).total())
    assert reads[1] - reads[0] <= 9, reads
    open_alarms = await site.alarms.all_open()
    assert Counter(each.body["faultType"] for each in open_alarms) == {
        "vim-unreachable": 1, "resources-drifted": 40, "operation-failed": 12,
    }  # fmt: skip


async def test_a_round_finds_each_change_of_a_page(site: Site) -> None:
    """API-182, API-195."""
    for name in ("one", "two", "three"):
        await site.add(name, [(S.COMPLETED, False)], metadata={KEY: DRIFT})
    await site.look()
    await site.store.update(INSTANCES, "one", {"metadata": {}})
    await site.store.update(INSTANCES, "two", {"metadata": {KEY: {**DRIFT, "state": "MISSING"}}})
    await site.store.delete(INSTANCES, "three")
    await site.look()
    assert await site.open("one") == {}
    assert {each["perceivedSeverity"] for each in (await site.open("two")).values()} == {"CRITICAL"}
    assert await site.open("three") == {}


# --- what VNFs depend on --------------------------------------------------------------------------------------------------


def a_node(
    name: str, since: str, reason: str = "KubeletNotReady: Kubelet stopped posting node status."
) -> dict[str, Any]:
    return {"name": name, "ready": False, "reason": reason, "since": since}


async def test_a_node_that_is_not_ready_for_a_minute_has_an_alarm_until_it_is(site: Site) -> None:
    """API-192: whatever a cluster says about since when."""
    vim = site.vims.records["vim-1"] = {**OPENSTACK_VIM, "id": "vim-1", "type": "kubernetes", "owner": "inst-9"}
    capacity = {"as_of": "2030-01-02T03:50:00.000Z", "nodes": 4, "nodes_ready": 1}
    lost, young, strange = (
        a_node("worker-1", "2030-01-02T03:30:00Z"),
        a_node("worker-2", "2030-01-02T03:59:30Z"),
        a_node("worker-3", "yesterday", ""),
    )
    vim |= {"capacity": capacity, "nodes_not_ready": [lost, young, strange]}
    await site.look()
    found = await site.open("vim-1")
    assert set(found) == {"node-not-ready/worker-1", "node-not-ready/worker-3"}
    alarm = found["node-not-ready/worker-1"]
    assert (alarm["perceivedSeverity"], alarm["eventType"], alarm["probableCause"], alarm["eventTime"]) == (
        "MAJOR", "EQUIPMENT_ALARM", "node-not-ready", "2030-01-02T03:30:00.000Z",
    )  # fmt: skip
    assert alarm["faultDetails"] == [
        f"The node worker-1 of the VIM {vim['name']} is not ready.",
        "KubeletNotReady: Kubelet stopped posting node status.",
        "VNF instance inst-9 has built the cluster.",
    ]
    # As long as its nodes cannot be read, nothing is known of them.
    for unknown in ({"capacity_error": "no answer within 20 s"}, {"status": "UNREACHABLE"}, {"capacity": None}):
        vim |= {"nodes_not_ready": [], "capacity": capacity, "capacity_error": "", "status": "ACTIVE", **unknown}
        await site.look()
        assert set(await site.open("vim-1")) >= set(found), unknown
    vim |= {"nodes_not_ready": [lost], "capacity": capacity}
    await site.look()
    assert set(await site.open("vim-1")) == {"node-not-ready/worker-1"}
    site.vims.records.clear()
    await site.look()
    assert await site.open("vim-1") == {}


async def test_a_watch_that_does_not_work_for_five_minutes_has_an_alarm_until_it_does(site: Site) -> None:
    """API-193: of a VIM that is away, the alarm of the VIM says it."""
    vim = site.vims.records["vim-1"] = {**OPENSTACK_VIM, "id": "vim-1", "type": "kubernetes"}
    stale = StaleWatch(
        vim_id="vim-1", api_version="v1", kind="Pod", since="2030-01-02T03:55:01.000Z", reason="no event was seen"
    )
    site.inventory.stale = [stale]
    await site.look()
    assert await site.open("vim-1") == {}
    site.clock.at += timedelta(seconds=1)
    await site.look()
    alarm = (await site.open("vim-1"))["watch-stale/"]
    assert (alarm["perceivedSeverity"], alarm["eventTime"]) == ("MAJOR", stale.since)
    assert alarm["faultDetails"] == [
        f"Pod in the VIM {vim['name']} cannot be watched: what others change there is not seen.",
        "No event was seen.",
    ]
    site.inventory.failure = OutsideUnavailable("infra-k8s does not answer")
    await site.look()
    await site.watch.look_at_vim("vim-1")
    assert set(await site.open("vim-1")) == {"watch-stale/"}
    site.inventory.failure = None
    vim |= {"status": "UNREACHABLE", "status_reason": "no answer"}
    await site.look()
    assert set(await site.open("vim-1")) == {"vim-unreachable/"}
    vim |= {"status": "ACTIVE"}
    await site.watch.look_at_vim("vim-1")
    assert set(await site.open("vim-1")) == {"watch-stale/"}
    site.inventory.stale = []
    await site.look()
    assert await site.open("vim-1") == {}


def a_service(state: Any, since: datetime, *troubles: Trouble, name: str = "infra-k8s") -> SeenService:
    report = ServiceReported(
        process="p", services=(name,), host="h", pid=1, version="1", started_at=since, troubles=troubles
    )
    return SeenService(name, state, since, [SeenProcess(report, "ready", since, since)] if state == "ready" else [])


async def test_a_service_that_watches_no_cluster_has_an_alarm(site: Site) -> None:
    """API-193."""
    site.seen = [a_service("ready", site.clock.at), a_service("ready", site.clock.at, name="mgmt-executor")]
    site.inventory.unwatched_since = rfc3339(site.clock.at - timedelta(minutes=4))
    await site.look()
    assert await site.open("infra-k8s") == {}
    site.clock.at += timedelta(minutes=2)
    await site.look()
    assert set(await site.open("infra-k8s")) == {"watch-stale/"}
    assert await site.open("mgmt-executor") == {}
    site.inventory.failure = OutsideUnavailable("infra-k8s does not answer")
    await site.look()
    assert set(await site.open("infra-k8s")) == {"watch-stale/"}
    site.inventory.failure, site.inventory.unwatched_since = None, ""
    await site.look()
    assert await site.open("infra-k8s") == {}


async def test_a_certificate_that_ends_has_an_alarm_that_grows_until_it_is_replaced(site: Site) -> None:
    """API-191: one for each host and file."""
    ends_at = site.clock.at + timedelta(days=14)

    def trouble(of: str) -> Trouble:
        return Trouble(
            part="certificates", text=f"The certificate of {of} ends", is_blocking=False, of=of, ends_at=ends_at
        )

    site.seen = [a_service("ready", site.clock.at, trouble("tls_certificate"), trouble("mongo_url tlsCAFile"))]
    severities = list[str]()
    for days in (0, 7, 4, 3):
        site.clock.at += timedelta(days=days)
        await site.look()
        found = await site.open("infra-k8s")
        assert set(found) == {
            "certificate-expiring/h/tls_certificate", "certificate-expiring/h/mongo_url tlsCAFile",
        }  # fmt: skip
        severities.append(found["certificate-expiring/h/tls_certificate"]["perceivedSeverity"])
    assert severities == ["WARNING", "MINOR", "MAJOR", "CRITICAL"]
    site.seen = [a_service("ready", site.clock.at, trouble("mongo_url tlsCAFile"))]
    await site.look()
    assert set(await site.open("infra-k8s")) == {"certificate-expiring/h/mongo_url tlsCAFile"}


@pytest.mark.parametrize("is_restarted", [False, True], ids=["heard of", "gateway restarted"])
async def test_a_service_that_has_not_run_for_a_week_was_taken_out_of_use(site: Site, *, is_restarted: bool) -> None:
    """API-194: a gateway that was started later judges as one that has heard of the service; before, its alarm stays."""
    began_at = site.clock.at
    site.seen = [a_service("away", began_at)]
    await site.look()
    assert set(await site.open("infra-k8s")) == {"service-away/"}
    site.clock.at += timedelta(days=7)
    if is_restarted:
        site.seen = [a_service("missing", site.clock.at)]
    await site.look()
    assert set(await site.open("infra-k8s")) == {"service-away/"}
    site.clock.at += timedelta(seconds=1)
    for _ in range(2):
        await site.look()
        assert await site.open("infra-k8s") == {}
    site.seen = [a_service("away", site.clock.at)]
    await site.look()
    assert set(await site.open("infra-k8s")) == {"service-away/"}


# --- texts, and writes of others ------------------------------------------------------------------------------------------


async def given(faults: list[Fault]) -> Findings:
    return Findings(ManagedObject("vim", "vim-1"), faults)


def a_fault(**more: Any) -> Fault:
    facts: dict[str, Any] = {
        "type": "vim-error", "severity": "MAJOR", "event_type": "COMMUNICATIONS_ALARM", "cause": "vim-refused",
        "details": ("It refuses.",), "since": "2030-01-02T03:04:05.000Z",
    }  # fmt: skip
    return Fault(**{**facts, **more})


async def test_texts_of_an_alarm_are_bounded(site: Site) -> None:
    """API-197."""
    long = a_fault(cause="c" * 10_000, details=("d" * 100_000, ""))
    for _ in range(2):
        await site.alarms.follow("vim-1", partial(given, [long]))
        (alarm,) = (await site.open("vim-1")).values()
        assert len(alarm["probableCause"]) == 128
        assert [len(each) for each in alarm["faultDetails"]] == [4096]
        assert "alarmChangedTime" not in alarm, "what was cut is not another text each time"


async def test_a_root_cause_that_is_known_later_joins_the_alarm_and_stays(site: Site) -> None:
    """API-185."""
    await site.alarms.follow("vim-1", partial(given, [a_fault()]))
    await site.alarms.follow("vim-1", partial(given, [a_fault(root="alarm-9")]))
    (alarm,) = (await site.open("vim-1")).values()
    assert (alarm["internal"]["root"], await site.alarms.caused_by("alarm-9")) == ("alarm-9", [alarm["id"]])
    assert alarm["alarmChangedTime"]
    events = alarm["internal"]["events"]
    # The root cause has ended: it was the cause all the same.
    await site.alarms.follow("vim-1", partial(given, [a_fault()]))
    (alarm,) = (await site.open("vim-1")).values()
    assert (alarm["internal"]["root"], alarm["internal"]["events"]) == ("alarm-9", events)


async def test_of_two_callers_who_acknowledge_at_a_time_one_is_refused(site: Site) -> None:
    """API-181: between the read of the one and its write comes the other."""
    await site.alarms.follow("vim-1", partial(given, [a_fault()]))
    (alarm,) = (await site.open("vim-1")).values()
    update, acknowledge = (
        site.store.update,
        partial(site.alarms.acknowledge, alarm["id"], "ACKNOWLEDGED", check=lambda _: None),
    )
    first = True

    async def later(*where: Any, **what: Any) -> Any:
        nonlocal first
        if first:
            first = False
            await acknowledge()
        return await update(*where, **what)

    site.store.update = later  # type: ignore[method-assign]
    with pytest.raises(Conflict, match="is ACKNOWLEDGED already"):
        await acknowledge()


async def test_a_write_of_another_process_is_not_overwritten(site: Site) -> None:
    """API-188: between the read of an alarm and the write that follows from it, a caller acknowledges, or a gateway changes it."""
    await site.alarms.follow("vim-1", partial(given, [a_fault()]))
    (first,) = (await site.open("vim-1")).values()
    is_first = True

    async def look() -> Findings:
        nonlocal is_first
        if is_first:
            is_first = False
            other = Alarms(store=site.store, outbox=site.alarms._outbox, clock=SystemClock())
            await other.acknowledge(first["id"], "ACKNOWLEDGED", check=lambda _: None)
            await other.follow("vim-1", partial(given, [a_fault(severity="CRITICAL")]))
        return await given([a_fault(severity="CRITICAL", details=("It refuses all.",))])

    await site.alarms.follow("vim-1", look)
    (alarm,) = await site.store.find(COLLECTION, Query(by(managedObjectId="vim-1")))
    assert (alarm.body["ackState"], alarm.body["perceivedSeverity"]) == ("ACKNOWLEDGED", "CRITICAL")
    assert alarm.body["faultDetails"] == ["It refuses all."]
    # Each write that was made has an event of its own, in the order of the writes: raised, changed by the other one, and by this one.
    assert alarm.body["internal"]["events"] == 3
