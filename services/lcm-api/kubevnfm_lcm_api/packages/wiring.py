"""The classes behind VNF packages: their catalogue, their files, their onboarding."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from aiohttp import web
from kubevnfm_bus.port import MessageBus
from kubevnfm_events import queues
from kubevnfm_events.lcm import FetchChart, FetchPackage, OnboardPackage
from kubevnfm_kit.run import background, repeat
from kubevnfm_sol.access import SITE_MARK
from kubevnfm_store.query import Index
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.worker import CommandWorker

from kubevnfm_lcm_api import site_entries
from kubevnfm_lcm_api.packages import charts
from kubevnfm_lcm_api.packages.adapters.bundling_process import BundleProcesses
from kubevnfm_lcm_api.packages.adapters.chart_files import DiskChartFiles
from kubevnfm_lcm_api.packages.adapters.files import DiskPackageFiles
from kubevnfm_lcm_api.packages.adapters.schema_process import SchemaProcesses
from kubevnfm_lcm_api.packages.adapters.signatures import PackageSignatures
from kubevnfm_lcm_api.packages.adapters.sources import HttpPackageSources
from kubevnfm_lcm_api.packages.adapters.unpacking_process import UnpackingProcesses, UnpackingRules
from kubevnfm_lcm_api.packages.artifact_settings import ArtifactSettings
from kubevnfm_lcm_api.packages.bundles import BundlePackages
from kubevnfm_lcm_api.packages.catalogue import Packages
from kubevnfm_lcm_api.packages.copies import USED_AT, Copies
from kubevnfm_lcm_api.packages.domain.ports import Foresight, PackageUsers
from kubevnfm_lcm_api.packages.external import ExternalArtifacts
from kubevnfm_lcm_api.packages.http import routes
from kubevnfm_lcm_api.packages.http.context import PackageServices
from kubevnfm_lcm_api.packages.on_demand import PackagesOnDemand
from kubevnfm_lcm_api.packages.onboarding import Onboarding
from kubevnfm_lcm_api.packages.room import Room
from kubevnfm_lcm_api.packages.settings import PackageSettings
from kubevnfm_lcm_api.packages.usable import COLLECTION

_SWEEP_EVERY_S = 30.0
_ORPHANS_EVERY_S = 3600.0
OUTBOXES = (COLLECTION, charts.COLLECTION)
"""Collections whose documents carry messages to send."""
INDEXES = {
    COLLECTION: [
        Index(["createdAt"]),
        Index(["vnfdId"], unique=True),
        Index(["vnfdId"]),  # MongoDB searches no unique index for a value: it leaves out documents without one
        Index(["onboardingState", "createdAt"]),
        Index(["vnfProductName"]),
        Index(["usageState"]),
        Index(["checksum/hash", "createdAt"]),
        Index([f"userDefinedData/{SITE_MARK}/name", "createdAt"]),
        site_entries.INDEX,
        Index([USED_AT], sparse=True),
    ],
    charts.COLLECTION: [],
}


@dataclass(frozen=True)
class PackageParts:
    """The part of lcm-api that manages VNF packages."""

    services: PackageServices
    bundles: BundlePackages

    def add_to(self, app: web.Application) -> None:
        """Add the resources to the gateway."""
        routes.add_to(app, self.services)

    def handle(self, worker: CommandWorker) -> None:
        """Register the handlers of the package commands; before the worker starts."""
        worker.handle(FetchPackage, self.services.onboarding.fetch_package)
        worker.handle(FetchChart, self.services.charts.fetch_chart)
        worker.handle(OnboardPackage, self.services.onboarding.onboard_package)

    async def start(self, bus: MessageBus) -> None:
        """Consume the events that change the usage of packages."""
        await bus.consume_events(
            queues.PACKAGE_USAGE.name, queues.PACKAGE_USAGE.patterns, self.services.catalogue.follow_instances
        )


@asynccontextmanager
async def package_parts(
    settings: PackageSettings,
    artifacts: ArtifactSettings,
    backends: Backends,
    *,
    users: PackageUsers,
    outbox: Outbox,
    session: aiohttp.ClientSession,
    data_dir: Path,
    limit_bytes: int,
    foresee: Foresight,
) -> AsyncIterator[PackageParts]:
    """Yield the parts, interrupted uploads of an earlier run reset; leaving the block ends the background work.

    ``session``: for calls to addresses that requests name; ``limit_bytes``: the largest package that is accepted;
    ``foresee``: what its warnings say of instantiate.
    """
    store, ring, clock = backends.store, backends.key_ring, backends.clock
    # Only to refuse bad settings at the start: the processes that unpack packages verify their signatures.
    PackageSignatures(anchors=settings.package_trust_anchors, is_required=settings.require_signed_packages)
    rules = UnpackingRules(
        anchors=settings.package_trust_anchors,
        is_signature_required=settings.require_signed_packages,
        cpu_s=settings.onboarding_cpu_s,
    )
    schemas = SchemaProcesses()
    files = DiskPackageFiles(data_dir, UnpackingProcesses(rules))
    catalogue = Packages(store=store, outbox=outbox, files=files, users=users, schemas=schemas, ring=ring, clock=clock)
    room = Room(clock, artifacts.artifact_disk_bytes)
    copies = Copies(catalogue, store, room, artifacts.artifact_limit_bytes)
    sources = HttpPackageSources(session, artifacts, ring=ring, longest_s=settings.fetch_timeout_s)
    processes = BundleProcesses(data_dir)
    chart_files, largest = DiskChartFiles(data_dir, processes), min(artifacts.artifact_limit_bytes, charts.LARGEST)
    fetched = charts.Charts(store, outbox, sources, chart_files, catalogue, room, largest)
    room.shelves.extend((copies, fetched))
    onboarding = Onboarding(
        packages=catalogue,
        store=store,
        outbox=outbox,
        files=files,
        sources=sources,
        ring=ring,
        clock=clock,
        owners=backends.owners,
        limit_bytes=limit_bytes,
        foresee=foresee,
        copies=copies,
        external=ExternalArtifacts(files, sources, ring, artifacts.artifact_limit_bytes, limit_bytes),
    )
    has_catalogue = artifacts.artifact_catalogue_url is not None
    on_demand = PackagesOnDemand(catalogue, onboarding, copies, store, has_catalogue, artifacts.artifact_timeout_s)
    await onboarding.recover()
    sweeps = {
        "uploads": repeat(onboarding.reset_expired, every_s=_SWEEP_EVERY_S),
        "charts": repeat(fetched.remove_orphans, every_s=_ORPHANS_EVERY_S),
    }
    async with background(**sweeps), schemas:
        await asyncio.to_thread(processes.remove_old)
        bundles = BundlePackages(catalogue, onboarding, files, processes)
        services = PackageServices(catalogue, onboarding, files, limit_bytes, on_demand, fetched, sources.repositories)
        yield PackageParts(services, bundles)
