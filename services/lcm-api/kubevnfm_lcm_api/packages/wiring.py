"""The classes behind VNF packages: their catalogue, their files, their onboarding."""

from __future__ import annotations

from dataclasses import dataclass

import aiohttp
from kubevnfm_bus.port import MessageBus
from kubevnfm_events.lcm import FetchPackage, OnboardPackage
from kubevnfm_store.query import Index
from kubevnfm_worker import CommandWorker, Outbox
from kubevnfm_worker.backends import Backends

from kubevnfm_lcm_api.packages.adapters.files import DiskPackageFiles
from kubevnfm_lcm_api.packages.adapters.signatures import PackageSignatures
from kubevnfm_lcm_api.packages.adapters.sources import HttpPackageSources
from kubevnfm_lcm_api.packages.catalogue import COLLECTION, Packages
from kubevnfm_lcm_api.packages.domain.ports import PackageUsers
from kubevnfm_lcm_api.packages.onboarding import Onboarding
from kubevnfm_lcm_api.settings import Settings

INDEXES = {
    COLLECTION: [
        Index(["createdAt"]),
        Index(["vnfdId"], unique=True),
        Index(["onboardingState"]),
        Index(["usageState"]),
    ],
}


@dataclass(frozen=True)
class PackageParts:
    """The parts of lcm-api that deal with VNF packages."""

    catalogue: Packages
    onboarding: Onboarding
    files: DiskPackageFiles
    limit_bytes: int
    """The largest package that an upload may have."""

    def handle(self, worker: CommandWorker) -> None:
        """Register the handlers of the package commands; before the worker starts."""
        worker.handle(FetchPackage, self.onboarding.fetch_package)
        worker.handle(OnboardPackage, self.onboarding.onboard_package)

    async def start(self, bus: MessageBus) -> None:
        """Consume the events from which the usage of packages follows."""
        await bus.consume_events(
            "lcm-api.usage", ["lcm.instance.*", "lcm.operation.changed"], self.catalogue.follow_instances
        )


def package_parts(
    settings: Settings, backends: Backends, *, users: PackageUsers, outbox: Outbox, session: aiohttp.ClientSession
) -> PackageParts:
    """Return the parts. ``users``: the instances that use packages; ``session``: for addresses that requests name."""
    store, ring, clock = backends.store, backends.key_ring, backends.clock
    signatures = PackageSignatures(anchors=settings.package_trust_anchors, is_required=settings.require_signed_packages)
    files = DiskPackageFiles(settings.data_dir, signatures)
    catalogue = Packages(store=store, outbox=outbox, files=files, users=users, ring=ring, clock=clock)
    limit_bytes = int(settings.package_limit_gib * 2**30)
    onboarding = Onboarding(
        packages=catalogue,
        store=store,
        outbox=outbox,
        files=files,
        sources=HttpPackageSources(session, ring=ring, longest_s=settings.fetch_timeout_s),
        ring=ring,
        clock=clock,
        limit_bytes=limit_bytes,
    )
    return PackageParts(catalogue, onboarding, files, limit_bytes)
