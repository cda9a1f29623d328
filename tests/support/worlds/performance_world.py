"""Performance management without a gateway: on a store, a clock that stands still, and a measurer in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_clients.outbound import AddressRules
from kubevnfm_lcm_api.due import CLAIM
from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION as INSTANCES
from kubevnfm_lcm_api.measurement_sources import SourceStates
from kubevnfm_lcm_api.notifications.checked_callbacks import CheckedCallbacks
from kubevnfm_lcm_api.notifications.own_callbacks import OwnCallbacks
from kubevnfm_lcm_api.performance.domain.ports import MeasurerUnavailable, Series
from kubevnfm_lcm_api.performance.domain.requests import CreatePmJobRequest, CreateThresholdRequest
from kubevnfm_lcm_api.performance.job_record import COLLECTION as JOBS
from kubevnfm_lcm_api.performance.job_work import JobWork
from kubevnfm_lcm_api.performance.jobs import PmJobs
from kubevnfm_lcm_api.performance.measured import Measured
from kubevnfm_lcm_api.performance.measuring import Measuring
from kubevnfm_lcm_api.performance.pod_sampling import PodSampling
from kubevnfm_lcm_api.performance.resources import Shared
from kubevnfm_lcm_api.performance.sources import Sources
from kubevnfm_lcm_api.performance.threshold_record import COLLECTION as THRESHOLDS
from kubevnfm_lcm_api.performance.threshold_work import ThresholdWork
from kubevnfm_lcm_api.performance.thresholds import Thresholds
from kubevnfm_store.query import Query, Stored
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.relay import OutboxRelay
from patience import until

from worlds.given_usages import GivenUsages
from worlds.lcm_builders import RING
from worlds.set_clock import SetClock

BEGIN: Final = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
INSTANCE: Final = "inst-1"


@dataclass
class TwinMeasurer:
    """Answers every expression with these series."""

    value: Callable[[datetime], float | None] = lambda at: float(at.second)
    labels: Sequence[dict[str, str]] = ({"namespace": "default", "pod": "web-0"},)
    is_away: bool = False
    asked: list[tuple[str, datetime, datetime, int]] = field(default_factory=list)

    async def query_range(self, query: str, *, start: datetime, end: datetime, step_s: int) -> Sequence[Series]:
        self.asked.append((query, start, end, step_s))
        if self.is_away:
            raise MeasurerUnavailable("Prometheus: it did not answer in time")
        times = [
            start + timedelta(seconds=number) for number in range(0, int((end - start).total_seconds()) + 1, step_s)
        ]
        found = [(at.timestamp(), value) for at in times if (value := self.value(at)) is not None]
        return [Series(each, found) for each in self.labels]


class _Subscriber:
    """Takes everything."""

    async def obstacle(self, _: Any) -> None:
        return None


@dataclass
class PerformanceWorld:
    """The parts, on one store."""

    store: Any
    clock: SetClock
    measurer: TwinMeasurer
    jobs: PmJobs
    thresholds: Thresholds
    job_work: JobWork
    threshold_work: ThresholdWork
    measured: Measured
    relay: OutboxRelay
    bus: InProcessBus
    heard: list[Any]
    """The events that were published, in order: see `publish`."""
    usages: GivenUsages

    async def instantiate(self, *pods: str, id: str = INSTANCE, **info: Any) -> str:
        """Store a CNF with these pods."""
        resources = [
            {"id": pod, "vduId": "VDU1", "computeResource": {"resourceId": pod, "vimLevelResourceType": "Deployment"},
             "metadata": {"namespace": "default"}}
            for pod in pods
        ]  # fmt: skip
        vnfcs = [{"id": f"VDU1-{pod}", "vduId": "VDU1", "vnfcResourceInfoId": pod} for pod in pods]
        body = {"flavourId": "simple", "vnfcResourceInfo": resources, "vnfcInfo": vnfcs, **info}
        named = dict.fromkeys(
            ("vnfdId", "vnfProvider", "vnfProductName", "vnfSoftwareVersion", "vnfdVersion", "vnfPkgId"), "x"
        )
        stored = {
            "id": id, **named, "createdAt": "", "updatedAt": "", "instantiationState": "INSTANTIATED",
            "instantiatedVnfInfo": body, "vimConnectionInfo": {"k": {"vimId": "k8s", "vimType": "kubernetes"}},
            "internal": {"deployments": [{"kind": "release", "vimKey": "k"}]},
        }  # fmt: skip
        await self.store.insert(INSTANCES, id, stored)
        return id

    async def job(self, **changes: Any) -> Stored:
        """Create a job for each 10 s that reports each 30 s."""
        criteria = {"performanceMetric": ["VCpuUsageMeanVnf"], "collectionPeriod": 10, "reportingPeriod": 30}
        body = {
            "objectType": "Vnfc", "objectInstanceIds": [INSTANCE], "callbackUri": "http://127.0.0.1/callback",
            **changes, "criteria": {**criteria, **changes.get("criteria", {})},
        }  # fmt: skip
        return await self.jobs.create(CreatePmJobRequest.model_validate(body))

    async def threshold(self, value: float = 50, hysteresis: float = 5, **changes: Any) -> Stored:
        """Create a threshold."""
        details = {"thresholdValue": value, "hysteresis": hysteresis}
        criteria = {
            "performanceMetric": "VCpuUsageMeanVnf", "thresholdType": "SIMPLE", "simpleThresholdDetails": details
        }  # fmt: skip
        body = {
            "objectType": "Vnf", "objectInstanceId": INSTANCE, "callbackUri": "http://127.0.0.1/callback",
            "criteria": criteria, **changes,
        }  # fmt: skip
        return await self.thresholds.create(CreateThresholdRequest.model_validate(body))

    async def measure(self, job_id: str, work: JobWork | None = None) -> None:
        """Claim a job and measure it, whether it is due or not."""
        claimed = await self.store.update(JOBS, job_id, {CLAIM: "mine"})
        await (work or self.job_work).measure(claimed, "mine")

    async def judge(self, threshold_id: str) -> None:
        """Claim a threshold and measure it."""
        claimed = await self.store.update(THRESHOLDS, threshold_id, {CLAIM: "mine"})
        await self.threshold_work.measure(claimed, "mine")

    async def reports(self, job_id: str) -> list[Any]:
        """Return all reports of a job, the oldest first."""
        found = self.jobs.reports((await self.jobs.get(job_id)).body)
        return [await self.jobs.report(job_id, each["id"]) for each in found]

    async def publish(self, count: int) -> None:
        """Publish what is stored, and wait until so many events are heard."""
        await self.relay.sweep()

        async def enough() -> bool | None:
            return len(self.heard) >= count or None

        await until(enough, timeout_s=60)
        await self.bus.quiet()

    async def all(self, collection: str) -> Sequence[Stored]:
        """Return all documents."""
        found: Sequence[Stored] = await self.store.find(collection, Query())
        return found


async def _no_automation(instance_id: str, metadata: Mapping[str, Any], *, is_of_vnfcs: bool) -> None:
    """Have nothing to say against metadata."""


@asynccontextmanager
async def performance_world(folder: Path, *, has_prometheus: bool = True) -> AsyncIterator[PerformanceWorld]:
    """Yield the parts; without a Prometheus pods are sampled."""
    clock, measurer = SetClock(BEGIN), TwinMeasurer()
    async with SqliteStore.open(folder / "store.db") as store, InProcessBus(RING, drain_s=1.0) as bus:
        heard: list[Any] = []

        async def hear(delivery: Delivery) -> Verdict:
            heard.append(delivery.envelope)
            return Ack()

        await bus.consume_events("lcm-api.heard", ("lcm.performance.reported", "lcm.threshold.crossed"), hear)
        async with OutboxRelay(store, bus, collections=[JOBS, THRESHOLDS], settle_s=0) as relay:
            yield parts(store, clock, measurer, relay, bus, heard, GivenUsages(), has_prometheus=has_prometheus)


def parts(
    store: Any,
    clock: SetClock,
    measurer: TwinMeasurer,
    relay: OutboxRelay,
    bus: InProcessBus,
    heard: list[Any],
    usages: GivenUsages,
    *,
    has_prometheus: bool = True,
) -> PerformanceWorld:
    """Return the parts on a store, which may be that of a process that dies."""
    subscriber: Any = _Subscriber()
    callbacks = OwnCallbacks(store, clock, CheckedCallbacks(subscriber, RING, tests=False))
    sources = Sources(measurer if has_prometheus else None, lambda _: measurer, AddressRules())
    states = SourceStates(store, clock)
    pods = PodSampling(store, usages, clock, 15.0, timedelta(seconds=30), states)
    shared = Shared(store, clock, RING, callbacks, sources, pods, most=20)
    outbox = Outbox(store, relay, RING)
    measuring = Measuring(store, sources, states, 1.0)
    after = timedelta(seconds=1)
    jobs = PmJobs(shared, after, timedelta(days=7), lambda: None)
    thresholds = Thresholds(shared, outbox, lambda: None, _no_automation)
    return PerformanceWorld(
        store, clock, measurer, jobs, thresholds,
        JobWork(store, outbox, clock, jobs, measuring, pods, timedelta(seconds=600), 3),
        ThresholdWork(clock, thresholds, measuring, pods, after, 30),
        Measured(store, clock, jobs, thresholds), relay, bus, heard, usages,
    )  # fmt: skip
