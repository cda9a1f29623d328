"""One call to several regions over HTTP, its crashes, and each line of its bad input (multicloud.md MC-140)."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from kubevnfm_clients.multicloud.dry_runs import TakenPlaces
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_events.objects import ApplyObjects
from kubevnfm_kit.traces import TraceContext, read_traceparent
from kubevnfm_lcm_api.lifecycle.core import instance
from kubevnfm_lcm_api.multicloud import group_checks, group_record
from kubevnfm_secrets import revealed
from kubevnfm_store.port import StoreUnavailable
from kubevnfm_store.query import Query, Stored
from kubevnfm_store.sqlite.store import SqliteStore
from packages.package_variants import variant
from patience import until, until_true
from worlds.lcm_world import JSON_HEADERS, RING, Answer, FragileStore, Storage, World, lcm_world

VNFS = "/multicloud/v1/vnf_instances"
GROUPS = "/multicloud/v1/group-operations"
FOLDER = "Files/kubernetes"
FILES = {
    f"{FOLDER}/artifact-order.yaml": "artifacts: [{file: a.yaml}]\n",
    f"{FOLDER}/a.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {level: '$level'}}\n",
}
FOUR = ("op/edge-1", "op/edge-2", "op/edge-3", "op/edge-4")
ALL = tuple({"cloud_region_id": each} for each in FOUR)


class Gateway:
    """A world with four regions and an ordered package."""

    def __init__(self, world: World, csar_id: str) -> None:
        self.world, self.csar_id = world, csar_id

    async def begin(self, regions: Any = ALL, trace: Any = None, **more: Any) -> Answer:
        headers = JSON_HEADERS if trace is None else {**JSON_HEADERS, "traceparent": str(trace)}
        asked = {"csar_id": self.csar_id, "values": {"level": 1, "password": "open-sesame"}, "regions": regions, **more}
        return await self.world.call("POST", VNFS, asked, headers=headers)

    async def ended(self, group: Mapping[str, Any]) -> dict[str, Any]:
        """Return a group operation once it has ended."""
        return await self.reached(group, lambda shown: shown["status"] != "RUNNING")

    async def reached(self, group: Mapping[str, Any], is_so: Any) -> dict[str, Any]:
        async def found() -> dict[str, Any] | None:
            shown: dict[str, Any] = (await self.world.call("GET", f"{GROUPS}/{group['id']}")).must(200).json
            return shown if is_so(shown) else None

        return await until(found, timeout_s=60)

    async def vnfs(self, group: Mapping[str, Any]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (
            (await self.world.call("GET", f"{VNFS}?group_operation={group['id']}")).must(200).json
        )
        return found


def states(group: Mapping[str, Any]) -> list[str]:
    return [each["state"] for each in group["regions"]]


@asynccontextmanager
async def a_gateway(folder: Path, storage: Storage = Storage()) -> AsyncIterator[Gateway]:  # noqa: B008 - frozen
    async with lcm_world(folder, storage, multicloud_group_parallel=4) as world:
        for number, region_id in enumerate(FOUR, start=1):
            world.vims.add(f"vim-{number}", "kubernetes")
            labels = {"tier": "edge" if number < 3 else "core", "zone": str(number)}
            world.regions.add(region_id, f"vim-{number}", labels=labels)
        packages = (await world.call("GET", "/vnfpkgm/v1/vnf_packages")).must(200).json
        onboarded = packages[0] if packages else await world.upload(variant(folder, files=FILES))
        yield Gateway(world, onboarded["id"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    async with a_gateway(tmp_path_factory.mktemp("groups")) as gateway:
        yield gateway


@pytest.mark.asyncio(loop_scope="module")
async def test_one_call_brings_a_vnf_up_in_each_region(gateway: Gateway) -> None:
    """MC-007, MC-140: values of an entry and by region are merged over the common ones; each instance names its group."""
    regions: list[Any] = [
        {"cloud_region_id": each, "values": {"level": number}} for number, each in enumerate(FOUR[:3])
    ]
    regions[1]["values"] = {"level": 1, "admin_pass": "from-an-entry", "community": "listed"}
    made = await gateway.begin(
        regions,
        values={"level": 1, "password": "open-sesame", "x_secret_names": ["community"]},
        values_by_region={FOUR[0]: {"level": 9, "zone": "x"}},
        oof_parameters=[{"token": "from-oof"}],
        parallel=2,
        trace=TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"),
    )
    group = made.must(202).json
    stored = await gateway.world.store.get(group_record.COLLECTION, group["id"])
    assert stored is not None
    assert not [each for each in ("open-sesame", "from-an-entry", "listed", "from-oof") if each in str(stored.body)]
    assert made.headers["Location"] == f"{gateway.world.url}{GROUPS}/{group['id']}"
    group = await gateway.ended(group)
    assert (group["status"], states(group), group["parallel"]) == ("COMPLETED", ["READY"] * 3, 2)
    assert group["counts"] == {"waiting": 0, "running": 0, "ready": 3, "failed": 0, "not_started": 0}
    vnfs = {each["cloud_region_id"]: each for each in await gateway.vnfs(group)}
    assert {each["cloud_region_id"]: each["vnf_id"] for each in group["regions"]} == {
        region: each["vnf_id"] for region, each in vnfs.items()
    }
    assert {each["group_operation"] for each in vnfs.values()} == {group["id"]}
    sent = [each.data for each in gateway.world.twins.commands if isinstance(each.data, ApplyObjects)]
    traces = [read_traceparent(each.traceparent) for each in gateway.world.twins.commands]
    assert {each and each.trace_id for each in traces} == {"0af7651916cd43dd8448eb211c80319c"}
    values = {each["cloud_region_id"]: each for each in (revealed(one.values, RING) for one in sent)}
    assert {region: (each["level"], each.get("zone")) for region, each in values.items()} == {
        FOUR[0]: (0, "x"), FOUR[1]: (1, None), FOUR[2]: (2, None),
    }  # fmt: skip
    assert {(each["password"], each["token"]) for each in values.values()} == {("open-sesame", "from-oof")}
    assert (values[FOUR[1]]["admin_pass"], values[FOUR[1]]["community"]) == ("from-an-entry", "listed")
    listed = (await gateway.world.call("GET", GROUPS)).must(200).json
    assert group in listed
    assert "open-sesame" not in str(listed)
    rehearsed = {"csar_id": gateway.csar_id, "values": {"level": 1}, "regions": [{"cloud_region_id": FOUR[0]}]}
    (await gateway.world.call("POST", f"{VNFS}?dry_run=render", rehearsed)).problem(400)
    assert (await gateway.world.call("GET", GROUPS)).must(200).json == listed
    (await gateway.world.call("POST", f"{GROUPS}/{group['id']}/cancel")).problem(409)
    (await gateway.world.call("POST", f"{GROUPS}/{group['id']}/retry")).problem(409)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_vnf_that_was_terminated_before_its_end_was_seen_ends_its_region(gateway: Gateway) -> None:
    """MC-140: its group operation would otherwise run for ever."""
    world = gateway.world
    group = await gateway.ended((await gateway.begin([{"cloud_region_id": FOUR[0]}])).must(202).json)
    operation = await world.ask(group["regions"][0]["vnf_id"], "terminate", {"terminationType": "FORCEFUL"})
    await world.reached(operation, "COMPLETED")
    stored = await world.store.get(group_record.COLLECTION, group["id"])
    assert stored is not None
    # As a process leaves it that dies before it has seen the end.
    regions = [{**each, "state": "RUNNING"} for each in stored.body["regions"]]
    dead = {"regions": regions, "isOpen": True, "owner": "another", "leaseUntil": ""}
    await world.store.update(group_record.COLLECTION, group["id"], dead)
    # The search for this one finds the other.
    await gateway.ended((await gateway.begin([{"cloud_region_id": FOUR[1]}])).must(202).json)
    group = await gateway.ended(group)
    assert (group["status"], group["regions"][0]["error"]["status"]) == ("PARTLY_FAILED", 404)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_region_in_which_others_have_the_names_fails(gateway: Gateway) -> None:
    """MC-039, MC-140: its objects cannot be made there; the retry finds the places free."""
    gateway.world.dry_runs.taken = TakenPlaces(objects=("ConfigMap ns/a",), count=1)
    group = await gateway.ended((await gateway.begin([{"cloud_region_id": FOUR[0]}])).must(202).json)
    (error,) = [each["error"] for each in group["regions"]]
    assert (group["status"], error["type"], error["status"]) == ("PARTLY_FAILED", "foreign-object", 409)
    gateway.world.dry_runs.taken = TakenPlaces()
    retry = (await gateway.world.call("POST", f"{GROUPS}/{group['id']}/retry")).must(202)
    group = await gateway.ended(group)
    assert states(group) == ["READY"]
    # The retry is a request of its own (docs/logging.md).
    operation = group["regions"][0]["operation"].rpartition("/")[2]
    commands = [each for each in gateway.world.twins.commands if each.operationid == operation]
    assert {each.requestid for each in commands} == {retry.headers["X-Request-ID"]}


@pytest.mark.asyncio(loop_scope="module")
async def test_a_dead_region_fails_alone_and_is_retried(gateway: Gateway) -> None:
    """MC-140 (scenario 14): so do a suspended one, and one whose operation fails; the selector is resolved once."""
    world = gateway.world
    world.regions.away.add(FOUR[0])
    world.regions.suspended["vim-2"] = Suspension(
        by="a", since="2026-01-01T00:00:00Z", reason="new switches", scope="region"
    )
    expressions = [
        {"key": "tier", "operator": "In", "values": ["edge", "core"]},
        {"key": "none", "operator": "DoesNotExist"},
    ]
    selector = {"match_expressions": [*expressions, {"key": "zone", "operator": "NotIn", "values": ["4"]}]}
    world.twins.failing.add("infra.k8s.apply_objects")
    group = await gateway.ended((await gateway.begin({"selector": selector})).must(202).json)
    assert (group["status"], states(group)) == ("PARTLY_FAILED", ["FAILED"] * 3)
    problems = [each["error"]["type"] for each in group["regions"]]
    assert problems == ["cluster-unavailable", "suspended", "stack-failed"]
    assert len(await gateway.vnfs(group)) == 1

    world.regions.away.clear()
    world.regions.suspended.clear()
    (await world.call("POST", f"{GROUPS}/{group['id']}/retry")).must(202)
    group = await gateway.ended(group)
    assert {each["error"]["type"] for each in group["regions"]} == {"stack-failed"}
    # One that has ended is begun again, those that wait are retried.
    given_up = group["regions"][0]["operation"].rpartition("/")[2]
    (await world.lcm("POST", f"/vnf_lcm_op_occs/{given_up}/fail")).must(200)
    world.twins.failing.clear()
    (await world.call("POST", f"{GROUPS}/{group['id']}/retry")).must(202)
    before, group = group, await gateway.ended(group)
    assert (group["status"], states(group)) == ("COMPLETED", ["READY"] * 3)
    retried_alike = [
        one["operation"] == other["operation"] for one, other in zip(before["regions"], group["regions"], strict=True)
    ]
    assert retried_alike == [False, True, True]
    assert len(await gateway.vnfs(group)) == 3


@pytest.mark.asyncio(loop_scope="module")
async def test_a_group_stops_after_failures_and_is_cancelled(gateway: Gateway) -> None:
    """MC-140 (scenario 14): STOPPED and CANCELLED, with regions that are NOT_STARTED; running ones end."""
    world = gateway.world
    world.regions.away.add(FOUR[1])
    group = await gateway.ended((await gateway.begin(parallel=1, stop_after_failures=1)).must(202).json)
    assert (group["status"], states(group)) == ("STOPPED", ["READY", "FAILED", "NOT_STARTED", "NOT_STARTED"])
    world.regions.away.clear()
    (await world.call("POST", f"{GROUPS}/{group['id']}/retry")).must(202)
    group = await gateway.ended(group)
    assert (group["status"], len(await gateway.vnfs(group))) == ("COMPLETED", 4)

    world.twins.waiting.add("infra.k8s.apply_objects")
    begun = (await gateway.begin(parallel=2)).must(202).json
    await gateway.reached(begun, lambda shown: sum("operation" in each for each in shown["regions"]) == 2)
    cancelled = (await world.call("POST", f"{GROUPS}/{begun['id']}/cancel")).must(200).json
    assert (cancelled["status"], states(cancelled)) == ("RUNNING", ["RUNNING"] * 2 + ["NOT_STARTED"] * 2)
    await world.twins.release()
    group = await gateway.ended(begun)
    assert (group["status"], states(group)) == ("CANCELLED", ["READY"] * 2 + ["NOT_STARTED"] * 2)


_REGION = {"cloud_region_id": FOUR[0]}
_BAD: list[tuple[Any, Mapping[str, Any], str]] = [
    ([], {}, "/regions"),
    ([_REGION], {"cloud_region_id": FOUR[0]}, "/regions"),
    ([_REGION, {"cloud_region_id": "edge-1"}], {}, "/regions"),
    ([_REGION] * 501, {}, "/regions"),
    ([{"cloud_region_id": "op/none"}], {}, "/regions/0/cloud_region_id"),
    ([{**_REGION, "colour": 1}], {}, "/regions/0/colour"),
    ("all", {}, "/regions"),
    ({"selector": {}}, {}, "/regions/selector"),
    ({"selector": {"match_labels": {"tier": "none"}}}, {}, "/regions"),
    ({"selector": {"match_expressions": [{"key": "a", "operator": "Gt"}]}}, {}, "/regions/selector/match_expressions/0/operator"),
    ({"selector": {"match_expressions": [{"key": "a", "operator": "In"}]}}, {}, "/regions/selector/match_expressions/0"),
    ([_REGION], {"values_by_region": {"op/other": {}}}, "/values_by_region/op~1other"),
    ([_REGION], {"values_by_region": {FOUR[0]: 5}}, "/values_by_region/op~1edge-1"),
    ([_REGION], {"parallel": 0}, "/parallel"),
    ([_REGION], {"parallel": 5}, "/parallel"),
    ([_REGION], {"stop_after_failures": -1}, "/stop_after_failures"),
    ([_REGION], {"clone_of": "x", "namespace": "y"}, "/clone_of"),
    ([_REGION], {"values": {}}, "/values"),
    (None, {"cloud_region_id": FOUR[0], "parallel": 1}, "/parallel"),
]  # fmt: skip


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("regions", "more", "pointer"), _BAD, ids=lambda value: str(value)[:40])
async def test_a_fault_in_one_region_refuses_the_whole_call(
    gateway: Gateway, regions: Any, more: Mapping[str, Any], pointer: str
) -> None:
    """MC-140, and chapter 6, Bad input."""
    before = await gateway.world.store.count(group_record.COLLECTION, Query().filter, limit=100)
    refused = await gateway.begin(regions, **more)
    assert refused.problem(422)["errors"][0]["pointer"] == pointer
    assert await gateway.world.store.count(group_record.COLLECTION, Query().filter, limit=100) == before
    for path in (f"{GROUPS}/none", f"{GROUPS}/none/cancel", f"{GROUPS}/none/retry"):
        (await gateway.world.call("GET" if path.endswith("/none") else "POST", path)).problem(404)


@pytest.mark.asyncio(loop_scope="module")
async def test_the_requests_for_all_regions_have_a_size_together(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MC-140: each is checked on the event loop."""
    two = [{"cloud_region_id": each} for each in FOUR[:2]]
    large = {"values": {"level": 1, "text": "x" * 400}}
    monkeypatch.setattr(group_checks, "_MOST_BYTES", 900)
    refused = (await gateway.begin(two, **large)).problem(422)["errors"]
    assert [each["pointer"] for each in refused] == ["/regions"]
    assert "at most 900 bytes of JSON" in refused[0]["message"]
    # Values of one region count once, and the common ones for each region.
    for_each = {"values": {"level": 1}, "values_by_region": {FOUR[0]: large["values"], FOUR[1]: large["values"]}}
    assert "at most 900 bytes" in (await gateway.begin(two, **for_each)).problem(422)["detail"]
    (await gateway.begin(two[:1], **large)).must(202)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_group_that_cannot_be_read_is_tried_again_after_its_lease(gateway: Gateway) -> None:
    """MC-140: not at once and without an end."""
    store = gateway.world.store
    await store.insert(group_record.COLLECTION, "broken", {"id": "broken", "isOpen": True})
    try:
        group = (await gateway.begin(ALL[:1])).must(202).json
        assert states(await gateway.ended(group)) == ["READY"]
        stored = await store.get(group_record.COLLECTION, "broken")
        assert stored is not None
        # Claimed once; the end of the other group is a reason to search.
        assert (bool(stored.body["leaseUntil"]), stored.revision <= 3) == (True, True)
    finally:
        await store.delete(group_record.COLLECTION, "broken")


class _Dying(FragileStore):
    """Loses the answer to one write of a group operation or of an instance, or is dead from there on."""

    dies_at = 0
    writes = 0
    is_dead = False
    """Whether no later write is done either."""
    is_done = True
    """Whether the write itself is done."""

    @classmethod
    def lose(cls, write: int, *, is_dead: bool, is_done: bool = True) -> None:
        cls.writes, cls.dies_at, cls.is_dead, cls.is_done = 0, write, is_dead, is_done

    async def insert(self, collection: str, *given: Any, **more: Any) -> Stored:
        is_one = collection in {instance.COLLECTION, group_record.COLLECTION}
        return await self._counted(super().insert(collection, *given, **more), is_one=is_one)

    async def update(self, collection: str, *given: Any, **more: Any) -> Stored:
        is_one = collection == group_record.COLLECTION
        return await self._counted(super().update(collection, *given, **more), is_one=is_one)

    async def _counted(self, write: Any, *, is_one: bool) -> Stored:
        _Dying.writes += is_one
        past = _Dying.writes - _Dying.dies_at if is_one and _Dying.dies_at else -1
        if (past > 0 and _Dying.is_dead) or (past == 0 and not _Dying.is_done):
            write.close()
            raise StoreUnavailable("the process is dead")
        stored: Stored = await write
        if past == 0:
            raise StoreUnavailable("the process has lost the answer")
        return stored


async def _begun(gateway: Gateway, key: str) -> Answer:
    two = tuple({"cloud_region_id": each} for each in FOUR[:2])
    asked = {"csar_id": gateway.csar_id, "values": {"level": 1}, "regions": two}
    return await gateway.world.call("POST", VNFS, asked, headers={"Idempotency-Key": key})


async def _has_one_vnf_in_each(gateway: Gateway, begun: Answer) -> None:
    group = await gateway.ended(begun.must(202).json)
    assert (group["status"], states(group)) == ("COMPLETED", ["READY"] * 2)
    assert Counter(each["cloud_region_id"] for each in await gateway.vnfs(group)) == {FOUR[0]: 1, FOUR[1]: 1}


@pytest.mark.slow
async def test_a_lost_write_never_makes_two_instances_in_a_region(tmp_path: Path) -> None:
    """MC-005, MC-140 (scenario 14): a process that dies before or after a write is followed by one that goes on.

    If only the answer is lost, the POST is sent again with its key; the rest goes on by itself.
    """
    begun: Answer | None = None
    for write, is_done in ((3, False), (4, False), (4, True), (5, True), (0, True)):
        _Dying.lose(0, is_dead=False)
        if begun is not None:
            # As the time of the dead process's lease.
            async with SqliteStore.open(tmp_path / "store.db") as store:
                await store.update(group_record.COLLECTION, begun.must(202).json["id"], {"leaseUntil": ""})
        async with a_gateway(tmp_path, Storage(kind=_Dying)) as gateway:
            if begun is not None:
                await _has_one_vnf_in_each(gateway, begun)
            if write:
                _Dying.lose(write, is_dead=True, is_done=is_done)
                begun = await _begun(gateway, f"dead-{write}-{is_done}")
                await until_true(partial(_is_reached, write))
                continue
            # The claim, the move to RUNNING, and the end of a region; the first write is the group's own.
            for lost in (1, 2, 3, 6):
                _Dying.lose(lost, is_dead=False)
                begun = await _begun(gateway, str(lost))
                await _has_one_vnf_in_each(gateway, begun if begun.status == 202 else await _begun(gateway, str(lost)))


async def _is_reached(write: int) -> bool:
    return _Dying.writes >= write
