"""The classes behind performance management."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import aiohttp
from aiohttp import web
from kubevnfm_bus.port import MessageBus
from kubevnfm_clients.outbound import AddressRules
from kubevnfm_clients.pod_usages import PodUsages
from kubevnfm_events import queues
from kubevnfm_kit.client_session import client_session
from kubevnfm_kit.http_client import HttpConnector
from kubevnfm_kit.run import background, repeat
from kubevnfm_kit.tls import client_context
from kubevnfm_store.query import Index
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.outbox import Outbox

from kubevnfm_lcm_api import measurement_sources
from kubevnfm_lcm_api.due import DUE, DueWork
from kubevnfm_lcm_api.measurement_sources import SourceStates
from kubevnfm_lcm_api.notifications.own_callbacks import OwnCallbacks
from kubevnfm_lcm_api.performance import job_record, threshold_record
from kubevnfm_lcm_api.performance.adapters.prometheus import PrometheusApi
from kubevnfm_lcm_api.performance.domain.ports import CheckAutomation, Measurer, OnCrossing
from kubevnfm_lcm_api.performance.http.resources import add_to
from kubevnfm_lcm_api.performance.job_work import JobWork
from kubevnfm_lcm_api.performance.jobs import PmJobs
from kubevnfm_lcm_api.performance.measured import Measured
from kubevnfm_lcm_api.performance.measuring import Measuring
from kubevnfm_lcm_api.performance.pod_sampling import PodSampling
from kubevnfm_lcm_api.performance.resources import Shared
from kubevnfm_lcm_api.performance.settings import PerformanceSettings
from kubevnfm_lcm_api.performance.sources import Sources, names_of
from kubevnfm_lcm_api.performance.threshold_work import HandedCrossings, ThresholdWork
from kubevnfm_lcm_api.performance.thresholds import Thresholds

OUTBOXES = (job_record.COLLECTION, threshold_record.COLLECTION)
"""Collections whose documents carry messages to send."""
INDEXES = {
    job_record.COLLECTION: [
        Index(["createdAt"]),
        Index(["objectType", "createdAt"]),
        Index(["objectInstanceIds", "createdAt"]),
        Index([DUE]),
    ],
    job_record.SAMPLES: [Index(["jobId", "at"]), Index(["at"])],
    measurement_sources.COLLECTION: measurement_sources.INDEXES,
    threshold_record.COLLECTION: [
        Index(["createdAt"]),
        Index(["objectInstanceId", "createdAt"]),
        Index([DUE]),
    ],
}
_REMOVE_OLD_EVERY_S: Final = 3600.0


@dataclass(frozen=True)
class PerformanceParts:
    """The part of lcm-api that measures."""

    jobs: PmJobs
    thresholds: Thresholds
    measured: Measured
    crossings: HandedCrossings

    def add_to(self, app: web.Application) -> None:
        """Add the resources to the gateway."""
        add_to(app, self.jobs, self.thresholds)

    async def start(self, bus: MessageBus) -> None:
        """Consume the crossings, to hand them on."""
        await bus.consume_events(queues.CROSSINGS.name, queues.CROSSINGS.patterns, self.crossings.hand_on)


@asynccontextmanager
async def performance_parts(
    settings: PerformanceSettings,
    backends: Backends,
    *,
    outbox: Outbox,
    callbacks: OwnCallbacks,
    session: aiohttp.ClientSession,
    rules: AddressRules,
    on_crossing: OnCrossing,
    check_automation: CheckAutomation,
    usages: PodUsages,
) -> AsyncIterator[PerformanceParts]:
    """Yield the parts; leaving the block ends the measuring.

    ``session``, ``rules``: for calls to addresses that requests name; ``usages``: for CNFs without a Prometheus.
    """
    store, clock = backends.store, backends.clock
    async with AsyncExitStack() as stack:
        site: Measurer | None = None
        if settings.prometheus_url is not None:
            tls = await stack.enter_async_context(client_context(settings.prometheus_tls))
            own = client_session(connector=HttpConnector(ssl=tls), auto_decompress=False)
            await stack.enter_async_context(own)
            site = PrometheusApi(own, settings.prometheus_url, _credentials(settings))
        sources = Sources(site, lambda url: PrometheusApi(session, url), rules)
        delay = timedelta(seconds=settings.pm_sample_delay_s)
        states = SourceStates(store, clock)
        pods = PodSampling(store, usages, clock, settings.pm_sample_s, delay, states)
        shared = Shared(store, clock, backends.key_ring, callbacks, sources, pods, settings.pm_most_jobs)
        measuring = Measuring(store, sources, states, settings.prometheus_scrape_s)
        jobs_due, thresholds_due = asyncio.Event(), asyncio.Event()
        after = timedelta(seconds=settings.prometheus_delay_s)
        jobs = PmJobs(shared, after, timedelta(days=settings.pm_report_days), jobs_due.set)
        thresholds = Thresholds(shared, outbox, thresholds_due.set, check_automation)
        catch_up = timedelta(seconds=settings.pm_catch_up_s)
        of_jobs = JobWork(store, outbox, clock, jobs, measuring, pods, catch_up, settings.pm_reports_kept)
        period_s = max(1, round(settings.threshold_period_s))
        of_thresholds = ThresholdWork(clock, thresholds, measuring, pods, after, period_s)
        job_work = DueWork(store, clock, job_record.COLLECTION, of_jobs.measure, jobs_due, names_of)
        threshold_work = DueWork(
            store, clock, threshold_record.COLLECTION, of_thresholds.measure, thresholds_due, names_of
        )

        async def remove_old() -> None:
            await jobs.remove_old()
            await states.remove_old()
            await callbacks.remove_orphans(exists)

        async def exists(resource_id: str) -> bool:
            return await jobs.resources.exists(resource_id) or await thresholds.resources.exists(resource_id)

        async with background(
            pm_jobs=job_work.run(),
            thresholds=threshold_work.run(),
            old_reports=repeat(remove_old, every_s=_REMOVE_OLD_EVERY_S),
        ):
            measured = Measured(store, clock, jobs, thresholds)
            yield PerformanceParts(jobs, thresholds, measured, HandedCrossings(thresholds, on_crossing))


def _credentials(settings: PerformanceSettings) -> dict[str, str]:
    password = settings.prometheus_password.get_secret_value()
    if not password:
        return {}
    if settings.prometheus_user:
        return {"Authorization": aiohttp.encode_basic_auth(settings.prometheus_user, password)}
    return {"Authorization": f"Bearer {password}"}
