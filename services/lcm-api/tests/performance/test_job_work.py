"""The measuring of PM jobs and thresholds by itself: periods, outages, kills, values that are sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_clients.outbound import AddressRules
from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.errors import Conflict, InvalidInput, NotFound
from kubevnfm_lcm_api.due import CLAIM, DUE, NEVER, DueWork
from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION as INSTANCES
from kubevnfm_lcm_api.measurement_sources import COLLECTION as SOURCES
from kubevnfm_lcm_api.measurement_sources import UNASKED_AFTER, SourceStates
from kubevnfm_lcm_api.notifications.domain.subscription import COLLECTION as CALLBACKS
from kubevnfm_lcm_api.performance import job_work, jobs, measuring, thresholds
from kubevnfm_lcm_api.performance.domain.measured_objects import Objects
from kubevnfm_lcm_api.performance.domain.metrics import wanted_metrics
from kubevnfm_lcm_api.performance.domain.ports import MeasurementRefused, MeasurerUnavailable
from kubevnfm_lcm_api.performance.domain.requests import CallbackPatch
from kubevnfm_lcm_api.performance.http.views import ShownRevision, job_view, threshold_view
from kubevnfm_lcm_api.performance.job_record import COLLECTION, SAMPLES
from kubevnfm_lcm_api.performance.sources import Sources, names_of
from kubevnfm_lcm_api.performance.threshold_record import COLLECTION as THRESHOLDS
from kubevnfm_lcm_api.performance.threshold_work import HandedCrossings
from kubevnfm_store.port import StoreUnavailable
from structlog.testing import capture_logs
from worlds.performance_world import BEGIN, INSTANCE, PerformanceWorld, TwinMeasurer, parts, performance_world

METRIC = "VCpuUsageMeanVnf"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[PerformanceWorld]:
    async with performance_world(tmp_path) as running:
        await running.instantiate("web-0")
        yield running


def values(report: Any) -> list[tuple[str, float]]:
    """Return time and value of all values of a report with one entry."""
    (entry,) = report["entries"]
    return [(each["timeStamp"][17:19], each["value"]) for each in entry["performanceValues"]]


# --- periods ------------------------------------------------------------------------------------------------------------


async def test_values_of_each_period_have_its_time_and_are_reported_at_the_end_of_the_reporting_period(
    world: PerformanceWorld,
) -> None:
    """API-203, API-205."""
    job = await world.job()
    assert job.body["internal"]["dueAt"] == rfc3339(BEGIN + timedelta(seconds=11))
    for _ in range(3):
        world.clock.advance(10)
        await world.measure(job.id)
    assert await world.reports(job.id) == [], "the last period has not been over for a second"
    world.clock.advance(1)
    await world.measure(job.id)
    (report,) = await world.reports(job.id)
    assert values(report) == [("15", 15), ("25", 25), ("35", 35)]
    assert "metadata" not in report
    after = (await world.jobs.get(job.id)).body["internal"]
    assert (after["measured"], after["dueAt"]) == (3, rfc3339(BEGIN + timedelta(seconds=41)))
    assert [(start, end, step) for _, start, end, step in world.measurer.asked] == [
        (BEGIN + timedelta(seconds=each), BEGIN + timedelta(seconds=each), 10) for each in (10, 20, 30)
    ]
    await world.publish(1)
    (event,) = world.heard
    assert event.data.pm_job_id == job.id
    assert event.data.vnf_instance_id == event.subject == INSTANCE


async def test_the_last_report_ends_with_the_last_whole_period_before_the_boundary(world: PerformanceWorld) -> None:
    """API-205."""
    boundary = {"reportingBoundary": rfc3339(BEGIN + timedelta(seconds=55))}
    job = await world.job(criteria=boundary)
    world.clock.advance(300)
    await world.measure(job.id)
    assert [len(values(each)) for each in await world.reports(job.id)] == [3, 2]
    assert DUE.partition("/")[2] not in (await world.jobs.get(job.id)).body["internal"], "it is never due again"
    with pytest.raises(Conflict, match="reportingBoundary has passed"):
        await sent(world, job.id, 1.0)


async def test_periods_that_were_missed_are_asked_for_together_and_too_old_ones_are_gaps(
    world: PerformanceWorld,
) -> None:
    """API-206: 700 s later only the last 600 s are asked for."""
    job = await world.job()
    world.measurer.is_away = True
    world.clock.advance(700)
    await world.measure(job.id)
    waits = (await world.jobs.get(job.id)).body["internal"]
    assert (waits["failures"], waits["measured"]) == (1, 10)
    assert waits["dueAt"] == rfc3339(world.clock.now() + timedelta(seconds=2))
    world.measurer.is_away = False
    asked = len(world.measurer.asked)
    await world.measure(job.id)
    ((_, start, end, _),) = world.measurer.asked[asked:]
    assert (start, end) == (BEGIN + timedelta(seconds=110), BEGIN + timedelta(seconds=690))
    moved = (await world.jobs.get(job.id)).body
    assert (moved["internal"]["measured"], moved["internal"]["failures"]) == (69, 0)
    assert len(moved["reports"]) == 3, "the newest ones are kept"
    oldest = moved["reports"][0]["begin"]
    assert all(each.body["at"] > oldest for each in await world.all(SAMPLES))


async def test_a_report_names_the_times_without_values_and_why(world: PerformanceWorld) -> None:
    """API-206."""
    world.measurer.value = lambda at: None if at.second == 25 else 1.0
    job = await world.job()
    world.clock.advance(31)
    await world.measure(job.id)
    (report,) = await world.reports(job.id)
    assert [at for at, _ in values(report)] == ["15", "35"]
    times = [rfc3339(BEGIN + timedelta(seconds=each)) for each in (10, 20)]
    assert report["metadata"]["gaps"] == [
        {"from": times[0], "to": times[1], "reason": f"there is no value of {METRIC}"}
    ]
    await world.store.update(INSTANCES, INSTANCE, {}, unset=["instantiatedVnfInfo"])
    world.clock.advance(30)
    await world.measure(job.id)
    report = (await world.reports(job.id))[-1]
    assert report["entries"] == []
    assert f"VNF instance {INSTANCE} is not instantiated" in report["metadata"]["gaps"][0]["reason"]


async def test_a_long_outage_is_a_gap_of_each_report_that_it_touches(world: PerformanceWorld) -> None:
    """API-206."""
    job = await world.job(criteria={"reportingPeriod": 600})
    world.measurer.is_away = True
    world.clock.advance(1290)
    await world.measure(job.id)
    (report,) = await world.reports(job.id)
    begin, end = (rfc3339(BEGIN + timedelta(seconds=each)) for each in (0, 690))
    assert report["entries"] == []
    assert report["metadata"]["gaps"] == [
        {"from": begin, "to": end, "reason": "not measured in time: Prometheus did not answer"}
    ]


async def test_a_long_pause_is_reported_in_pieces_without_reports_that_would_be_removed_at_once(
    world: PerformanceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """API-206, API-207: 3 reports are kept, and 2 events are in one write."""
    monkeypatch.setattr(job_work, "_MOST_EVENTS", 2)
    job = await world.job(criteria={"collectionPeriod": 1, "reportingPeriod": 1})
    world.clock.advance(86_400)
    await world.measure(job.id)
    first = (await world.jobs.get(job.id)).body
    late = 86_400 - 600
    assert (first["internal"]["measured"], len(first["reports"])) == (late - 1, 2)
    assert len(await world.all(SAMPLES)) == 2
    assert world.measurer.asked == [], "what is too old is not asked for"
    await world.measure(job.id)
    await world.publish(3)
    assert (await world.jobs.get(job.id)).body["internal"]["measured"] == late + 1
    assert len(world.heard) == 4
    for event in world.heard[1:]:
        assert await world.jobs.report(job.id, event.data.report_id), "the newest ones are there"


async def test_a_report_names_the_instances_without_values(world: PerformanceWorld) -> None:
    """API-206."""
    await world.instantiate("other-0", id="inst-2")
    job = await world.job(objectInstanceIds=[INSTANCE, "inst-2"], criteria={"reportingPeriod": 10})
    world.clock.advance(11)
    await world.measure(job.id)
    (report,) = await world.reports(job.id)
    (gap,) = report["metadata"]["gaps"]
    assert gap["reason"] == f"there is no value of {METRIC} of the VNF instances inst-2"


async def test_a_report_names_the_time_of_sent_values_that_it_leaves_out(
    world: PerformanceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """API-208."""
    monkeypatch.setattr(jobs, "_MOST_SAMPLES", 2)
    world.measurer.labels = ()
    job = await world.job(criteria={"collectionPeriod": 30})
    for _ in range(3):
        world.clock.advance(1)
        await sent(world, job.id, 1)
    world.clock.advance(28)
    await world.measure(job.id)
    (report,) = await world.reports(job.id)
    assert len(values(report)) == 2
    (gap,) = report["metadata"]["gaps"]
    assert (gap["from"], gap["to"]) == tuple(rfc3339(BEGIN + timedelta(seconds=each)) for each in (2, 30))
    assert "at most 2" in gap["reason"]


async def test_numbers_near_the_end_of_their_range_are_added(world: PerformanceWorld) -> None:
    """API-206: whole numbers stay those that a store takes."""
    await world.instantiate("db-0", "db-1", id="inst-2")
    pods = [{"namespace": "default", "pod": each, "interface": "eth0"} for each in ("db-0", "db-1")]
    world.measurer.labels, world.measurer.value = pods, partial(_always, 1e300)
    asked: list[tuple[Any, str]] = [("Vnf", METRIC), ("VnfIntCp", "ByteIncomingVnfIntCp")]
    for object_type, metric in asked:
        job = await world.job(
            objectType=object_type, objectInstanceIds=["inst-2"], criteria={"performanceMetric": [metric]}
        )
        world.clock.advance(31)
        await world.measure(job.id)
        (report,) = await world.reports(job.id)
        assert all(isinstance(value, float) and value >= 1e300 for _, value in values(report))


async def test_a_group_of_many_instances_is_asked_for_by_one_expression_of_each_metric(
    world: PerformanceWorld,
) -> None:
    """API-203."""
    ids = [await world.instantiate(f"web-{number}", id=f"inst-{number}") for number in range(2, 6)]
    world.measurer.labels = [{"namespace": "default", "pod": f"web-{number}"} for number in range(2, 6)]
    group = {"performanceMetric": [], "performanceMetricGroup": ["VirtualisedComputeResource"]}
    job = await world.job(objectInstanceIds=ids, criteria={**group, "reportingPeriod": 10})
    world.clock.advance(11)
    await world.measure(job.id)
    assert len(world.measurer.asked) == 6
    (report,) = await world.reports(job.id)
    names = {(each["objectInstanceId"], each["performanceMetric"].partition(".")[2]) for each in report["entries"]}
    assert (names, len(report["entries"])) == ({(each, each) for each in ids}, 24)
    assert "metadata" not in report


async def test_a_measurer_that_hangs_leaves_time_for_the_next_one(
    world: PerformanceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """API-206."""
    monkeypatch.setattr(measuring, "LONGEST_S", 0.2)

    class Hangs:
        async def query_range(self, *_: Any, **__: Any) -> Any:
            await asyncio.Event().wait()

    hanging: Any = Hangs()
    answers = {"http://hangs": hanging, "http://answers": world.measurer}
    sources = Sources(None, answers.__getitem__, AddressRules())
    asking = measuring.Measuring(world.store, sources, SourceStates(world.store, world.clock), 1.0)
    objects = Objects("Vnfc", [INSTANCE], (), wanted_metrics("Vnfc", [METRIC], [], [INSTANCE]))
    found = await asking.values(objects, {"sources": list(answers)}, [BEGIN], 10)
    assert found.by_time[0]
    with pytest.raises(MeasurerUnavailable, match="took longer than"):
        await asking.values(objects, {"sources": ["http://hangs"]}, [BEGIN], 10)


async def test_a_measurer_that_is_away_is_noted_until_any_gateway_has_an_answer(world: PerformanceWorld) -> None:
    """API-206: with the beginning of the outage and its last reason, and written twice a minute at most."""
    job = await world.job()

    async def noted() -> list[Any]:
        return [each.body for each in await world.all(SOURCES)]

    world.clock.advance(11)
    begin = world.clock.now()
    world.measurer.is_away = True
    await world.measure(job.id)
    first = {
        "address": "site",
        "source": "site",
        "since": rfc3339(begin),
        "reason": "Prometheus: it did not answer in time",
    }
    assert await noted() == [{**first, "failedAt": rfc3339(begin)}]
    said = f"No answer since {rfc3339(begin)}: Prometheus: it did not answer in time"
    failing = await world.jobs.get(job.id)
    assert job_view(failing.body, [], "")["metadata"] == {"kubevnfm_last_error": said}
    world.clock.advance(29)
    await world.measure(job.id)
    assert await noted() == [{**first, "failedAt": rfc3339(begin)}]
    longer = await world.jobs.get(job.id)
    assert job_view(longer.body, [], "") == job_view(failing.body, [], "")
    assert ShownRevision.from_stored(longer) == ShownRevision.from_stored(failing) != ShownRevision.from_stored(job)
    threshold = await world.threshold()
    await world.judge(threshold.id)
    shown = threshold_view((await world.thresholds.get(threshold.id)).body, "")
    assert shown["metadata"]["kubevnfm_last_error"].startswith(f"No answer since {rfc3339(world.clock.now())}: ")
    world.clock.advance(1)
    last = world.clock.now()
    await world.measure(job.id)
    assert await noted() == [{**first, "failedAt": rfc3339(last)}]
    other = SourceStates(world.store, world.clock)
    await other.answered("site")
    assert await noted() == []
    world.clock.advance(30)
    again = world.clock.now()
    await world.measure(job.id)
    world.measurer.is_away = False
    await world.measure(job.id)
    await world.judge(threshold.id)
    assert await noted() == []
    for view in (
        job_view((await world.jobs.get(job.id)).body, [], ""),
        threshold_view((await world.thresholds.get(threshold.id)).body, ""),
    ):
        assert "metadata" not in view
    await other.failed("http://prometheus:9090/one", "no route")
    await other.failed("http://prometheus:9090/two", "no route")
    assert {(each["address"], each["source"], each["since"]) for each in await noted()} == {
        ("prometheus:9090", "named", rfc3339(again))
    }
    assert len(await noted()) == 2
    world.clock.advance(UNASKED_AFTER.total_seconds() + 1)
    await other.failed("http://prometheus:9090/two", "no route")
    await other.remove_old()
    assert len(await noted()) == 1, "no job asks the other one any more"


async def test_a_measurer_that_refuses_is_not_away(world: PerformanceWorld) -> None:
    """API-206."""
    job = await world.job()
    world.clock.advance(11)

    async def refuse(*_: Any, **__: Any) -> Any:
        raise MeasurementRefused("Prometheus: it answered 422")

    world.measurer.query_range = refuse  # type: ignore[method-assign]
    await world.measure(job.id)
    assert await world.all(SOURCES) == []


def test_an_outage_is_said_after_those_of_many_other_addresses() -> None:
    """API-206."""
    sources = Sources(None, lambda _: TwinMeasurer(), AddressRules())
    with capture_logs() as logs:
        for number in range(1001):
            sources.failed(f"http://host-{number}", MeasurerUnavailable("away"))
        sources.failed("site", MeasurerUnavailable("away"))
        sources.answered("site")
    assert [each["event"] for each in logs[-2:]] == ["prometheus_does_not_answer", "prometheus_answers_again"]


async def test_a_change_while_a_job_is_measured_and_its_report_have_different_entity_tags(
    world: PerformanceWorld,
) -> None:
    """API-204."""
    job = await world.job()
    world.clock.advance(31)
    claimed = await world.store.update(COLLECTION, job.id, {CLAIM: "mine"})
    patch = CallbackPatch.model_validate({"callbackUri": "http://127.0.0.1/other"})
    changed = await world.jobs.modify(job.id, patch, check=lambda _: None)
    await world.job_work.measure(claimed, "mine")
    reported = await world.jobs.get(job.id)
    assert len(reported.body["reports"]) == 1
    assert reported.body["callbackUri"] == "http://127.0.0.1/other"
    assert ShownRevision.from_stored(changed) != ShownRevision.from_stored(reported)


@pytest.mark.parametrize("is_sent", [False, True])
async def test_a_job_without_any_of_its_instances_ends(world: PerformanceWorld, is_sent: bool) -> None:
    """API-207."""
    job = await world.job()
    if is_sent:
        await world.store.update(COLLECTION, job.id, {"internal/sources": []})
    await world.store.delete(INSTANCES, INSTANCE)
    world.clock.advance(11)
    await world.measure(job.id)
    assert "dueAt" not in (await world.jobs.get(job.id)).body["internal"]


async def test_reports_expire(world: PerformanceWorld) -> None:
    """API-207."""
    job = await world.job()
    world.clock.advance(31)
    await world.measure(job.id)
    (report,) = world.jobs.reports((await world.jobs.get(job.id)).body)
    world.clock.advance(7 * 86_400 + 1)
    with pytest.raises(NotFound):
        await world.jobs.report(job.id, report["id"])
    world.clock.advance(7 * 86_400)
    await world.jobs.remove_old()
    assert await world.all(SAMPLES) == []


# --- processes ----------------------------------------------------------------------------------------------------------


class Dies:
    """The store of a process that dies at one of its writes, before or after it."""

    def __init__(self, store: Any, at: int, *, is_after: bool) -> None:
        self._store, self._left, self._is_after = store, at, is_after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return partial(self._write, found) if name in {"insert", "update", "delete_many"} else found

    async def _write(self, write: Any, *given: Any, **more: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise StoreUnavailable("the process has died")
        if self._left == 0 and not self._is_after:
            raise StoreUnavailable("the process has died")
        done = await write(*given, **more)
        if self._left == 0:
            raise StoreUnavailable("the process has died")
        return done


@pytest.mark.parametrize("is_after", [False, True])
async def test_a_process_that_dies_at_any_write_loses_and_doubles_no_value_report_or_event(
    world: PerformanceWorld, is_after: bool
) -> None:
    """API-209: another process measures again; three values, the callback, the job and old values are written."""
    job = await world.job()
    await world.store.delete(CALLBACKS, job.id)
    world.clock.advance(31)
    for at in range(1, 7):
        dies = Dies(world.store, at, is_after=is_after)
        dying = parts(dies, world.clock, world.measurer, world.relay, world.bus, world.heard, world.usages)
        try:
            await world.measure(job.id, dying.job_work)
        except StoreUnavailable:
            continue
    await world.measure(job.id)
    (report,) = await world.reports(job.id)
    assert values(report) == [("15", 15), ("25", 25), ("35", 35)]
    await world.publish(1)
    assert len({each.id for each in world.heard}) == 1
    assert await world.store.get(CALLBACKS, job.id) is not None


async def test_a_process_that_has_lost_its_claim_writes_nothing(world: PerformanceWorld) -> None:
    """API-209."""
    job = await world.job()
    world.clock.advance(31)
    claimed = await world.store.update(COLLECTION, job.id, {"internal/claim": "another"})
    await world.job_work.measure(claimed, "mine")
    assert (await world.jobs.get(job.id)).body["internal"]["measured"] == 0
    assert await world.reports(job.id) == []


async def test_one_process_at_a_time_has_a_job_and_another_one_follows_when_the_lease_ends(
    world: PerformanceWorld,
) -> None:
    """API-209."""
    job = await world.job()
    world.clock.advance(11)
    done: list[str] = []
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def work(name: str, *_: Any) -> None:
        done.append(name)
        begun.set()
        await goes_on.wait()

    def due(name: str) -> DueWork:
        return DueWork(world.store, world.clock, COLLECTION, partial(work, name), asyncio.Event(), names_of)

    first, second = (asyncio.create_task(due(name).run()) for name in ("first", "second"))
    await begun.wait()
    stored = await world.store.get(COLLECTION, job.id)
    assert stored is not None
    assert stored.body["internal"]["dueAt"] > rfc3339(world.clock.now() + timedelta(seconds=60))
    world.clock.advance(100)
    begun.clear()
    third = asyncio.create_task(due("third").run())
    await begun.wait()
    assert sorted(done)[-1] == "third"
    assert len(done) == 2
    for task in (first, second, third):
        task.cancel()
    await asyncio.gather(first, second, third, return_exceptions=True)


def test_work_on_different_systems_has_different_sources() -> None:
    """API-209: one that hangs holds up none of the others."""

    def source(*sources: str, **objects: Any) -> str:
        return names_of({"internal": {"sources": list(sources)}, **objects})

    one, other = source("http://one"), source("http://other")
    assert source("http://one", objectInstanceIds=["a"]) == source("http://one", objectInstanceId="b") == one
    # The clusters of VNFs are systems of their own.
    sampled = [source("metrics.k8s.io", **each) for each in ({"objectInstanceIds": ["a"]}, {"objectInstanceId": "b"})]
    assert len({one, other, source("http://one", "http://other"), *sampled}) == 5
    assert source() == ""


# --- values that are sent ---------------------------------------------------------------------------------------------


async def sent(world: PerformanceWorld, job_id: str, value: float | str, **changes: Any) -> None:
    given = {"metric": f"{METRIC}.{INSTANCE}", "object_instance_id": INSTANCE, "sub_object_instance_id": None}
    await world.measured.report(job_id=job_id, value=value, at=world.clock.now(), **{**given, **changes})


async def test_a_value_that_is_sent_is_in_the_report_of_the_present_period_once(world: PerformanceWorld) -> None:
    """API-208."""
    world.measurer.labels = ()
    job = await world.job()
    world.clock.advance(4)
    for _ in range(2):
        await sent(world, job.id, "0.25")
    await sent(world, job.id, 3, sub_object_instance_id="VDU1-web-0")
    world.clock.advance(27)
    await world.measure(job.id)
    (report,) = await world.reports(job.id)
    whole, part = report["entries"]
    assert whole["performanceValues"] == [{"timeStamp": rfc3339(BEGIN + timedelta(seconds=4)), "value": 0.25}]
    assert part["subObjectInstanceId"] == "VDU1-web-0"
    assert {each["performanceMetric"] for each in (whole, part)} == {METRIC}


@pytest.mark.parametrize(
    ("changes", "value", "place"),
    [
        ({"metric": "VMemoryUsageMeanVnf"}, 1.0, "metric"),
        ({"metric": f"{METRIC}.another"}, 1.0, "metric"),
        ({"object_instance_id": "another"}, 1.0, "object_instance_id"),
        ({}, "high", "value"),
        ({}, "NaN", "value"),
    ],
)
async def test_a_value_that_the_job_does_not_measure_is_refused_by_name(
    world: PerformanceWorld, changes: dict[str, Any], value: float | str, place: str
) -> None:
    """API-208."""
    job = await world.job()
    with pytest.raises(InvalidInput) as refused:
        await sent(world, job.id, value, **changes)
    assert refused.value.field == place
    with pytest.raises(NotFound):
        await sent(world, "none", 1.0)


# --- thresholds -----------------------------------------------------------------------------------------------------------


def _always(value: float, _: datetime) -> float:
    return value


async def test_a_threshold_is_crossed_beyond_its_hysteresis_once_in_each_direction(world: PerformanceWorld) -> None:
    """API-211, API-212."""
    threshold = await world.threshold(50, 5)
    for value in (10, 54, 55, 60, 50, 46, 45, 10, 52, 99):
        world.measurer.value = partial(_always, float(value))
        world.clock.advance(30)
        await world.judge(threshold.id)
    await world.publish(3)
    crossed = [(each.data.direction, each.data.value) for each in world.heard]
    assert crossed == [("UP", 55), ("DOWN", 45), ("UP", 99)]
    assert [each.data.follows for each in world.heard] == ["", world.heard[0].id, world.heard[1].id]
    first = world.heard[0].data
    assert (first.vnf_instance_id, first.sub_object_instance_id, first.metric) == (INSTANCE, None, METRIC)


async def test_a_value_that_is_sent_crosses_a_threshold_and_an_older_one_does_not(world: PerformanceWorld) -> None:
    """API-213."""
    threshold = await world.threshold(50, 0)
    now = world.clock.now()

    async def send(value: float, seconds: int, **changes: Any) -> None:
        given = {"metric": METRIC, "object_instance_id": INSTANCE, "sub_object_instance_id": None}
        at = now + timedelta(seconds=seconds)
        await world.measured.crossing(threshold_id=threshold.id, value=value, at=at, **{**given, **changes})

    await send(60, 2)
    await send(60, 2)
    await send(40, 1)
    await send(40, 3, metric=f"{METRIC}.{INSTANCE}")
    await world.publish(2)
    assert [each.data.direction for each in world.heard] == ["UP", "DOWN"]
    for changes in ({"metric": "VCpuUsagePeakVnf"}, {"object_instance_id": "another"}):
        with pytest.raises(InvalidInput):
            await send(1, 9, **changes)


async def test_a_threshold_is_measured_again_later_while_prometheus_is_away(world: PerformanceWorld) -> None:
    """API-212."""
    threshold = await world.threshold()
    world.measurer.is_away = True
    for failures, pause_s in ((1, 30), (2, 30), (3, 30), (4, 40)):
        await world.judge(threshold.id)
        internal = (await world.thresholds.get(threshold.id)).body["internal"]
        due = rfc3339(world.clock.now() + timedelta(seconds=pause_s))
        assert (internal["failures"], internal["dueAt"]) == (failures, due)


@pytest.mark.parametrize("is_sent", [False, True])
async def test_a_threshold_that_cannot_be_measured_is_not_due_any_more(world: PerformanceWorld, is_sent: bool) -> None:
    """API-212: its values are sent, or its VNF instance is deleted."""
    threshold = await world.threshold()
    if is_sent:
        await world.store.update(THRESHOLDS, threshold.id, {"internal/sources": []})
    else:
        await world.store.delete(INSTANCES, INSTANCE)
    await world.judge(threshold.id)
    assert (await world.thresholds.get(threshold.id)).body["internal"]["dueAt"] == NEVER
    assert world.measurer.asked == []


async def test_parts_that_are_gone_do_not_make_one_cross_again_that_stayed_up(
    world: PerformanceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """API-211: the sides of two parts are kept."""
    monkeypatch.setattr(thresholds, "_MOST_SIDES", 2)
    threshold = await world.threshold(50, 0)
    for number in range(4):
        at = BEGIN + timedelta(seconds=number)
        await world.thresholds.note(threshold.id, {"stays": 90.0, f"replaced-{number}": 90.0}, at)
    await world.publish(5)
    assert [each.data.sub_object_instance_id for each in world.heard].count("stays") == 1


async def test_crossings_are_handed_on_until_they_are_accepted(world: PerformanceWorld) -> None:
    """API-214."""
    asked: list[Any] = []

    async def act(crossing: Any) -> None:
        asked.append(crossing)
        if len(asked) == 1:
            raise StoreUnavailable("away")

    metadata = {"automation": {"aspectId": "worker", "onUp": "SCALE_OUT"}}
    handed = HandedCrossings(world.thresholds, act)
    threshold = await world.threshold(0, 0, metadata=metadata)
    world.clock.advance(1)
    await world.judge(threshold.id)
    await world.publish(1)
    (event,) = world.heard

    class Delivered:
        envelope = event

    delivery: Any = Delivered()
    verdicts = [type(await handed.hand_on(delivery)).__name__ for _ in range(2)]
    assert verdicts == ["Again", "Ack"]
    assert [each.id for each in asked] == [event.id, event.id]
    assert (asked[1].direction, asked[1].metadata) == ("UP", metadata)
    await world.thresholds.delete(threshold.id)
    assert type(await handed.hand_on(delivery)).__name__ == "Ack"
    assert len(asked) == 2
