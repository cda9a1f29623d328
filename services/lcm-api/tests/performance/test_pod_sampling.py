"""CNFs without a Prometheus: their pods are sampled by metrics.k8s.io of their clusters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from callers.etsi import etsi_schemas
from kubevnfm_clients.multicloud.errors import RegionUnavailable, ResourceMetricsUnavailable
from kubevnfm_clients.pod_usages import PodUsage
from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.errors import NotFound, Unprocessable
from kubevnfm_lcm_api.due import NEVER
from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION as INSTANCES
from kubevnfm_lcm_api.measurement_sources import COLLECTION as SOURCES
from kubevnfm_lcm_api.performance.domain.metrics import BY_TYPE
from kubevnfm_lcm_api.performance.domain.tallies import Sample, after, counted, values_of
from kubevnfm_lcm_api.performance.http.views import job_view, threshold_view
from kubevnfm_lcm_api.performance.job_record import COLLECTION
from kubevnfm_lcm_api.performance.threshold_record import COLLECTION as THRESHOLDS
from kubevnfm_store.port import StoreUnavailable
from kubevnfm_store.query import Query
from servers.subscriber import Subscriber
from worlds.cnf_world import deployed
from worlds.lcm_world import lcm_world
from worlds.performance_world import BEGIN, INSTANCE, PerformanceWorld, parts, performance_world

CPU, CPU_PEAK, MEMORY = "VCpuUsageMeanVnf", "VCpuUsagePeakVnf", "VMemoryUsageMeanVnf"
MIB = 2.0**20
MINUTE = {"collectionPeriod": 60, "reportingPeriod": 60}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[PerformanceWorld]:
    async with performance_world(tmp_path, has_prometheus=False) as running:
        await running.instantiate("web-0", "web-1")
        running.usages.failure = None
        yield running


def use(world: PerformanceWorld, pod: str, cpu: float, *, at_s: float | None = None, **more: Any) -> None:
    """Have the cluster measure a pod: CPUs, with half a CPU as limit, at a time since the beginning."""
    at = world.clock.now() if at_s is None else BEGIN + timedelta(seconds=at_s)
    usage = {"cpu": cpu, "memory": 64 * MIB, "cpu_limit": 0.5, "memory_limit": 256 * MIB, **more}
    world.usages.given[pod] = PodUsage(pod=pod, at=at, window_s=15, **usage)


async def rounds(world: PerformanceWorld, job_id: str, upto_s: int, *cpu: float) -> None:
    """Advance by 15 s up to a time, and take a sample after each; the CPUs of web-0 are these in turn."""
    left = list(cpu)
    while world.clock.now() < BEGIN + timedelta(seconds=upto_s):
        world.clock.advance(15)
        if left:
            use(world, "web-0", left.pop(0))
        await world.measure(job_id)


def entries(report: Any) -> dict[tuple[str, str | None], list[float]]:
    return {
        (each["performanceMetric"], each.get("subObjectInstanceId")): [
            one["value"] for one in each["performanceValues"]
        ]
        for each in report["entries"]
    }


async def test_mean_and_peak_are_those_of_the_samples_of_a_period(world: PerformanceWorld) -> None:
    """API-216: in percent of the limits, each sample in the period of its own time, at the end of the period."""
    use(world, "web-0", 0.1, at_s=-5)
    job = await world.job(criteria={"performanceMetric": [CPU, CPU_PEAK, MEMORY], **MINUTE})
    assert job.body["internal"]["dueAt"] == rfc3339(BEGIN), "the first sample is taken at once"
    use(world, "web-1", 0.25, at_s=30, cpu_limit=None, memory_limit=None)
    await rounds(world, job.id, 90, 0.1, 0.2, 0.3, 0.4, 0.5)
    (report,) = await world.reports(job.id)
    first, second = "VDU1-web-0", "VDU1-web-1"
    assert entries(report) == {
        (CPU, first): [pytest.approx(50.0)],
        (CPU_PEAK, first): [80.0],
        (MEMORY, first): [25.0],
        (CPU, second): [25.0],
        (CPU_PEAK, second): [25.0],
    }, "the sample of 75 s is one of the next period; web-1 has no limit: it is measured in percent of one CPU"
    times = {one["timeStamp"] for each in report["entries"] for one in each["performanceValues"]}
    assert times == {rfc3339(BEGIN + timedelta(seconds=60))}
    assert {each.vim.vim_id for each in world.usages.asked} == {"k8s"}
    assert set(world.usages.asked[-1].pods) == {"web-0", "web-1"}
    left = (await world.jobs.get(job.id)).body["internal"]
    assert [one["period"] for each in left["sampled"] for one in each["sums"]] == [2]
    assert left["dueAt"] == rfc3339(BEGIN + timedelta(seconds=105))
    use(world, "web-1", 0.5, at_s=55)
    await rounds(world, job.id, 105)
    left = (await world.jobs.get(job.id)).body["internal"]
    assert [one["period"] for each in left["sampled"] for one in each["sums"]] == [2], "its period is measured"


async def test_a_value_that_the_cluster_repeats_is_one_sample(world: PerformanceWorld) -> None:
    """API-216."""
    job = await world.job(criteria={"performanceMetric": [CPU], **MINUTE})
    use(world, "web-0", 0.5, at_s=10)
    await rounds(world, job.id, 45)
    use(world, "web-0", 0.0, at_s=50)
    await rounds(world, job.id, 90)
    (report,) = await world.reports(job.id)
    assert entries(report) == {(CPU, "VDU1-web-0"): [50.0]}, "one of 100 and one of 0"


async def test_a_process_that_dies_loses_one_sample_at_most(world: PerformanceWorld) -> None:
    """API-216: and no report is made twice."""
    job = await world.job(criteria={"performanceMetric": [CPU], **MINUTE})
    await rounds(world, job.id, 30, 0.1, 0.2)

    class Dies:
        """The store of a process that dies at its first write."""

        def __getattr__(self, name: str) -> Any:
            if name in {"insert", "update", "update_where"}:
                raise StoreUnavailable("the process has died")
            return getattr(world.store, name)

    world.clock.advance(15)
    use(world, "web-0", 0.5)
    dying = parts(Dies(), world.clock, world.measurer, world.relay, world.bus, world.heard, world.usages)
    with pytest.raises(StoreUnavailable):
        await world.measure(job.id, dying.job_work)
    await rounds(world, job.id, 90, 0.3, 0.4, 0.5)
    (report,) = await world.reports(job.id)
    assert entries(report) == {(CPU, "VDU1-web-0"): [pytest.approx(40.0)]}, "0.1, 0.2 and 0.3 of 0.5"
    await world.publish(1)
    assert len({each.id for each in world.heard}) == 1


async def test_a_cluster_that_measures_nothing_is_the_last_error_of_the_job(world: PerformanceWorld) -> None:
    """API-219: shown with a new ETag, and as a gap; it goes away with the next samples."""
    none = "the cluster has no metrics.k8s.io (metrics-server)"
    job = await world.job(criteria={"performanceMetric": [CPU], **MINUTE})
    shown = job.body["internal"]["shown"]
    world.usages.failure = ResourceMetricsUnavailable(none)
    await rounds(world, job.id, 90)
    (report,) = await world.reports(job.id)
    (gap,) = report["metadata"]["gaps"]
    assert report["entries"] == []
    assert none in gap["reason"]
    failing = (await world.jobs.get(job.id)).body
    said = f"VNF instance {INSTANCE}: {none}"
    assert job_view(failing, [], "")["metadata"] == {"kubevnfm_last_error": said}
    assert failing["internal"]["shown"] == shown + 2, "the error, and the report"
    (away,) = await world.store.find(SOURCES, Query())
    assert (away.body["source"], away.body["reason"]) == ("cluster", none)
    world.usages.failure = None
    await rounds(world, job.id, 105, 0.1)
    assert not await world.store.find(SOURCES, Query())
    after_that = (await world.jobs.get(job.id)).body
    assert "metadata" not in job_view(after_that, [], "")
    assert after_that["internal"]["shown"] == shown + 3

    other = await world.threshold(value=50)
    world.usages.failure = RegionUnavailable("it does not answer")
    for _ in range(2):
        await world.judge(other.id)
    stored = (await world.thresholds.get(other.id)).body
    assert threshold_view(stored, "")["metadata"]["kubevnfm_last_error"].endswith("it does not answer")
    assert not await world.store.find(SOURCES, Query()), "the VIM has an alarm of its own"
    assert stored["internal"]["shown"] == 2


async def test_samples_of_another_time_and_without_a_limit_are_left_out_with_the_reason(
    world: PerformanceWorld,
) -> None:
    """API-216, API-219: the answers of a cluster are not trusted."""
    job = await world.job(criteria={"performanceMetric": [MEMORY], **MINUTE})
    use(world, "web-0", 0.1, at_s=4000)
    use(world, "web-1", 0.1, memory_limit=None)
    world.clock.advance(15)
    await world.measure(job.id)
    internal = (await world.jobs.get(job.id)).body["internal"]
    assert "pod web-0 has the time 2030-01-02T04:10:45" in internal["error"]
    assert "neither pod web-1 has a limit of memory, nor is that of its node known" in internal["error"]
    assert [each["instance"] for each in internal["sampled"] if "memory" in str(each["sums"])] == []


async def test_a_threshold_is_crossed_by_the_samples_of_its_period(world: PerformanceWorld) -> None:
    """API-217: at the first sample, then by the mean of each 30 s; a restart and the same sample repeat nothing."""
    threshold = await world.threshold(value=50, hysteresis=5)

    async def judged(*cpu: float) -> list[Any]:
        before = len(world.heard)
        for each in cpu:
            use(world, "web-0", each)
            use(world, "web-1", each)
            await world.judge(threshold.id)
            await world.judge(threshold.id)
            world.clock.advance(15)
        await world.relay.sweep()
        await world.bus.quiet()
        return [(each.data.direction, each.data.value) for each in world.heard[before:]]

    assert await judged(0.4) == [("UP", 80.0)]
    due = (await world.thresholds.get(threshold.id)).body["internal"]["dueAt"]
    assert due == rfc3339(BEGIN + timedelta(seconds=15))
    assert await judged(0.1, 0.2) == [("DOWN", pytest.approx(30.0))], "the mean of 20 and 40"
    assert await judged(0.5, 0.1) == [("UP", pytest.approx(60.0))]
    await world.store.delete(INSTANCES, INSTANCE)
    await world.judge(threshold.id)
    (stored,) = await world.all(THRESHOLDS)
    assert stored.body["internal"]["dueAt"] == NEVER


async def test_what_metrics_k8s_io_does_not_measure_is_refused_by_name(world: PerformanceWorld) -> None:
    """API-218."""
    await world.instantiate(id="empty")
    server = {
        "id": "s",
        "vduId": "V",
        "computeResource": {"resourceId": "s", "vimLevelResourceType": "OS::Nova::Server"},
    }
    vnfc = {"id": "V-s", "vduId": "V", "vnfcResourceInfoId": "s"}
    await world.instantiate(id="machines", vnfcResourceInfo=[server], vnfcInfo=[vnfc])
    await world.store.insert(INSTANCES, "new", {**(await world.store.get(INSTANCES, "empty")).body, "id": "new"})
    await world.store.update(INSTANCES, "new", {}, unset=["instantiatedVnfInfo", "internal"])
    at, metric = "criteria/performanceMetric[0]", "criteria/performanceMetric"
    fine = {"performanceMetric": [CPU], **MINUTE}
    table: list[tuple[dict[str, Any], str, str]] = [
        ({"criteria": {**fine, metric.partition("/")[2]: ["VDiskUsageMeanVnf"]}}, at, "VDiskUsageMeanVnf needs a Prometheus"),
        ({"criteria": {**fine, "performanceMetric": [], "performanceMetricGroup": ["VirtualisedComputeResource"]}},
         "criteria/performanceMetricGroup", "VDiskUsageMeanVnf needs a Prometheus"),
        ({"criteria": {**fine, "performanceMetric": ["ByteIncomingVnfIntCp"]}, "objectType": "VnfIntCp"}, at,
         "ByteIncomingVnfIntCp needs a Prometheus"),
        ({"criteria": {**fine, "collectionPeriod": 10}}, "criteria/collectionPeriod", "at least 15 s"),
        *(({"objectInstanceIds": [each], "criteria": fine}, "metadata/monitoring", f"VNF instance {each} has no pods")
          for each in ("empty", "machines", "new")),
    ]  # fmt: skip
    for changes, place, reason in table:
        with pytest.raises(Unprocessable, match=reason) as refused:
            await world.job(**changes)
        assert [name for name, _ in refused.value.places] == [place]
    details = {"thresholdValue": 1, "hysteresis": 0}
    disk = {"performanceMetric": "VDiskUsagePeakVnf", "thresholdType": "SIMPLE", "simpleThresholdDetails": details}
    with pytest.raises(Unprocessable, match="VDiskUsagePeakVnf needs a Prometheus") as refused:
        await world.threshold(criteria=disk)
    assert [name for name, _ in refused.value.places] == [metric]
    assert world.usages.asked == []
    assert await world.all(COLLECTION) == []


async def test_a_cluster_without_metrics_server_is_refused_at_creation_and_one_that_is_away_is_not(
    world: PerformanceWorld,
) -> None:
    """API-218."""
    for failure in (
        ResourceMetricsUnavailable("the cluster has no metrics.k8s.io"),
        NotFound("VIM k8s does not exist"),
    ):
        world.usages.failure = failure
        with pytest.raises(Unprocessable, match=str(failure)) as refused:
            await world.job(criteria={"performanceMetric": [CPU], **MINUTE})
        assert [name for name, _ in refused.value.places] == ["metadata/monitoring"]
        assert "setting prometheus_url" in str(refused.value)
    assert not await world.store.find(SOURCES, Query()), "nothing waits for it: there is no alarm"
    world.usages.failure = RegionUnavailable("it does not answer")
    assert (await world.job(criteria={"performanceMetric": [CPU], **MINUTE})).body["internal"]["sources"]


def test_tallies_forget_pods_that_are_gone() -> None:
    """API-216: the stored size follows the pods that there are."""
    mean = BY_TYPE["Vnf"][0]

    def sample(part: str, second: int) -> Sample:
        return Sample("i", part, BEGIN + timedelta(seconds=second), {"cpu": float(second)})

    tallies = counted([], [sample("a", 1), sample("b", 2)], lambda _: 1)
    tallies = after(counted(tallies, [sample("a", 3)], lambda _: 1), 1)
    assert {each["part"] for each in counted(tallies, [sample("a", 3)], lambda _: 2)} == {"a"}
    tallies = counted(tallies, [sample("a", 3), sample("c", 5)], lambda _: 2)
    assert values_of(tallies, 2, mean) == {("i", "c"): [5.0]}, "that of a was counted before"
    assert counted([], [sample("a", 1)], lambda _: None) == []


async def test_a_cnf_is_measured_over_http_without_a_prometheus(tmp_path: Path) -> None:
    """API-216, API-218, API-219: the whole way through the gateway, and the ETSI types."""
    async with (
        lcm_world(tmp_path, allowed_networks="127.0.0.0/8", pm_sample_s=1, pm_sample_delay_s=0) as world,
        Subscriber.listening() as subscriber,
    ):
        instance_id = await deployed(world)
        body = {
            "objectType": "Vnf",
            "objectInstanceIds": [instance_id],
            "criteria": {"performanceMetric": [CPU], "collectionPeriod": 1, "reportingPeriod": 1},
            "callbackUri": subscriber.uri,
        }
        version = {"Version": "2.2.0"}
        refused = (await world.call("POST", "/vnfpm/v2/pm_jobs", body, headers=version)).problem(422)
        assert "the cluster has no metrics.k8s.io (metrics-server)" in refused["detail"]
        reserved = {**body, "metadata": {"kubevnfm_last_error": "x"}}
        (await world.call("POST", "/vnfpm/v2/pm_jobs", reserved, headers=version)).problem(400)
        world.usages.failure = RegionUnavailable("it does not answer")
        made = (await world.call("POST", "/vnfpm/v2/pm_jobs", body, headers=version)).must(201)
        (heard, *_) = await subscriber.was_tried(1)
        if (etsi := etsi_schemas()) is not None:
            etsi.check_type(heard["notificationType"], heard)
        for path in (f"/vnfpm/v2/pm_jobs/{made.json['id']}", "/vnfpm/v2/pm_jobs"):
            shown = (await world.call("GET", path, headers=version)).must(200).json
            (shown,) = shown if isinstance(shown, list) else [shown]
            assert shown["metadata"]["kubevnfm_last_error"] == f"VNF instance {instance_id}: it does not answer"
        asked = world.usages.asked[-1]
        assert (asked.vim.vim_id, asked.vnf_instance_id, asked.namespace) == ("k8s", instance_id, "default")
        assert set(asked.pods) == {"web-0", "web-1"}
